"""What `cudadoctor verify` shows: what was proven, and the verdict."""

from __future__ import annotations

from typing import Optional

from cudadoctor.model import CERTAIN, ERROR, PASS, WARNING
from cudadoctor.model.record import NamedTuple
from cudadoctor.model.report import EXIT_FINDINGS, EXIT_FINE
from cudadoctor.render.style import Style
from cudadoctor.render.view import MatrixInfo
from cudadoctor.rules import rule_name
from cudadoctor.verify.plan import CHECKS, VERSIONS
from cudadoctor.verify.results import Proof, Result, worst


class VerifyView(NamedTuple):
    """Everything that a format may show. `exit` is the status with which the command ends; `program` calls cudadoctor
    again, `again` holds the options that mean the same environment."""

    proof: Proof
    exit: int
    style: Style = Style()
    program: str = "cudadoctor"
    again: str = ""
    matrix: MatrixInfo = MatrixInfo()
    tool_version: str = ""
    matrix_age_days: Optional[int] = None


def headline(view: VerifyView) -> tuple[str, str]:
    """The word and the sentence of the verdict."""
    proof = view.proof
    failure = worst(proof.results)
    if view.exit == EXIT_FINDINGS and failure is not None:
        return ("FAIL" if failure.severity == ERROR else "warn"), sentence(failure)
    if view.exit != EXIT_FINE:
        reasons = [result.message for result in proof.results if result.check in proof.checks]
        return "????", "nothing could be proven" + (f": {reasons[0]}" if reasons else "")
    working = {result.gpu for result in proof.results if result.gpu is not None and result.status == PASS}
    where = f" on {len(working)} GPU{'s' if len(working) != 1 else ''}" if working else ""
    versions = [f"torch {proof.torch.version}" if proof.torch.version else "", f"Python {proof.python_version}"]
    asked = "CUDA works" if proof.checks == CHECKS else f"what was checked works ({', '.join(proof.checks)})"
    text = f"{asked}{where}: {', '.join(word for word in versions if word)}"
    slow = sum(result.failed and result.severity == WARNING for result in proof.results)
    return "ok", text + (f" ({slow} slow, see below)" if slow else "")


def sentence(result: Result) -> str:
    """A failure in one line: where, what, and the cause that is known."""
    if result.check == VERSIONS and result.because and result.rule is not None:
        hedge = "" if result.certainty == CERTAIN else f"{result.certainty}: "
        return f"CUDA is not available: {hedge}{result.rule} {rule_name(result.rule)}: {result.because}"
    where = f"GPU {result.gpu}: " if result.gpu is not None else ""
    return f"{where}{result.name}: {result.message}"
