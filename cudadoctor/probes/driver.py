"""What NVML and nvidia-smi say: driver.nvml_*, gpu.*, driver.smi_* and smi.gpus.

Both run in processes of their own, and may hang with the driver. So the work has three parts: `find_library` and
`find_smi` (where are they? they look into folders that may lie on a dead network file system), `begin_nvml` and
`begin_smi`, and `finish` (wait for both); on a live machine other probes run in between.

nvidia-smi is asked for its table. Only where NVML did not answer it is asked again: `--query-gpu` with what the
table cannot say, the same without the fields that older drivers do not know, and `-L` where even that fails. Where
nvidia-smi said that it cannot reach the driver at all, asking again would only say it again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Callable, Optional

from cudadoctor.model.fact import Fact, ParseError, absent, known, unknown
from cudadoctor.model.record import NamedTuple
from cudadoctor.parse.digits import is_digits
from cudadoctor.parse.versions import cuda_from_int
from cudadoctor.probes.api import EVERYWHERE, Probe

if TYPE_CHECKING:
    from cudadoctor.parse.nvidia_smi import Cell, SmiTable
    from cudadoctor.system.port import ProgramResult, RunningProgram, RunningQuery, System

NVML = "nvml"

# Kept back from NVML's and nvidia-smi's time, so that a hang is reported before the run's deadline.
RESERVE = 0.7

# A driver that has not answered for so long counts as one that hangs. (The first call takes seconds where there are
# many GPUs and no persistence mode; who gives us less time than this learns nothing about the driver.)
PATIENCE = 2.0

# How much longer than NVML nvidia-smi may take where NVML has answered: it tells little more then.
SMI_EXTRA = 2.0

# How long nvidia-smi is waited for where NVML does not hang and has not answered either: nvidia-smi asks the same
# library, and has nothing to wait for.
SMI_ALONE = 5.0

# What is read of an nvidia-smi's words: a table of a large node with thousands of processes takes less, and reading
# megabytes of something else would take longer than the run may.
_MOST_TEXT = 256 << 10

# Where nvidia-smi lies when PATH does not lead to it: WSL, GKE's and CoreOS' driver containers, NixOS; old Windows.
_USUAL_PLACES = {
    "linux": (
        "/usr/bin/nvidia-smi",
        "/usr/lib/wsl/lib/nvidia-smi",
        "/usr/local/nvidia/bin/nvidia-smi",
        "/opt/bin/nvidia-smi",
        "/run/current-system/sw/bin/nvidia-smi",
    ),
    "windows": (
        "C:\\Windows\\System32\\nvidia-smi.exe",
        "C:\\Program Files\\NVIDIA Corporation\\NVSMI\\nvidia-smi.exe",
    ),
}


class Begun(NamedTuple):
    """Where NVML's library and nvidia-smi are, and both on their way; None: not started."""

    library: Fact[str]
    smi_place: Fact[str]
    nvml: Optional[RunningQuery]
    smi: Optional[RunningProgram]
    seconds: float  # that nvidia-smi was given


def time_left(system: System) -> float:
    """Seconds that NVML and nvidia-smi may take."""
    remaining = system.remaining()
    return remaining - min(RESERVE, remaining / 4)


def find_library(system: System) -> Fact[str]:
    return system.nvml_library()


def find_smi(system: System, note: Optional[Callable[[Fact[str]], None]] = None) -> Fact[str]:
    """Where nvidia-smi is. `note` is told what serves where PATH cannot be gone through to its end."""
    usual = None
    if note is not None:
        usual = _in_usual_places(system)
        note(usual)
    found = system.which(SMI)
    if found.is_known:
        return found
    usual = usual or _in_usual_places(system)
    return usual if usual.is_known else found


def _in_usual_places(system: System) -> Fact[str]:
    for path in _USUAL_PLACES.get(system.platform, ()):
        status = system.status(path)
        if status.is_known and status.get().kind == "file":
            return known(path, "usual places")
    return absent("usual places")


def begin_nvml(system: System, library: Fact[str]) -> Optional[RunningQuery]:
    return system.start_nvml(library.get(), time_left(system)) if library.is_known else None


