"""NVML asked everything at once, through nvidia-ml-py, inside a process that can be left behind.

The answer is plain data, and it is what a recording keeps under `nvml`:

    {
      "init": {"ok": true},                      or {"code": 18, "error": "Driver/library version mismatch"}
      "library_version": "12.535.183.01",        version of the NVML library; it tells even where init failed (R535 on)
      "driver_version": "535.183.01",
      "cuda_driver_version": 12020,              1000 * major + 10 * minor
      "count": 2,
      "gpus": [
        {"name": "NVIDIA A10", "pci_bus_id": "00000000:01:00.0", "memory": {...}, ...},
        {"handle": {"code": 15, "error": "GPU is lost"}}
      ],
      "unfinished": "timed out after 18.0 s"     only where NVML hung or crashed in the middle
    }

Each call is on its own: where one gives no value there stands `{"absent": true}` (NVML: Not Supported) or
`{"code": C, "error": "words"}` (code 13: this driver's library has no such function). No UUID, serial number or process
name is asked for.
"""

from __future__ import annotations

import os
import sys
from types import ModuleType
from typing import Any, Callable, Optional

from cudadoctor.model.catalogue import MOST_GPUS
from cudadoctor.model.fact import Fact, absent, known, unknown
from cudadoctor.system.port import System
from cudadoctor.system.sources import LIBRARY_SEARCH

LIBRARY = "libnvidia-ml.so.1"

NOT_SUPPORTED = 3
LIBRARY_NOT_FOUND = 12
FUNCTION_NOT_FOUND = 13
GPU_IS_LOST = 15

# Where NVIDIA's and the distributions' packages put libraries; most are in ld.so.cache as well. WSL's folder and
# NixOS's are on no default search path.
_FOLDERS = (
    "/lib64",
    "/usr/lib64",
    "/lib/{machine}-linux-gnu",
    "/usr/lib/{machine}-linux-gnu",
    "/lib",
    "/usr/lib",
    "/usr/lib/wsl/lib",
    "/run/opengl-driver/lib",
)


# -- is there a library? --------------------------------------------------------------------------------------------


def find_library(system: System) -> Fact[str]:
    """Path of the NVML library that a program would load; absent: there is none, and NVML need not be asked."""
    if system.platform == "windows":
        return _find_on_windows(system)
    if system.platform != "linux":
        return absent(LIBRARY_SEARCH)
    machine = system.machine()
    name = machine.get() if machine.is_known else "x86_64"
    unreadable: Optional[Fact[str]] = None
    for path in [*_on_search_path(system), *_in_cache(system), *_in_folders(name)]:
        head = system.read_bytes(path, 5)
        if head.is_unknown:
            unreadable = unreadable or unknown(f"{path}: {head.reason}", LIBRARY_SEARCH)
        elif head.is_known and head.get() == b"\x7fELF\x02":  # 64 bits; the empty files of some containers are none
            return known(path, LIBRARY_SEARCH)
    return unreadable or absent(LIBRARY_SEARCH)


def _on_search_path(system: System) -> list[str]:
    value = system.variable("LD_LIBRARY_PATH")
    folders = value.get().replace(";", ":").split(":") if value.is_known else []
    return [f"{folder.rstrip('/')}/{LIBRARY}" for folder in folders if folder.startswith("/")]


def _in_cache(system: System) -> list[str]:
    cached = system.cached_libraries([LIBRARY])
    return cached.get()[LIBRARY] if cached.is_known else []


def _in_folders(machine: str) -> list[str]:
    return [f"{folder.format(machine=machine)}/{LIBRARY}" for folder in _FOLDERS]


def _find_on_windows(system: System) -> Fact[str]:
    for variable, default, rest in (
        ("WINDIR", "C:\\Windows", "System32\\nvml.dll"),
        ("ProgramFiles", "C:\\Program Files", "NVIDIA Corporation\\NVSMI\\nvml.dll"),
    ):
        folder = system.variable(variable)
        path = f"{folder.get() if folder.is_known else default}\\{rest}"
        status = system.status(path)
        if status.is_known and status.get().kind == "file":
            return known(path, LIBRARY_SEARCH)
    return absent(LIBRARY_SEARCH)


