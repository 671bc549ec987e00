"""What nvidia-smi's table, lists, trees and CSV say in different words, as claims.

A GPU's details go by the names of the facts that NVML fills on a live machine (`gpu.0.temperature`), so that the rules
read both alike; the list `smi.gpus` holds what tells the GPUs apart. What is not printed is not claimed, and "N/A" is
"there is none" only where the fact can say so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Callable, Optional

from cudadoctor.model.catalogue import MOST_GPUS
from cudadoctor.model.pattern import pattern
from cudadoctor.parse.digits import is_digits
from cudadoctor.parse.nvidia_smi import ABSENT, KNOWN, Cell, bus_address, is_enabled, mib_as_bytes
from cudadoctor.parse.versions import is_driver_version
from cudadoctor.reports.blocks import LOG, Claim
from cudadoctor.reports.text import Text

_NAME = pattern(r"(?=.{0,80}[A-Za-z])[A-Za-z0-9][\w .,()+/\[\]-]{1,79}", re.ASCII)
_CUDA = pattern(r"\d{1,2}\.\d{1,2}", re.ASCII)
_CAPABILITY = pattern(r"\d{1,2}\.\d", re.ASCII)
_DEVICE_ID = pattern(r"(?:0[xX])?([0-9A-Fa-f]{4})10[dD][eE]", re.ASCII)
_LANES = pattern(r"(\d{1,2})x?", re.ASCII)
_STATE = pattern(r"P(\d{1,2})", re.ASCII)


def gpu_name(text: Optional[str]) -> Optional[str]:
    """A product's name, or None for what cannot be one. A cut one keeps its dots."""
    text = (text or "").strip()
    return text if _NAME.fullmatch(text) else None


def _lanes(cell: Cell) -> Optional[int]:
    match = _LANES.fullmatch(cell.value or "")
    return int(match.group(1)) if match else None


def _state(cell: Cell) -> Optional[int]:
    match = _STATE.fullmatch(cell.value or "")
    return int(match.group(1)) if match and int(match.group(1)) < 16 else None


def _one_of(names: Mapping[str, str]) -> Callable[[Cell], Optional[str]]:
    return lambda cell: names.get((cell.value or "").lower())


def _itself(*names: str) -> Callable[[Cell], Optional[str]]:
    return lambda cell: cell.value if cell.value in names else None


def _capability(cell: Cell) -> Optional[str]:
    return cell.value if _CAPABILITY.fullmatch(cell.value or "") else None


def _device_id(cell: Cell) -> Optional[str]:
    match = _DEVICE_ID.fullmatch(cell.value or "")
    return match.group(1).lower() if match else None


def _integer(cell: Cell) -> Optional[int]:
    return cell.integer


def _number(cell: Cell) -> Optional[float]:
    return cell.number


_COMPUTE_MODES = {
    "default": "default",
    "e. process": "exclusive-process",
    "exclusive_process": "exclusive-process",
    "exclusive process": "exclusive-process",
    "e. thread": "exclusive-thread",
    "exclusive_thread": "exclusive-thread",
    "exclusive thread": "exclusive-thread",
    "prohibited": "prohibited",
}
_FABRIC_STATES = {
    "completed": "completed",
    "in progress": "in-progress",
    "not started": "not-started",
    "not supported": "none",
}
_RECOVERY_ACTIONS = {
    "none": "none",
    "gpu reset": "reset",
    "reset": "reset",
    "node reboot": "reboot",
    "reboot": "reboot",
    "drain p2p": "drain-p2p",
    "drain and reset": "drain-and-reset",
    "bus reset": "bus-reset",
    "recover imex domain": "recover-imex-domain",
}
_VIRTUALIZATION = {
    "none": "none",
    "pass-through": "pass-through",
    "passthrough": "pass-through",
    "vgpu": "vgpu",
    "host vgpu": "host-vgpu",
    "host vsga": "host-vsga",
}

