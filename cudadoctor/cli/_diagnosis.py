"""From options to a report that can be shown: facts, matrix, diagnosis, plan, exit status."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Optional

from cudadoctor import __version__
from cudadoctor.cli._input import Machine, Reading, Wish, begin_reading
from cudadoctor.cli._words import InputError, ignored_rules, rule_ids
from cudadoctor.diagnose import diagnose
from cudadoctor.matrix import Matrix, MatrixError, load_matrix
from cudadoctor.model import MACHINE, ParseError
from cudadoctor.model.outcome import BLAMES, TOOL
from cudadoctor.model.report import EXIT_FINDINGS, Report, blamed, counts, exit_status
from cudadoctor.plan import Plan, make_plan
from cudadoctor.plan.hand_over import hand_over
from cudadoctor.plan.shell import POSIX, POWERSHELL, quote
from cudadoctor.render.style import Style
from cudadoctor.render.view import MatrixInfo, View
from cudadoctor.rules import load_rules

if TYPE_CHECKING:
    from cudadoctor.cli._pasted import Pasted
    from cudadoctor.model import Facts
    from cudadoctor.policy import Policy
    from cudadoctor.render.view import Pasted as PastedView


# Kept back from what a policy has proved, so that the report is written before the deadline.
_TO_SAY_SO = 0.3


def view_of(
    machine: Machine,
    wish: Optional[Wish] = None,
    style: Optional[Style] = None,
    reading: Optional[Reading] = None,
) -> View:
    """Examines and judges the machine that the options mean; `reading` is an examination that was begun already."""
    wish = wish or Wish()
    try:
        selected = rule_ids(wish.select) if wish.select else None
        ignored = ignored_rules(wish.ignore)
        blames = _blames(wish.blame)
    except InputError:
        if reading is not None:
            reading.stop()
        raise
    reading = reading or begin_reading(machine)
    try:
        # All this is done while the machine is being looked at.
        matrix = reading.matrix()
        load_rules(selected, reading.advance)
        matrix.torch_versions()  # reads the section that nearly every verdict needs
        _look_ahead(matrix, reading)
    except MatrixError as error:
        reading.stop()
        raise InputError(str(error)) from None
    facts, policy = reading.facts(), wish.policy
    if policy is None:
        report = diagnose(facts, matrix, select=selected, ignore=ignored, blames=blames)
    else:
        left = None if reading.until is None else reading.until - time.monotonic() - _TO_SAY_SO
        report = diagnose(
            _with_policy(facts, policy, machine, left),
            matrix,
            select=selected,
            ignore={**policy.ignored, **ignored},
            blames=blames,
            severities=policy.severities,
            required=policy.required,
        )
    plan = make_plan(report, matrix)
    pasted = None
    if reading.pasted is not None:
        pasted = _told(reading.pasted, report, matrix, bool(machine.log) and not machine.from_files)
    view = _view(report, plan, matrix, exit_code(report, wish.fail_on, wish.unknown_ok, wish.retry_code))
    return view._replace(
        fail_on=wish.fail_on, style=style or Style(), again=again(machine), pasted=pasted, blames=blames
    )


def _with_policy(facts: Facts, policy: Policy, machine: Machine, seconds: Optional[float]) -> Facts:
    """The facts with what is asked for, and with what `cudadoctor verify` found where that is asked for."""
    facts = facts.updated(policy.facts)
    if machine.is_this_one and policy.value("verify.checks"):
        from cudadoctor.cli._policy import proved

        facts = facts.updated(proved(policy, facts, seconds))
    return facts


def _blames(words: Sequence[str]) -> tuple[str, ...]:
    """Those of `--blame`, each once; empty: everybody."""
    known = tuple(blame for blame in BLAMES if blame != TOOL)
    found = []
    for word in words:
        for part in word.split(","):
            if part.strip() not in known:
                raise InputError(f"--blame takes {', '.join(known[:-1])} or {known[-1]}, not {part.strip()!r}")
            found.append(part.strip())
    return tuple(dict.fromkeys(found))


def view_of_texts(texts: Sequence[tuple[str, bytes | str]]) -> View:
    """Judges the machine that pasted texts, (name, content) pairs, tell of, as the options of `check` do by default."""
    from cudadoctor.cli._pasted import pasted

    matrix = load_matrix()
    found = pasted(texts, matrix)
    report = diagnose(found.facts, matrix)
    view = _view(report, make_plan(report, matrix), matrix, exit_code(report, "error", False, None))
    return view._replace(pasted=_told(found, report, matrix))


def _view(report: Report, plan: Plan, matrix: Matrix, status: int) -> View:
    return View(
        report=report,
        exit=status,
        steps=plan.steps,
        advice=plan.advice,
        matrix=MatrixInfo(matrix.revision, matrix.checked),
        tool_version=__version__,
        hand_over=hand_over(report),
    )


def _told(pasted: Pasted, report: Report, matrix: Matrix, is_log: bool = False) -> PastedView:
    """What is shown of the texts that were read, and what to paste next."""
    from cudadoctor.plan.questions import questions, unexplained
    from cudadoctor.render.view import Pasted as PastedView
    from cudadoctor.render.view import Read

    several = len({block.text for block in pasted.recognised}) > 1
    return PastedView(
        tuple(Read(b.text if several else "", b.kind, b.first, b.last, b.used) for b in pasted.recognised),
        pasted.notes,
        () if is_log else questions(report, matrix),
        unexplained(report, matrix),
        is_log,
    )


def _look_ahead(matrix: Matrix, reading: Reading) -> None:
    """While the machine has not answered, loads what a machine that is not healthy needs, and one with a GPU."""
    for module in ("cudadoctor.plan.cure", "cudadoctor.render.evidence"):
        if reading.advance():
            import_module(module)
    for section in ("driver_branches", "architectures", "gpus"):
        if reading.advance():
            with suppress(MatrixError):  # who needs it will say so
                matrix.raw(section)


def again(machine: Machine) -> str:
    """The options that mean the same machine to another command, to be pasted."""
    words = [word for path in machine.from_files for word in ("--from", path)]
    words += [word for path in machine.log for word in ("--log", path)]
    for option, value in (("--facts", machine.facts_file), ("--replay", machine.replay), ("--python", machine.python)):
        words += [option, value] if value is not None else []
    for assumption in machine.assume:
        words += ["--assume", assumption]
    try:
        return quote(words, POWERSHELL if os.name == "nt" else POSIX) if words else ""
    except ParseError as error:
        raise InputError(str(error)) from None


def exit_code(report: Report, fail_on: str, unknown_ok: bool, retry_code: Optional[int]) -> int:
    """The exit status; `retry_code` takes the place of 1 where everything that fails is the machine's own fault."""
    status = exit_status(report.outcomes, fail_on, unknown_ok)
    if status != EXIT_FINDINGS or retry_code is None:
        return status
    failed = [outcome for outcome in report.outcomes if counts(outcome, fail_on)]
    by_id = {outcome.rule: outcome for outcome in report.outcomes}
    return retry_code if all(blamed(outcome, by_id) == MACHINE for outcome in failed) else status