def begin_smi(system: System, smi: Fact[str]) -> Optional[RunningProgram]:
    return system.start([smi.get()], time_left(system)) if smi.is_known else None


def begin(system: System) -> Begun:
    """Finds both and starts them."""
    library, smi = find_library(system), find_smi(system)
    seconds = time_left(system)
    return Begun(library, smi, begin_nvml(system, library), begin_smi(system, smi), seconds)


def finish(system: System, begun: Begun) -> dict[str, Fact[Any]]:
    facts: dict[str, Fact[Any]] = {"driver.nvml_library": begun.library, "driver.smi_path": begun.smi_place}
    answer: Fact[Any]
    if begun.nvml is not None:
        answer = begun.nvml.result()
    elif begun.library.is_absent:
        answer = absent(NVML)
    else:
        answer = unknown(f"the NVML library could not be looked for ({begun.library.reason})", NVML)
    facts.update(nvml_facts(answer))
    if begun.nvml is None:
        # Nobody asked it, so nothing failed; where its library could not be looked for, the facts say why.
        facts.pop("examination.failed", None)
    facts.update(_smi_facts(system, begun, facts))
    late = facts["driver.nvml_unresponsive"]
    if late.is_unknown and late.reason.startswith(_TOO_SHORT):
        # Nobody can say that it hangs, and so nothing else tells why so little is known.
        seconds = float(late.reason[len(_TOO_SHORT) :].partition(" ")[0])
        facts["examination.timed_out"] = known([{"probe": "driver", "seconds": seconds}], NVML)
    return facts


def look(system: System) -> dict[str, Fact[Any]]:
    return finish(system, begin(system))


# -- NVML -----------------------------------------------------------------------------------------------------------

GPU_IS_LOST = 15
_TOO_SHORT = "NVML was given "
_UNKNOWN_STATE = 32  # NVML_PSTATE_UNKNOWN

_COMPUTE_MODES = ("default", "exclusive-thread", "prohibited", "exclusive-process")
_DRIVER_MODELS = ("WDDM", "TCC", "MCDM")
_FABRIC_STATES = ("none", "not-started", "in-progress", "completed")
_RECOVERY_ACTIONS = (
    "none",
    "reset",
    "reboot",
    "drain-p2p",
    "drain-and-reset",
    "recover-imex-domain",
    "bus-reset",
    "reboot",
)
_EVENT_REASONS = (
    "gpu_idle",
    "applications_clocks_setting",
    "sw_power_cap",
    "hw_slowdown",
    "sync_boost",
    "sw_thermal_slowdown",
    "hw_thermal_slowdown",
    "hw_power_brake_slowdown",
    "display_clock_setting",
    "board_limit",
    "reliability",
)


def nvml_facts(answer: Fact[Any]) -> dict[str, Fact[Any]]:
    """Facts from NVML's answer (its shape: `system/nvml.py`)."""
    if not answer.is_known:
        return _no_nvml(answer)
    data: Mapping[str, Any] = answer.get()
    unfinished: str = data.get("unfinished", "")
    facts: dict[str, Fact[Any]] = {
        "driver.nvml_unresponsive": _unresponsive(unfinished),
        "driver.nvml_library_version": _read(data.get("library_version")).map(_library_version),
    }
    if unfinished and not unfinished.startswith("timed out"):
        facts["examination.failed"] = known([{"probe": NVML, "reason": unfinished}], NVML)
    init = data.get("init", {})
    if "code" in init:
        facts["driver.nvml_error"] = known(init["code"], NVML)
        facts["driver.nvml_error_text"] = known(init["error"], NVML)
        reason = f"NVML did not start: {init['error']}"
        for name in ("driver.nvml_version", "driver.nvml_cuda", "gpu.count"):
            facts[name] = unknown(reason, NVML)
        return facts
    facts["driver.nvml_error"] = facts["driver.nvml_error_text"] = absent(NVML)
    missing = f"NVML stopped answering ({unfinished})" if unfinished else "NVML was not asked"
    facts["driver.nvml_version"] = _read(data.get("driver_version"), missing)
    facts["driver.nvml_cuda"] = _read(data.get("cuda_driver_version"), missing).map(cuda_from_int)
    facts["gpu.count"] = _read(data.get("count"), missing).map(_gpu_count)
    gpus = data.get("gpus", [])
    for index in range(max(len(gpus), facts["gpu.count"].value or 0)):
        found = _gpu_facts(gpus[index]) if index < len(gpus) else _no_gpu_facts(missing, False)
        facts.update({f"gpu.{index}.{name}": fact for name, fact in found.items()})
    return facts


