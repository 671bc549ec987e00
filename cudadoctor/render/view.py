"""What is shown: a report with its plan, the verdict and where it came from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional

from cudadoctor.model import FixStep
from cudadoctor.model.record import NamedTuple
from cudadoctor.model.report import Report
from cudadoctor.render.style import Style

if TYPE_CHECKING:
    from cudadoctor.plan.hand_over import HandOver
    from cudadoctor.plan.questions import Question, Unexplained


class MatrixInfo(NamedTuple):
    """Which compatibility data the report rests on; `checked` is YYYY-MM-DD."""

    revision: str = ""
    checked: str = ""


class Read(NamedTuple):
    """A block of a pasted text as a person is told of it: lines count from 1; `text` is empty where there is only one.
    `used` is False for the output of another machine than the one that is judged."""

    text: str
    kind: str
    first: int
    last: int
    used: bool = True


class Pasted(NamedTuple):
    """What was read of pasted texts, what a person should know of the reading, what to paste next, and the error
    wordings that no rule explains. `is_log`: the texts are a log of a run on the machine, and not all that is known."""

    read: tuple[Read, ...] = ()
    notes: tuple[str, ...] = ()
    questions: tuple[Question, ...] = ()
    unexplained: tuple[Unexplained, ...] = ()
    is_log: bool = False


class View(NamedTuple):
    """Everything that a format may show. `exit` is the status with which the command ends; `home` is the user's home,
    which is shown as `~` on the screen (empty: as the facts have it); `again` holds the options that mean the same
    machine; `program` calls cudadoctor again; `blames` says whose faults alone were asked for (empty: all);
    `hand_over` is what a user in a job can do about a fault of the machine; `pasted` is what texts told, where any were
    given."""

    report: Report
    exit: int
    steps: tuple[FixStep, ...] = ()
    advice: tuple[FixStep, ...] = ()
    matrix: MatrixInfo = MatrixInfo()
    fail_on: str = "error"
    tool_version: str = ""
    style: Style = Style()
    home: str = ""
    again: str = ""
    program: str = "cudadoctor"
    blames: tuple[str, ...] = ()
    hand_over: Optional[HandOver] = None
    pasted: Optional[Pasted] = None

    @property
    def is_report(self) -> bool:
        """Whether all that is known of the machine comes from pasted texts."""
        return self.pasted is not None and not self.pasted.is_log

    @property
    def matrix_age_days(self) -> Optional[int]:
        """Days from the matrix's date to the examined machine's, or None where either is not known."""
        from datetime import date

        try:
            checked = date.fromisoformat(self.matrix.checked)
            today = date.fromisoformat(self.report.facts.value("system.date", ""))
        except (TypeError, ValueError):
            return None
        return (today - checked).days
