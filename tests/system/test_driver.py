"""The driver probe: facts from what NVML and nvidia-smi said, and what it asks nvidia-smi for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cudadoctor.model.catalogue import fits, spec_of
from cudadoctor.model.fact import Fact, ParseError, absent, known, unknown
from cudadoctor.probes import driver
from cudadoctor.system.replay import ReplaySystem

MIB = 1 << 20

# -- NVML -----------------------------------------------------------------------------------------------------------

GPU: dict[str, Any] = {
    "name": "NVIDIA GeForce RTX 4090",
    "pci_bus_id": "00000000:3B:00.0",
    "pci_device_id": "268410DE",
    "compute_capability": "8.9",
    "memory": {"total": 24564 * MIB, "free": 23606 * MIB, "used": 958 * MIB},
    "mig_mode": {"absent": True},
    "ecc_mode": 0,
    "clocks_event_reasons": 0x68,
    "power_mw": 18200,
    "compute_mode": 3,
    "performance_state": 8,
    "persistence_mode": 1,
    "remapped_rows": {"pending": True, "failure": False},
    "processes": [{"pid": 42, "memory": None}],
    "temperature": {"code": 999, "error": "Unknown Error"},
}


def started(**changes: Any) -> dict[str, Any]:
    return {
        "init": {"ok": True},
        "library_version": "12.550.163.01",
        "driver_version": "550.163.01",
        "cuda_driver_version": 12040,
        "count": 1,
        "gpus": [GPU],
        **changes,
    }


def refused(code: int, words: str) -> dict[str, Any]:
    return {"init": {"code": code, "error": words}, "library_version": "12.535.261.03"}


def seen(fact: Fact[Any]) -> Any:
    """What a fact says, in one value: its value, None for absent, a tuple with the reason for unknown."""
    return (fact.reason,) if fact.is_unknown else fact.value


# What NVML said, a fact, what it holds (None: absent; a tuple: unknown, with its reason).
NVML: list[tuple[str, Fact[Any], dict[str, Any]]] = [
    (
        "a healthy GPU",
        known(started(), "nvml"),
        {
            "driver.nvml_version": "550.163.01",
            "driver.nvml_cuda": "12.4",
            "driver.nvml_library_version": "550.163.01",
            "driver.nvml_error": None,
            "driver.nvml_error_text": None,
            "driver.nvml_unresponsive": False,
            "gpu.count": 1,
            "gpu.0.name": "NVIDIA GeForce RTX 4090",
            "gpu.0.pci_address": "0000:3b:00.0",
            "gpu.0.pci_device_id": "2684",
            "gpu.0.compute_capability": "8.9",
            "gpu.0.memory_total": 24564 * MIB,
            "gpu.0.memory_free": 23606 * MIB,
            "gpu.0.lost": False,
            "gpu.0.mig_mode": None,
            "gpu.0.mig_devices": None,
            "gpu.0.ecc_mode": False,
            "gpu.0.throttle_reasons": ["hw_slowdown", "sw_thermal_slowdown", "hw_thermal_slowdown"],
            "gpu.0.power": 18.2,
            "gpu.0.compute_mode": "exclusive-process",
            "gpu.0.persistence_mode": True,
            "gpu.0.remap_pending": True,
            "gpu.0.remap_failure": False,
            "gpu.0.processes": [{"pid": 42, "memory": None}],
            "gpu.0.temperature": ("NVML: Unknown Error",),
            "gpu.0.clock_sm": ("NVML was not asked",),
        },
    ),
    (
        "no driver",
        known(refused(9, "Driver Not Loaded"), "nvml"),
        {
            "driver.nvml_error": 9,
            "driver.nvml_error_text": "Driver Not Loaded",
            "driver.nvml_library_version": "535.261.03",
            "driver.nvml_unresponsive": False,
            "driver.nvml_version": ("NVML did not start: Driver Not Loaded",),
            "gpu.count": ("NVML did not start: Driver Not Loaded",),
        },
    ),
    (
        "a lost GPU",
        known(started(count=2, gpus=[GPU, {"handle": {"code": 15, "error": "GPU is lost"}}]), "nvml"),
        {
            "gpu.count": 2,
            "gpu.0.lost": False,
            "gpu.1.lost": True,
            "gpu.1.name": ("NVML: GPU is lost",),
            "gpu.1.memory_total": ("NVML: GPU is lost",),
            "gpu.1.mig_devices": ("NVML: GPU is lost",),
        },
    ),
    (
        "a GPU that is lost between two calls",
        known(started(gpus=[{**GPU, "power_mw": {"code": 15, "error": "GPU is lost"}}]), "nvml"),
        {"gpu.0.lost": True, "gpu.0.name": "NVIDIA GeForce RTX 4090", "gpu.0.power": ("NVML: GPU is lost",)},
    ),
    (
        "a GPU that this user may not open",
        known(started(gpus=[{"handle": {"code": 4, "error": "Insufficient Permissions"}}]), "nvml"),
        {"gpu.0.lost": ("NVML: Insufficient Permissions",), "gpu.0.name": ("NVML: Insufficient Permissions",)},
    ),
    (
        "MIG on",
        known(started(gpus=[{**GPU, "mig_mode": 1, "mig_devices": 7}]), "nvml"),
        {"gpu.0.mig_mode": True, "gpu.0.mig_devices": 7},
    ),
    (
        "MIG off",
        known(started(gpus=[{**GPU, "mig_mode": 0}]), "nvml"),
        {"gpu.0.mig_mode": False, "gpu.0.mig_devices": 0},
    ),
    (
        "values that nobody knows yet",
        known(started(gpus=[{**GPU, "compute_mode": 9, "performance_state": 32, "pci_bus_id": "?"}]), "nvml"),
        {
            "gpu.0.compute_mode": (
                "NVML gave 9, which is none of default, exclusive-thread, prohibited, exclusive-process",
            ),
            "gpu.0.performance_state": ("NVML does not know the performance state",),
            "gpu.0.name": "NVIDIA GeForce RTX 4090",
        },
    ),
    ("no GPU", known(started(count=0, gpus=[]), "nvml"), {"gpu.count": 0, "driver.nvml_error": None}),
    (
        "a hang at the second GPU",
        known(started(count=2, unfinished="timed out after 18.0 s"), "nvml"),
        {
            "driver.nvml_unresponsive": True,
            "driver.nvml_version": "550.163.01",
            "gpu.count": 2,
            "gpu.0.name": "NVIDIA GeForce RTX 4090",
            "gpu.1.name": ("NVML stopped answering (timed out after 18.0 s)",),
            "gpu.1.lost": ("NVML stopped answering (timed out after 18.0 s)",),
        },
    ),
    (
        "a crash after the start",
        known({"init": {"ok": True}, "unfinished": "its process died (SIGSEGV)"}, "nvml"),
        {
            "driver.nvml_unresponsive": False,
            "driver.nvml_error": None,
            "driver.nvml_version": ("NVML stopped answering (its process died (SIGSEGV))",),
            "gpu.count": ("NVML stopped answering (its process died (SIGSEGV))",),
            "examination.failed": [{"probe": "nvml", "reason": "its process died (SIGSEGV)"}],
        },
    ),
    (
        "a hang at the start",
        unknown("timed out after 18.0 s", "nvml"),
        {
            "driver.nvml_unresponsive": True,
            "driver.nvml_error": ("NVML gave no answer (timed out after 18.0 s)",),
            "gpu.count": ("NVML gave no answer (timed out after 18.0 s)",),
        },
    ),
    (
        "too little time to say",
        unknown("timed out after 0.4 s", "nvml"),
        {"driver.nvml_unresponsive": ("NVML was given 0.4 s only",)},
    ),
    (
        "our own fault",
        unknown("RuntimeError: nvidia-ml-py is missing", "nvml"),
        {
            "driver.nvml_unresponsive": ("RuntimeError: nvidia-ml-py is missing",),
            "examination.failed": [{"probe": "nvml", "reason": "RuntimeError: nvidia-ml-py is missing"}],
            "driver.nvml_version": ("NVML gave no answer (RuntimeError: nvidia-ml-py is missing)",),
        },
    ),
    (
        "more GPUs than a machine has",
        known(started(count=4294967295), "nvml"),
        {"gpu.count": ("NVML counts 4294967295 GPUs, which no machine has",), "gpu.0.name": GPU["name"]},
    ),
    (
        "no compute capability",
        known(started(gpus=[{**GPU, "compute_capability": "-1.-1"}]), "nvml"),
        {"gpu.0.compute_capability": ("NVML gave '-1.-1', which is no compute capability",)},
    ),
    (
        "no library",
        absent("nvml"),
        {
            "driver.nvml_unresponsive": None,
            "driver.nvml_error": ("there is no NVML library",),
            "gpu.count": ("there is no NVML library",),
        },
    ),
]


@pytest.mark.parametrize(("name", "answer", "expected"), NVML, ids=[name for name, _, _ in NVML])
def test_facts_from_nvml(name: str, answer: Fact[Any], expected: dict[str, Any]) -> None:
    facts = driver.nvml_facts(answer)
    assert {fact: seen(facts[fact]) for fact in expected} == expected
    for fact, found in facts.items():
        spec = spec_of(fact)
        assert spec is not None and (not found.is_known or fits(spec, found.get())), fact
    if "examination.failed" not in expected:
        assert "examination.failed" not in facts


def test_megabytes_from_nvidia_smi_are_not_all_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are read by the process that has to keep the deadline."""
    lengths = []

    def parse_table(text: str) -> Any:
        lengths.append(len(text))
        raise ParseError("no table")

    monkeypatch.setattr("cudadoctor.parse.nvidia_smi.parse_table", parse_table)
    driver.look(machine(smi(out="|\n" * 1_000_000), nvml={"init": {"code": 9, "error": "Driver Not Loaded"}}))
    assert lengths == [256 << 10]


