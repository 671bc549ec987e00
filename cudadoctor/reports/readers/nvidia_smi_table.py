"""nvidia-smi's table in a text: whole, wrapped, in one line, or cut off at either end.

    | NVIDIA-SMI 550.54.14              Driver Version: 550.54.14      CUDA Version: 12.4     |
    |   0  NVIDIA GeForce RTX 4090        Off |   00000000:01:00.0  On |                  Off |
    |  0%   41C    P8             22W /  450W |     963MiB /  24564MiB |      2%      Default |

A log with a thousand tables of one machine (`nvidia-smi -l`) is read as its last one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Optional

from cudadoctor.matrix import Matrix
from cudadoctor.model.pattern import pattern
from cudadoctor.parse.nvidia_smi import (
    ABSENT,
    KNOWN,
    UNKNOWN,
    Cell,
    SmiGpu,
    SmiProcess,
    SmiTable,
    parse_fragment,
    parse_tables,
)
from cudadoctor.parse.versions import is_driver_version
from cudadoctor.reports.blocks import LOG, TABLE, Block, Claim
from cudadoctor.reports.boxes import Row, rows_from
from cudadoctor.reports.readers._nvidia_smi import Printed, gpu_claims, process, version_claims
from cudadoctor.reports.text import Text

TRIGGERS = ("nvidia-smi", "mib /", "| processes:")

_KIND = "nvidia-smi table"
_NAME = "NVIDIA-SMI"
_BANNER = pattern(r"NVIDIA-SMI\s+(\d[\w.]{1,20})(?=\s)(.*)")
_MEMORY = pattern(r"\d+MiB\s{0,12}/\s{0,12}\d+MiB")
_GPU_ROW = pattern(r"\|\s*\d{1,4}\s[^|]*\|[^|]*\|[^|]*\|?$")
_SECTION = pattern(r"\|\s*(?:Processes|MIG devices):")
# How far above its memory the row of a GPU begins, with a rule and the head of the columns.
_ABOVE = 8
# So many lines without a head, the last ones, are looked at: eight GPUs make eight.
_MOST_ROWS = 2000
# Of so many different heads, the last ones of a text, the tables are read.
_MOST_HEADS = 30


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    banners = [hit for hit in hits if _NAME in text.raw(hit) and _is_banner(text[hit])]
    following = dict(zip(banners, banners[1:]))
    # `nvidia-smi -l` prints its table again and again: of those with the same head the last counts.
    last = {text.raw(banner): banner for banner in banners}
    times = Counter(text.raw(banner) for banner in banners)
    read_in_full = set(sorted(last.values())[-_MOST_HEADS:])
    end = -1
    fragments = [hit for hit in hits if _NAME not in text.raw(hit)]
    too_many = fragments[-_MOST_ROWS] if len(fragments) > _MOST_ROWS else -1
    for hit in hits:
        if hit <= end:
            continue
        if _NAME not in text.raw(hit):
            if hit < too_many:
                continue
            block, end = _fragment(text, hit, end + 1)
        elif hit not in following and hit not in banners[-1:]:
            continue
        elif hit not in read_in_full:
            end = following.get(hit, hit + 1) - 1
            continue
        else:
            block = _table(text, hit)
            end = block.last
            if times[text.raw(hit)] > 1:
                note = f"it is the last of {times[text.raw(hit)]} tables of the same driver, and the one that counts"
                block = block._replace(notes=(*block.notes, note))
        if block is not None:
            yield block


def _is_banner(line: str) -> bool:
    match = _BANNER.search(line)
    return match is not None and ("ersion" in match.group(2) or line.rstrip()[:1] == "|")


def _table(text: Text, hit: int) -> Block:
    line = text[hit]
    bar = line.rfind("|", 0, line.index(_NAME))
    before = line[: max(bar, 0)]
    rows, last = rows_from(text, hit, bar if before.strip() and "---" not in before else 0, stop=_NAME + " ")
    tables = parse_tables("\n".join(row for _, row in rows))
    made_up = not tables or (tables[-1].driver_version.state == UNKNOWN and tables[-1].driver_version.text)
    if made_up:
        note = "a placeholder stands where a table of nvidia-smi's has a number: none of it is believed"
        return Block(_KIND, hit, last, (), TABLE, None, (note,))
    table = tables[-1]
    claims = [*_head(table, hit), *_gpus(table, _lines_of_gpus(rows), hit)]
    driver = table.driver_version.value
    return Block(_KIND, hit, last, tuple(claims), TABLE, driver if driver and is_driver_version(driver) else None)


def _fragment(text: Text, hit: int, floor: int) -> tuple[Optional[Block], int]:
    """Rows without a head, as the rest of the table is not in the text; and the last line that was looked at."""
    line = text[hit]
    bar = line.find("|")
    if bar < 0 or not (_MEMORY.search(line) or _SECTION.search(line)):
        return None, hit
    prefix = bar if line[:bar].strip() else 0
    first = text.run_start(hit, floor - 1, _ABOVE, lambda line: line.lstrip()[:1] in ("|", "+"))
    rows, last = rows_from(text, first, prefix, stop=_NAME + " ")
    table = parse_fragment("\n".join(row for _, row in rows))
    claims = tuple(_gpus(table, _lines_of_gpus(rows), first))
    return (Block(f"{_KIND}, cut off", first, last, claims, TABLE) if claims else None), max(last, hit)


def _lines_of_gpus(rows: list[Row]) -> list[int]:
    found = []
    for line, row in rows:
        if _SECTION.match(row):
            break
        if _GPU_ROW.match(row.strip()):
            found.append(line)
    return found


def _head(table: SmiTable, line: int) -> Iterator[Claim]:
    windows: Optional[bool] = None
    if any(gpu.driver_model.state == KNOWN for gpu in table.gpus):
        windows = True
    elif any(gpu.persistence.state == KNOWN or _is_jetson(gpu) for gpu in table.gpus):
        windows = False
    yield from version_claims(Cell(KNOWN, table.smi_version), table.driver_version, table.cuda_version, line, windows)
    if any(_is_jetson(gpu) for gpu in table.gpus):
        yield Claim("system.arch", "aarch64", line, trust=LOG)


def _is_jetson(gpu: SmiGpu) -> bool:
    return gpu.name.text.endswith("(nvgpu)")


def _gpus(table: SmiTable, lines: list[int], first: int) -> Iterator[Claim]:
    if len(lines) != len(table.gpus):
        lines = [first] * len(table.gpus)
    whole = bool(table.smi_version)
    last = {gpu.gpu: (gpu, line) for gpu, line in zip(table.gpus, lines)}
    found = [_printed(gpu, line, table) for gpu, line in last.values()]
    for claim in gpu_claims(found):
        # Of a table without its head nobody knows how many rows are missing.
        if whole or claim.fact != "gpu.count":
            yield claim
    if not table.gpus and table.processes is not None:
        for index in sorted({one.gpu for one in table.processes}):
            yield Claim(f"gpu.{index}.processes", _compute_processes(table.processes, index), first)


def _printed(gpu: SmiGpu, line: int, table: SmiTable) -> Printed:
    found = Printed(gpu.gpu, line)
    for name, cell in (
        ("name", gpu.name),
        ("pci_address", gpu.bus_id),
        ("memory_total", gpu.memory_total_mib),
        ("memory_used", gpu.memory_used_mib),
        ("persistence_mode", gpu.persistence),
        ("driver_model", gpu.driver_model),
        ("display_active", gpu.display_active),
        ("temperature", gpu.temperature),
        ("performance_state", gpu.performance_state),
        ("power", gpu.power_watts),
        ("power_limit", gpu.power_limit_watts),
        ("utilization", gpu.utilization_percent),
        ("compute_mode", gpu.compute_mode),
        ("mig_mode", gpu.mig_mode),
        *_ecc(gpu.ecc_errors),
    ):
        found.put(name, cell, line)
    told = gpu.temperature.text or gpu.memory_used_mib.text
    found.lost = True if gpu.is_unreadable else False if gpu.name.state == KNOWN and told else None
    if gpu.mig_mode.value in ("Enabled", "Disabled"):
        found.values["mig_pending"] = (gpu.mig_change_pending, line)
        if gpu.mig_mode.value == "Disabled":
            found.values["mig_devices"] = (0, line)
        elif table.lists_mig:
            found.values["mig_devices"] = (sum(device.gpu == gpu.gpu for device in table.mig_devices), line)
    if table.processes is not None:
        found.values["processes"] = (_compute_processes(table.processes, gpu.gpu), line)
    return found


def _ecc(cell: Cell) -> list[tuple[str, Cell]]:
    """The column holds the count of errors where ECC is on, else "Off", and "N/A" where there is none."""
    if cell.state == ABSENT or cell.value in ("On", "Off"):
        return [("ecc_mode", cell)]
    if cell.state == KNOWN and cell.integer is not None:
        return [("ecc_mode", Cell(KNOWN, "On")), ("ecc_uncorrected", cell)]
    return []


def _compute_processes(processes: tuple[SmiProcess, ...], gpu: int) -> list[dict[str, object]]:
    rows = (process(str(one.pid), one.name, one.memory_mib) for one in processes if one.gpu == gpu and "C" in one.kind)
    return [row for row in rows if row is not None]