# The rest of a fact's name (gpu.0.REST) -> how its value is read from what is printed; None: it is no such value.
_READ: dict[str, Callable[[Cell], Any]] = {
    "name": lambda cell: gpu_name(cell.value) if not (cell.value or "").endswith("...") else None,
    "pci_address": lambda cell: bus_address(cell.value),
    "pci_device_id": _device_id,
    "compute_capability": _capability,
    "memory_total": mib_as_bytes,
    "memory_used": mib_as_bytes,
    "memory_free": mib_as_bytes,
    "bar1_total": mib_as_bytes,
    "mig_mode": is_enabled,
    "ecc_mode": is_enabled,
    "ecc_uncorrected": _integer,
    "retired_pending": is_enabled,
    "remap_pending": is_enabled,
    "remap_failure": is_enabled,
    "temperature": _integer,
    "temperature_slowdown": _integer,
    "power": _number,
    "power_limit": _number,
    "power_limit_default": _number,
    "pcie_generation": _integer,
    "pcie_generation_max": _integer,
    "pcie_width": _lanes,
    "pcie_width_max": _lanes,
    "compute_mode": _one_of(_COMPUTE_MODES),
    "persistence_mode": is_enabled,
    "utilization": _integer,
    "performance_state": _state,
    "clock_sm": _integer,
    "clock_sm_max": _integer,
    "driver_model": _itself("WDDM", "TCC", "MCDM"),
    "display_active": is_enabled,
    "addressing_mode": _one_of({"hmm": "hmm", "ats": "ats", "none": "none"}),
    "fabric_state": _one_of(_FABRIC_STATES),
    "fabric_status": lambda cell: cell.value if cell.value and len(cell.value) <= 80 else None,
    "recovery_action": _one_of(_RECOVERY_ACTIONS),
    "virtualization": _one_of(_VIRTUALIZATION),
}
# Of these the catalogue says what absent means.
_MAY_BE_ABSENT = ("mig_mode", "ecc_mode", "persistence_mode")

# nvidia-smi's words for what holds the clocks back -> the fact's, in the order of NVML's bits.
EVENT_REASONS = {
    "idle": "gpu_idle",
    "gpu idle": "gpu_idle",
    "applications clocks setting": "applications_clocks_setting",
    "sw power cap": "sw_power_cap",
    "hw slowdown": "hw_slowdown",
    "sync boost": "sync_boost",
    "sw thermal slowdown": "sw_thermal_slowdown",
    "hw thermal slowdown": "hw_thermal_slowdown",
    "hw power brake slowdown": "hw_power_brake_slowdown",
    "display clock setting": "display_clock_setting",
    "display clocks setting": "display_clock_setting",
}
_BITS = tuple(dict.fromkeys(EVENT_REASONS.values()))


def reasons_of_mask(mask: int) -> list[str]:
    return [name for bit, name in enumerate(_BITS) if mask >> bit & 1]


def in_order(reasons: Mapping[str, bool]) -> list[str]:
    """Those that are active, in NVML's order."""
    return [name for name in _BITS if reasons.get(name)]


def last_of_each(text: Text, hits: Sequence[int]) -> list[int]:
    """Of lines that say the same the last: a log may hold one thing ten thousand times, and the last time counts."""
    return sorted({text.raw(hit): hit for hit in hits}.values())


def lines_like(text: Text, sample: int, first: int, last: int) -> Iterator[tuple[int, str]]:
    """The lines from `first` to `last`, without blanks around them. Where nothing is wrapped around line `sample`, they
    are taken as they were pasted, which is much quicker."""
    plain = text.raw(sample).strip() == text[sample].strip()
    for index in range(first, min(last + 1, len(text))):
        raw = text.raw(index)
        yield index, (raw if plain and "&" not in raw and len(raw) < 10_000 else text[index]).strip()


