"""nvidia-smi --query-gpu and --query-compute-apps as CSV in a text.

    index, name, driver_version, memory.total [MiB], fan.speed [%]
    0, NVIDIA A100-SXM4-80GB, 535.183.01, 81920 MiB, [N/A]

    $ nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
    NVIDIA A100-SXM4-80GB, 535.183.01

Without a head the command above tells the columns. Where that is missing, too, only what can be nothing else is taken:
a GPU's name, a driver's number, an address on the bus, and of the sizes the one that the card of that name has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Optional

from cudadoctor.matrix import Matrix
from cudadoctor.model.catalogue import MOST_GPUS
from cudadoctor.model.pattern import pattern
from cudadoctor.parse.digits import is_digits
from cudadoctor.parse.nvidia_smi import ABSENT, KNOWN, NOT_PRINTED, UNKNOWN, Cell, cell
from cudadoctor.parse.versions import is_driver_version
from cudadoctor.reports.blocks import REPORT, STRUCTURED, TYPED, Block, Claim
from cudadoctor.reports.readers._nvidia_smi import (
    Printed,
    gpu_claims,
    in_order,
    lines_like,
    process,
    reasons_of_mask,
    version_claims,
)
from cudadoctor.reports.text import Text

_FACTS = {
    "name": "name",
    "gpu_name": "name",
    "pci.bus_id": "pci_address",
    "gpu_bus_id": "pci_address",
    "pci.device_id": "pci_device_id",
    "compute_cap": "compute_capability",
    "memory.total": "memory_total",
    "memory.used": "memory_used",
    "memory.free": "memory_free",
    "mig.mode.current": "mig_mode",
    "ecc.mode.current": "ecc_mode",
    "ecc.errors.uncorrected.volatile.total": "ecc_uncorrected",
    "retired_pages.pending": "retired_pending",
    "remapped_rows.pending": "remap_pending",
    "remapped_rows.failure": "remap_failure",
    "temperature.gpu": "temperature",
    "power.draw": "power",
    "power.draw.instant": "power",
    "enforced.power.limit": "power_limit",
    "power.limit": "power_limit",
    "power.default_limit": "power_limit_default",
    "pcie.link.gen.current": "pcie_generation",
    "pcie.link.gen.max": "pcie_generation_max",
    "pcie.link.width.current": "pcie_width",
    "pcie.link.width.max": "pcie_width_max",
    "compute_mode": "compute_mode",
    "persistence_mode": "persistence_mode",
    "utilization.gpu": "utilization",
    "pstate": "performance_state",
    "clocks.sm": "clock_sm",
    "clocks.current.sm": "clock_sm",
    "clocks.max.sm": "clock_sm_max",
    "driver_model.current": "driver_model",
    "display_active": "display_active",
    "addressing_mode": "addressing_mode",
    "fabric.state": "fabric_state",
    "fabric.status": "fabric_status",
}
_REASONS = {
    f"clocks_{word}_reasons.{name}": fact
    for word in ("throttle", "event")
    for name, fact in (
        ("gpu_idle", "gpu_idle"),
        ("applications_clocks_setting", "applications_clocks_setting"),
        ("sw_power_cap", "sw_power_cap"),
        ("hw_slowdown", "hw_slowdown"),
        ("hw_thermal_slowdown", "hw_thermal_slowdown"),
        ("hw_power_brake_slowdown", "hw_power_brake_slowdown"),
        ("sw_thermal_slowdown", "sw_thermal_slowdown"),
        ("sync_boost", "sync_boost"),
    )
}
_MASKS = ("clocks_throttle_reasons.active", "clocks_event_reasons.active")
_PROCESSES = ("pid", "process_name", "name", "used_gpu_memory", "used_memory")
_OF_PROCESSES = ("pid", "process_name")

_COMMAND = pattern(r"--query-(gpu|compute-apps|apps)[= ]\s*[\"']?([a-z][a-z0-9_.,]{1,2000})([^|;&]{0,200})")
_FIELD = pattern(r"[a-z][a-z0-9_]{0,40}(?:\.[a-z0-9_]{1,40}){0,5}")
_UNIT = pattern(r"\s*\[[A-Za-z%]{1,4}\]$")
_NAME = pattern(r"NVIDIA [A-Z]|(?:GeForce|Tesla|Quadro|GRID|TITAN) [A-Z0-9]", 0)
_SIZE = pattern(r"(\d{1,7}) MiB")
_LINUX_DRIVER = pattern(r"\d{3}\.\d{2,3}\.\d{2}")
_SHORT_DRIVER = pattern(r"\d{3}\.\d{2,3}")
_BUS_ID = pattern(r"[0-9A-Fa-f]{8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]")

TRIGGERS = (
    "--query-",
    *(field for field in (*_FACTS, *_REASONS, *_MASKS) if "." in field or "_" in field),
    "driver_version",
    "used_gpu_memory",
    "index, name",
    "name, uuid",
    # Rows without a head: a driver's number or a size behind a comma, a name before one.
    ", 000.00",
    ", 0000 mib",
    ", 00000 mib",
    ", 000000 mib",
    "0 mib, ",
)

_STRICT = ("index", "pid", "count", "driver_version", "name", "gpu_name", "pci.bus_id", "gpu_bus_id")
_LONGEST = 20_000
# So many GPUs without a number of their own are none: the rows are one GPU's over time.
_MOST_UNNUMBERED = 16


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    end = -1
    # A script that asks again and again prints the same head each time: the last time counts.
    last = {text.raw(hit): hit for hit in hits}
    sizes: dict[str, frozenset[float]] = {}
    for hit in hits:
        if hit <= end:
            continue
        line = text[hit]
        command = _COMMAND.search(line) if "--query-" in line else None
        columns = command.group(2).strip(",").split(",") if command else _columns(line)
        block: Optional[Block] = None
        if columns and not (command and _columns(text[hit + 1] if hit + 1 < len(text) else "")):
            if last[text.raw(hit)] != hit:
                continue
            rows, end = _rows(text, hit + 1, columns)
            if rows:
                if "pid" in columns and any(name in columns for name in _PROCESSES[3:]):
                    block = _of_processes(columns, rows, hit, end)
                else:
                    block = _of_gpus(columns, rows, hit, end)
        elif not command and "," in line and last[text.raw(hit)] == hit:
            block = _without_head(text, hit, matrix, sizes)
            end = hit if block is None else block.last
        if block is not None:
            yield block


def _columns(line: str) -> list[str]:
    """The fields that a head names, or none."""
    if len(line) > 3000 or not line:
        return []
    parts = [_UNIT.sub("", part.strip()) for part in line.split(",")]
    if not all(_FIELD.fullmatch(part) for part in parts):
        return []
    known = [part for part in parts if part in _FACTS or part in _REASONS or part in _MASKS or part in _PROCESSES]
    known += [part for part in parts if part in ("driver_version", "uuid", "gpu_uuid")]
    alone = len(parts) == 1 and "." in parts[0]
    return parts if known and (len(parts) > 1 or alone) else []


Row = tuple[int, list[str]]


def _rows(text: Text, first: int, columns: Sequence[str]) -> tuple[list[Row], int]:
    rows: list[Row] = []
    last = first - 1
    strict = [place for place, column in enumerate(columns) if column in _STRICT] or list(range(len(columns)))
    for index, line in lines_like(text, first - 1, first, first + _LONGEST):
        if not line:
            if index > last + 1:
                break
            continue
        parts = [part.strip() for part in line.split(",")]
        if len(parts) > len(columns) and "process_name" in columns:
            place, more = columns.index("process_name"), len(parts) - len(columns) + 1
            parts[place : place + more] = [",".join(parts[place : place + more])]
        if len(parts) != len(columns):
            break
        if not all(_can_be(columns[place], parts[place]) for place in strict):
            break
        rows.append((index, parts))
        last = index
    return rows, last


def _can_be(column: str, value: str) -> bool:
    """Whether a field can have this value: what stands below the rows is no row."""
    if value.startswith("[") and value.endswith("]"):
        return True
    if column in ("index", "pid", "count"):
        return is_digits(value, 10)
    if column == "driver_version":
        return is_driver_version(value)
    if column in ("name", "gpu_name"):
        return bool(value) and len(value) < 80 and not value.endswith((":", "$", "."))
    if column in ("pci.bus_id", "gpu_bus_id"):
        return bool(_BUS_ID.fullmatch(value))
    found = cell(value)
    if _FACTS.get(column) in ("memory_total", "memory_used", "memory_free", "temperature", "power", "utilization"):
        return found.number is not None or found.state == ABSENT
    return len(value) < 200


def _of_gpus(columns: Sequence[str], rows: list[Row], first: int, last: int) -> Optional[Block]:
    found: dict[int, Printed] = {}
    driver: tuple[Cell, int] = (NOT_PRINTED, first)
    count: Optional[int] = None
    numbered = _numbered(columns, rows)
    if not numbered:
        return None
    for index, (line, parts) in dict(zip(numbered, rows)).items():
        if index >= MOST_GPUS:
            continue
        gpu = found[index] = Printed(index, line)
        for column, value in zip(columns, parts):
            printed = cell(value)
            if column == "driver_version" and printed.state == KNOWN:
                driver = printed, line
            elif column == "count" and printed.integer:
                count = printed.integer
            else:
                _put(gpu, column, printed, line)
    claims = [*version_claims(NOT_PRINTED, driver[0], NOT_PRINTED, driver[1]), *gpu_claims(list(found.values()), count)]
    return Block("nvidia-smi --query-gpu", first, last, tuple(claims), STRUCTURED, driver[0].value)


def _put(gpu: Printed, column: str, printed: Cell, line: int) -> None:
    if column in _FACTS:
        gpu.put(_FACTS[column], printed, line)
        if _FACTS[column] == "name":
            gpu.lost = printed.state == UNKNOWN if printed.text else None
    elif column in _REASONS and printed.value in ("Active", "Not Active"):
        gpu.reasons[_REASONS[column]] = printed.value == "Active"
        if "throttle_reasons" not in gpu.values or gpu.reasons:
            gpu.values["throttle_reasons"] = (in_order(gpu.reasons), line)
    elif column in _MASKS and printed.value:
        try:
            gpu.values["throttle_reasons"] = (reasons_of_mask(int(printed.value, 16)), line)
        except ValueError:
            return
    elif column == "mig.mode.pending" and "mig_mode" in gpu.cells and printed.state == KNOWN:
        current = gpu.cells["mig_mode"][0]
        if current.state == KNOWN:
            gpu.values["mig_pending"] = (current.text != printed.text, line)


def _numbered(columns: Sequence[str], rows: list[Row]) -> list[int]:
    """The GPU's number of each row. Without a column of numbers they come in nvidia-smi's order, and again and again
    with -l; nothing where that cannot be told apart."""
    if "index" in columns:
        place = columns.index("index")
        return [int(parts[place]) if is_digits(parts[place], 4) else MOST_GPUS for _, parts in rows]
    for name in ("pci.bus_id", "gpu_bus_id", "uuid", "gpu_uuid"):
        if name in columns:
            place = columns.index(name)
            order = {value: number for number, value in enumerate(dict.fromkeys(parts[place] for _, parts in rows))}
            return [order[parts[place]] for _, parts in rows]
    if "timestamp" in columns:
        place = columns.index("timestamp")
        seconds = [parts[place].partition(".")[0] for _, parts in rows]
        numbers: list[int] = []
        for number, second in enumerate(seconds):
            numbers.append(numbers[-1] + 1 if number and seconds[number - 1] == second else 0)
        return numbers
    return list(range(len(rows))) if len(rows) <= _MOST_UNNUMBERED else []


def _of_processes(columns: Sequence[str], rows: list[Row], first: int, last: int) -> Optional[Block]:
    kind = "nvidia-smi --query-compute-apps"
    cells = [dict(zip(columns, parts)) for _, parts in rows]
    which = next((name for name in ("gpu_bus_id", "gpu_uuid", "gpu_serial") if name in columns), None)
    if which and len({one[which] for one in cells}) > 1:
        return Block(kind, first, last, (), STRUCTURED, None, ("it does not say which number the GPUs have",))
    found: list[dict[str, Any]] = []
    for one in cells:
        memory = cell(one.get("used_gpu_memory") or one.get("used_memory") or "")
        row = process(one["pid"], one.get("process_name") or one.get("name") or "", memory)
        if row is not None:
            found.append(row)
    # It is GPU 0's where there is one GPU only: whatever says more about the GPUs is believed before it.
    return Block(kind, first, last, (Claim("gpu.0.processes", found, first, trust=TYPED),), STRUCTURED)


def _without_head(text: Text, first: int, matrix: Matrix, sizes: dict[str, frozenset[float]]) -> Optional[Block]:
    rows: list[tuple[Optional[int], Printed]] = []
    driver: Optional[str] = None
    last = first
    for line, content in lines_like(text, first, first, first + _LONGEST):
        row = _unmistakable(content, matrix, sizes)
        if row is None:
            break
        number, name, version, printed = row
        gpu = Printed(number or 0, line)
        gpu.put("name", Cell(KNOWN, name), line)
        for fact, value in printed.items():
            gpu.put(fact, value, line)
        rows.append((number, gpu))
        driver = version or driver
        last = line
    if not rows:
        return None
    if any(number is None for number, _ in rows):
        if len(rows) > _MOST_UNNUMBERED:
            rows = rows[-1:]  # one GPU over time
        for place, (_, gpu) in enumerate(rows):
            gpu.index = place
    gpus = list({gpu.index: gpu for _, gpu in rows}.values())
    shown = Cell(KNOWN, driver) if driver else NOT_PRINTED
    claims = [*version_claims(NOT_PRINTED, shown, NOT_PRINTED, first), *gpu_claims(gpus)]
    return Block("nvidia-smi --query-gpu, without its head", first, last, tuple(claims), REPORT, driver)


def _unmistakable(
    line: str, matrix: Matrix, known_sizes: dict[str, frozenset[float]]
) -> Optional[tuple[Optional[int], str, Optional[str], dict[str, Cell]]]:
    """Of a row of unknown columns what can be nothing else: (number, name, driver, cells), or None for no row."""
    if len(line) > 1000 or line.count(",") < 1:
        return None
    parts = [part.strip() for part in line.split(",")]
    names = [part for part in parts if _NAME.match(part) and len(part) < 80]
    if len(names) != 1 or parts.index(names[0]) > 6:
        return None
    place = parts.index(names[0])
    number = int(parts[0]) if place and is_digits(parts[0], 3) else None
    sizes = [part for part in parts if _SIZE.fullmatch(part)]
    drivers = [part for part in parts if _LINUX_DRIVER.fullmatch(part)]
    if not drivers and sizes:
        # A number such as 400.00 may be watts; with units printed it is not.
        drivers = [part for part in parts if _SHORT_DRIVER.fullmatch(part)]
    addresses = [part for part in parts if _BUS_ID.fullmatch(part)]
    found = {"pci_address": cell(addresses[0])} if addresses else {}
    if not (drivers or sizes or found):
        return None
    expected = known_sizes.get(names[0])
    if expected is None:
        rows = matrix.gpu(names[0]).rows if len(known_sizes) < _MOST_UNNUMBERED else ()
        expected = known_sizes[names[0]] = frozenset(row.memory_gib * 1024 for row in rows if row.memory_gib)
    totals = [size for size in sizes if any(0.9 * one <= int(size[:-4]) <= 1.02 * one for one in expected)]
    if len(totals) == 1:
        found["memory_total"] = cell(totals[0])
    return number, names[0], drivers[0] if len(drivers) == 1 else None, found
