"""`cudadoctor fit --explain`: every term with its formula, the numbers put in, and who says so."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cudadoctor.fit.need import PARTS, Term
from cudadoctor.render.fit_sizes import both, span
from cudadoctor.render.fit_view import FitView, part_name
from cudadoctor.render.style import Style, hanging

_LABEL = 9


def lines(view: FitView) -> Iterator[str]:
    """Part by part in the order of the breakdown; the terms add up to what one GPU needs."""
    style = view.style
    terms = view.answer.need.terms
    first = True
    for part in PARTS:
        for term in terms:
            if term.part == part:
                if not first:
                    yield ""
                first = False
                yield from _term(term, part_name(part, view.answer.workload), style)
    speed = view.answer.speed
    extra = [("speed", speed.formula if speed.tokens is not None else ""), ("loading", speed.load_formula)]
    if any(text for _, text in extra):
        yield ""
        yield "Speed (upper bounds)"
        for name, text in (*extra, ("source", speed.source)):
            if text:
                yield from hanging(f"  {name:<{_LABEL}}", text, style.width)


def _term(term: Term, name: str, style: Style) -> Iterator[str]:
    title = term.name if term.name.lower().startswith(name.lower()) else f"{name}: {term.name}"
    yield from hanging("", f"{title[:1].upper()}{title[1:]}, {both(term.bytes)}", style.width)
    rows = [("formula", term.formula), ("numbers", _numbers(term)), ("source", term.source)]
    if (term.low, term.high) != (term.bytes, term.bytes):
        rows.insert(2, ("between", f"{span(term.low, term.high)}, nine times of ten"))
    for label, text in rows:
        if text:
            yield from hanging(f"  {label:<{_LABEL}}", text, style.width)


def _numbers(term: Term) -> str:
    """What was put in, and what comes out."""
    out = f"{term.bytes:,}"
    if term.numbers in ("", out):
        return f"{out} bytes"
    # A range that was seen elsewhere is no sum: the number is chosen between its ends.
    between = re.fullmatch(r"[0-9,]+ to [0-9,]+", term.numbers)
    return f"{term.numbers}, taken: {out} bytes" if between else f"{term.numbers} = {out} bytes"
