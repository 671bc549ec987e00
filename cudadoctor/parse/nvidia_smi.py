"""What nvidia-smi prints: its table, its failures, -L and --query-gpu CSV.

The table (drivers to R595; the number of columns changed at 535 and at 550, `CUDA Version` came with 410, the third
line of a GPU with 450, the Windows column is `TCC/WDDM` or `Driver-Model`):

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

From R610 on the banner is `| NVIDIA-SMI 610.43.02   KMD Version: 610.43.02   CUDA UMD Version: 13.3 |`.

Under WSL the first number is the Linux tool's and the second is the Windows driver's: that they differ is normal
there. "CUDA Version" is the newest CUDA that this driver serves. It is no toolkit.

Cells are read by their order between the bars, never by their column: pasting collapses blanks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from cudadoctor.model.record import NamedTuple

from .digits import is_digits, is_dotted
from .errors import ParseError, unlike

KNOWN = "known"
ABSENT = "absent"
UNKNOWN = "unknown"


class Cell(NamedTuple):
    """One printed field.

    known: `text` is the value, without its unit, which stands in `unit`. absent: the device has no such thing ("N/A",
    "[Not Supported]"). unknown: it could not be read ("ERR!", "[GPU is lost]", "[Insufficient Permissions]"). Outside
    known, `text` is what was printed.
    """

    state: str
    text: str
    unit: str = ""

    @property
    def value(self) -> str | None:
        """The text of a known cell, else None."""
        return self.text if self.state == KNOWN else None

    @property
    def number(self) -> float | None:
        """The number of a known cell, else None."""
        if self.state == KNOWN and is_dotted(self.text, 1, 2, 18):
            return float(self.text)
        return None

    @property
    def integer(self) -> int | None:
        """The whole number of a known cell, else None."""
        number = self.number
        return None if number is None else int(number)


NOT_PRINTED = Cell(UNKNOWN, "")

_ABSENT_TEXTS = ("n/a", "not supported", "not available", "not available in wddm driver model", "deprecated")


def cell(text: str) -> Cell:
    """One printed field -> Cell: "81920MiB", "61.50 W", "[N/A]", "ERR!", ... Never fails."""
    text = text.strip()
    bare = text[1:-1].strip() if text.startswith("[") and text.endswith("]") else text
    lowered = bare.lower()
    if not bare:
        return NOT_PRINTED
    if lowered in _ABSENT_TEXTS:
        return Cell(ABSENT, bare)
    if lowered.startswith("err!") or (bare is not text) or lowered in _UNREADABLE_TEXTS:
        return Cell(UNKNOWN, bare)
    for unit in _UNITS if text[0].isdigit() else ():
        if text.endswith(unit):
            number = text[: -len(unit)].rstrip()
            if is_dotted(number, 1, 2, 18):
                return Cell(KNOWN, number, unit)
    return Cell(KNOWN, text)


_UNITS = ("MiB", "GiB", "KiB", "kB", "MHz", "us", "W", "C", "%")
_UNREADABLE_TEXTS = (
    "unknown error",
    "gpu is lost",
    "insufficient permissions",
    "not found",
    "gpu requires reset",
    "reset required",
    "timeout",
    "no permission",
    "?",
)


class SmiProcess(NamedTuple):
    """One row of the process list. Memory is absent under Windows' WDDM; instances are None outside MIG."""

    gpu: int
    gpu_instance: int | None
    compute_instance: int | None
    pid: int
    kind: str  # "C", "G", "C+G", "M+C"
    name: str  # may be cut at its front: "...y\\SearchHost.exe"
    memory_mib: Cell


class SmiMigDevice(NamedTuple):
    """One MIG device, memory in MiB (used, total)."""

    gpu: int
    gpu_instance: int
    compute_instance: int
    device: int
    memory_used_mib: Cell
    memory_total_mib: Cell


