"""For programs: the diagnosis of pasted texts (`cudadoctor.diagnose_text`), and whether a model fits
(`cudadoctor.will_it_fit`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Optional

from cudadoctor.model.record import NamedTuple
from cudadoctor.render.view import View

if TYPE_CHECKING:
    from cudadoctor.fit.answer import Answer


class Diagnosis(NamedTuple):
    """What pasted texts tell of a machine. Names of people and hosts, serials and tokens are left out.

    `verdict` is the first line of the report with its word; `root_causes` are rule ids, the likeliest first; `exit` is
    the status with which `check --from` would end; `commands` are those that mend it, to be pasted on that machine;
    `document` is the document of `check --format json`.
    """

    verdict: str
    root_causes: tuple[str, ...]
    exit: int
    commands: tuple[str, ...]
    document: dict[str, Any]
    view: View

    def text(self, form: str = "text") -> str:
        """The report in one of the formats of `check --format`."""
        from cudadoctor.render.formats import render

        return render(form, self.view)

    def __str__(self) -> str:
        return self.text()


def diagnose_texts(texts: Sequence[bytes | str]) -> Diagnosis:
    """See `cudadoctor.diagnose_text`."""
    from cudadoctor.cli._diagnosis import view_of_texts
    from cudadoctor.render.json_report import document
    from cudadoctor.render.steps import command_line
    from cudadoctor.render.text import Screen

    view = view_of_texts([(f"text {number}", text) for number, text in enumerate(texts, 1)])
    screen = Screen(view)
    commands = (command_line(step, view.report.facts) for step in screen.cures(screen.roots()))
    return Diagnosis(
        "  ".join(screen.headline),
        view.report.root_causes,
        view.exit,
        tuple(command for command in commands if command),
        dict(document(view)),
        view,
    )


class Fit(NamedTuple):
    """Whether a model fits. Amounts are bytes.

    `verdict` is fits, tight, does-not-fit or unknown; `message` says it in a sentence; `low`, `expected` and `high` are
    what one GPU needs, as nvidia-smi would show it (nine of ten measurements lie between low and high), `available`
    what it has free (None: nobody knows). `changes` are the lines to write for the cheapest changes that make it fit,
    empty where none is needed or found; `document` is that of `cudadoctor fit --format json`.
    """

    verdict: str
    message: str
    low: int
    expected: int
    high: int
    available: Optional[int]
    changes: tuple[str, ...]
    document: dict[str, Any]
    answer: Answer

    def __str__(self) -> str:
        return self.message


def fit(model: str, question: dict[str, Any]) -> Fit:
    """See `cudadoctor.will_it_fit`."""
    from cudadoctor.cli._fitting import Asked, Place
    from cudadoctor.cli._input import Machine
    from cudadoctor.cli._words import InputError
    from cudadoctor.matrix import load_matrix
    from cudadoctor.render.fit_json import document

    row = {"model": model, **question}
    try:
        view = Asked(load_matrix(), Machine(), Place()).view(row)
    except InputError as error:
        raise ValueError(str(error)) from None
    found, told = view.answer, dict(document(view))
    steps = found.cure.changes if found.cure is not None else ()
    return Fit(
        found.verdict,
        str(told["message"]),
        *found.need.device,
        found.available,
        tuple(line for change in steps for line in change.lines),
        told,
        found,
    )
