"""Runs the probes on a machine and gathers its facts.

On a live machine:

1. a worker process looks at the device nodes, before any library of NVIDIA's is loaded (as root they create nodes),
   and then for the NVML library and nvidia-smi;
2. NVML is asked in a second process, and nvidia-smi is started;
3. meanwhile the worker runs the other probes in the registry's order; what waits for a dead path is overtaken by the
   rest;
4. NVML's and nvidia-smi's answers are waited for.

This process itself asks the machine nothing that could hold it.

A probe that raises, crashes or hangs costs its own facts: they become unknown, with the reason, and the probe stands in
`examination.failed` or `examination.timed_out`. A replayed machine is examined in this process.

`examine(system)` gives the facts. Who has something else to do meanwhile (import the rules) begins, looks in now and
then, so that NVML is asked as soon as it is known where it is, and asks later:

    examination = begin(live_system())
    ...
    examination.advance()
    ...
    facts = examination.facts()
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Callable, Optional, Union

from cudadoctor.model.fact import Fact, Facts, known, unknown
from cudadoctor.probes.api import Probe
from cudadoctor.system.port import System

if TYPE_CHECKING:
    from cudadoctor.system.port import RunningProgram, RunningQuery
    from cudadoctor.system.worker import Finished, Task, Worker

# Long enough for the first call to a driver without persistence mode on a machine with eight GPUs (ten seconds and
# more), short enough for a job's prolog.
RUN_SECONDS = 20.0

# One probe takes milliseconds; one that takes this long hangs (a dead network file system, a directory service).
PROBE_SECONDS = 6.0

# Kept back from the probes, so that what is found is said before the deadline.
RESERVE = 0.3

# A probe that takes longer is overtaken by those that come after it: so much, and no more than a part of the run.
PATIENCE = 0.5
_PART = 10

# A folder that has not answered after so long is left alone, so that each probe need not find out for itself. One that
# an automounter has yet to mount takes a second or two. Every further one is given half the time.
ANSWER_SECONDS = 2.0
_ANSWER_PART = 5
_DEAD_FOLDERS = 4

# How long nvidia-smi is looked for in PATH, and what else only has to be found.
LOOK_SECONDS = 2.0
_LOOK_PART = 4

DEVICE = "device"
DRIVER = "driver"
_LIBRARY = "where NVML is"
_SMI = "where nvidia-smi is"
_FOLDERS = "whether folders answer"
_ASKED = "whether --python is one"

_SOURCE = "examination"

# A fact on its way between processes: state, value, source, reason.
_Packed = tuple[str, Any, str, str]


def live_system(seconds: float = RUN_SECONDS, asked_python: Optional[str] = None) -> System:
    """This machine, for an examination that ends within `seconds`."""
    import time

    from cudadoctor.system.live import LiveSystem

    return LiveSystem(time.monotonic() + seconds, asked_python)


def examine(system: System, probes: Optional[Sequence[Union[str, Probe]]] = None) -> Facts:
    """All facts of a machine, by the registry's probes or by those given (their modules' names, or probes)."""
    return begin(system, probes).facts()


def begin(
    system: System,
    probes: Optional[Sequence[Union[str, Probe]]] = None,
    beside: Optional[Mapping[str, Callable[[System], Any]]] = None,
) -> Examination:
    """Starts an examination. Call it before threads are started: it forks. `beside` are questions of the caller's own
    by name, with plain data as answers, that could hold it as well as a probe: see `Examination.answer`."""
    if probes is None:
        from cudadoctor.probes.registry import PROBES

        probes = PROBES
    return Examination(system, probes, beside or {})


def load(probe: Union[str, Probe]) -> Probe:
    """A probe by its module's name."""
    if isinstance(probe, Probe):
        return probe
    module = importlib.import_module(f"cudadoctor.probes.{probe}")
    loaded: Probe = module.PROBE
    return loaded


def _name(probe: Union[str, Probe]) -> str:
    return probe if isinstance(probe, str) else probe.name


def _look(probe: Union[str, Probe], system: System) -> Mapping[str, Fact[Any]]:
    """What a probe says; nothing on a system that it is not for."""
    loaded = load(probe)
    return loaded.function(system) if system.platform in loaded.platforms else {}


def _one_line(error: BaseException) -> str:
    from cudadoctor.system.worker import one_line

    return one_line(error)