class SmiGpu(NamedTuple):
    """One GPU of the table. Temperatures in degrees C, power in W, memory in MiB, shares in %."""

    gpu: int
    name: Cell
    name_is_cut: bool  # "NVIDIA GeForce RTX 4060 ...": may go on as Laptop, Ti, SUPER; never complete it by guessing
    persistence: Cell  # On, Off; absent where the column holds the driver model
    driver_model: Cell  # WDDM, TCC, MCDM; absent on Linux
    bus_id: Cell
    display_active: Cell
    ecc_errors: Cell  # volatile uncorrected count; known "Off": ECC could be switched on; absent: the GPU has none
    fan_percent: Cell
    temperature: Cell
    performance_state: Cell
    power_watts: Cell
    power_limit_watts: Cell
    memory_used_mib: Cell  # absent: unified memory (GB10, Jetson), no fault
    memory_total_mib: Cell
    utilization_percent: Cell
    compute_mode: Cell  # Default, E. Process, E. Thread, Prohibited
    mig_mode: Cell  # Enabled, Disabled
    mig_change_pending: bool

    @property
    def is_unreadable(self) -> bool:
        """Whether the driver could not answer for this GPU (ERR! in its name, temperature, power or memory)."""
        fields = (self.name, self.temperature, self.power_watts, self.memory_used_mib, self.display_active)
        return any(field.state == UNKNOWN and field.text != "" for field in fields)


def gpu_entry(index: int, name: str | None) -> dict[str, Any]:
    """An entry of the fact `smi.gpus` of which no more than this is known yet."""
    return {
        "index": index,
        "name": name,
        "truncated": False,
        "address": None,
        "memory_total": None,
        "memory_used": None,
        "compute_capability": None,
        "mig": None,
        "driver_model": None,
        "lost": False,
    }


MIB = 1 << 20


def mib_as_bytes(size: Cell) -> int | None:
    """The bytes of a known cell in MiB, else None."""
    mib = size.integer
    return None if mib is None else mib * MIB


def bus_address(text: str | None) -> str | None:
    """The address as the facts write it (0000:01:00.0), or None where the text is none."""
    from .pci import normalise_bus_id

    if text is None:
        return None
    try:
        return normalise_bus_id(text)
    except ParseError:
        return None


def is_enabled(mode: Cell) -> bool | None:
    """True and False for "Enabled" and "Disabled" ("On", "Off"; "Yes", "No"; "1", "0"), else None."""
    return _SWITCHES.get((mode.value or "").lower())


_SWITCHES = {
    "enabled": True,
    "disabled": False,
    "on": True,
    "off": False,
    "yes": True,
    "no": False,
    "1": True,
    "0": False,
}


def table_entry(gpu: SmiGpu) -> dict[str, Any]:
    """An entry of the fact `smi.gpus`."""
    entry = gpu_entry(gpu.gpu, gpu.name.value)
    entry["truncated"] = gpu.name_is_cut
    entry["address"] = bus_address(gpu.bus_id.value)
    entry["memory_total"] = mib_as_bytes(gpu.memory_total_mib)
    entry["memory_used"] = mib_as_bytes(gpu.memory_used_mib)
    entry["mig"] = is_enabled(gpu.mig_mode)
    entry["driver_model"] = gpu.driver_model.value
    entry["lost"] = gpu.is_unreadable
    return entry


class SmiTable(NamedTuple):
    """One whole table.

    `layout` is "classic" or "kmd" (R610 and newer). `processes` is None where the table has no process section (cut
    off); an empty tuple means that it says that there are none, which in a container proves nothing.
    """

    smi_version: str
    driver_version: Cell
    cuda_version: Cell
    layout: str
    gpus: tuple[SmiGpu, ...]
    mig_devices: tuple[SmiMigDevice, ...]
    processes: tuple[SmiProcess, ...] | None
    lists_mig: bool = False  # it has a section of MIG devices, which may say that there are none


def parse_table(text: str) -> SmiTable:
    """The last table in the text (`nvidia-smi -l` prints many). ParseError when there is none."""
    tables = parse_tables(text)
    if not tables:
        raise unlike("nvidia-smi's table", text.strip())
    return tables[-1]


