"""NVML through the real nvidia-ml-py, on a library that plays machines; and looking for that library."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from bench.parts import clean_environ

from cudadoctor.system.nvml import find_library
from cudadoctor.system.replay import ReplaySystem

from .apart import facts_of, python

ASK = """
import json, sys
from cudadoctor.system.live import LiveSystem
import time
system = LiveSystem(time.monotonic() + float(sys.argv[1]))
library = system.nvml_library()
answer = system.start_nvml(library.value or "", 60).result()
print(json.dumps([library.state, answer.state, answer.value, answer.reason]))
"""


def ask(environment: dict[str, str], seconds: float = 20.0) -> tuple[str, str, Any, str]:
    done = python(ASK, str(seconds), environment=clean_environ(environment))
    assert done.returncode == 0, done.stderr
    library, state, value, reason = json.loads(done.stdout)
    return library, state, value, reason


def answer_of(environment: dict[str, str]) -> Any:
    library, state, value, reason = ask(environment)
    assert (library, state, reason) == ("known", "known", "")
    return value


def test_two_gpus(fake_nvml: Any) -> None:
    answer = answer_of(fake_nvml("two_gpus"))
    assert answer["init"] == {"ok": True}
    assert answer["library_version"] == "12.535.183.01"
    assert answer["driver_version"] == "535.183.01"
    assert (answer["cuda_driver_version"], answer["count"]) == (12020, 2)
    first = answer["gpus"][0]
    mib = 1 << 20
    assert first == {
        "name": "NVIDIA A100-SXM4-80GB",
        "pci_bus_id": "00000000:01:00.0",
        "pci_device_id": "20b210de",
        "compute_capability": "8.0",
        "memory": {"total": 81920 * mib, "used": (69804 + 633) * mib, "free": (81920 - 69804 - 633) * mib},
        "mig_mode": 0,
        "ecc_mode": 1,
        "ecc_uncorrected": 0,
        "retired_pending": {"absent": True},
        "remapped_rows": {"pending": False, "failure": False},
        "clocks_event_reasons": 0,
        "temperature": 58,
        "temperature_slowdown": 95,
        "power_mw": 388000,
        "power_limit_mw": 400000,
        "power_limit_default_mw": 400000,
        "pcie_generation": 4,
        "pcie_generation_max": 4,
        "pcie_width": 16,
        "pcie_width_max": 16,
        "compute_mode": 0,
        "persistence_mode": 1,
        "processes": [{"pid": 4242, "memory": 69000 * mib}, {"pid": 4243, "memory": 800 * mib}],
        "utilization": 98,
        "performance_state": 0,
        "clock_sm": first["clock_sm"],
        "clock_sm_max": first["clock_sm_max"],
        "driver_model": {"absent": True},
        "display_active": 0,
        "fabric": {"absent": True},
        "recovery_action": {"absent": True},
        "nvlinks": {"absent": True},
    }
    assert answer["gpus"][1]["pci_bus_id"] == "00000000:02:00.0"


def test_fabric_and_recovery(fake_nvml: Any) -> None:
    lines = (
        "count = 2\ngpu.fabric = 3\ngpu1.fabric = 2\ngpu1.fabric_status = 999\ngpu.field.230 = 0\ngpu1.field.230 = 1\n"
    )
    first, second = answer_of(fake_nvml("two_gpus", text=lines))["gpus"]
    assert (first["fabric"], first["recovery_action"]) == ({"state": 3, "status": 0}, 0)
    assert (second["fabric"], second["recovery_action"]) == ({"state": 2, "status": 999}, 1)


def test_nvlinks(fake_nvml: Any) -> None:
    lines = "count = 2\ngpu.nvlink0 = 1\ngpu.nvlink1 = 1\ngpu.nvlink2 = 0\ngpu1.nvlink1 = 0\n"
    first, second = answer_of(fake_nvml("two_gpus", text=lines))["gpus"]
    assert (first["nvlinks"], second["nvlinks"]) == ({"up": 2, "down": 1}, {"up": 1, "down": 2})


# Scenario, NVML's code and words.
REFUSALS = [
    ("no_driver_9", 9, "Driver Not Loaded", "12.535.261.03"),
    ("no_permission_4", 4, "Insufficient Permissions", "12.535.261.03"),
    ("mismatch_18", 18, "Driver/library version mismatch", "12.535.261.03"),
    ("nvml_unknown_error", 999, "Unknown Error", "12.550.163.01"),
]


@pytest.mark.parametrize(("scenario", "code", "words", "library"), REFUSALS)
def test_nvml_that_does_not_start_still_tells_its_own_version(
    fake_nvml: Any, scenario: str, code: int, words: str, library: str
) -> None:
    assert answer_of(fake_nvml(scenario)) == {"init": {"code": code, "error": words}, "library_version": library}


def test_a_lost_gpu_leaves_the_others_intact(fake_nvml: Any) -> None:
    intact, lost = answer_of(fake_nvml("one_gpu_lost"))["gpus"]
    assert intact["name"] == "NVIDIA A100-SXM4-80GB" and intact["memory"]["total"] == 81920 << 20
    assert lost == {"handle": {"code": 15, "error": "GPU is lost"}}


def test_a_gpu_that_is_lost_between_the_calls(fake_nvml: Any) -> None:
    lines = "count = 2\ngpu1.err.nvmlDeviceGetTemperature = 15\ngpu1.err.nvmlDeviceGetPowerUsage = 15\n"
    intact, lost = answer_of(fake_nvml("two_gpus", text=lines))["gpus"]
    assert intact["temperature"] == 58
    assert lost["temperature"] == lost["power_mw"] == {"code": 15, "error": "GPU is lost"}
    assert lost["name"] == "NVIDIA A100-SXM4-80GB"


def test_a_library_without_newer_functions_answers_by_the_older_ones(fake_nvml: Any) -> None:
    (gpu,) = answer_of(fake_nvml("missing_symbol"))["gpus"]
    assert gpu["clocks_event_reasons"] == 1
    assert gpu["processes"] == []
    assert gpu["memory"]["total"] == 11178 << 20


def test_a_missing_function_costs_its_own_answer_alone(fake_nvml: Any) -> None:
    missing = "missing = nvmlDeviceGetMigMode,nvmlDeviceGetTemperature,nvmlSystemGetNVMLVersion\n"
    answer = answer_of(fake_nvml("two_gpus", text=missing))
    assert answer["library_version"]["code"] == 13
    assert answer["gpus"][0]["mig_mode"] == answer["gpus"][0]["temperature"]
    assert answer["gpus"][0]["temperature"] == {"code": 13, "error": "Function Not Found"}
    assert answer["gpus"][0]["power_mw"] == 388000


def test_mig_devices_are_counted(fake_nvml: Any) -> None:
    one, other = answer_of(fake_nvml("mig"))["gpus"]
    assert (one["mig_mode"], one["mig_devices"]) == (1, 2)
    assert (other["mig_mode"], other["mig_devices"]) == (1, 0)


def test_nvml_that_hangs_is_left_behind_at_the_deadline(fake_nvml: Any) -> None:
    begun = time.monotonic()
    library, state, value, reason = ask(fake_nvml("hang"), 1.5)
    assert time.monotonic() - begun < 20
    assert (library, state, value) == ("known", "unknown", None)
    assert reason.startswith("timed out after 1.")


def test_a_hanging_nvml_ends_with_a_doctor_that_is_killed(tmp_path: Path, fake_nvml: Any) -> None:
    code = """
