"""`cudadoctor explain "error text"`: what error messages mean and what can be behind them."""

from __future__ import annotations

from collections.abc import Sequence

from cudadoctor.model.record import NamedTuple
from cudadoctor.render.json_report import dump
from cudadoctor.render.style import Style, clean, wrap
from cudadoctor.rules import rule_name, rule_of

_ADVICE = (
    "The words alone prove none of them. On the machine itself: cudadoctor check --log FILE, with the run's output in "
    "FILE. Elsewhere: cudadoctor check --from FILE, with the whole report in it. The page of a cause: cudadoctor "
    "explain and its id."
)


class Meaning(NamedTuple):
    """One message: its line, what it means, and the rules of what can be behind it, the likeliest first. `more` are
    sentences about what it names (an Xid)."""

    symptom: str
    text: str
    meaning: str
    causes: tuple[str, ...]
    more: tuple[str, ...] = ()


def meanings_text(meanings: Sequence[Meaning], style: Style) -> str:
    lines: list[str] = []
    for item in meanings:
        lines += [""] if lines else []
        lines += wrap(clean(item.meaning[:1].upper() + item.meaning[1:]), style.width)
        lines += ["  " + line for line in wrap(clean(f'"{item.text}"'), style.width - 2)]
        for sentence in item.more:
            lines += ["  " + line for line in wrap(clean(sentence), style.width - 2)]
        lines += ["", style.paint("command", "What can be behind it, the likeliest first")] if item.causes else []
        for rule in item.causes:
            texts = wrap(f"{rule_name(rule)}: {rule_of(rule).title}", style.width - 9)
            lines += [f"  {rule if number == 0 else '':<5}  {text}" for number, text in enumerate(texts)]
    if any(item.causes for item in meanings):
        lines += ["", style.paint("command", "What tells them apart")]
        lines += ["  " + line for line in wrap(_ADVICE, style.width - 2)]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def meanings_json(meanings: Sequence[Meaning]) -> str:
    return dump(
        {
            "messages": [
                {
                    "symptom": item.symptom,
                    "text": item.text,
                    "meaning": item.meaning,
                    "causes": [
                        {"rule": rule, "name": rule_name(rule), "title": rule_of(rule).title} for rule in item.causes
                    ],
                    "more": list(item.more),
                }
                for item in meanings
            ]
        }
    )