def test_cuda_versions_and_library_versions() -> None:
    for number, version in ((12020, "12.2"), (11040, "11.4"), (13000, "13.0"), (12090, "12.9"), (10010, "10.1")):
        facts = driver.nvml_facts(known(started(cuda_driver_version=number), "nvml"))
        assert facts["driver.nvml_cuda"].get() == version
    for text, version in (("12.535.261.03", "535.261.03"), ("13.610.43", "610.43"), ("470.256", "470.256")):
        facts = driver.nvml_facts(known(started(library_version=text), "nvml"))
        assert facts["driver.nvml_library_version"].get() == version


# -- nvidia-smi -----------------------------------------------------------------------------------------------------

TABLE = """\
Tue Mar 10 09:15:02 2026
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 580.95.05              Driver Version: 580.95.05      CUDA Version: 13.0     |
+-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
|   0  NVIDIA GeForce RTX 4060 ...    On  |   00000000:01:00.0 Off |                  N/A |
| 30%   45C    P8             30W /  115W |     257MiB /   8188MiB |      0%      Default |
|                                         |                        |                  N/A |
|   1  ERR!                          ERR! |   00000000:02:00.0ERR! |                  N/A |
|ERR!  ERR! ERR!             ERR! / ERR!  | Unknown Error          |    ERR!         ERR! |
+-----------------------------------------+------------------------+----------------------+
"""

