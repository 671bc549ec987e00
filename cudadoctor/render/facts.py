"""Facts alone, as the document `cudadoctor.facts/1` or as lines for people."""

from __future__ import annotations

from cudadoctor.model import Fact, Facts
from cudadoctor.render.json_report import dump
from cudadoctor.render.sentences import value_text
from cudadoctor.render.style import Style, clean, columns, wrap


def facts_json(facts: Facts) -> str:
    return dump(facts.to_json())


def facts_text(facts: Facts, style: Style) -> str:
    """One line a fact: name, value, source."""
    lines = []
    for name in sorted(facts):
        fact = facts[name]
        start = f"{name}: "
        texts = wrap(clean(_value(name, fact)), style.width - 4)
        if len(texts) > 1 or columns(start + texts[0]) > style.width:
            lines.append(start.rstrip())
            lines += ["    " + text for text in texts]
        else:
            lines.append(start + texts[0])
        source = clean(fact.source)
        gap = style.width - columns(lines[-1]) - columns(source)
        if source and gap >= 2:
            lines[-1] += " " * gap + style.paint("source", source)
        elif source:
            lines += ["    " + style.paint("source", text) for text in wrap("from " + source, style.width - 4)]
    return "\n".join(lines) + "\n"


def _value(name: str, fact: Fact[object]) -> str:
    if fact.is_known:
        return value_text(name, fact.value)
    if fact.is_absent:
        return "not there"
    return f"unknown ({fact.reason})" if fact.reason else "unknown"
