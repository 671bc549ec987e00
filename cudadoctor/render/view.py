"""What is shown: a report with its plan, the verdict and where it came from."""

from __future__ import annotations

from typing import Optional

from cudadoctor.model import FixStep
from cudadoctor.model.record import NamedTuple
from cudadoctor.model.report import Report
from cudadoctor.render.style import Style


class MatrixInfo(NamedTuple):
    """Which compatibility data the report rests on; `checked` is YYYY-MM-DD."""

    revision: str = ""
    checked: str = ""


class View(NamedTuple):
    """Everything that a format may show. `exit` is the status with which the command ends; `home` is the user's home,
    which is shown as `~` on the screen (empty: as the facts have it); `again` holds the options that mean the same
    machine; `program` calls cudadoctor again."""

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
