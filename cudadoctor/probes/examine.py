"""Runs the probes on a machine and gathers its facts.

On a live machine:

1. a worker process looks at the device nodes, before any library of NVIDIA's is loaded (as root they create nodes),
   and then for nvidia-smi and the NVML library;
2. NVML is asked in a second process, and nvidia-smi is started;
3. meanwhile the worker runs the other probes in the registry's order;
4. NVML's and nvidia-smi's answers are waited for.

A probe that raises, crashes or hangs costs its own facts: they become unknown, with the reason, and the probe stands in
`examination.failed` or `examination.timed_out`. A replayed machine is examined in this process.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Callable, Optional, Union

from cudadoctor.model.fact import Fact, Facts, known, unknown
from cudadoctor.probes.api import Probe
from cudadoctor.system.port import System

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
    if probes is None:
        from cudadoctor.probes.registry import PROBES

        probes = PROBES
    examination = _Examination(system, probes)
    if system.kind == "live":
        examination.run_apart()
    else:
        examination.run_here()
    return examination.facts()


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


class _Examination:
    def __init__(self, system: System, probes: Sequence[Union[str, Probe]]) -> None:
        self._system = system
        self._probes = list(probes)
        self._facts: dict[str, Fact[Any]] = {}
        self._failed: list[dict[str, Any]] = []
        self._timed_out: list[dict[str, Any]] = []

    def facts(self) -> Facts:
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

    def run_here(self) -> None:
        for probe in self._probes:
            try:
                self._take(_look(probe, self._system))
            except Exception as error:
                self._fail(probe, _one_line(error))

    # -- this machine -----------------------------------------------------------------------------------------------

    def run_apart(self) -> None:
        import time

        from cudadoctor.system.worker import Task, Worker

        by_name = {_name(probe): probe for probe in self._probes}
        driver = by_name.get(DRIVER)
        names = sorted((name for name in by_name if name != DRIVER), key=lambda name: name != DEVICE)
        tasks = [Task(name, self._task(by_name[name]), PROBE_SECONDS) for name in names]
        if driver is not None:
            place = 1 if names and names[0] == DEVICE else 0
            tasks.insert(place, Task(_LOCATE, self._locating(), PROBE_SECONDS))
        begun: Any = None
        with Worker(tasks, time.monotonic() + self._system.remaining() - RESERVE) as worker:
            for finished in worker:
                if finished.name == _LOCATE:
                    begun = self._begin(finished.value, finished.failure)
                    continue
                probe = by_name[finished.name]
                if finished.timed_out:
                    seconds = round(finished.seconds, 1)
                    self._timed_out.append({"probe": finished.name, "seconds": seconds})
                    self._lose(probe, finished.failure)
                elif finished.failure:
                    self._fail(probe, finished.failure)
                else:
                    self._unpack(probe, finished.value)
        if driver is not None:
            self._finish(driver, begun)

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

    def _begin(self, content: Any, failure: str) -> Any:
        from cudadoctor.probes import driver

        if content is None:
            nothing = unknown(f"looking for it failed: {failure}", "PATH")
            return driver.Begun(driver.Places(nothing, nothing), None, None)
        packed, notes = content
        self._system.add_notes(notes)
        smi, library = (Fact(*fact) for fact in packed)
        return driver.begin(self._system, driver.Places(smi, library))

    def _finish(self, probe: Union[str, Probe], begun: Any) -> None:
        from cudadoctor.probes import driver

        try:
            if begun is None:
                begun = self._begin(None, "the time was over")
            self._take(driver.finish(self._system, begun))
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
