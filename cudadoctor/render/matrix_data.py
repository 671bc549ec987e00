"""`matrix show` and `matrix verify` for people: what the data holds, how old it is, whether it is sound."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Optional

from cudadoctor.matrix.holdings import Data, Holdings, Table
from cudadoctor.matrix.load import DATA_VARIABLE
from cudadoctor.render.matrix_lines import LABEL, row, table
from cudadoctor.render.style import Style, clean, wrap

OK = "OK"
WARN = "warn"
FAIL = "FAIL"

# Sections by the names that people give them; one that is not here keeps its own.
_NAMES = {
    "cuda_toolkits": "CUDA toolkit releases",
    "driver_branches": "driver branches",
    "forward_compat": "forward-compatibility packages",
    "architectures": "GPU architectures",
    "gpus": "GPUs",
    "pci_chips": "chips by PCI id",
    "torch": "torch releases",
    "host_compilers": "host compilers, by toolkit",
    "distributions": "Linux distributions",
    "power_plans": "Windows power plans",
    "libraries": "CUDA libraries",
    "frameworks": "releases of packages that need torch or CUDA",
    "messages": "wordings of error messages",
    "wsl": "what WSL needs for a GPU",
    "xid": "errors of the driver in the kernel log (Xid)",
    "images": "container images",
    "conda_forge": "conda-forge builds",
}


def show_verdict(data: Data) -> tuple[str, str]:
    """The first line of `show`: its word and its sentence."""
    made = "with your update of " + (data.origin.updated or "")[:10] if data.origin.kind == "updated" else "as shipped"
    age = "today" if data.age_days == 0 else "yesterday" if data.age_days == 1 else f"{data.age_days} days ago"
    said = f"compatibility data {data.revision}, {made}, checked {age}"
    if data.stale:
        return WARN, f"{said}: the newest releases are likely to be missing"
    if data.origin.reason is not None:
        if data.origin.reason.startswith(DATA_VARIABLE):
            return WARN, f"{said}; {data.origin.reason}"
        return WARN, f"{said}; an update lies beside it and is not used: {data.origin.reason}"
    return OK, said


def show_text(data: Data, held: Holdings, update: str, style: Style) -> str:
    """`update`: the command that fetches what is newer."""
    word, said = show_verdict(data)
    lines = [*_first(word, said, style), ""]
    dated = f" ({held.toolkit.date})" if held.toolkit.date else ""
    newest = held.branch.latest_linux or held.branch.first_linux
    lines += row("newest", f"torch {held.torch.version} ({held.torch.date})", style)
    lines += row("", f"CUDA {held.toolkit.release}{dated}", style)
    lines += row("", f"driver branch {held.branch.name}" + (f" ({newest})" if newest else ""), style)
    lines += row("checked", f"{data.checked}, against the sources that each row names", style)
    if data.origin.path is not None:
        lines += row("update" if data.origin.kind != "files" else "folder", data.origin.path, style)
    lines += row("holds", "rows of each table, and those with a guess in them: marked, and never decisive", style)
    lines += table(("rows", "guesses", "table", "from", "to"), [_cells(entry) for entry in held.tables], style)
    counted = f"{held.builds} builds of torch: {held.seen} seen on an index, {held.verified} read from the wheel itself"
    lines += row("builds", counted, style)
    lines += ["", "more".ljust(LABEL) + style.paint("command", clean(update))]
    return "".join(line.rstrip() + "\n" for line in lines)


def _cells(entry: Table) -> tuple[str, ...]:
    name = _NAMES.get(entry.section, entry.section.replace("_", " "))
    return (f"{entry.rows:>4}", f"{entry.guessed or '':>7}", name, entry.first or "", entry.last or "")


def verify_verdict(where: str, rows: int, findings: Sequence[tuple[Optional[str], str]]) -> tuple[str, str]:
    if findings:
        count = "1 fault" if len(findings) == 1 else f"{len(findings)} faults"
        return FAIL, f"{count} in {where}"
    return OK, f"{where}: {rows} rows keep to their columns and to what must hold of them"


def verify_text(where: str, rows: int, findings: Sequence[tuple[Optional[str], str]], note: str, style: Style) -> str:
    """`findings`: the file, where it is one, and a sentence that names the row."""
    word, said = verify_verdict(where, rows, findings)
    lines = list(_first(word, said, style))
    if findings:
        lines.append("")
    for file, message in findings:
        for place, piece in enumerate(wrap(clean(f"{file}: {message}" if file else message), style.width - 4)):
            lines.append(("  - " if place == 0 else "    ") + piece)
    if note:
        lines += ["", *wrap(clean(note), style.width)]
    return "".join(line.rstrip() + "\n" for line in lines)


def _first(word: str, said: str, style: Style) -> Iterator[str]:
    head = style.paint({OK: "ok"}.get(word, word), word.ljust(4)) + "  "
    for number, line in enumerate(wrap(clean(said), style.width - 6)):
        yield (head if number == 0 else " " * 6) + line
