"""From pasted texts to the facts of one machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional

from cudadoctor.matrix import Matrix
from cudadoctor.model import Facts
from cudadoctor.model.record import NamedTuple
from cudadoctor.reports.blocks import TYPED, Block
from cudadoctor.reports.merge import merged
from cudadoctor.reports.readers import readers
from cudadoctor.reports.text import Text
from cudadoctor.reports.triggers import Triggers


class Recognised(NamedTuple):
    """One block as a person is told of it: lines count from 1. `used` is False for another machine's output."""

    text: str
    kind: str
    first: int
    last: int
    used: bool = True


class Reading(NamedTuple):
    """What was read. `notes` say what was passed over and why, and where the text contradicts itself."""

    facts: Facts
    recognised: tuple[Recognised, ...]
    notes: tuple[str, ...]


def read_report(
    texts: Sequence[tuple[str, bytes | str]], matrix: Matrix, *, named: Optional[bool] = None, strict: bool = True
) -> Reading:
    """Reads (name, content) pairs, in the order in which they were given; a later text counts as later.

    `named`: the source of each fact names its text (None: where there are several). Without `strict` a reader that
    fails costs what it would have read, and a note says so.
    """
    modules = {module.__name__: module for module in readers()}
    triggers = matrix.once(
        "triggers of the readers",
        lambda: Triggers(
            {
                name: module.triggers(matrix) if hasattr(module, "triggers") else module.TRIGGERS
                for name, module in modules.items()
            }
        ),
    )
    found: list[tuple[Text, Block]] = []
    failures: list[str] = []
    for name, content in texts:
        text = Text(name, content)
        hits = triggers.find(text)
        blocks: list[Block] = []
        for owner, lines in hits.items():
            try:
                blocks += modules[owner].read(text, lines, matrix)
            except Exception as error:
                if strict:
                    raise
                kind = owner.rpartition(".")[2]
                failures.append(f"cudadoctor's own reader of {kind} failed ({type(error).__name__}): please report it")
        blocks.sort(key=lambda block: (block.first, block.last))
        found += [(text, block) for block in _without_echoes(blocks)]
    facts, used, notes = merged(found, matrix, len(texts) > 1 if named is None else named, strict)
    recognised = tuple(
        Recognised(text.name, block.kind, text.number(block.first), text.number(block.last), use)
        for (text, block), use in zip(found, used)
    )
    return Reading(facts, recognised, (*failures, *notes))


def _without_echoes(blocks: Sequence[Block]) -> list[Block]:
    """Without what seems typed by hand, or a table without its head, inside the output of another program: diffusers'
    report has lines of nvidia-smi's."""
    kept = []
    end = -1
    for block in sorted(blocks, key=lambda one: (one.first, -one.last)):
        if block.last <= end and (block.trust <= TYPED or "without its head" in block.kind):
            continue
        if block.trust > TYPED and block.kind != "error message":  # a sentence holds no output of another program
            end = max(end, block.last)
        kept.append(block)
    return kept