# -- asking it ------------------------------------------------------------------------------------------------------


def ask(report: Callable[[Any], None], library: str) -> dict[str, Any]:
    """Everything that NVML says; `library` is the path that `find_library` gave.

    Runs in a process of its own; after each GPU it calls `report` with what it has, for the case that the next one
    hangs.
    """
    try:
        pynvml = _import_pynvml()
    except ImportError as error:
        raise RuntimeError(f"nvidia-ml-py is missing or broken beside cudadoctor ({error})") from None
    questions = _Questions(pynvml)
    answer: dict[str, Any] = {"init": _start(pynvml, questions, library)}
    answer["library_version"] = questions.ask("nvmlSystemGetNVMLVersion")
    if answer["init"] != {"ok": True}:
        return answer
    report(dict(answer))
    answer["driver_version"] = questions.ask("nvmlSystemGetDriverVersion")
    answer["cuda_driver_version"] = questions.ask_first(
        "nvmlSystemGetCudaDriverVersion_v2", "nvmlSystemGetCudaDriverVersion"
    )
    answer["count"] = questions.ask("nvmlDeviceGetCount")
    answer["gpus"] = []
    if isinstance(answer["count"], int) and answer["count"] <= MOST_GPUS:
        for index in range(answer["count"]):
            report(dict(answer))
            answer["gpus"].append(_ask_gpu(questions, index))
    return answer


def _import_pynvml() -> Any:
    """nvidia-ml-py. It takes one function out of ctypes.util, which it has no use for here, and that module (with
    subprocess, tempfile and more behind it) takes as long to import as NVML to be asked."""
    name = "ctypes.util"
    if name in sys.modules or os.name != "posix":  # elsewhere this is no process of its own
        import pynvml  # type: ignore[import-untyped,unused-ignore]

        return pynvml
    stand_in: Any = ModuleType(name)
    stand_in.find_library = _find_library
    sys.modules[name] = stand_in
    try:
        import pynvml
    finally:
        del sys.modules[name]
    return pynvml


def _find_library(name: str) -> Optional[str]:
    from ctypes.util import find_library

    return find_library(name)


def _start(pynvml: Any, questions: _Questions, library: str) -> dict[str, Any]:
    try:
        pynvml.nvmlInit()
        return {"ok": True}
    except pynvml.NVMLError as error:
        failure = questions.failure(error)
    if failure["code"] != LIBRARY_NOT_FOUND:
        return failure
    # The loader did not find it by its name, or could not load it: its own words say which. A library that is loaded
    # by its path is found by its name afterwards (WSL and NixOS keep it off the search path).
    import ctypes

    try:
        ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
    except OSError as error:
        return {"code": LIBRARY_NOT_FOUND, "error": " ".join(str(error).split())[:300]}
    try:
        pynvml.nvmlInit()
        return {"ok": True}
    except pynvml.NVMLError as error:
        return questions.failure(error)


class _Questions:
    """Calls of nvidia-ml-py whose errors become data."""

    def __init__(self, pynvml: Any) -> None:
        self._pynvml = pynvml

    def ask(self, function: str, *arguments: Any, shape: Callable[[Any], Any] = lambda value: value) -> Any:
        """What a call gives, in the form that `shape` makes of it; or why it gives nothing."""
        call = getattr(self._pynvml, function, None)
        if call is None:
            return {"code": FUNCTION_NOT_FOUND, "error": f"this nvidia-ml-py has no {function}"}
        try:
            return shape(call(*arguments))
        except self._pynvml.NVMLError as error:
            return {"absent": True} if error.value == NOT_SUPPORTED else self.failure(error)
        except Exception as error:  # a value that nvidia-ml-py cannot read costs this answer alone
            return {"code": -1, "error": f"{type(error).__name__}: {error}"[:300]}

    def ask_first(
        self, *functions: str, arguments: tuple[Any, ...] = (), shape: Callable[[Any], Any] = lambda value: value
    ) -> Any:
        """The answer of the first of these functions that the driver's library has."""
        answer: Any = None
        for function in functions:
            answer = self.ask(function, *arguments, shape=shape)
            if not (isinstance(answer, dict) and answer.get("code") == FUNCTION_NOT_FOUND):
                break
        return answer

    def failure(self, error: Any) -> dict[str, Any]:
        """In NVML's own words rather than nvidia-ml-py's: these are what nvidia-smi prints and people search for."""
        code = int(error.value)
        text = ""
        if code not in (LIBRARY_NOT_FOUND, FUNCTION_NOT_FOUND):
            try:
                text = str(self._pynvml.nvmlErrorString(code))
            except Exception:
                text = ""
        return {"code": code, "error": text or str(error)}