class Examination:
    """A machine that is being examined; see `begin`. Its own mistakes apart, what it does here never waits for long."""

    def __init__(
        self, system: System, probes: Sequence[Union[str, Probe]], beside: Mapping[str, Callable[[System], Any]]
    ) -> None:
        self._system = system
        self._beside = beside
        self._answers: dict[str, Any] = {}
        self._refused = ""  # why --python is a mistake
        self._probes = {_name(probe): probe for probe in probes}
        self._facts: dict[str, Fact[Any]] = {}
        self._failed: list[dict[str, Any]] = []
        self._timed_out: list[dict[str, Any]] = []
        self._worker: Optional[Worker] = None
        self._places: dict[str, Fact[str]] = {}
        self._nvml: Optional[RunningQuery] = None
        self._smi: Optional[RunningProgram] = None
        self._smi_seconds = 0.0
        self._result: Optional[Facts] = None
        if system.kind == "live":
            self._start()

    def facts(self) -> Facts:
        """Waits for all probes, and gives the facts. Raises ParseError for a `--python` that is none."""
        if self._result is None:
            if self._worker is None:
                self._run_here()
            else:
                self._gather()
            self._result = self._all()
        return self._result

    def advance(self) -> bool:
        """Takes what has been found so far, and starts what can be started by now. Never waits. Whether `facts` may
        have to."""
        if self._worker is None or self._result is not None:
            return False
        while (finished := self._worker.next(0.0)) is not None:
            self._digest(finished)
        return self._nvml is not None or self._smi is not None or not self._worker.is_done

    def answer(self, name: str) -> Any:
        """What the caller's own question gave (see `begin`), waited for; None where it failed or did not end in time.
        Of a replayed machine it is asked here and now."""
        if self._worker is None:
            return self._beside[name](self._system)
        while name not in self._answers and not self._worker.is_done:
            self._advance_a_little(self._worker)
        return self._answers.get(name)

    def close(self) -> None:
        """Breaks the examination off, where nobody will ask for its facts."""
        if self._worker is not None:
            self._worker.close()
        self._nvml = self._smi = None

    def _all(self) -> Facts:
        facts = self._facts
        facts["examination.kind"] = known(self._system.kind, _SOURCE)
        facts["examination.failed"] = known(self._failed, _SOURCE)
        facts["examination.timed_out"] = known(self._timed_out, _SOURCE)
        facts["system.date"] = self._system.today()
        return Facts(facts)

    def _take(self, facts: Mapping[str, Fact[Any]]) -> None:
        for name, fact in facts.items():
            if name == "examination.failed":  # a part of the probe failed
                self._failed += fact.get()
            elif name == "examination.timed_out":
                self._timed_out += fact.get()
            else:
                self._facts[name] = fact

    def _fail(self, probe: Union[str, Probe], reason: str) -> None:
        """The probe gave nothing: its facts are unknown."""
        self._failed.append({"probe": _name(probe), "reason": reason})
        self._lose(probe, f"the probe {_name(probe)!r} failed: {reason}")

    def _lose(self, probe: Union[str, Probe], reason: str) -> None:
        try:
            loaded = load(probe)
        except Exception:
            return  # nobody knows which facts it would have given: they are "not looked at"
        if self._system.platform in loaded.platforms:
            for name in _fact_names(loaded.facts):
                self._facts.setdefault(name, unknown(reason, f"probe {loaded.name}"))

    # -- a replayed machine -----------------------------------------------------------------------------------------

    def _run_here(self) -> None:
        for probe in self._probes.values():
            try:
                self._take(_look(probe, self._system))
            except Exception as error:
                self._fail(probe, _one_line(error))

    # -- this machine -----------------------------------------------------------------------------------------------

    def _start(self) -> None:
        """The worker is on its way when this returns; `advance` and `facts` do the rest."""
        import time

        from cudadoctor.system.worker import Task, Worker, end_all_when_ended

        end_all_when_ended()
        remaining = self._system.remaining()
        names = sorted((name for name in self._probes if name != DRIVER), key=lambda name: name != DEVICE)
        tasks = [Task(name, self._task(self._probes[name]), PROBE_SECONDS) for name in names]
        place = 1 if names and names[0] == DEVICE else 0
        tasks[place:place] = self._first_tasks(min(LOOK_SECONDS, remaining / _LOOK_PART))
        end = time.monotonic() + remaining - min(RESERVE, remaining / 8)
        self._worker = Worker(tasks, end, min(PATIENCE, remaining / _PART), self._leave_alone)

    def _first_tasks(self, seconds: float) -> list[Task]:
        """What comes before all probes but the one of the device nodes: somebody waits for it."""
        from cudadoctor.system.worker import Task

        tasks = []
        if DRIVER in self._probes:
            tasks.append(Task(_LIBRARY, self._finding_library(), seconds))
        answer = min(ANSWER_SECONDS, self._system.remaining() / _ANSWER_PART)
        for number in range(_DEAD_FOLDERS):
            tasks.append(Task(_FOLDERS, self._asking_folders(), answer / 2**number, first=True))
        if DRIVER in self._probes:
            tasks.append(Task(_SMI, self._finding_smi(), seconds))
        for name, question in self._beside.items():
            tasks.append(Task(name, _asking(question, self._system), seconds))
        if self._system.asked_python is not None:
            tasks.append(Task(_ASKED, self._asking_for_python(), PROBE_SECONDS))
        return tasks

    def _gather(self) -> None:
        assert self._worker is not None
        with self._worker as worker:
            while not worker.is_done and not self._refused:
                self._advance_a_little(worker)
        if self._refused:
            from cudadoctor.model.fact import ParseError

            self.close()
            raise ParseError(self._refused)
        if DRIVER in self._probes:
            self._finish(self._probes[DRIVER])

    def _advance_a_little(self, worker: Worker) -> None:
        finished = worker.next(0.2)
        if finished is not None:
            self._digest(finished)
        elif self._smi is not None:
            self._smi.advance()

    def _digest(self, finished: Finished) -> None:
        if finished.name in (_LIBRARY, _SMI):
            self._found(finished)
            return
        if finished.name == _FOLDERS:
            if finished.timed_out and finished.value:
                seconds = round(finished.seconds, 1)
                self._timed_out.append({"probe": "folders", "folder": finished.value, "seconds": seconds})
            return
        if finished.name == _ASKED:
            self._refused = finished.value or ""
            return
        if finished.name in self._beside:
            self._answers[finished.name] = finished.value
            return
        probe = self._probes[finished.name]
        if finished.timed_out:
            self._timed_out.append({"probe": finished.name, "seconds": round(finished.seconds, 1)})
            self._lose(probe, finished.failure)
        elif finished.failure:
            self._fail(probe, finished.failure)
        else:
            self._unpack(probe, finished.value)

    def _task(self, probe: Union[str, Probe]) -> Callable[[Any], Any]:
        """What the worker does for a probe; notes of a recording travel with its facts."""

        def run(report: Any) -> Any:
            facts: dict[str, _Packed] = {}
            failure = ""
            try:
                found = _look(probe, self._system)
                facts = {name: _packed(fact) for name, fact in found.items()}
            except Exception as error:
                failure = _one_line(error)
            return facts, failure, self._system.take_notes()

        return run

    def _unpack(self, probe: Union[str, Probe], content: Any) -> None:
        facts, failure, notes = content
        self._system.add_notes(notes)
        if failure:
            self._fail(probe, failure)
        self._take({name: Fact(*packed) for name, packed in facts.items()})

    def _finding_library(self) -> Callable[[Any], Any]:
        def run(report: Any) -> Any:
            from cudadoctor.probes import driver

            return _packed(driver.find_library(self._system)), self._system.take_notes()

        return run

    def _finding_smi(self) -> Callable[[Any], Any]:
        def run(report: Any) -> Any:
            from cudadoctor.probes import driver

            found = driver.find_smi(self._system, lambda usual: report((_packed(usual), None)))
            return _packed(found), self._system.take_notes()

        return run

    def _asking_folders(self) -> Callable[[Any], Any]:
        def run(report: Any) -> Any:
            self._system.ask_folders(report)

        return run

    def _leave_alone(self, task: str, progress: Any) -> None:
        if task == _FOLDERS and progress:
            self._system.leave_alone(progress)

    def _asking_for_python(self) -> Callable[[Any], Any]:
        def run(report: Any) -> Any:
            from cudadoctor.model.fact import ParseError
            from cudadoctor.probes.patient import check_asked_python

            try:
                check_asked_python(self._system)
                return ""
            except ParseError as error:
                return str(error)

        return run

    def _found(self, finished: Finished) -> None:
        """It is known where NVML or nvidia-smi is, or that nobody will know: what is there is started."""
        from cudadoctor.probes import driver

        place: Fact[str] = unknown(f"looking for it failed: {finished.failure}", "PATH")
        if finished.value is not None:  # with a failure: what serves all the same
            packed, notes = finished.value
            self._system.add_notes(notes)
            found: Fact[str] = Fact(*packed)
            place = found if not finished.failure or found.is_known else place
        self._places[finished.name] = place
        if finished.timed_out and DRIVER not in [entry["probe"] for entry in self._timed_out]:
            self._timed_out.append({"probe": DRIVER, "seconds": round(finished.seconds, 1)})
        if finished.name == _LIBRARY:
            self._nvml = driver.begin_nvml(self._system, place)
        else:
            self._smi_seconds = driver.time_left(self._system)
            self._smi = driver.begin_smi(self._system, place)

    def _finish(self, probe: Union[str, Probe]) -> None:
        from cudadoctor.probes import driver

        library, smi = self._places[_LIBRARY], self._places[_SMI]
        begun = driver.Begun(library, smi, self._nvml, self._smi, self._smi_seconds)
        try:
            self._take(driver.finish(self._system, begun))
        except Exception as error:
            self._fail(probe, _one_line(error))


def _packed(fact: Fact[Any]) -> _Packed:
    return fact.state, fact.value, fact.source, fact.reason


def _asking(question: Callable[[System], Any], system: System) -> Callable[[Any], Any]:
    return lambda report: question(system)


def _fact_names(patterns: Iterable[str]) -> list[str]:
    """The names that a probe's `facts` stand for; a GPU's or a package's own cannot be known beforehand."""
    names: list[str] = []
    for pattern in patterns:
        if pattern.endswith(".*") and "{" not in pattern:
            from cudadoctor.model.catalogue import CATALOGUE

            names += [name for name in CATALOGUE if name.startswith(pattern[:-1]) and "{" not in name]
        elif "{" not in pattern:
            names.append(pattern)
    return names
