"""The examination: each probe on its own, everything before the deadline, and the device nodes before NVML."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any, Callable, NoReturn

import pytest
from bench.parts import clean_environ

from cudadoctor.model.catalogue import CATALOGUE, ONLY_IN_REPORTS, spec_of
from cudadoctor.model.fact import Fact, known, unknown
from cudadoctor.probes import examine as examination
from cudadoctor.probes.api import EVERYWHERE, WINDOWS, Probe
from cudadoctor.probes.examine import begin, examine, live_system, load
from cudadoctor.probes.registry import PROBES
from cudadoctor.system.port import System
from cudadoctor.system.replay import ReplaySystem

from .apart import facts_of, python

pytestmark = [
    pytest.mark.skipif(os.name != "posix", reason="the live machine is taken to be a POSIX one"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning"),
]

Look = Callable[[System], dict[str, Fact[Any]]]


def good(system: System) -> dict[str, Fact[Any]]:
    return {"system.os": known(system.platform, "good")}


def raises(system: System) -> NoReturn:
    raise ValueError("a bad\nday")


def hangs(system: System) -> NoReturn:
    while True:
        time.sleep(1)


def faults(system: System) -> NoReturn:
    os.kill(os.getpid(), 11)
    raise AssertionError("not reached")


def gives_objects(system: System) -> dict[str, Fact[Any]]:
    return {"memory.total": known(object(), "x")}


BAD_FACTS = ("memory.total", "gpu.{n}.name", "disk.*")


def probe(name: str, look: Look, facts: tuple[str, ...] = (), platforms: tuple[str, ...] = EVERYWHERE) -> Probe:
    return Probe(name, platforms, facts, look)


GOOD = probe("good", good, ("system.os",))

# What the probe does, on which systems, why its facts are unknown.
FAILURES = [
    (raises, "both", "the probe 'bad' failed: ValueError: a bad day"),
    (faults, "live", "the probe 'bad' failed: its process died (SIGSEGV)"),
    (gives_objects, "live", "the probe 'bad' failed: its answer is not plain data"),
]


@pytest.mark.parametrize("kind", ["live", "replay"])
@pytest.mark.parametrize(("look", "where", "reason"), FAILURES)
def test_a_probe_that_fails_costs_its_own_facts(look: Look, where: str, reason: str, kind: str) -> None:
    if where != "both" and where != kind:
        return  # a replay is examined in this very process
    system = live_system(30) if kind == "live" else ReplaySystem.of({"today": "2026-11-30"})
    facts = examine(system, [probe("bad", look, BAD_FACTS), GOOD])
    assert facts["system.os"].is_known
    assert facts["memory.total"] == unknown(reason, "probe bad")
    disks = [name for name in CATALOGUE if name.startswith("disk.")]
    assert disks and all(facts[name].reason == reason for name in disks)
    assert facts["gpu.0.name"].reason == "not looked at"
    why = reason.partition("failed: ")[2]
    assert facts["examination.failed"].get() == [{"probe": "bad", "reason": why}]
    assert facts["examination.timed_out"].get() == []
    assert facts["examination.kind"].get() == kind


def test_a_probe_that_hangs_costs_its_own_facts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examination, "PROBE_SECONDS", 0.4)
    begun = time.monotonic()
    facts = examine(live_system(30), [probe("bad", hangs, BAD_FACTS), GOOD])
    assert time.monotonic() - begun < 15
    assert facts["memory.total"].is_unknown and facts["memory.total"].reason.startswith("timed out after 0.")
    (entry,) = facts["examination.timed_out"].get()
    assert entry["probe"] == "bad" and 0.3 < entry["seconds"] < 15
    assert facts["examination.failed"].get() == []
    assert facts["system.os"].is_known


def test_the_deadline_of_the_run_holds_whatever_the_probes_do() -> None:
    begun = time.monotonic()

    def other(system: System) -> dict[str, Fact[Any]]:
        return {"kernel.headers": known(True, "x")}

    bad, late = probe("bad", hangs, ("memory.total",)), probe("late", other, ("kernel.headers",))
    facts = examine(live_system(1.2), [GOOD, bad, late])
    assert time.monotonic() - begun < 15
    assert [entry["probe"] for entry in facts["examination.timed_out"].get()] == ["bad"]
    assert facts["memory.total"].reason.startswith("timed out after ")
    assert facts["system.os"].is_known  # of the probe that came before,
    assert facts["kernel.headers"].get() is True  # and of the one that came after
    assert facts["system.date"].get() == time.strftime("%Y-%m-%d")


def test_probes_run_only_on_their_own_systems() -> None:
    windows = probe("windows-only", good, ("windows.tdr_delay",), (WINDOWS,))
    facts = examine(ReplaySystem.of({"platform": "linux"}), [windows])
    assert "system.os" not in facts
    assert facts["windows.tdr_delay"].reason == "not looked at"
    assert examine(ReplaySystem.of({"platform": "windows"}), [windows])["system.os"].get() == "windows"
    broken = probe("broken", raises, ("windows.tdr_delay",), (WINDOWS,))
    assert examine(live_system(30), [broken])["examination.failed"].get() == []


def test_a_module_that_cannot_be_imported_is_a_failed_probe() -> None:
    for system in (live_system(30), ReplaySystem.of({})):
        facts = examine(system, ["no_such_probe", GOOD])
        (entry,) = facts["examination.failed"].get()
        assert entry["probe"] == "no_such_probe"
        assert entry["reason"].startswith("ModuleNotFoundError: ")
        assert facts["system.os"].is_known


def test_nothing_of_a_live_probe_stays_in_this_process() -> None:
    kept: list[int] = []

    def look(system: System) -> dict[str, Fact[Any]]:
        kept.append(os.getpid())
        return {"system.kernel_release": known(str(os.getpid()), "x")}

    facts = examine(live_system(30), [probe("one", look)])
    assert kept == [] and facts["system.kernel_release"].get() != str(os.getpid())


def test_an_examination_goes_on_while_its_beginner_does_something_else(tmp_path: Path) -> None:
    go_on, has_gone_on = tmp_path / "go on", tmp_path / "has gone on"

    def slow(system: System) -> dict[str, Fact[Any]]:
        while not go_on.exists():
            time.sleep(0.01)
        has_gone_on.touch()
        return good(system)

    running = begin(live_system(30), [probe("slow", slow)])
    go_on.touch()
    limit = time.monotonic() + 20
    while not has_gone_on.exists() and time.monotonic() < limit:
        time.sleep(0.01)
    assert has_gone_on.exists()  # and nobody has asked for its facts yet
    facts = running.facts()
    assert facts["system.os"].is_known
    assert running.facts() is facts


def test_an_examination_that_is_broken_off_leaves_no_process(tmp_path: Path) -> None:
    mark = tmp_path / "number"

    def look(system: System) -> NoReturn:
        mark.write_text(str(os.getpid()))
        hangs(system)

    running: Any = begin(live_system(30), [probe("hangs", look)])
    while not (mark.exists() and mark.read_text()):
        time.sleep(0.01)
    running.close()
    with pytest.raises(ProcessLookupError):
        os.kill(int(mark.read_text()), 0)


# -- the order ------------------------------------------------------------------------------------------------------

LOG = """
import json, os, sys, time
from cudadoctor.probes.examine import examine
from cudadoctor.system.live import LiveSystem