NO_DRIVER = (
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA "
    "driver is installed and running.\n\n"
)
LOST = "Unable to determine the device handle for GPU1: GPU is lost.  Reboot the system to recover this GPU\n"
MISMATCH = "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 535.261\n"
QUERY = (
    "--query-gpu=index,name,pci.bus_id,driver_version,memory.total,memory.used,compute_cap,mig.mode.current",
    "--query-gpu=index,name,pci.bus_id,driver_version,memory.total,memory.used",
)
FORMAT = "--format=csv,noheader,nounits"


def row(index: int, name: Any, **changes: Any) -> dict[str, Any]:
    empty = {
        "truncated": False,
        "address": None,
        "memory_total": None,
        "memory_used": None,
        "compute_capability": None,
        "mig": None,
        "driver_model": None,
        "lost": False,
    }
    return {"index": index, "name": name, **empty, **changes}


CUT = row(
    0,
    "NVIDIA GeForce RTX 4060 ...",
    truncated=True,
    address="0000:01:00.0",
    memory_total=8188 * MIB,
    memory_used=257 * MIB,
)
UNREADABLE = row(1, None, address="0000:02:00.0", lost=True)


def machine(*programs: dict[str, Any], nvml: Any = None) -> ReplaySystem:
    document = {"unlisted": "absent", "variables": {"PATH": "/usr/bin"}, "programs": list(programs)}
    if nvml is not None:
        document["nvml"] = nvml
    return ReplaySystem.of(document)


