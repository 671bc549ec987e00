"""What is told about this machine to others: no names of people or hosts, no serials, no tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cudadoctor.model import Evidence, Facts, FixStep, Outcome
from cudadoctor.render.view import Pasted, View
from cudadoctor.system.home import home as own_home

if TYPE_CHECKING:
    from cudadoctor.system import Redactor


def load() -> None:
    """Imports what is needed here, ahead of its use."""
    from cudadoctor.system import redact  # noqa: F401


def own_redactor() -> Redactor:
    """What knows the names of this machine and its people."""
    from functools import lru_cache

    from cudadoctor.system import Redactor

    redactor = Redactor.of_this_machine()
    # The same few folders are the source of hundreds of facts.
    for method in ("path", "text"):
        setattr(redactor, method, lru_cache(maxsize=None)(getattr(redactor, method)))
    return redactor


def private_facts(facts: Facts) -> Facts:
    """Facts of the machine that we run on, as they may be passed on."""
    return own_redactor().facts(facts)


def private(view: View) -> View:
    """A report about the machine that we run on, as it may be passed on.

    Commands must still work when they are pasted: a path in them that would name the user begins with `~` instead.
    """
    redactor = own_redactor()
    home = own_home().rstrip("/\\")
    report = view.report._replace(
        facts=redactor.facts(view.report.facts),
        outcomes=tuple(_outcome(redactor, outcome) for outcome in view.report.outcomes),
    )
    return view._replace(
        report=report,
        steps=tuple(_step(redactor, home, step) for step in view.steps),
        advice=tuple(_step(redactor, home, step) for step in view.advice),
        home=redactor.path(home),
        pasted=None if view.pasted is None else _pasted(redactor, view.pasted),
    )


def _pasted(redactor: Redactor, pasted: Pasted) -> Pasted:
    """The log of a run names this machine's people too."""
    return pasted._replace(
        read=tuple(block._replace(text=redactor.text(block.text)) for block in pasted.read),
        notes=tuple(redactor.text(note) for note in pasted.notes),
        unexplained=tuple(
            item._replace(text=redactor.text(item.text), source=redactor.text(item.source))
            for item in pasted.unexplained
        ),
    )


def _outcome(redactor: Redactor, outcome: Outcome) -> Outcome:
    return outcome._replace(
        message=redactor.text(outcome.message),
        data={key: redactor.plain(value) for key, value in outcome.data.items()},
        evidence=tuple(
            Evidence(item.fact, redactor.plain(item.value), redactor.text(item.source)) for item in outcome.evidence
        ),
        not_helping=tuple(redactor.text(sentence) for sentence in outcome.not_helping),
    )


def _step(redactor: Redactor, home: str, step: FixStep) -> FixStep:
    return step._replace(
        title=redactor.text(step.title),
        argv=None if step.argv is None else tuple(_word(redactor, home, word) for word in step.argv),
        effect={key: redactor.plain(value) for key, value in step.effect.items()},
        changes=redactor.text(step.changes),
        undo=redactor.text(step.undo),
        instructions=redactor.text(step.instructions),
    )


def _word(redactor: Redactor, home: str, word: str) -> str:
    shown = redactor.path(word)
    if shown == word:
        return word
    if home and word[: len(home) + 1] in (home + "/", home + "\\"):
        return "~" + redactor.path(word)[len(redactor.path(home)) :]
    return shown