def _ask_gpu(questions: _Questions, index: int) -> dict[str, Any]:
    pynvml = questions._pynvml
    handle = questions.ask("nvmlDeviceGetHandleByIndex", index)
    if isinstance(handle, dict):
        return {"handle": handle}
    ask = questions.ask
    gpu = {
        "name": ask("nvmlDeviceGetName", handle),
        "compute_capability": ask(
            "nvmlDeviceGetCudaComputeCapability", handle, shape=lambda pair: f"{pair[0]}.{pair[1]}"
        ),
        "memory": ask(
            "nvmlDeviceGetMemoryInfo",
            handle,
            shape=lambda memory: {"total": int(memory.total), "free": int(memory.free), "used": int(memory.used)},
        ),
        "mig_mode": ask("nvmlDeviceGetMigMode", handle, shape=lambda pair: pair[0]),
        "ecc_mode": ask("nvmlDeviceGetEccMode", handle, shape=lambda pair: pair[0]),
        "ecc_uncorrected": ask(
            "nvmlDeviceGetTotalEccErrors",
            handle,
            pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED,
            pynvml.NVML_VOLATILE_ECC,
        ),
        "retired_pending": ask("nvmlDeviceGetRetiredPagesPendingStatus", handle),
        "remapped_rows": ask(
            "nvmlDeviceGetRemappedRows",
            handle,
            shape=lambda rows: {"pending": bool(rows[2]), "failure": bool(rows[3])},
        ),
        "clocks_event_reasons": questions.ask_first(
            "nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons", arguments=(handle,)
        ),
        "temperature": ask("nvmlDeviceGetTemperature", handle, pynvml.NVML_TEMPERATURE_GPU),
        "temperature_slowdown": ask(
            "nvmlDeviceGetTemperatureThreshold", handle, pynvml.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN
        ),
        "power_mw": ask("nvmlDeviceGetPowerUsage", handle),
        "power_limit_mw": ask("nvmlDeviceGetEnforcedPowerLimit", handle),
        "power_limit_default_mw": ask("nvmlDeviceGetPowerManagementDefaultLimit", handle),
        "pcie_generation": ask("nvmlDeviceGetCurrPcieLinkGeneration", handle),
        "pcie_generation_max": ask("nvmlDeviceGetMaxPcieLinkGeneration", handle),
        "pcie_width": ask("nvmlDeviceGetCurrPcieLinkWidth", handle),
        "pcie_width_max": ask("nvmlDeviceGetMaxPcieLinkWidth", handle),
        "compute_mode": ask("nvmlDeviceGetComputeMode", handle),
        "persistence_mode": ask("nvmlDeviceGetPersistenceMode", handle),
        "processes": questions.ask_first(
            "nvmlDeviceGetComputeRunningProcesses_v3",
            "nvmlDeviceGetComputeRunningProcesses_v2",
            arguments=(handle,),
            shape=lambda found: [{"pid": int(one.pid), "memory": one.usedGpuMemory} for one in found],
        ),
        "utilization": ask("nvmlDeviceGetUtilizationRates", handle, shape=lambda rates: int(rates.gpu)),
        "performance_state": ask("nvmlDeviceGetPerformanceState", handle),
        "clock_sm": ask("nvmlDeviceGetClockInfo", handle, pynvml.NVML_CLOCK_SM),
        "clock_sm_max": ask("nvmlDeviceGetMaxClockInfo", handle, pynvml.NVML_CLOCK_SM),
        "driver_model": questions.ask_first(
            "nvmlDeviceGetDriverModel_v2",
            "nvmlDeviceGetDriverModel_v1",
            "nvmlDeviceGetDriverModel",
            arguments=(handle,),
            shape=lambda pair: pair[0],
        ),
        "display_active": ask("nvmlDeviceGetDisplayActive", handle),
        "fabric": _fabric(questions, handle),
        "recovery_action": _recovery_action(questions, handle),
        "nvlinks": _nvlinks(questions, handle),
    }
    pci = ask(
        "nvmlDeviceGetPciInfo",
        handle,
        shape=lambda info: {"bus_id": _text(info.busId), "device_id": f"{info.pciDeviceId:08x}"},
    )
    whole = "bus_id" in pci
    gpu["pci_bus_id"] = pci["bus_id"] if whole else pci
    gpu["pci_device_id"] = pci["device_id"] if whole else pci
    if gpu["mig_mode"] == 1:
        gpu["mig_devices"] = _count_mig_devices(questions, handle)
    return gpu


