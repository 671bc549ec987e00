"""What a user who cannot mend the machine can do all the same: go elsewhere, and tell those who can."""

from __future__ import annotations

from typing import Optional

from cudadoctor.model import ERROR, MACHINE, Facts, ParseError
from cudadoctor.model.record import NamedTuple
from cudadoctor.model.report import Report
from cudadoctor.plan import validate


class HandOver(NamedTuple):
    """`yours` is what the user can do about their own job; `message` is what to send to whoever runs the machine."""

    yours: str
    message: str


def hand_over(report: Report) -> Optional[HandOver]:
    """For a job whose faults are the machine's, and a user who does not run it; None for anybody else."""
    facts = report.facts
    roots = [outcome for rule_id in report.root_causes if (outcome := report.outcome(rule_id)) is not None]
    failed = [outcome for outcome in roots if outcome.failed and outcome.severity == ERROR]
    if not failed or any(outcome.blame != MACHINE for outcome in failed) or not _is_guest(facts):
        return None
    first, node = failed[0], _node(facts)
    place = f"node {node}" if node else "a node of yours"
    job = facts.value("env.SLURM_JOB_ID")
    if isinstance(job, str) and job.isdecimal():
        place += f" (job {job})"
    return HandOver(_elsewhere(facts, node), f"{place}: {first.rule} {first.name}: {first.message}")


def _node(facts: Facts) -> Optional[str]:
    """The node's name, where it may stand in a command."""
    try:
        return validate.node(facts.value("scheduler.node"))
    except ParseError:
        return None


def _is_guest(facts: Facts) -> bool:
    """Whether the user only has a job on the machine. Root in a pod is no administrator of its node."""
    if facts.value("scheduler.in_job") is not True:
        return False
    return facts.value("system.is_admin") is False or facts.value("scheduler.kind") == "kubernetes"


def _elsewhere(facts: Facts, node: Optional[str]) -> str:
    kind = facts.value("scheduler.kind")
    if kind == "slurm" and node is not None:
        return f"submit again without this node: sbatch --exclude={node} ..."
    if kind == "kubernetes":
        return "delete the pod, so that it may start on another node; nothing inside it can mend this one"
    return "submit again, so that the job runs on another node; nothing in the job can mend this one"
