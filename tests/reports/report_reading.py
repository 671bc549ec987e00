"""Reads a text and shows what was learnt, for the tables of the tests."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from cudadoctor.matrix import Matrix, load_matrix
from cudadoctor.model import Facts
from cudadoctor.reports import Reading, read_report

SAMPLES = Path(__file__).parent / "samples"
ABSENT = "(absent)"
UNKNOWN = "(unknown)"


@cache
def _matrix() -> Matrix:
    return load_matrix()


def reading_of(text: str | bytes) -> Reading:
    return read_report([("text", text)], _matrix())


def facts_of(text: str | bytes) -> Facts:
    return reading_of(text).facts


def shown(facts: Facts, name: str) -> Any:
    """The value of a fact, or in words that there is none. `gpus` stands for what is known of `smi.gpus`, in short."""
    if name == "gpus":
        return [
            (gpu["index"], gpu["name"], gpu["compute_capability"], (gpu["memory_total"] or 0) >> 20)
            for gpu in facts["smi.gpus"].value or []
        ]
    fact = facts[name]
    return fact.value if fact.is_known else ABSENT if fact.is_absent else UNKNOWN


def expect(text: str | bytes, wanted: dict[str, Any]) -> None:
    facts = facts_of(text)
    found = {name: shown(facts, name) for name in wanted}
    assert found == wanted, f"found {found}, wanted {wanted}"


def known_names(text: str | bytes) -> set[str]:
    facts = facts_of(text)
    return {name for name in facts if name != "examination.kind" and not facts[name].is_unknown}