def _fabric(questions: _Questions, handle: Any) -> Any:
    """How far the registration with the NVLink fabric is: its state, and NVML's code of how it ended."""
    structure = getattr(questions._pynvml, "c_nvmlGpuFabricInfo_t", None)
    if structure is None:
        return {"code": FUNCTION_NOT_FOUND, "error": "this nvidia-ml-py knows no fabric"}
    import ctypes

    found = structure()
    return questions.ask(
        "nvmlDeviceGetGpuFabricInfo",
        handle,
        ctypes.byref(found),  # nvidia-ml-py hands on what it is given: the structure itself would be copied
        # State 0: this card takes part in none.
        shape=lambda _: {"state": int(found.state), "status": int(found.status)} if found.state else {"absent": True},
    )


# As many as any card has, and some more.
_MOST_NVLINKS = 64


def _nvlinks(questions: _Questions, handle: Any) -> Any:
    """How many of the card's NVLinks are up, and how many down. A card without any says so at the first."""
    states: list[int] = []
    while len(states) < _MOST_NVLINKS:
        state = questions.ask("nvmlDeviceGetNvLinkState", handle, len(states), shape=int)
        if isinstance(state, dict):  # there is no such link, or no more
            if not states:
                return state
            break
        states.append(state)
    up = sum(state == 1 for state in states)
    return {"up": up, "down": len(states) - up}


def _recovery_action(questions: _Questions, handle: Any) -> Any:
    """What the driver says that the GPU needs. Drivers before it was invented do not know the field."""
    field = getattr(questions._pynvml, "NVML_FI_DEV_GET_GPU_RECOVERY_ACTION", None)
    if field is None:
        return {"code": FUNCTION_NOT_FOUND, "error": "this nvidia-ml-py knows no recovery action"}
    answer = questions.ask(
        "nvmlDeviceGetFieldValues",
        handle,
        [field],
        shape=lambda values: {"result": int(values[0].nvmlReturn), "value": int(values[0].value.uiVal)},
    )
    if "result" not in answer:
        return answer
    # An older driver calls the field itself invalid.
    return answer["value"] if answer["result"] == 0 else {"absent": True}


def _count_mig_devices(questions: _Questions, handle: Any) -> Any:
    most = questions.ask("nvmlDeviceGetMaxMigDeviceCount", handle)
    if not isinstance(most, int):
        return most
    ask = questions.ask
    answers = [ask("nvmlDeviceGetMigDeviceHandleByIndex", handle, place, shape=lambda _: 1) for place in range(most)]
    return answers.count(1)


def _text(value: Any) -> str:
    return value.decode("ascii", "replace") if isinstance(value, bytes) else str(value)
