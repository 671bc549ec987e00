"""A proof that CUDA works has failed

What it checks
    What `cudadoctor verify` found for the checks that verify.checks of the policy names: a child process per GPU really
    allocates, multiplies, copies and talks to its neighbours.

Why it matters
    Everything can look right and not work: a card that computes wrong numbers, a link that is slow, a library that
    does not load. What failed here fails in the job, too.

How to fix
    `cudadoctor verify` shows each check with what was measured and expected, and the rule that explains the failure.

References
    https://docs.nvidia.com/cuda/cuda-runtime-api/index.html
"""

from __future__ import annotations

from typing import Any, Optional

from cudadoctor.derive.policy import NOT_ASKED
from cudadoctor.model import MACHINE
from cudadoctor.rules.api import ENVIRONMENT, ERROR, WARNING, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD020",
    name="verify-failed",
    title="A proof that CUDA works has failed",
    severity=ERROR,
    blame=MACHINE,
    chain=True,
    precedence=60,
)

_ASKED, _RESULTS = "policy.verify.checks", "verify.results"
# What the user's own packages do; all else is the machine's.
_OF_THE_ENVIRONMENT = ("versions", "cudnn", "compile")


def judge(case: Case) -> Outcome:
    results = case.fact(_RESULTS)
    asked = case.fact(_ASKED)
    if not asked.is_known and not results.is_known:
        return case.skipped(NOT_ASKED)
    if not results.is_known:
        why = results.reason or "it was not run"
        return case.undecided(f"`cudadoctor verify` was asked for and proved nothing: {why}", (_ASKED, _RESULTS))
    found: list[dict[str, Any]] = [{**result, "check": str(result.get("check"))} for result in results.get()]
    names: list[str] = asked.value if asked.is_known and asked.value else [str(result.get("check")) for result in found]
    facts = (_ASKED, _RESULTS) if asked.is_known else (_RESULTS,)
    relevant = [result for result in found if result.get("check") in names]
    failed = [result for result in relevant if result.get("status") == "fail"]
    if failed:
        first = next(filter(_grave, failed), failed[0])
        return case.failed(
            f"{first.get('check')}{_on(first)} fails: {first.get('message')}",
            facts,
            # What works and is slow fails as a warning.
            severity=None if _grave(first) else WARNING,
            blame=ENVIRONMENT if first.get("check") in _OF_THE_ENVIRONMENT else MACHINE,
            data={
                "check": first.get("check"),
                "gpu": first.get("gpu"),
                "rule": first.get("rule"),
                "failed": len(failed),
            },
            fixes=(_look(first.get("rule")),),
        )
    passed = {result.get("check") for result in relevant if result.get("status") == "pass"}
    missing = [name for name in names if name not in {result.get("check") for result in relevant}]
    if missing:
        return case.undecided(f"{', '.join(missing)} was asked for and did not run", facts)
    if not passed:
        return case.undecided("every check of `cudadoctor verify` that is asked for was left out", facts)
    skipped = sorted({str(result.get("check")) for result in relevant} - {str(name) for name in passed})
    left_out = f"; left out: {', '.join(skipped)}" if skipped else ""
    return case.passed(f"{', '.join(name for name in names if name in passed)} proved{left_out}", facts)


def _grave(result: dict[str, Any]) -> bool:
    return bool(result.get("severity", ERROR) == ERROR)


def _on(result: dict[str, Any]) -> str:
    gpu: Optional[int] = result.get("gpu")
    return "" if gpu is None else f" on GPU {gpu}"


def _look(rule: Any) -> Remedy:
    page = f"`cudadoctor explain {rule}` says what it means. " if rule else ""
    text = f"{page}`cudadoctor verify` shows what was measured and what was expected."
    return Remedy("manual", {"title": "Look at what failed", "text": text[:1].upper() + text[1:]})
