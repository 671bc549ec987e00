"""Which error messages a text holds, and what they can mean."""

from __future__ import annotations

import re

from cudadoctor.cli._input import read_bytes
from cudadoctor.cli._words import InputError
from cudadoctor.matrix import Matrix, MatrixError, load_matrix
from cudadoctor.model import Facts
from cudadoctor.render.meanings import Meaning
from cudadoctor.reports import read_report
from cudadoctor.rules import rule_files
from cudadoctor.system import Redactor


def explained(word: str) -> tuple[Meaning, ...]:
    """The error messages in a text (`-`: in standard input); none where none is known."""
    content: bytes | str = read_bytes("-") if word == "-" else word
    try:
        matrix = load_matrix()
        facts = read_report([("text", content)], matrix, strict=False).facts
        facts = Redactor.of_texts([content]).facts(facts)
        return (*_symptoms(facts, matrix), *_xids(_codes(word, facts), matrix))
    except MatrixError as error:
        raise InputError(str(error)) from None


def _symptoms(facts: Facts, matrix: Matrix) -> list[Meaning]:
    found = []
    for name in facts:
        if not name.startswith("symptom.") or not facts[name].is_known:
            continue
        text = str(facts[name].get().get("text", ""))
        row = matrix.message(name[len("symptom.") :], text)
        if row is not None:
            causes = tuple(rule for rule in row.causes if rule in rule_files())
            found.append(Meaning(row.name, text, row.meaning, causes))
    return found


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