def _no_nvml(answer: Fact[Any]) -> dict[str, Fact[Any]]:
    """No answer at all: there is no library, it hangs, or asking it failed."""
    if answer.is_absent:
        reason, unresponsive = "there is no NVML library", absent(NVML)
    else:
        reason = f"NVML gave no answer ({answer.reason})"
        hangs = answer.reason.startswith("timed out")
        unresponsive = _unresponsive(answer.reason) if hangs else unknown(answer.reason, NVML)
    facts = {
        name: unknown(reason, NVML)
        for name in (
            "driver.nvml_error",
            "driver.nvml_error_text",
            "driver.nvml_version",
            "driver.nvml_cuda",
            "driver.nvml_library_version",
            "gpu.count",
        )
    }
    facts["driver.nvml_unresponsive"] = unresponsive
    if answer.is_unknown and not answer.reason.startswith("timed out"):
        facts["examination.failed"] = known([{"probe": NVML, "reason": answer.reason}], NVML)
    return facts


def _unresponsive(reason: str) -> Fact[bool]:
    """Whether NVML hangs, by why it gave no more ("timed out after 18.0 s")."""
    if not reason.startswith("timed out"):
        return known(False, NVML)
    seconds = re.search(r"after (\d+(?:\.\d+)?) s", reason)
    if seconds and float(seconds.group(1)) < PATIENCE:
        return unknown(f"{_TOO_SHORT}{seconds.group(1)} s only", NVML)
    return known(True, NVML)


def _read(entry: Any, missing: str = "NVML was not asked") -> Fact[Any]:
    """One answer of NVML's as a fact."""
    if entry is None:
        return unknown(missing, NVML)
    if isinstance(entry, dict):
        if entry.get("absent") is True:
            return absent(NVML)
        if "error" in entry:
            return unknown(f"NVML: {entry['error']}", NVML)
    return known(entry, NVML)


def _library_version(text: str) -> str:
    """ "12.535.261.03" (CUDA's major, then the driver's version) -> "535.261.03" """
    return text.partition(".")[2] if text.count(".") >= 2 else text


def _gpu_count(number: Any) -> int:
    from cudadoctor.model.catalogue import MOST_GPUS

    if isinstance(number, int) and 0 <= number <= MOST_GPUS:
        return number
    raise ParseError(f"NVML counts {number!r} GPUs, which no machine has")


def _capability(text: Any) -> str:
    major, _, minor = str(text).partition(".")
    if is_digits(major, 2) and is_digits(minor, 2) and int(major):
        return str(text)
    raise ParseError(f"NVML gave {text!r}, which is no compute capability")


def _part(name: str) -> Callable[[Any], Any]:
    return lambda answer: answer[name]


def _choice(names: tuple[str, ...]) -> Callable[[Any], str]:
    def read(number: Any) -> str:
        if isinstance(number, int) and 0 <= number < len(names):
            return names[number]
        raise ParseError(f"NVML gave {number!r}, which is none of {', '.join(names)}")

    return read


def _watts(milliwatts: int) -> float:
    return milliwatts / 1000


def _address(text: str) -> str:
    from cudadoctor.parse.pci import normalise_bus_id

    return normalise_bus_id(text)


def _reasons(mask: int) -> list[str]:
    return [name for bit, name in enumerate(_EVENT_REASONS) if mask >> bit & 1]


def _state(number: int) -> int:
    if number == _UNKNOWN_STATE:
        raise ParseError("NVML does not know the performance state")
    return number


def _as_it_is(value: Any) -> Any:
    return value