def parse_tables(text: str) -> list[SmiTable]:
    """Every table in the text, in order; none is an empty list. Never fails."""
    tables: list[SmiTable] = []
    reader: _TableReader | None = None
    for line in text.splitlines():
        if len(line) > 2000:
            continue
        after = line.partition("NVIDIA-SMI ")[2].split(None, 1)
        if len(after) == 2 and "ersion:" in after[1] and is_dotted(after[0], 2, 4, 6):
            if reader is not None:
                tables.append(reader.finish())
            reader = _TableReader(after[1], after[0])
        elif reader is not None:
            reader.feed(line)
    if reader is not None:
        tables.append(reader.finish())
    return tables


def parse_fragment(text: str) -> SmiTable:
    """A table whose head is cut off: rows of GPUs, of MIG devices or of processes, no numbers. Never fails."""
    reader = _TableReader("", "")
    for line in text.splitlines():
        if len(line) <= 2000:
            reader.feed(line)
    return reader.finish()


def _version_cell(line: str, label: str) -> Cell:
    words = line.partition(label)[2].partition(":")[2].replace("|", " ").split(None, 1)
    if not words:
        return NOT_PRINTED
    value = words[0][:40]
    if value.upper() == "N/A":
        return Cell(ABSENT, value)
    # "535.xx" stands in made-up tables: that is no number.
    return Cell(KNOWN if is_dotted(value, 2, 4, 6) else UNKNOWN, value)


class _TableReader:
    """Reads the lines below one banner."""

    def __init__(self, banner: str, smi_version: str) -> None:
        self.smi_version = smi_version
        kmd = "KMD Version" in banner
        self.layout = "kmd" if kmd else "classic"
        self.driver = _version_cell(banner, "KMD Version" if kmd else "Driver Version")
        self.cuda = _version_cell(banner, "CUDA UMD Version" if "CUDA UMD Version" in banner else "CUDA Version")
        if self.cuda is NOT_PRINTED and not kmd:
            self.cuda = Cell(ABSENT, "")  # drivers before 410 have no such field
        self.driver_model_column = False
        self.section = "gpus"
        self.rows: list[list[list[str]]] = []
        self.mig: list[SmiMigDevice] = []
        self.mig_section_seen = False
        self.processes: list[SmiProcess] | None = None

    def feed(self, line: str) -> None:
        start = line.find("|")
        if start < 0:
            return
        cells = line[start + 1 :].rstrip()
        parts = [part.strip() for part in (cells[:-1] if cells.endswith("|") else cells).split("|")]
        first = parts[0]
        if first.startswith("Processes:"):
            self.section, self.processes = "processes", []
        elif first.startswith("MIG devices:"):
            self.section, self.mig_section_seen = "mig", True
        elif first.startswith("GPU") and "Name" in first and self.section == "gpus":
            self.driver_model_column = "WDDM" in first or "Driver-Model" in first
        elif self.section == "gpus" and len(parts) == 3:
            self._gpu_line(parts)
        elif self.section == "mig" and len(parts) >= 2:
            self._mig_line(parts)
        elif self.section == "processes" and len(parts) == 1:
            self._process_line(first)

    def _gpu_line(self, parts: list[str]) -> None:
        if "=" in parts[0] and not parts[0].strip("=+"):
            return
        words = parts[0].split(None, 1)
        if len(words) == 2 and is_digits(words[0], 4):
            self.rows.append([parts])
        elif self.rows and len(self.rows[-1]) < 3:
            self.rows[-1].append(parts)

    def _mig_line(self, parts: list[str]) -> None:
        ids = parts[0].split()
        if len(ids) != 4 or not all(is_digits(part, 6) for part in ids):
            return
        used, total = _pair(parts[1])
        gpu, instance, compute, device = (int(part) for part in ids)
        self.mig.append(SmiMigDevice(gpu, instance, compute, device, used, total))

    def _process_line(self, line: str) -> None:
        assert self.processes is not None
        words = line.split()
        # GPU PID Type Name..., or with MIG's two numbers: GPU GI CI PID Type Name...
        at = 2 if len(words) > 3 and _is_process_kind(words[2]) else 4
        if len(words) < at + 2 or not _is_process_kind(words[at]):
            return
        instances = words[1 : at - 1]
        numbers = [words[0], words[at - 1], *(word for word in instances if word != "N/A")]
        if not all(is_digits(number, 10) for number in numbers):
            return
        name = line.split(None, at + 1)[at + 1].strip()
        memory = NOT_PRINTED
        pieces = name.rsplit(None, 1)
        if len(pieces) == 2 and (pieces[1] in ("N/A", "ERR!") or cell(pieces[1]).unit == "MiB"):
            name, memory = pieces[0].strip(), cell(pieces[1])
        gpu_instance, compute = (_instance(word) for word in instances or ("N/A", "N/A"))
        self.processes.append(
            SmiProcess(int(words[0]), gpu_instance, compute, int(words[at - 1]), words[at], name, memory)
        )

    def finish(self) -> SmiTable:
        gpus = tuple(_gpu(rows, self.driver_model_column) for rows in self.rows)
        processes = None if self.processes is None else tuple(self.processes)
        mig = tuple(self.mig)
        return SmiTable(
            self.smi_version, self.driver, self.cuda, self.layout, gpus, mig, processes, self.mig_section_seen
        )