class Printed:
    """What was printed about one GPU: cells by the rest of the fact's name, each with its line."""

    def __init__(self, index: int, line: int) -> None:
        self.index = index
        self.line = line
        self.cells: dict[str, tuple[Cell, int]] = {}
        self.reasons: dict[str, bool] = {}
        self.values: dict[str, tuple[Any, int]] = {}  # what is no single cell: lists, sums
        self.lost: Optional[bool] = None

    def put(self, name: str, cell: Cell, line: int) -> None:
        """The first cell counts that says something: later drivers print a value twice under two names."""
        before = self.cells.get(name)
        if before is None or before[0].state != KNOWN:
            self.cells[name] = (cell, line)

    def claims(self) -> Iterator[Claim]:
        """Of `gpu.{n}.*`."""
        for name, (cell, line) in self.cells.items():
            if cell.state == KNOWN:
                value = _READ[name](cell)
                if value is not None:
                    yield self._claim(name, value, line)
            elif cell.state == ABSENT and name in _MAY_BE_ABSENT:
                yield Claim(f"gpu.{self.index}.{name}", None, line, "absent")
        for name, (value, line) in self.values.items():
            yield self._claim(name, value, line)
        if self.lost is not None:
            yield self._claim("lost", self.lost, self.line)

    def _claim(self, name: str, value: Any, line: int) -> Claim:
        return Claim(f"gpu.{self.index}.{name}", value, line)

    def entry(self) -> dict[str, Any]:
        """For the list `smi.gpus`; only what was printed."""
        name = self._value("name") or self._cut_name()
        found: dict[str, Any] = {"index": self.index, "name": name, "truncated": bool(name and name.endswith("..."))}
        for key, fact in (
            ("address", "pci_address"),
            ("memory_total", "memory_total"),
            ("memory_used", "memory_used"),
            ("compute_capability", "compute_capability"),
            ("mig", "mig_mode"),
            ("driver_model", "driver_model"),
        ):
            found[key] = self._value(fact)
        if self.lost is not None:
            found["lost"] = self.lost
        return found

    def _value(self, name: str) -> Any:
        cell = self.cells.get(name)
        return _READ[name](cell[0]) if cell is not None and cell[0].state == KNOWN else None

    def _cut_name(self) -> Optional[str]:
        cell = self.cells.get("name")
        return gpu_name(cell[0].value) if cell is not None else None


def gpu_claims(gpus: list[Printed], count: Optional[int] = None) -> Iterator[Claim]:
    """The list, the details, and how many there are: `count` where that is printed, else as far as the numbers tell."""
    gpus = [gpu for gpu in gpus if gpu.index < MOST_GPUS]
    if not gpus:
        return
    yield Claim("smi.gpus", [gpu.entry() for gpu in gpus], gpus[0].line)
    if count is None and sorted(gpu.index for gpu in gpus) == list(range(len(gpus))):
        count = len(gpus)
    if count is not None and 0 < count <= MOST_GPUS:
        yield Claim("gpu.count", count, gpus[0].line)
    for gpu in gpus:
        yield from gpu.claims()


def version_claims(tool: Cell, driver: Cell, cuda: Cell, line: int, windows: Optional[bool] = None) -> Iterator[Claim]:
    """Of the three numbers in a head. `windows`: whether the table has the column of the Windows driver model (None
    where there is no table)."""
    if tool.state == KNOWN and is_driver_version(tool.text):
        yield Claim("driver.smi_tool_version", tool.text, line)
    if driver.state == KNOWN and is_driver_version(driver.text):
        yield Claim("driver.smi_version", driver.text, line)
    elif driver.state == ABSENT:
        yield Claim("driver.smi_version", None, line, "absent")
    if cuda.state == KNOWN and _CUDA.fullmatch(cuda.text):
        yield Claim("driver.smi_cuda", cuda.text, line)
    elif cuda.state == ABSENT:
        yield Claim("driver.smi_cuda", None, line, "absent")
    if windows:
        yield Claim("system.os", "windows", line, trust=LOG)
    elif is_of_wsl(tool, driver):
        yield Claim("system.os", "linux", line, trust=LOG)
        yield Claim("system.wsl", 2, line, trust=LOG)
    elif windows is False:
        yield Claim("system.os", "linux", line, trust=LOG)


def is_of_wsl(tool: Cell, driver: Cell) -> bool:
    """WSL's nvidia-smi has a Linux number of three groups and shows the Windows driver's of two: 580.102.01, 581.57."""
    if tool.state != KNOWN or driver.state != KNOWN or not is_driver_version(driver.text):
        return False
    return tool.text != driver.text and tool.text.count(".") == 2 and driver.text.count(".") == 1


def process_name(text: str) -> Optional[str]:
    """A program's own name: its folder may be a person's. None where nvidia-smi could not read it."""
    text = text.strip().strip("[]")
    if not text or text.lower() in ("insufficient permissions", "not found", "n/a", "unknown error"):
        return None
    first = text.replace("\\", "/").rstrip("/").rpartition("/")[2].split(" ", 1)[0]
    return first[:40] if first.isprintable() and first else None


def process(pid: str, name: str, memory: Cell) -> Optional[dict[str, Any]]:
    """An entry of the fact gpu.{n}.processes, or None where the PID is none."""
    if not is_digits(pid, 10):
        return None
    return {"pid": int(pid), "memory": mib_as_bytes(memory), "name": process_name(name)}