import os, sys, time
from cudadoctor.system import nvml, worker
from cudadoctor.system.live import LiveSystem
ask = nvml.ask
def told(report, library):
    with open(sys.argv[1], "w") as stream:
        stream.write(str(os.getpid()))
    return ask(report, library)
nvml.ask = told
system = LiveSystem(time.monotonic() + 50)
query = system.start_nvml(system.nvml_library().get(), 50)
while not (os.path.exists(sys.argv[1]) and os.path.getsize(sys.argv[1])):
    time.sleep(0.01)
os.kill(os.getpid(), 9)
"""
    done = python(code, str(tmp_path / "number"), environment=clean_environ(fake_nvml("hang")))
    assert done.returncode == -9
    child = int((tmp_path / "number").read_text())
    limit = time.monotonic() + 20
    while os.path.exists(f"/proc/{child}") and time.monotonic() < limit:
        time.sleep(0.02)
    assert not os.path.exists(f"/proc/{child}")


def test_what_nvml_said_before_it_hung_is_kept(fake_nvml: Any) -> None:
    # Only the second GPU is asked for its MIG devices.
    lines = "gpu1.mig = 1\nhang_deaf = 1\nhang.nvmlDeviceGetMaxMigDeviceCount = 120\n"
    _, state, value, _ = ask(fake_nvml("two_gpus", text=lines), 3.0)
    assert state == "known" and value["unfinished"].startswith("timed out after")
    assert value["count"] == 2 and value["driver_version"] == "535.183.01"
    assert [gpu["name"] for gpu in value["gpus"]] == ["NVIDIA A100-SXM4-80GB"]


def test_a_crash_in_the_library_is_said_and_contained(tmp_path: Path, fake_nvml: Any) -> None:
    crash = """
