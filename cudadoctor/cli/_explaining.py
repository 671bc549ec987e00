"""Which error messages a text holds, and what they can mean."""

from __future__ import annotations

import re

from cudadoctor.cli._input import read_bytes
from cudadoctor.cli._pasted import pasted
from cudadoctor.cli._words import InputError
from cudadoctor.matrix import Matrix, MatrixError, load_matrix
from cudadoctor.model import Facts
from cudadoctor.plan.questions import Unexplained, symptoms
from cudadoctor.render.meanings import Meaning
from cudadoctor.rules import rule_files


def explained(word: str) -> tuple[Meaning, ...]:
    """The error messages in a text (`-`: in standard input); none where none is known."""
    content: bytes | str = read_bytes("-") if word == "-" else word
    try:
        matrix = load_matrix()
        facts = pasted([("text", content)], matrix).facts
        return (*map(_meaning, symptoms(facts, matrix)), *_xids(_codes(word, facts), matrix))
    except MatrixError as error:
        raise InputError(str(error)) from None


def _meaning(said: Unexplained) -> Meaning:
    return Meaning(said.symptom, said.text, said.meaning, tuple(rule for rule in said.causes if rule in rule_files()))


def _codes(word: str, facts: Facts) -> dict[int, str]:
    """The numbers of the Xids in the kernel log, or of one that was asked for by its number, with their lines."""
    events = facts.value("kernel.log_events", [])
    logged = [event for event in events if event["kind"] == "xid" and str(event["values"].get("number")).isdigit()]
    codes = {int(event["values"]["number"]): str(event["text"]) for event in logged}
    asked = re.fullmatch(r"(?i)\s*xid[\s:#]*(\d{1,4})\s*", word)
    return {int(asked.group(1)): word.strip()} if asked else codes


def _xids(codes: dict[int, str], matrix: Matrix) -> list[Meaning]:
    found = []
    for code, text in codes.items():
        row = matrix.xid(code)
        if row is not None:
            more = tuple(f"{part[:1].upper()}{part[1:]}." for part in (row.advice, row.note) if part)
            found.append(Meaning(f"xid_{code}", text, f"{row.meaning} (Xid {code}, {row.name})", (), more))
    return found