def _is_process_kind(text: str) -> bool:
    return len(text) in (1, 3, 5) and all(part in ("C", "G", "M") for part in text.split("+"))


def _instance(text: str) -> int | None:
    return int(text) if text != "N/A" else None


def _pair(text: str) -> tuple[Cell, Cell]:
    first, slash, second = text.replace("N/A", "N_A").partition("/")
    if not slash:
        only = cell(text)  # "Not Supported", "Unknown Error", "N/A" stand for both
        return (NOT_PRINTED, NOT_PRINTED) if only.state == KNOWN else (only, only)
    return cell(first.replace("N_A", "N/A")), cell(second.replace("N_A", "N/A"))


def _gpu(rows: list[list[str]], driver_model_column: bool) -> SmiGpu:
    left, middle, right = rows[0]
    index, name = left.split(None, 1)
    mode = ""
    for ending in ("On", "Off", "N/A", "ERR!", "WDDM", "TCC", "MCDM"):
        if name.endswith(" " + ending):
            name, mode = name[: -len(ending)].strip(), ending
            break
    is_model = mode in ("WDDM", "TCC", "MCDM") or driver_model_column
    absent = Cell(ABSENT, "")
    bus = middle.replace("ERR!", " ERR!").split(None, 1)  # "00000000:02:00.0ERR!": the blank is missing there
    bus_cell, display = cell(bus[0]) if bus else NOT_PRINTED, cell(bus[1]) if len(bus) > 1 else NOT_PRINTED

    fan = temperature = state = power = limit = used = total = util = compute = NOT_PRINTED
    if len(rows) > 1:
        left, middle, second_right = rows[1]
        power, limit = _pair(left)
        words = left.replace("N/A", "N_A").partition("/")[0].replace("N_A", "N/A").split()
        if len(words) == 4:
            fan, temperature, state, power = (cell(word) for word in words)
        else:
            power = limit = NOT_PRINTED
        used, total = _pair(middle)
        pieces = second_right.split(None, 1)
        util = cell(pieces[0]) if pieces else NOT_PRINTED
        compute = cell(pieces[1]) if len(pieces) > 1 else NOT_PRINTED
    mig, pending = absent, False
    if len(rows) > 2:
        text = rows[2][2]
        pending = text.endswith("*")
        mig = cell(text.rstrip("*"))
    shown_name = cell(name)
    return SmiGpu(
        gpu=int(index),
        name=shown_name,
        name_is_cut=shown_name.state == KNOWN and name.endswith("..."),
        persistence=absent if is_model else cell(mode),
        driver_model=cell(mode) if is_model else absent,
        bus_id=bus_cell,
        display_active=display,
        ecc_errors=cell(right),
        fan_percent=fan,
        temperature=temperature,
        performance_state=state,
        power_watts=power,
        power_limit_watts=limit,
        memory_used_mib=used,
        memory_total_mib=total,
        utilization_percent=util,
        compute_mode=compute,
        mig_mode=mig,
        mig_change_pending=pending,
    )