import os, signal, sys
import cudadoctor.system.nvml as nvml
def ask(report, library):
    report({"init": {"ok": True}, "library_version": "12.535.183.01"})
    os.kill(os.getpid(), signal.SIGSEGV)
nvml.ask = ask
"""
    done = python(crash + ASK, "20", environment=clean_environ(fake_nvml("two_gpus")))
    assert done.returncode == 0, done.stderr
    _, state, value, _ = json.loads(done.stdout)
    assert state == "known" and value["unfinished"] == "its process died (SIGSEGV)"


def test_no_library_means_no_process_and_no_import() -> None:
    code = """
import os, sys, time
def no_fork():
    raise AssertionError("a process was started")
os.fork = no_fork
from cudadoctor.probes import driver
from cudadoctor.system.live import LiveSystem
from cudadoctor.model.fact import absent
system = LiveSystem(time.monotonic() + 20)
system.nvml_library = lambda: absent("library search")
facts = driver.look(system)
print(facts["driver.nvml_version"].reason, "|", facts["driver.nvml_library"].state, "pynvml" in sys.modules)
"""
    done = python(code, environment=clean_environ(PATH="/nonexistent"))
    assert done.stdout == "there is no NVML library | absent False\n", done.stderr


def test_nvidia_ml_py_missing_is_our_own_fault_and_said_so(tmp_path: Path, fake_nvml: Any) -> None:
    (tmp_path / "pynvml.py").write_text("raise ImportError('no such thing')\n")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n" + ASK
    done = python(code, "20", environment=clean_environ(fake_nvml("two_gpus")))
    _, state, _, reason = json.loads(done.stdout)
    assert state == "unknown"
    assert reason == "RuntimeError: nvidia-ml-py is missing or broken beside cudadoctor (no such thing)"
    facts = facts_of_broken(tmp_path, fake_nvml)
    assert facts["examination.failed"]["value"] == [{"probe": "nvml", "reason": reason}]
    assert facts["driver.nvml_version"]["state"] == "unknown"


def facts_of_broken(folder: Path, fake_nvml: Any) -> Any:
    from .apart import EXAMINE

    code = f"import sys; sys.path.insert(0, {str(folder)!r})\n" + EXAMINE
    done = python(code, "15", '["driver"]', environment=clean_environ(fake_nvml("two_gpus"), PATH="/nonexistent"))
    return json.loads(done.stdout)["facts"]


def test_a_library_that_the_loader_does_not_find_by_name_is_loaded_by_its_path(fake_nvml: Any) -> None:
    environment = fake_nvml("two_gpus")
    folder = environment.pop("LD_LIBRARY_PATH").split(":")[0]
    code = f"""