def smi(*arguments: str, exit: Any = 0, out: str = "", **more: Any) -> dict[str, Any]:
    return {"argv": ["/usr/bin/nvidia-smi", *arguments], "exit_status": exit, "stdout": out.split("\n"), **more}


NO_TABLE = ("nvidia-smi printed no table",)

# The machine's nvidia-smi (and NVML, where it answers), and the facts.
SMI: list[tuple[str, ReplaySystem, dict[str, Any]]] = [
    (
        "a table",
        machine(smi(out=TABLE), nvml=started()),
        {
            "driver.smi_path": "/usr/bin/nvidia-smi",
            "driver.smi_exit": 0,
            "driver.smi_failure": None,
            "driver.smi_failure_text": None,
            "driver.smi_version": "580.95.05",
            "driver.smi_tool_version": "580.95.05",
            "driver.smi_library_version": None,
            "driver.smi_cuda": "13.0",
            "smi.gpus": [CUT, UNREADABLE],
        },
    ),
    (
        "R610's header",
        machine(
            smi(out="| NVIDIA-SMI 610.43.02   KMD Version: 610.43.02   CUDA UMD Version: 13.3 |\n"), nvml=started()
        ),
        {"driver.smi_version": "610.43.02", "driver.smi_cuda": "13.3", "smi.gpus": []},
    ),
    (
        "no libcuda",
        machine(smi(out="| NVIDIA-SMI 550.54  Driver Version: 550.54  CUDA Version: N/A  |\n"), nvml=started()),
        {"driver.smi_version": "550.54", "driver.smi_cuda": None},
    ),
    (
        "a table and yet 255, as R390 ends on a library that it does not know",
        machine(smi(out=TABLE, exit=255), nvml=started()),
        {"driver.smi_exit": 255, "driver.smi_failure": None, "driver.smi_version": "580.95.05"},
    ),
    (
        "no driver",
        machine(smi(out=NO_DRIVER, exit=9)),
        {
            "driver.smi_exit": 9,
            "driver.smi_failure": "no-driver",
            "driver.smi_failure_text": NO_DRIVER.strip(),
            "driver.smi_version": NO_TABLE,
            "smi.gpus": NO_TABLE,
        },
    ),
    (
        "a mismatch",
        machine(smi(out=MISMATCH, exit=18), nvml=refused(18, "Driver/library version mismatch")),
        {
            "driver.smi_failure": "mismatch",
            "driver.smi_failure_text": "Failed to initialize NVML: Driver/library version mismatch",
            "driver.smi_library_version": "535.261",
            "driver.nvml_error": 18,
        },
    ),
    (
        "a mismatch before R535, which ends with 255",
        machine(smi(out=MISMATCH.split("\n")[0], exit=255)),
        {"driver.smi_failure": "mismatch", "driver.smi_library_version": None},
    ),
    (
        "no library",
        machine(smi(out="NVIDIA-SMI couldn't find libnvidia-ml.so library in your system.", exit=12)),
        {"driver.smi_failure": "no-library"},
    ),
    (
        "no permission",
        machine(smi(out="Failed to initialize NVML: Insufficient Permissions\n", exit=4)),
        {"driver.smi_failure": "permission"},
    ),
    (
        "unknown error",
        machine(smi(out="Failed to initialize NVML: Unknown Error\n", exit=255)),
        {"driver.smi_failure": "unknown-error"},
    ),
    ("no devices", machine(smi(out="No devices were found\n", exit=6)), {"driver.smi_failure": "no-devices"}),
    (
        "the exit status alone",
        machine(smi(out="", exit=9)),
        {"driver.smi_failure": "no-driver", "driver.smi_failure_text": None},
    ),
    (
        "something else that is called nvidia-smi",
        machine(smi(out="usage: nvidia-smi [options]\n", exit=1)),
        {"driver.smi_failure": "unreadable", "driver.smi_failure_text": "usage: nvidia-smi [options]"},
    ),
    (
        "a message on standard error",
        machine(smi(exit=127, stderr="nvidia-smi: error while loading libraries")),
        {"driver.smi_failure": "unreadable", "driver.smi_failure_text": "nvidia-smi: error while loading libraries"},
    ),
    (
        "a hang",
        machine(smi(exit=None, timed_out=True)),
        {
            "driver.smi_exit": ("it was stopped",),
            "driver.smi_failure": "timed-out",
            "driver.smi_failure_text": "nvidia-smi did not answer in time",
        },
    ),
    (
        "not to be started",
        machine({"argv": ["/usr/bin/nvidia-smi"], "error": "it cannot be started (permission denied)"}),
        {
            "driver.smi_path": "/usr/bin/nvidia-smi",
            "driver.smi_failure": ("nvidia-smi: it cannot be started (permission denied)",),
        },
    ),
    (
        "none",
        machine(),
        {
            "driver.smi_path": None,
            "driver.smi_failure": ("nvidia-smi was not found",),
            "smi.gpus": ("nvidia-smi was not found",),
        },
    ),
    # NVML gives no answer: nvidia-smi is asked for more.
    (
        "a table that is completed",
        machine(
            smi(out=TABLE),
            smi(
                QUERY[0],
                FORMAT,
                out="0, NVIDIA GeForce RTX 4060 Laptop GPU, 00000000:01:00.0, 580.95.05, 8188, 257, 8.9, [N/A]\n"
                "1, [GPU is lost], [GPU is lost], [Unknown Error], [Unknown Error], [N/A], [N/A], [N/A]\n",
            ),
        ),
        {
            "driver.smi_failure": None,
            "smi.gpus": [
                {**CUT, "name": "NVIDIA GeForce RTX 4060 Laptop GPU", "truncated": False, "compute_capability": "8.9"},
                UNREADABLE,
            ],
        },
    ),
    (
        "an old driver, which does not know two of the fields",
        machine(
            smi(out=TABLE.replace("580.95.05", "390.157")),
            smi(QUERY[0], FORMAT, exit=2, out='Field "compute_cap" is not a valid field to query.\n'),
            smi(QUERY[1], FORMAT, out="0, Tesla V100-SXM2-32GB, 00000000:01:00.0, 390.157, 32480, 30123\n"),
        ),
        {
            "driver.smi_version": "390.157",
            "smi.gpus": [
                {
                    **CUT,
                    "name": "Tesla V100-SXM2-32GB",
                    "truncated": False,
                    "memory_total": 32480 * MIB,
                    "memory_used": 30123 * MIB,
                },
                UNREADABLE,
            ],
        },
    ),
    (
        "one GPU lost: the list still tells the other",
        machine(
            smi(out=LOST, exit=15),
            smi(QUERY[0], FORMAT, exit=15, out=LOST),
            smi(QUERY[1], FORMAT, exit=15, out=LOST),
            smi(
                "-L",
                exit=15,
                out="GPU 0: NVIDIA GeForce RTX 4090 (UUID: GPU-00000000-0000-4000-8000-000000000000)\n"
                "Unable to determine the product name for gpu 1: GPU is lost\n",
            ),
        ),
        {
            "driver.smi_failure": "gpu-lost",
            "driver.smi_failure_text": LOST.strip(),
            "smi.gpus": [row(0, "NVIDIA GeForce RTX 4090"), row(1, None, lost=True)],
        },
    ),
    (
        "a query that tells the driver where the table could not",
        machine(
            smi(out="garbled", exit=0),
            smi(QUERY[0], FORMAT, out="0, NVIDIA A100-SXM4-40GB, 00000000:07:00.0, 470.256, 40536, 0, 8.0, Enabled\n"),
        ),
        {
            "driver.smi_failure": "unreadable",
            "driver.smi_version": "470.256",
            "smi.gpus": [
                row(
                    0,
                    "NVIDIA A100-SXM4-40GB",
                    address="0000:07:00.0",
                    memory_total=40536 * MIB,
                    memory_used=0,
                    compute_capability="8.0",
                    mig=True,
                )
            ],
        },
    ),
]


