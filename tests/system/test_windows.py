"""The live system on Windows: the real CPython for Windows, under wine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bench.windows import path_for_windows

from cudadoctor.model.fact import Facts
from cudadoctor.probes.examine import examine
from cudadoctor.system.replay import ReplaySystem

CODE = r"""
import json, sys, time
from cudadoctor.probes.examine import examine, live_system
from cudadoctor.system.live import LiveSystem
from cudadoctor.system.record import RecordingSystem
from cudadoctor.system.redact import Redactor

drivers = "HKLM\\SYSTEM\\CurrentControlSet\\Control\\GraphicsDrivers"
s = LiveSystem(time.monotonic() + 40)
answers = {
    "machine": s.machine(), "kernel": s.kernel_release(), "identity": s.identity(), "limit": s.limit("nofile"),
    "variable": s.variable("systemroot"), "folder": s.list_folder("C:\\windows"), "file": s.read_text("C:\\nowhere"),
    "denied": s.read_text("C:\\windows"), "status": s.status("C:\\windows"), "real": s.real_path("C:\\windows"),
    "disk": s.disk_usage("C:\\"), "which": s.which("nvidia-smi"), "none": s.which("nvcc"),
    "run": s.run(["nvidia-smi"], 20), "absent": s.run(["C:\\nowhere.exe"], 20),
    "value": s.registry_value(drivers, "HwSchMode"), "no_value": s.registry_value(drivers, "TdrDelay"),
    "no_key": s.registry_value("HKLM\\SOFTWARE\\No Such Key", "x"), "keys": s.registry_keys("HKLM\\SYSTEM"),
    "memory": s.windows_call("memory"), "power": s.windows_call("power_status"), "version": s.windows_call("version"),
    "scheme": s.windows_call("power_scheme"), "overlay": s.windows_call("power_overlay"),
    "no_call": s.windows_call("nonsense"), "library": s.nvml_library(), "own": s.own_interpreter(),
    "group": s.group_name(5), "cache": s.cached_libraries(["x"]), "libc": s.libc(),
}
recording = RecordingSystem(live_system(40))
facts = examine(recording)
recording.write(sys.argv[1])
print(json.dumps({
    "answers": {name: [a.state, repr(a.value) if a.is_known else a.reason] for name, a in answers.items()},
    "facts": Redactor.of_this_machine().facts(facts).to_json(),
}))
"""


def test_a_windows_machine_with_two_gpus(windows_python: Any, tmp_path: Path) -> None:
    environment = windows_python.nvml("two_gpus")
    windows_python.program("nvidia-smi", b"NVIDIA-SMI has failed\r\n", exit=9)
    windows_python.registry(r"HKLM\SYSTEM\CurrentControlSet\Control\GraphicsDrivers", "HwSchMode", 2)
    done = windows_python.run("-c", CODE, path_for_windows(tmp_path / "machine"), env=environment, timeout=120)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    answers = {name: (state, said) for name, (state, said) in document["answers"].items()}
    states = {name: state for name, (state, _) in answers.items()}

    # What is not there on Windows, or on this one.
    for name in ("limit", "file", "none", "absent", "no_value", "no_key", "group", "cache", "libc"):
        assert states[name] == "absent", name
    assert answers["denied"] == ("unknown", "it is a folder")
    assert answers["no_call"] == ("unknown", "there is no such call")
    assert answers["scheme"] == ("unknown", "PowerGetActiveScheme failed (120)")  # wine has no power plans
    assert answers["overlay"] == ("unknown", "this Windows does not have the call")
    # What is there.
    assert answers["machine"] == ("known", "'AMD64'")
    assert answers["identity"] == ("known", "Identity(uid=-1, gid=-1, groups=(), is_admin=True)")
    assert answers["variable"][1].lower() == r"'c:\\windows'"
    assert "'system32'" in answers["folder"][1]
    assert "kind='directory'" in answers["status"][1]
    assert answers["which"][1].lower() == r"'c:\\windows\\system32\\nvidia-smi.exe'"
    assert "exit_status=9, stdout='NVIDIA-SMI has failed\\n'" in answers["run"][1]
    assert answers["value"] == ("known", "2")
    assert "'CurrentControlSet'" in answers["keys"][1]
    assert "'build': 18362" in answers["version"][1]
    for name in ("kernel", "real", "disk", "memory", "power", "library", "own"):
        assert states[name] == "known", name

    # NVML answered from a thread, since Windows cannot fork; the recording gives the same facts on this system.
    facts = Facts.from_json(document["facts"])
    assert facts["examination.failed"].get() == facts["examination.timed_out"].get() == []
    assert facts["gpu.count"].get() == 2 and facts["driver.smi_failure"].get() == "no-driver"
    assert facts["windows.hardware_scheduling"].get() == "on"
    replayed = examine(ReplaySystem(str(tmp_path / "machine")))
    assert {name for name in {*facts, *replayed} if facts[name] != replayed[name]} == {"examination.kind"}


HANG = """
import json
from cudadoctor.probes.examine import examine, live_system
print(json.dumps(examine(live_system(3.0), ["driver"]).to_json()))
"""


def test_a_driver_that_hangs_on_windows(windows_python: Any) -> None:
    # The library sleeps for two minutes on a thread that nothing can end; the program ends all the same.
    done = windows_python.run("-c", HANG, env=windows_python.nvml("hang"), timeout=60)
    assert done.returncode == 0, done.stderr
    facts = Facts.from_json(json.loads(done.stdout))
    assert facts["driver.nvml_unresponsive"].get() is True
    assert facts["gpu.count"].reason.startswith("NVML gave no answer (timed out after")