# Failures. nvidia-smi writes them to stdout, and most of its codes are NVML's. The names are those of the fact
# driver.smi_failure.

DRIVER_NOT_LOADED = "no-driver"
LIBRARY_NOT_FOUND = "no-library"
VERSION_MISMATCH = "mismatch"
NO_PERMISSION = "permission"
GPU_LOST = "gpu-lost"
UNKNOWN_ERROR = "unknown-error"
NO_DEVICES = "no-devices"
DEVICE_HANDLE = "device-handle"
BAD_FIELD = "bad-field"
BAD_OPTION = "bad-option"
COMMAND_NOT_FOUND = "command-not-found"
OTHER_NVML_ERROR = "other-nvml-error"

_EXIT_CODES = {
    4: NO_PERMISSION,
    6: NO_DEVICES,
    9: DRIVER_NOT_LOADED,
    12: LIBRARY_NOT_FOUND,
    15: GPU_LOST,
    18: VERSION_MISMATCH,
}


class SmiFailure(NamedTuple):
    """One failure.

    `gpu` is the index or bus id that the text names; `library_version` that of NVML beside a mismatch.
    """

    kind: str
    text: str
    gpu: str | None = None
    library_version: str | None = None


def kind_of_exit_code(code: int) -> str | None:
    """What an exit code alone says; None for 0 and for those that say nothing (255 and 2 stand for many things)."""
    return _EXIT_CODES.get(code)


def find_failures(text: str) -> list[SmiFailure]:
    """Every failure text of nvidia-smi's in the output, in order. An empty list means none. Never fails.

    A table with ERR! cells is no failure text: see SmiGpu.is_unreadable.
    """
    failures: list[SmiFailure] = []
    for line in text.splitlines():
        line = line.strip()
        if not line or len(line) > 1000:
            continue
        if line.startswith("NVML library version:"):
            version = line.partition(":")[2].strip()
            if failures and failures[-1].kind == VERSION_MISMATCH and is_dotted(version, 2, 4, 6):
                failures[-1] = failures[-1]._replace(library_version=version)
            continue
        failure = _failure(line)
        if failure is not None:
            failures.append(failure)
    return failures


def find_failure(text: str) -> SmiFailure | None:
    """The first failure text in the output, or None."""
    failures = find_failures(text)
    return failures[0] if failures else None


def _failure(line: str) -> SmiFailure | None:
    if "couldn't communicate with the NVIDIA driver" in line:
        return SmiFailure(DRIVER_NOT_LOADED, line)
    if "couldn't find libnvidia-ml" in line or "couldn't find nvml.dll" in line:
        return SmiFailure(LIBRARY_NOT_FOUND, line)
    if line.startswith("No devices were found") or line.rstrip(".") == "No devices found":
        return SmiFailure(NO_DEVICES, line)
    _, failed, why = line.partition("Failed to initialize NVML:")
    if failed:
        return SmiFailure(_nvml_kind(why.strip()), line)
    found = "Unable to determine the" in line and re.search(
        r"Unable to determine the (?:device handle|product name) for gpu ?([0-9A-F:.]{1,24}?)\s{0,4}:\s{0,4}([A-Z].*)",
        line,
        re.ASCII | re.I,
    )
    if found:
        kind = GPU_LOST if "GPU is lost" in found.group(2) else DEVICE_HANDLE
        return SmiFailure(kind, line, gpu=found.group(1))
    if line.startswith('Field "') and "is not a valid field to query" in line:
        return SmiFailure(BAD_FIELD, line)
    if line.startswith(("Invalid combination of input arguments", "ERROR: Option")):
        return SmiFailure(BAD_OPTION, line)
    if "nvidia-smi" in line and any(words in line for words in _NOT_FOUND):
        return SmiFailure(COMMAND_NOT_FOUND, line)
    return None