# Fact of a GPU, NVML's answer, how to read it.
_GPU_FACTS: tuple[tuple[str, str, Callable[[Any], Any]], ...] = (
    ("name", "name", _as_it_is),
    ("pci_address", "pci_bus_id", _address),
    ("pci_device_id", "pci_device_id", lambda text: text[:4].lower()),
    ("compute_capability", "compute_capability", _capability),
    ("memory_total", "memory", _part("total")),
    ("memory_free", "memory", _part("free")),
    ("memory_used", "memory", _part("used")),
    ("mig_mode", "mig_mode", bool),
    ("ecc_mode", "ecc_mode", bool),
    ("ecc_uncorrected", "ecc_uncorrected", _as_it_is),
    ("retired_pending", "retired_pending", bool),
    ("remap_pending", "remapped_rows", _part("pending")),
    ("remap_failure", "remapped_rows", _part("failure")),
    ("throttle_reasons", "clocks_event_reasons", _reasons),
    ("temperature", "temperature", _as_it_is),
    ("temperature_slowdown", "temperature_slowdown", _as_it_is),
    ("power", "power_mw", _watts),
    ("power_limit", "power_limit_mw", _watts),
    ("power_limit_default", "power_limit_default_mw", _watts),
    ("pcie_generation", "pcie_generation", _as_it_is),
    ("pcie_generation_max", "pcie_generation_max", _as_it_is),
    ("pcie_width", "pcie_width", _as_it_is),
    ("pcie_width_max", "pcie_width_max", _as_it_is),
    ("compute_mode", "compute_mode", _choice(_COMPUTE_MODES)),
    ("persistence_mode", "persistence_mode", bool),
    ("processes", "processes", _as_it_is),
    ("utilization", "utilization", _as_it_is),
    ("performance_state", "performance_state", _state),
    ("clock_sm", "clock_sm", _as_it_is),
    ("clock_sm_max", "clock_sm_max", _as_it_is),
    ("driver_model", "driver_model", _choice(_DRIVER_MODELS)),
    ("display_active", "display_active", bool),
    ("fabric_state", "fabric", lambda found: _choice(_FABRIC_STATES)(found["state"])),
    ("recovery_action", "recovery_action", _choice(_RECOVERY_ACTIONS)),
    ("nvlinks_up", "nvlinks", _part("up")),
    ("nvlinks_down", "nvlinks", _part("down")),
)


def _gpu_facts(entry: Mapping[str, Any]) -> dict[str, Fact[Any]]:
    handle = entry.get("handle")
    if handle is not None:
        return _no_gpu_facts(f"NVML: {handle['error']}", handle["code"] == GPU_IS_LOST)
    facts = {name: _read(entry.get(key)).map(read) for name, key, read in _GPU_FACTS}
    mig = facts["mig_mode"]
    if mig.is_known:
        facts["mig_devices"] = _read(entry.get("mig_devices")) if mig.get() else known(0, NVML)
    else:
        facts["mig_devices"] = mig
    codes = {answer.get("code") for answer in entry.values() if isinstance(answer, dict)}
    facts["lost"] = known(GPU_IS_LOST in codes, NVML)
    return facts


def _no_gpu_facts(reason: str, lost: bool) -> dict[str, Fact[Any]]:
    """A GPU that is counted, and of which nothing can be asked."""
    facts: dict[str, Fact[Any]] = {name: unknown(reason, NVML) for name, _, _ in _GPU_FACTS}
    facts["mig_devices"] = unknown(reason, NVML)
    facts["lost"] = known(True, NVML) if lost else unknown(reason, NVML)
    return facts


# -- nvidia-smi -----------------------------------------------------------------------------------------------------

SMI = "nvidia-smi"

_QUERY = (
    "index",
    "name",
    "pci.bus_id",
    "driver_version",
    "memory.total",
    "memory.used",
    "compute_cap",
    "mig.mode.current",
)
_QUERY_OF_OLD_DRIVERS = _QUERY[:6]

# After these, nvidia-smi has nothing more to say.
_FINAL = ("no-driver", "no-library", "mismatch", "permission", "no-devices", "timed-out")


