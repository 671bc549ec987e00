"""A box that a program drew with bars and dashes, put together again.

| NVIDIA-SMI 580.95.05              Driver Version: 580.95.05      CUDA Version:     a terminal of 80 letters,
 13.0     |                                                                          a mail, a slide
+----+ | NVIDIA-SMI 580.95.05 ... | +----+----+----+ | GPU Name | Bus-Id | ... | |   all in one line
   12  | GPU  Name                 Persistence-M | ...                               what stands before each line
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Optional

from cudadoctor.model.pattern import pattern
from cudadoctor.reports.text import Text

# A row of a box, with the line (from 0) in which it begins.
Row = tuple[int, str]

# Dashes, also such as a word processor makes of them.
_RULE = pattern(r"[+|](?:[-=\u2013\u2014]{4,}[+|])+")
_DASHES = pattern(r"[-=\u2013\u2014]{2,}[+|]?")
_FENCE = ("```", "~~~")

# The lines that one row may be wrapped over, and those of something else that may stand between two rows.
_WRAPPED_OVER = 4
_BETWEEN = 3
# The longest box that is read: a node with eight GPUs and thousands of processes.
_LONGEST = 5000


def rows_from(text: Text, first: int, prefix: int = 0, stop: Optional[str] = None) -> tuple[list[Row], int]:
    """The rows of the box that begins in line `first`, and its last line.

    `prefix` letters stand before each line's bar (a line number, a host's name). A later line that holds `stop` belongs
    to the next box.
    """
    lines = list(_lines(text, first, prefix, stop))
    last = lines[-1][0]
    if any(len(line) > 150 and len(_RULE.findall(line)) > 1 for _, line in lines):
        return _of_one_line(first, " ".join(line for _, line in lines)), last
    return _unwrapped(lines), last


def _lines(text: Text, first: int, prefix: int, stop: Optional[str]) -> Iterator[Row]:
    """The lines of the box, freed of what stands before them; blank ones and a few foreign ones are passed over."""
    after_row = unfinished = False
    waiting: list[Row] = []
    passed = 0
    for index, whole in text.lines(first, first + _LONGEST):
        if stop and index > first and stop in whole:
            return
        line = _from_bar(whole, prefix)
        stripped = line.strip()
        if index == first or _begins(stripped):
            waiting, passed = [], 0
            yield index, line.lstrip()
            after_row, unfinished = True, not stripped.endswith(("|", "+"))
            continue
        if stripped and after_row and (stripped.endswith(("|", "+")) or (unfinished and len(waiting) < _WRAPPED_OVER)):
            # Perhaps the rest of the row above: it is when it leads to a bar. (Blanks before it may be lost, so that
            # the row above may end with a bar, too.)
            waiting.append((index, whole[prefix:] if prefix else whole))
            if stripped.endswith(("|", "+")):
                yield from waiting
                waiting, unfinished = [], False
            continue
        after_row = unfinished = False
        passed += 1 + len(waiting)
        waiting = []
        foreign = bool(stripped) and not stripped.startswith(_FENCE)
        if passed > _BETWEEN or (foreign and not _goes_on(text, index, prefix)):
            return


def _begins(line: str) -> bool:
    return line.startswith(("|", "+-", "+=", "+\u2013", "+\u2014"))


def _goes_on(text: Text, index: int, prefix: int) -> bool:
    """Whether the box goes on right below a line of something else."""
    return any(_from_bar(line, prefix).lstrip().startswith(("|", "+-")) for _, line in text.lines(index + 1, index + 2))


def _from_bar(line: str, prefix: int) -> str:
    if not prefix or not line:
        return line
    places = [place for place in (line.find("|"), line.find("+-")) if place >= 0]
    return line[min(places) :] if places and min(places) <= prefix + 4 else line


def _unwrapped(lines: list[Row]) -> list[Row]:
    """One row a line: the pieces of a wrapped one are joined."""
    rows = lines[:1]
    # Cut at a fixed width even the rules are cut, and what follows belongs to the very next column.
    hard = any(_DASHES.fullmatch(line.strip()) and not _begins(line) for _, line in lines)
    width = max(len(line) for _, line in lines if _begins(line) or line is lines[0][1]) if hard else 0
    for index, line in lines[1:]:
        number, before = rows[-1]
        if _begins(line):
            rows.append((index, line))
        else:
            rows[-1] = (number, before.ljust(width) + line if hard else f"{before} {line.strip()}")
    return rows


def _of_one_line(index: int, line: str) -> list[Row]:
    """The rows of a box of which all stands in one line: the rules between them say into how many cells each falls."""
    rows: list[Row] = []
    rules = list(_RULE.finditer(line))
    head = line[: rules[0].start()]
    if "|" in head:
        rows.append((index, head[head.find("|") :]))
    for number, rule in enumerate(rules):
        rows.append((index, rule.group()))
        end = rules[number + 1].start() if number + 1 < len(rules) else len(line)
        cells = line[rule.end() : end].split("|")
        across = len(_columns(rule.group()))
        # "", cell, ..., cell, "" for each row: the end of one and the beginning of the next have a blank between them.
        for place in range(1, len(cells) - across, across + 1):
            rows.append((index, "|" + "|".join(cells[place : place + across]) + "|"))
    return rows


def _columns(rule: str) -> list[str]:
    return [part for part in rule.replace("|", "+").split("+") if part]
