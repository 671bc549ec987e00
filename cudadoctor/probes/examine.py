"""Runs the probes on a machine and gathers its facts.

On a live machine:

1. a worker process looks at the device nodes, before any library of NVIDIA's is loaded (as root they create nodes),
   and then for nvidia-smi and the NVML library;
2. NVML is asked in a second process, and nvidia-smi is started;
3. meanwhile the worker runs the other probes in the registry's order;
4. NVML's and nvidia-smi's answers are waited for.

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
    from cudadoctor.probes.driver import Begun
    from cudadoctor.system.worker import Finished, Worker

# Long enough for the first call to a driver without persistence mode on a machine with eight GPUs (ten seconds and
# more), short enough for a job's prolog.
RUN_SECONDS = 20.0

# One probe takes milliseconds; one that takes this long hangs (a dead network file system, a directory service).
PROBE_SECONDS = 6.0

# Kept back from the probes, so that what is found is said before the deadline.
RESERVE = 0.3

DEVICE = "device"
DRIVER = "driver"
_LOCATE = "where nvidia-smi and NVML are"

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


def begin(system: System, probes: Optional[Sequence[Union[str, Probe]]] = None) -> Examination:
    """Starts an examination. Call it before threads are started: it forks."""
    if probes is None:
        from cudadoctor.probes.registry import PROBES

        probes = PROBES
    return Examination(system, probes)


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
    """A machine that is being examined; see `begin`."""

    def __init__(self, system: System, probes: Sequence[Union[str, Probe]]) -> None:
        self._system = system
        self._probes = {_name(probe): probe for probe in probes}
        self._facts: dict[str, Fact[Any]] = {}
        self._failed: list[dict[str, Any]] = []
        self._timed_out: list[dict[str, Any]] = []
        self._worker: Optional[Worker] = None
        self._begun: Optional[Begun] = None
        self._result: Optional[Facts] = None
        if system.kind == "live":
            self._start()

    def facts(self) -> Facts:
        """Waits for all probes, and gives the facts."""
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
        is_asked = self._begun is not None and (self._begun.nvml is not None or self._begun.smi is not None)
        return is_asked or not self._worker.is_done

    def close(self) -> None:
        """Breaks the examination off, where nobody will ask for its facts."""
        if self._worker is not None:
            self._worker.close()
        self._begun = None

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
        names = sorted((name for name in self._probes if name != DRIVER), key=lambda name: name != DEVICE)
        tasks = [Task(name, self._task(self._probes[name]), PROBE_SECONDS) for name in names]
        if DRIVER in self._probes:
            place = 1 if names and names[0] == DEVICE else 0
            tasks.insert(place, Task(_LOCATE, self._locating(), PROBE_SECONDS))
        remaining = self._system.remaining()
        self._worker = Worker(tasks, time.monotonic() + remaining - min(RESERVE, remaining / 8))

    def _gather(self) -> None:
        assert self._worker is not None
        with self._worker as worker:
            for finished in worker:
                self._digest(finished)
        if DRIVER in self._probes:
            self._finish(self._probes[DRIVER])

    def _digest(self, finished: Finished) -> None:
        if finished.name == _LOCATE:
            self._begun = self._begin(finished.value, finished.failure)
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
                facts = {name: (fact.state, fact.value, fact.source, fact.reason) for name, fact in found.items()}
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

    def _locating(self) -> Callable[[Any], Any]:
        def run(report: Any) -> Any:
            from cudadoctor.probes import driver

            places = driver.locate(self._system)
            packed = [(fact.state, fact.value, fact.source, fact.reason) for fact in places]
            return packed, self._system.take_notes()

        return run

    def _begin(self, content: Any, failure: str) -> Begun:
        from cudadoctor.probes import driver

        if content is None:
            nothing = unknown(f"looking for it failed: {failure}", "PATH")
            return driver.Begun(driver.Places(nothing, nothing), None, None, 0.0)
        packed, notes = content
        self._system.add_notes(notes)
        smi, library = (Fact(*fact) for fact in packed)
        return driver.begin(self._system, driver.Places(smi, library))

    def _finish(self, probe: Union[str, Probe]) -> None:
        from cudadoctor.probes import driver

        try:
            self._take(driver.finish(self._system, self._begun or self._begin(None, "the time was over")))
        except Exception as error:
            self._fail(probe, _one_line(error))


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
