"""A limit of the process is lower than the job needs

What it checks
    The soft limits on open files and on memory that may be locked, against limits.nofile and limits.memlock of the
    policy. "unlimited" is a value; a limit in numbers does not reach it.

Why it matters
    DataLoader workers share tensors through file handles: "Too many open files" ends them. InfiniBand and NCCL register
    memory with the network card, which counts as locked: with a low limit the first connection fails ("ibv_reg_mr",
    "Cannot allocate memory").

How to fix
    ulimit -n 65536 in the job's script, as far as the hard limit goes; the limits of batch jobs are those of the
    scheduler's own service (for Slurm: LimitMEMLOCK=infinity in slurmd's unit, and PropagateResourceLimits), of a
    container those of the engine: --ulimit memlock=-1.

References
    https://slurm.schedmd.com/faq.html#memlock
    https://docs.docker.com/reference/cli/docker/container/run/
"""

from __future__ import annotations

from typing import Any

from cudadoctor.derive.policy import NOT_ASKED, givers_blame, least
from cudadoctor.parse.sizes import show_size
from cudadoctor.rules.api import ALLOCATION, ENVIRONMENT, ERROR, MACHINE, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD012",
    name="ulimits",
    title="A limit of the process is lower than the job needs",
    severity=ERROR,
    blame=MACHINE,
    chain=True,
    precedence=42,
)

_LIMITS = (
    ("policy.limits.nofile", "limits.nofile", "open files", "ulimit -n"),
    ("policy.limits.memlock", "limits.memlock", "lockable memory", "ulimit -l"),
)


def judge(case: Case) -> Outcome:
    asked = [limit for limit in _LIMITS if case.fact(limit[0]).is_known]
    if not asked:
        return case.skipped(NOT_ASKED)
    unread = None
    for name, fact, words, command in asked:
        wanted, limit = str(case.value(name)), case.fact(fact)
        fine = least(limit, wanted)
        if fine is None:
            unread = unread or (name, fact, words, limit.reason)
        elif not fine:
            return case.failed(
                f"the limit on {words} is {_shown(fact, limit.get())}, {_shown(fact, wanted)} is asked for",
                (name, fact),
                # A script raises its own soft limit; locked memory is what the service or the engine was given.
                blame=ENVIRONMENT if fact == "limits.nofile" else _blame(case),
                data={"value": limit.get(), "wanted": wanted},
                fixes=(_raise(case, fact, words, wanted, f"{command} {_for_ulimit(fact, wanted)}"),),
            )
    if unread is not None:
        name, fact, words, reason = unread
        return case.undecided(f"cannot tell the limit on {words}: {reason}", (name, fact))
    return case.passed("the limits are what is asked for", tuple(fact for _, fact, _, _ in asked))


def _raise(case: Case, fact: str, words: str, wanted: str, command: str) -> Remedy:
    name = fact.partition(".")[2]
    giver = (
        f"start the container with it: docker run --ulimit {name}={-1 if wanted == 'unlimited' else wanted}; in "
        "Kubernetes, the service of the container engine on the node needs it"
        if case.fact("system.container").is_known
        else f"for a job, the scheduler's service on the node needs it (Slurm: Limit{name.upper()}= in slurmd's unit), "
        "for a login /etc/security/limits.conf"
    )
    text = f"Before the program starts, in the same shell: {command}. Where that is refused: {giver}."
    return Remedy("manual", {"title": f"Raise the limit on {words}", "text": text, "kind": "setting"})


def _for_ulimit(fact: str, wanted: str) -> str:
    """A limit as the shell's ulimit takes it: locked memory in KiB."""
    return str(-(-int(wanted) // 1024)) if fact == "limits.memlock" and wanted != "unlimited" else wanted


def _blame(case: Case) -> str:
    """A container is started with its limits; a job's are those of the scheduler's service on the node."""
    return ALLOCATION if case.fact("system.container").is_known and givers_blame(case) == ALLOCATION else MACHINE


def _shown(fact: str, value: Any) -> str:
    if value == "unlimited":
        return "unlimited"
    return show_size(int(value)) if fact == "limits.memlock" else str(value)