@pytest.mark.parametrize(("name", "system", "expected"), SMI, ids=[name for name, _, _ in SMI])
def test_facts_from_nvidia_smi(name: str, system: ReplaySystem, expected: dict[str, Any]) -> None:
    facts = driver.look(system)
    assert {fact: seen(facts[fact]) for fact in expected} == expected
    for fact, found in facts.items():
        spec = spec_of(fact)
        assert spec is not None and (not found.is_known or fits(spec, found.get())), fact


class Counting(ReplaySystem):
    """Keeps the command lines that were asked for."""

    def run(self, argv: Any, timeout: float, environment: Any = None) -> Any:
        asked: list[str] = self.once(_asked)
        asked.append(" ".join(argv[1:]))
        return super().run(argv, timeout, environment)


def _asked(system: Any) -> list[str]:
    return []


# What nvidia-smi says to the first question, and whether it is asked again where NVML is silent.
AGAIN = [
    (smi(out=TABLE), True),
    (smi(out=LOST, exit=15), True),
    (smi(out="garbled"), True),
    (smi(out=NO_DRIVER, exit=9), False),
    (smi(out=MISMATCH, exit=18), False),
    (smi(out="Failed to initialize NVML: Unknown Error", exit=255), False),
    (smi(out="No devices were found", exit=6), False),
    (smi(exit=None, timed_out=True), False),
]