def _smi_facts(system: System, begun: Begun, of_nvml: Mapping[str, Fact[Any]]) -> dict[str, Fact[Any]]:
    nvml_answered = of_nvml["driver.nvml_version"].is_known
    nvml_hangs = begun.nvml is not None and of_nvml["driver.nvml_unresponsive"].value is not False
    names = (
        "driver.smi_exit",
        "driver.smi_failure",
        "driver.smi_failure_text",
        "driver.smi_version",
        "driver.smi_tool_version",
        "driver.smi_library_version",
        "driver.smi_cuda",
        "smi.gpus",
    )
    if begun.smi is None:
        place = begun.smi_place
        reason = "nvidia-smi was not found" if place.is_absent else f"nvidia-smi: {place.reason}"
        return {name: unknown(reason, SMI) for name in names}
    result = begun.smi.result(SMI_EXTRA if nvml_answered else None if nvml_hangs else SMI_ALONE)
    if not result.is_known:
        reason = "it is not there any more" if result.is_absent else result.reason
        return {name: unknown(f"nvidia-smi: {reason}", SMI) for name in names}
    if result.get().timed_out and not nvml_answered and begun.seconds < PATIENCE:
        return {name: unknown(f"nvidia-smi was given {begun.seconds:.1f} s only", SMI) for name in names}
    facts = _table_facts(_cut(result.get()))
    failure = facts["driver.smi_failure"]
    text = facts["driver.smi_failure_text"].value or ""
    final = failure.value in _FINAL or text.startswith("Failed to initialize NVML")
    if not nvml_answered and not final:
        _ask_more(system, begun.smi_place.get(), facts)
    return facts


def _cut(result: ProgramResult) -> ProgramResult:
    return result._replace(stdout=result.stdout[:_MOST_TEXT], stderr=result.stderr[:_MOST_TEXT])


def _table_facts(result: ProgramResult) -> dict[str, Fact[Any]]:
    from cudadoctor.parse.nvidia_smi import parse_table, table_entry

    table: Optional[SmiTable] = None
    try:
        table = parse_table(result.stdout)
    except ParseError:
        table = None
    facts = _failure_facts(result, table)
    status = result.exit_status
    facts["driver.smi_exit"] = unknown("it was stopped", SMI) if status is None else known(status, SMI)
    if table is None:
        for name in ("driver.smi_version", "driver.smi_tool_version", "driver.smi_cuda", "smi.gpus"):
            facts[name] = unknown("nvidia-smi printed no table", SMI)
        return facts
    facts["driver.smi_version"] = _cell(table.driver_version)
    facts["driver.smi_tool_version"] = known(table.smi_version, SMI)
    facts["driver.smi_cuda"] = _cell(table.cuda_version)
    facts["smi.gpus"] = known([table_entry(gpu) for gpu in table.gpus], SMI)
    return facts


def _failure_facts(result: ProgramResult, table: Optional[SmiTable]) -> dict[str, Fact[Any]]:
    from cudadoctor.parse.nvidia_smi import find_failure, kind_of_exit_code

    facts: dict[str, Fact[Any]] = {"driver.smi_library_version": absent(SMI)}
    text = f"{result.stdout}\n{result.stderr}"
    if result.timed_out:
        kind, words = "timed-out", "nvidia-smi did not answer in time"
    elif table is not None:
        # R390 prints its table and ends with 255 on libraries that it does not know.
        facts["driver.smi_failure"] = facts["driver.smi_failure_text"] = absent(SMI)
        return facts
    else:
        failure = find_failure(text)
        first = next((line.strip() for line in text.splitlines() if line.strip()), "")
        words = (failure.text if failure else first)[:300]
        by_exit = kind_of_exit_code(result.exit_status) if result.exit_status else None
        kind = failure.kind if failure else by_exit or "unreadable"
        if failure is not None and failure.library_version:
            facts["driver.smi_library_version"] = known(failure.library_version, SMI)
    facts["driver.smi_failure"] = known(kind, SMI)
    facts["driver.smi_failure_text"] = known(words, SMI) if words else absent(SMI)
    return facts