class Logged:
    def __init__(self, inner):
        self._inner = inner

    def once(self, question):
        return question(self)

    def __getattr__(self, name):
        found = getattr(self._inner, name)
        if not callable(found):
            return found
        def call(*arguments, **more):
            with open(sys.argv[1], "a") as log:
                log.write(json.dumps([name, [str(argument) for argument in arguments]]) + "\\n")
            return found(*arguments, **more)
        return call

facts = examine(Logged(LiveSystem(time.monotonic() + 20)))
print(facts["device.nodes"].state, facts["gpu.count"].value, facts["driver.smi_exit"].value)
"""


def test_the_device_nodes_are_looked_at_before_nvml_and_nvidia_smi(
    tmp_path: Path, fake_nvml: Any, real_nvidia_smi: Any
) -> None:
    environment = clean_environ(fake_nvml("two_gpus", log=tmp_path / "nvml"), {"PATH": real_nvidia_smi("535")})
    done = python(LOG, str(tmp_path / "calls"), environment=environment)
    assert done.stdout == "known 2 0\n", done.stderr
    calls = [json.loads(line) for line in (tmp_path / "calls").read_text().splitlines()]
    calls = [call for call in calls if call[0] != "remaining"]
    assert calls[0] == ["list_folder", ["/dev"]]
    device = [
        number
        for number, (_, arguments) in enumerate(calls)
        if arguments and (arguments[0] == "/dev" or arguments[0].startswith(("/dev/nv", "/dev/dxg")))
    ]
    starts = [
        number
        for number, (name, arguments) in enumerate(calls)
        if name == "start_nvml" or (name in ("start", "run") and "nvidia-smi" in arguments[0])
    ]
    assert len(starts) == 2 and device
    assert max(device) < min(starts)
    assert "nvmlInit" in (tmp_path / "nvml").read_text()


def test_the_registry() -> None:
    assert PROBES[:2] == ("device", "driver")
    assert len(set(PROBES)) == len(PROBES)
    answered: dict[tuple[str, str], str] = {}
    for name in PROBES:
        loaded = load(name)
        assert loaded.name == name
        assert set(loaded.platforms) <= set(EVERYWHERE) and loaded.platforms
        if name == "other_systems":
            continue  # it says that Windows has no kernel modules, and Linux no registry
        for fact in loaded.facts:
            if fact.endswith("*"):
                assert any(known_name.startswith(fact[:-1]) for known_name in CATALOGUE), (name, fact)
            else:
                assert spec_of(fact.replace("{n}", "0").replace("{name}", "torch")) is not None, (name, fact)
            for platform in loaded.platforms:
                other = answered.setdefault((fact, platform), name)
                assert other == name, f"{fact} is answered by two probes"


def test_every_fact_of_the_catalogue_is_answered_by_a_probe() -> None:
    patterns = [fact for name in PROBES for fact in load(name).facts]

    def covered(fact: str) -> bool:
        return any(fact == pattern or (pattern.endswith("*") and fact.startswith(pattern[:-1])) for pattern in patterns)

    by_the_examination = {"system.date", "examination.kind", "examination.failed", "examination.timed_out"}
    by_the_command_line = {"request.gpu"}
    others = by_the_examination | by_the_command_line
    left = {fact for fact in CATALOGUE if not covered(fact) and not fact.startswith(ONLY_IN_REPORTS)}
    assert left - others == set()


# -- a driver that does not answer ----------------------------------------------------------------------------------


def test_a_driver_that_hangs_is_said_within_the_deadline(fake_nvml: Any, real_nvidia_smi: Any) -> None:
    begun = time.monotonic()
    environment = clean_environ(fake_nvml("hang"), {"PATH": real_nvidia_smi("535")})
    facts = facts_of(environment, seconds=3.0, probes=list(PROBES), timeout=40)
    assert time.monotonic() - begun < 20
    assert facts["driver.nvml_unresponsive"].get() is True
    assert facts["driver.smi_failure"].get() == "timed-out"
    assert facts["gpu.count"].is_unknown
    # Everything else is known all the same.
    assert facts["system.os"].get() == "linux" and facts["memory.total"].is_known
    assert facts["examination.failed"].get() == facts["examination.timed_out"].get() == []


def test_a_driver_that_was_given_no_time_is_not_said_to_hang(fake_nvml: Any, real_nvidia_smi: Any) -> None:
    environment = clean_environ(fake_nvml("hang"), {"PATH": real_nvidia_smi("535")})
    facts = facts_of(environment, seconds=0.8)
    for name in ("driver.nvml_unresponsive", "driver.smi_failure", "gpu.count"):
        assert facts[name].is_unknown, name
    assert facts["driver.smi_failure"].reason.startswith("nvidia-smi was given 0.")


def test_where_nvml_has_answered_nvidia_smi_is_not_waited_for_long(fake_nvml: Any, fake_program: Any) -> None:
    begun = time.monotonic()
    path = fake_program("nvidia-smi", sleep=50)
    facts = facts_of(clean_environ(fake_nvml("two_gpus"), {"PATH": path}), seconds=40.0)
    assert time.monotonic() - begun < 20
    assert facts["gpu.count"].get() == 2
    assert facts["driver.smi_failure"].get() == "timed-out"


def test_a_path_on_a_dead_file_system_costs_what_is_looked_for_there(monkeypatch: pytest.MonkeyPatch) -> None:
    from cudadoctor.system.live import LiveSystem

    monkeypatch.setattr(examination, "PROBE_SECONDS", 0.4)
    monkeypatch.setattr(LiveSystem, "which", lambda self, program: hangs(self))
    facts = examine(live_system(20), ["device", "driver", GOOD])
    assert facts["driver.smi_path"].is_unknown
    assert facts["driver.smi_path"].reason.startswith("looking for it failed: timed out")
    assert facts["gpu.count"].is_unknown
    assert facts["system.os"].is_known


# -- surroundings ---------------------------------------------------------------------------------------------------

WHOLE = """
import json, os, sys
from cudadoctor.probes.examine import examine, live_system
{before}
facts = examine(live_system(20))
print(json.dumps(facts.to_json()["facts"]["examination.failed"]), len(facts))
"""

SURROUNDINGS: list[tuple[str, str, dict[str, str]]] = [
    ("no variables", "", {}),
    ("an unwritable HOME and no PATH", "", {"HOME": "/proc/none", "LC_ALL": "C"}),
    ("cp1252", "", {"PYTHONIOENCODING": "cp1252", "PATH": "/usr/bin:/bin"}),
    ("a deleted working folder", "d = f'/tmp/gone{os.getpid()}'; os.mkdir(d); os.chdir(d); os.rmdir(d)", {}),
    ("closed standard input", "os.close(0)", {"PATH": "/usr/bin"}),
    ("few open files", "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (24, 24))", {"PATH": "/usr/bin"}),
]


@pytest.mark.parametrize(("name", "before", "environment"), SURROUNDINGS, ids=[row[0] for row in SURROUNDINGS])
def test_hostile_surroundings(name: str, before: str, environment: dict[str, str]) -> None:
    done = python(WHOLE.format(before=before), environment=environment)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    failed, count = done.stdout.rsplit(" ", 1)
    assert json.loads(failed)["value"] == []
    assert int(count) > 100


def test_nothing_is_imported_that_a_check_must_not_pay_for() -> None:
    code = """
import sys
from cudadoctor.probes.examine import examine, live_system
examine(live_system(20))
heavy = ("subprocess", "pynvml", "torch", "requests", "asyncio", "importlib.metadata", "xml", "rich", "threading",
         "concurrent.futures", "signal", "platform", "tempfile", "shutil", "ctypes")
print([name for name in heavy if name in sys.modules])
"""
    assert python(code).stdout == "[]\n"


def test_a_machine_by_hand_is_examined_whole() -> None:
    document = {
        "unlisted": "absent",
        "kernel_release": "6.8.0-45-generic",
        "files": {"/sys/module/nvidia/version": "535.183.01\n"},
        "today": "2026-11-30",
    }
    facts = examine(ReplaySystem.of(document))
    assert facts["examination.failed"].get() == []
    assert facts["driver.module_version"].get() == "535.183.01"
    assert facts["system.date"].get() == "2026-11-30"
    assert facts["examination.kind"].get() == "replay"