@pytest.mark.parametrize(("first", "again"), AGAIN)
def test_nvidia_smi_is_asked_again_only_where_it_can_say_more(first: dict[str, Any], again: bool) -> None:
    document = {"unlisted": "absent", "variables": {"PATH": "/usr/bin"}, "programs": [first]}
    silent = Counting.of(document)
    driver.look(silent)
    assert (len(silent.once(_asked)) > 1) == again
    answering = Counting.of({**document, "nvml": started()})
    driver.look(answering)
    assert answering.once(_asked) == [""]  # the table alone


# -- where nvidia-smi is --------------------------------------------------------------------------------------------

WHERE: list[tuple[dict[str, Any], Any]] = [
    ({"variables": {"PATH": "/opt/x:/usr/bin"}, "files": {"/opt/x/nvidia-smi": ""}}, "/opt/x/nvidia-smi"),
    ({"variables": {"PATH": "/bin"}, "files": {"/usr/lib/wsl/lib/nvidia-smi": ""}}, "/usr/lib/wsl/lib/nvidia-smi"),
    ({"variables": {"PATH": "/x"}, "files": {"/usr/bin/nvidia-smi": ""}}, "/usr/bin/nvidia-smi"),
    ({"variables": {"PATH": "/x"}}, None),
    (
        {"platform": "windows", "files": {"C:\\Program Files\\NVIDIA Corporation\\NVSMI\\nvidia-smi.exe": ""}},
        "C:\\Program Files\\NVIDIA Corporation\\NVSMI\\nvidia-smi.exe",
    ),
]


@pytest.mark.parametrize(("document", "place"), WHERE)
def test_nvidia_smi_is_looked_for_on_path_and_in_its_usual_places(document: dict[str, Any], place: Any) -> None:
    assert driver.find_smi(ReplaySystem.of({"unlisted": "absent", **document})).value == place


def test_every_gpu_fact_of_the_catalogue_is_answered(tmp_path: Path) -> None:
    from cudadoctor.model.catalogue import CATALOGUE, ONLY_IN_REPORTS

    facts = driver.nvml_facts(known(started(), "nvml"))
    asked = (name for name in CATALOGUE if name.startswith("gpu.") and not name.startswith(ONLY_IN_REPORTS))
    wanted = {name.replace("{n}", "0") for name in asked}
    assert wanted == {name for name in facts if name.startswith("gpu.")}
