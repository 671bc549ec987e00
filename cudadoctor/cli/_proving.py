"""`verify` from its options to its exit status."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Optional

from cudadoctor import __version__
from cudadoctor.cli._input import Machine, begin_reading
from cudadoctor.cli._words import InputError
from cudadoctor.model import ParseError

if TYPE_CHECKING:
    from cudadoctor.matrix import Matrix
    from cudadoctor.model import Facts
    from cudadoctor.verify.results import Proof


def verify(
    form: str,
    python: Optional[str],
    gpus: Sequence[int],
    checks: Sequence[str],
    timeout: Optional[float],
    fail_on: str,
    output: Optional[str],
    color: str,
    verbose: bool,
) -> int:
    """Examines the machine, runs the checks, explains what failed, writes the results, gives the exit status."""
    from cudadoctor.verify.plan import SECONDS, chosen

    try:
        wanted = chosen(checks)
    except ParseError as error:
        raise InputError(f"--check: {error}") from None
    machine = Machine(python=python)
    reading = begin_reading(machine)
    from cudadoctor.cli import _diagnosis, _output
    from cudadoctor.render.verify_view import VerifyView
    from cudadoctor.render.view import MatrixInfo
    from cudadoctor.verify.results import exit_status

    matrix = reading.matrix()
    facts = reading.facts()
    today = facts.value("system.date")
    proof = proof_of(facts, matrix, wanted, gpus, SECONDS if timeout is None else timeout)
    view = VerifyView(
        proof,
        exit_status(proof, fail_on),
        _output.style(color, verbose, to_file=output not in (None, "-")),
        reading.program(),
        _diagnosis.again(machine),
        MatrixInfo(matrix.revision, matrix.checked),
        __version__,
        None if today is None else matrix.age_days(today),
    )
    if form == "json":
        from cudadoctor.render.verify_json import render
    else:
        from cudadoctor.render.verify_text import render
    _output.write(render(view), output)
    return view.exit


def proof_of(facts: Facts, matrix: Matrix, checks: Sequence[str], gpus: Sequence[int], timeout: float) -> Proof:
    """Runs the checks in the environment that `check` looks at, with what `check` finds where one fails. Names no
    people and no serials."""
    from cudadoctor.actions.verify import prove
    from cudadoctor.cli._private import own_redactor
    from cudadoctor.model import SKIP
    from cudadoctor.verify.results import Proof, Result

    executable = facts["python.executable"]
    if not executable.is_known:
        reason = executable.reason or "there is no Python to prove anything with: name one with --python"
        results = tuple(Result(check, SKIP, reason) for check in checks)
        return Proof("", tuple(checks), results)
    try:
        proof = prove(executable.get(), checks, gpus, timeout, facts, matrix)
    except ParseError as error:
        raise InputError(f"--gpu: {error}") from None
    except OSError as error:
        raise InputError(f"cannot make a folder for what the checks write: {error.strerror or error}") from None
    private = own_redactor()
    results = tuple(
        result._replace(message=private.text(result.message), error=private.text(result.error))
        for result in proof.results
    )
    torch = proof.torch
    proof = proof._replace(
        python=private.path(proof.python),
        results=results,
        torch=torch._replace(path=None if torch.path is None else private.path(torch.path)),
    )
    return with_causes(proof, facts, matrix) if any(result.failed for result in results) else proof


def with_causes(proof: Proof, facts: Facts, matrix: Matrix) -> Proof:
    """What `check` finds on the machine, given what the failing checks have said."""
    from cudadoctor.cli._pasted import pasted
    from cudadoctor.cli._private import own_redactor
    from cudadoctor.diagnose import diagnose
    from cudadoctor.rules import load_rules
    from cudadoctor.verify.meaning import explained, log_of

    texts = log_of(proof.results)
    if texts:
        facts = pasted(texts, matrix, named=True).beside(facts)
    load_rules(None)
    report = diagnose(facts, matrix)
    private = own_redactor()
    report = report._replace(
        outcomes=tuple(outcome._replace(message=private.text(outcome.message)) for outcome in report.outcomes)
    )
    found = [report.outcome(rule) for rule in report.root_causes]
    causes = tuple(outcome for outcome in found if outcome is not None)
    return proof._replace(results=explained(proof.results, report), causes=causes)