_NOT_FOUND = (
    "nvidia-smi: command not found",
    "nvidia-smi: not found",
    "command not found: nvidia-smi",
    "is not recognized",
)


def _nvml_kind(text: str) -> str:
    for words, kind in (
        ("Driver/library version mismatch", VERSION_MISMATCH),
        ("Driver Not Loaded", DRIVER_NOT_LOADED),
        ("could not load NVML library", LIBRARY_NOT_FOUND),
        ("NVML Shared Library Not Found", LIBRARY_NOT_FOUND),
        ("Insufficient Permissions", NO_PERMISSION),
        ("GPU is lost", GPU_LOST),
        ("Unknown Error", UNKNOWN_ERROR),
    ):
        if text.lower().startswith(words.lower()):
            return kind
    return OTHER_NVML_ERROR


# nvidia-smi -L


class ListedMig(NamedTuple):
    """A MIG device below its GPU: profile "3g.20gb", its number, its UUID ("MIG-...")."""

    profile: str
    device: int
    uuid: str


class ListedGpu(NamedTuple):
    """One line of -L; the name is whole here. A Jetson's UUID has no "GPU-" before it."""

    gpu: int
    name: str
    uuid: str
    mig: tuple[ListedMig, ...] = ()


def parse_list(text: str) -> list[ListedGpu]:
    """`nvidia-smi -L`:

        GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-11111111-0000-4000-8000-000000000000)
          MIG 3g.20gb     Device  0: (UUID: MIG-22222222-0000-5000-8000-000000000000)

    No GPU line is an empty list: ask find_failures why ("No devices found.", "GPU is lost"). Never fails.
    """
    gpus: list[ListedGpu] = []
    for line in text.splitlines():
        line = line.strip()[:400]
        found = re.match(r"GPU ([0-9]{1,4}): (.{1,200}) \(UUID: ([0-9A-Za-z./-]{1,100})\)$", line, re.ASCII)
        if found:
            gpus.append(ListedGpu(int(found.group(1)), found.group(2).strip(), found.group(3)))
            continue
        mig = re.match(
            r"MIG (\S{1,40})\s{1,40}Device\s{1,40}([0-9]{1,4}):\s{0,40}\(UUID: ([0-9A-Za-z./-]{1,100})\)$",
            line,
            re.ASCII,
        )
        if mig and gpus:
            device = ListedMig(mig.group(1), int(mig.group(2)), mig.group(3))
            gpus[-1] = gpus[-1]._replace(mig=(*gpus[-1].mig, device))
    return gpus


# nvidia-smi --query-gpu=... --format=csv[,noheader][,nounits]


def parse_csv(text: str, columns: Sequence[str]) -> list[dict[str, Cell]]:
    """`--query-gpu` output, one dictionary a row, keyed by `columns` (the fields that were asked for, in order).

        0, NVIDIA A100-SXM4-80GB, 535.261.03, 81920 MiB, [N/A]

    A header row is passed over (its names may differ from those asked for). Lines with another number of cells are
    not rows (warnings, failure texts) and are left out. ParseError when no row is left though there is text.
    """
    rows: list[dict[str, Cell]] = []
    wanted = len(columns)
    saw_header = False
    for number, line in enumerate(line for line in text.splitlines() if line.strip()):
        parts = [part.strip() for part in line.split(",")]
        if len(parts) != wanted:
            continue
        if number == 0 and _is_header(parts, columns):
            saw_header = True
            continue
        rows.append({name: cell(part) for name, part in zip(columns, parts)})
    if not rows and not saw_header and text.strip():
        raise unlike(f"nvidia-smi's CSV with {wanted} columns", text.strip())
    return rows


def _is_header(parts: Sequence[str], columns: Sequence[str]) -> bool:
    bare = [part.split(" [")[0] for part in parts]
    return any(part == name for part, name in zip(bare, columns))