def _cell(cell: Cell) -> Fact[str]:
    """A cell of nvidia-smi's as a fact."""
    if cell.state == "known":
        return known(cell.text, SMI)
    return absent(SMI) if cell.state == "absent" else unknown(f"nvidia-smi printed {cell.text!r}", SMI)


def _ask_more(system: System, path: str, facts: dict[str, Fact[Any]]) -> None:
    """Completes what the table told about the GPUs; it cuts names and has no compute capability."""
    for columns in (_QUERY, _QUERY_OF_OLD_DRIVERS):
        query = [path, f"--query-gpu={','.join(columns)}", "--format=csv,noheader,nounits"]
        result = system.run(query, time_left(system))
        if not result.is_known or result.get().timed_out:
            return
        if result.get().exit_status == 0 and _take_query(_cut(result.get()).stdout, columns, facts):
            return
    listed = system.run([path, "-L"], time_left(system))
    if listed.is_known:
        _take_list(_cut(listed.get()).stdout, facts)


def _rows_by_index(facts: Mapping[str, Fact[Any]]) -> dict[int, dict[str, Any]]:
    fact = facts["smi.gpus"]
    return {row["index"]: row for row in fact.get()} if fact.is_known else {}


def _take_query(text: str, columns: tuple[str, ...], facts: dict[str, Fact[Any]]) -> bool:
    from cudadoctor.parse.nvidia_smi import bus_address, gpu_entry, is_enabled, mib_as_bytes, parse_csv

    try:
        table = parse_csv(text, columns)
    except ParseError:
        return False
    rows = _rows_by_index(facts)
    for cells in table:
        index = cells["index"].integer
        if index is None:
            continue
        name = cells["name"]
        row = rows.setdefault(index, gpu_entry(index, None))
        if name.value is not None:
            row["name"], row["truncated"] = name.value, False
        row["lost"] = row["lost"] or "is lost" in name.text
        row["address"] = row["address"] or bus_address(cells["pci.bus_id"].value)
        for key, column in (("memory_total", "memory.total"), ("memory_used", "memory.used")):
            size = mib_as_bytes(cells[column])
            row[key] = row[key] if size is None else size
        if "compute_cap" in cells:
            row["compute_capability"] = cells["compute_cap"].value
            enabled = is_enabled(cells["mig.mode.current"])
            row["mig"] = row["mig"] if enabled is None else enabled
        version = cells["driver_version"]
        if version.value is not None and not facts["driver.smi_version"].is_known:
            facts["driver.smi_version"] = known(version.value, SMI)
    if rows:
        facts["smi.gpus"] = known([rows[index] for index in sorted(rows)], SMI)
    return True


def _take_list(text: str, facts: dict[str, Fact[Any]]) -> None:
    from cudadoctor.parse.nvidia_smi import GPU_LOST, find_failures, gpu_entry, parse_list

    rows = _rows_by_index(facts)
    for gpu in parse_list(text):
        row = rows.setdefault(gpu.gpu, gpu_entry(gpu.gpu, None))
        row["name"], row["truncated"] = gpu.name, False
        if gpu.mig:
            row["mig"] = True
    for failure in find_failures(text):
        # "Unable to determine the product name for gpu 1: GPU is lost"
        if failure.kind == GPU_LOST and failure.gpu is not None and failure.gpu.isdigit():
            rows.setdefault(int(failure.gpu), gpu_entry(int(failure.gpu), None))["lost"] = True
    if rows:
        facts["smi.gpus"] = known([rows[index] for index in sorted(rows)], SMI)


PROBE = Probe(
    "driver",
    EVERYWHERE,
    (
        "driver.nvml_library",
        "driver.nvml_library_version",
        "driver.nvml_error",
        "driver.nvml_error_text",
        "driver.nvml_version",
        "driver.nvml_cuda",
        "driver.nvml_unresponsive",
        "driver.smi_path",
        "driver.smi_exit",
        "driver.smi_failure",
        "driver.smi_failure_text",
        "driver.smi_version",
        "driver.smi_tool_version",
        "driver.smi_library_version",
        "driver.smi_cuda",
        "smi.gpus",
        "gpu.count",
        "gpu.{n}.*",
    ),
    look,
)
