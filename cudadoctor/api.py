"""`cudadoctor.diagnose_text`: the diagnosis of pasted texts, for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cudadoctor.model.record import NamedTuple
from cudadoctor.render.view import View


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
