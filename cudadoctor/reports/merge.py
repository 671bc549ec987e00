"""The claims of several blocks -> the facts of one machine.

Where blocks contradict each other the one that is believed more counts (see `blocks`), among equals the later one.
Where nvidia-smi of several machines stands in one text, the last machine is meant, and the others are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from cudadoctor.matrix import Matrix
from cudadoctor.model import KNOWN, Fact, Facts, absent, known
from cudadoctor.model.catalogue import fits, spec_of
from cudadoctor.reports.blocks import Block, Claim
from cudadoctor.reports.text import Text

Found = Sequence["tuple[Text, Block]"]

# Lists that several blocks fill together: entries that agree in the key are one.
_KEYS = {"smi.gpus": "index", "pci.gpus": "address", "kernel.nvidia_module_files": "path", "windows.gpus": "name"}
_COLLECTED = ("kernel.log_events", "kernel.dkms", "device.nodes", "packages.leftovers")


def merged(found: Found, matrix: Matrix) -> tuple[Facts, list[bool], tuple[str, ...]]:
    """The facts, for each block whether it counted, and notes for people."""
    notes: list[str] = []
    used = _of_the_last_machine(found, notes)
    claims: dict[str, list[tuple[int, int, Text, Block, Claim]]] = {}
    for place, ((text, block), use) in enumerate(zip(found, used)):
        if not use:
            continue
        notes.extend(f"line {text.number(block.first)}: {note}" for note in block.notes)
        for claim in block.claims:
            spec = spec_of(claim.fact)
            if spec is None or (claim.state == KNOWN and not fits(spec, claim.value)):
                raise AssertionError(f"{block.kind} claims {claim.fact} = {claim.value!r}, which no fact can be")
            claims.setdefault(claim.fact, []).append((block.trust, place, text, block, claim))
    facts: dict[str, Fact[Any]] = {"examination.kind": known("report", "the report")}
    for name, stated in claims.items():
        stated.sort(key=lambda entry: entry[:2])
        facts[name] = _fact(name, stated, notes)
    return Facts(facts), used, tuple(dict.fromkeys(notes))


def source(text: Text, block: Block, claim: Claim) -> str:
    """Where a fact was read, for people: "line 12 (nvidia-smi table)", with the file where there are several."""
    return f"line {text.number(claim.line)} ({block.kind})"


def _fact(name: str, stated: list[tuple[int, int, Text, Block, Claim]], notes: list[str]) -> Fact[Any]:
    *_, (_, _, text, block, claim) = stated
    where = source(text, block, claim)
    if name in _KEYS:
        return known(_joined((c.value for *_, c in stated if c.state == KNOWN), _KEYS[name]), where)
    if name in _COLLECTED:
        return known([entry for *_, c in stated if c.state == KNOWN for entry in c.value], where)
    if claim.state != KNOWN:
        return absent(where)
    others = {str(c.value): source(t, b, c) for _, _, t, b, c in stated if c.state == KNOWN and c.value != claim.value}
    if others and isinstance(claim.value, (str, int, bool)):
        said = "; ".join(f"{place} says {value}" for value, place in others.items())
        notes.append(f"{name}: {where} says {claim.value}, and counts; {said}")
    return known(claim.value, where)


def _joined(lists: Iterable[list[dict[str, Any]]], key: str) -> list[dict[str, Any]]:
    """Entries with the same key become one; what a better source knows goes over what a lesser one says, and a name
    that is cut never replaces a whole one."""
    by_key: dict[Any, dict[str, Any]] = {}
    for entries in lists:
        for entry in entries:
            before = by_key.setdefault(entry.get(key), {})
            whole = before.get("name") if before and not before.get("truncated") else None
            fresh = {name: value for name, value in entry.items() if value is not None or name not in before}
            before.update(fresh)
            if whole and entry.get("truncated"):
                before["name"], before["truncated"] = whole, False
    return [by_key[index] for index in sorted(by_key, key=lambda value: (str(type(value)), value))]


def _of_the_last_machine(found: Found, notes: list[str]) -> list[bool]:
    """For each block whether it is of the machine that the text is about: the last whose driver is shown."""
    drivers = [block.driver for _, block in found if block.driver is not None]
    if len(set(drivers)) < 2:
        return [True] * len(found)
    last = drivers[-1]
    used = [block.driver in (None, last) for _, block in found]
    passed = [text.number(block.first) for (text, block), use in zip(found, used) if not use]
    lines = ", ".join(map(str, passed[:6]))
    notes.append(f"the text shows more than one machine: the last one counts (driver {last}), not that of line {lines}")
    return used