import json
from cudadoctor.system import nvml
print(json.dumps(nvml.ask(lambda answer: None, {folder + "/libnvidia-ml.so.1"!r})["init"]))
"""
    assert json.loads(python(code, environment=clean_environ(environment)).stdout) == {"ok": True}


def test_a_library_that_cannot_be_loaded_says_why(tmp_path: Path) -> None:
    (tmp_path / "libnvidia-ml.so.1").write_bytes(b"\x7fELF\x02" + b"\0" * 100)
    answer = answer_of({"LD_LIBRARY_PATH": str(tmp_path)})
    assert answer["init"]["code"] == 12
    assert "libnvidia-ml.so.1" in answer["init"]["error"]


def test_the_real_library_without_a_driver(real_nvidia_libraries: Any) -> None:
    answer = answer_of({"LD_LIBRARY_PATH": real_nvidia_libraries("535")})
    assert answer == {"init": {"code": 9, "error": "Driver Not Loaded"}, "library_version": "12.535.261.03"}


@pytest.mark.parametrize("era", ["470", "525", "535", "550"])
def test_facts_with_the_real_nvidia_smi_beside_it(era: str, fake_nvml: Any, real_nvidia_smi: Any) -> None:
    facts = facts_of(clean_environ(fake_nvml("two_gpus"), {"PATH": real_nvidia_smi(era)}))
    assert facts["driver.nvml_version"].get() == facts["driver.smi_version"].get() == "535.183.01"
    assert facts["driver.nvml_cuda"].get() == facts["driver.smi_cuda"].get() == "12.2"
    assert facts["driver.smi_failure"].is_absent and facts["driver.nvml_error"].is_absent
    assert [row["address"] for row in facts["smi.gpus"].get()] == ["0000:01:00.0", "0000:02:00.0"]
    assert facts["gpu.count"].get() == 2
    assert facts["gpu.0.name"].get().startswith(facts["smi.gpus"].get()[0]["name"].rstrip("."))


# -- looking for the library ----------------------------------------------------------------------------------------

ELF64, ELF32 = "\x7fELF\x02\x01", "\x7fELF\x01\x01"
NAME = "libnvidia-ml.so.1"

DEBIAN, RHEL, ARM = (
    f"/usr/lib/x86_64-linux-gnu/{NAME}",
    f"/usr/lib64/{NAME}",
    f"/usr/lib/aarch64-linux-gnu/{NAME}",
)
NEW_WINDOWS = "C:\\WINDOWS\\System32\\nvml.dll"
OLD_WINDOWS = "C:\\Program Files\\NVIDIA Corporation\\NVSMI\\nvml.dll"

# What the machine has, where the library is found (None: absent).
PLACES: list[tuple[str, dict[str, Any], Any]] = [
    ("nothing", {}, None),
    ("Debian", {"files": {DEBIAN: ELF64}}, DEBIAN),
    ("RHEL", {"files": {RHEL: ELF64}}, RHEL),
    ("aarch64", {"machine": "aarch64", "files": {ARM: ELF64, DEBIAN: ELF64}}, ARM),
    ("WSL", {"files": {f"/usr/lib/wsl/lib/{NAME}": ELF64}}, f"/usr/lib/wsl/lib/{NAME}"),
    (
        "the loader's cache goes before the usual folders",
        {"loader_cache": {NAME: [f"/opt/driver/{NAME}"]}, "files": {f"/opt/driver/{NAME}": ELF64, RHEL: ELF64}},
        f"/opt/driver/{NAME}",
    ),
    ("a stale cache", {"loader_cache": {NAME: [f"/opt/driver/{NAME}"]}}, None),
    (
        "LD_LIBRARY_PATH goes before all",
        {"variables": {"LD_LIBRARY_PATH": ":relative:/mine/:/other"}, "files": {f"/mine/{NAME}": ELF64, RHEL: ELF64}},
        f"/mine/{NAME}",
    ),
    (
        "an empty file and a 32-bit library are none",
        {"files": {RHEL: "", f"/lib/{NAME}": ELF32, f"/usr/lib/{NAME}": ELF64}},
        f"/usr/lib/{NAME}",
    ),
    (
        "links are followed",
        {"files": {"/usr/lib64/libnvidia-ml.so.535.183.01": ELF64}, "links": {RHEL: "libnvidia-ml.so.535.183.01"}},
        RHEL,
    ),
    ("macOS has none", {"platform": "darwin", "files": {f"/usr/lib/{NAME}": ELF64}}, None),
    (
        "Windows",
        {"platform": "windows", "variables": {"WINDIR": "C:\\WINDOWS"}, "files": {NEW_WINDOWS: ""}},
        NEW_WINDOWS,
    ),
    ("an old driver on Windows", {"platform": "windows", "files": {OLD_WINDOWS: ""}}, OLD_WINDOWS),
]


@pytest.mark.parametrize(("name", "machine", "place"), PLACES, ids=[name for name, _, _ in PLACES])
def test_where_the_library_is(name: str, machine: dict[str, Any], place: Any) -> None:
    found = find_library(ReplaySystem.of({"unlisted": "absent", "machine": "x86_64", **machine}))
    assert (found.state, found.value) == (("absent", None) if place is None else ("known", place))


def test_a_library_that_cannot_be_read_is_not_absent() -> None:
    machine = {"unlisted": "absent", "files": {f"/usr/lib64/{NAME}": {"error": "permission denied"}}}
    found = find_library(ReplaySystem.of(machine))
    assert (found.state, found.reason) == ("unknown", f"/usr/lib64/{NAME}: permission denied")
