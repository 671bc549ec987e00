"""There is less memory than the job needs

What it checks
    The memory that this process may use (that of the machine, or the limit of its control group if that is lower) and
    what is free now, against system.memory_total and system.memory_available of the policy.

Why it matters
    Loading a checkpoint takes its whole size in memory for a moment, in each process. What does not fit is killed
    without a word ("Killed", "OOM-kill event").

How to fix
    Ask the scheduler for more (--mem, resources.limits.memory), start the container with a higher --memory, or take a
    machine with more. Memory that others hold on a shared machine comes back when they end.

References
    https://slurm.schedmd.com/sbatch.html
    https://docs.kernel.org/admin-guide/cgroup-v2.html
"""

from __future__ import annotations

from cudadoctor.derive.policy import NOT_ASKED, givers_blame
from cudadoctor.model import Fact
from cudadoctor.parse.sizes import show_size
from cudadoctor.rules.api import ALLOCATION, ERROR, MACHINE, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD013",
    name="system-memory",
    title="There is less memory than the job needs",
    severity=ERROR,
    blame=MACHINE,
    chain=True,
    precedence=43,
)

_TOTAL, _AVAILABLE = "policy.system.memory_total", "policy.system.memory_available"
_MACHINE, _LIMIT, _FREE = "memory.total", "memory.cgroup_limit", "memory.available"


def judge(case: Case) -> Outcome:
    asked = [name for name in (_TOTAL, _AVAILABLE) if case.fact(name).is_known]
    if not asked:
        return case.skipped(NOT_ASKED)
    total, limit, free = case.fact(_MACHINE), case.fact(_LIMIT), case.fact(_FREE)
    # A control group of which nothing is known may still hold the job to less.
    may_limit = limit.is_unknown and givers_blame(case) == ALLOCATION
    for name in asked:
        wanted: int = case.value(name)
        if limit.is_known and limit.get() < wanted:
            words = f"the job may use {show_size(limit.get())} of memory"
            return _failed(case, words, (name, _LIMIT), limit.get(), wanted, givers_blame(case), _ASK)
        if name == _TOTAL and total.is_known and total.get() < wanted:
            words = f"the machine has {show_size(total.get())} of memory"
            return _failed(case, words, (name, _MACHINE), total.get(), wanted, MACHINE, _LARGER)
        if name == _AVAILABLE and free.is_known and free.get() < wanted:
            words = f"{show_size(free.get())} of memory is free"
            return _failed(case, words, (name, _FREE), free.get(), wanted, MACHINE, _freeing(total, wanted))
    for name, fact, fact_name in ((_TOTAL, total, _MACHINE), (_AVAILABLE, free, _FREE)):
        if name in asked and not fact.is_known:
            return case.undecided(f"cannot tell the memory: {fact.reason or 'it is not told'}", (name, fact_name))
    if may_limit:
        return case.undecided(f"cannot tell whether a limit holds the job to less memory: {limit.reason}", (_LIMIT,))
    return case.passed("there is the memory that is asked for", (*asked, _MACHINE if _TOTAL in asked else _FREE))


_ASK = (
    "Ask for more memory",
    "With Slurm: --mem; in Kubernetes: resources.limits.memory; with docker run: --memory.",
)
_LARGER = ("Take a machine with more memory", "Or ask for less: [system] of the policy.")
_FREE_IT = (
    "Free the machine's memory",
    "ps aux --sort -rss shows who holds it. End what is left over, or take another machine.",
)


def _freeing(total: Fact[int], wanted: int) -> tuple[str, str]:
    """Nobody frees more than there is."""
    return _LARGER if total.is_known and total.get() < wanted else _FREE_IT


def _failed(
    case: Case, words: str, facts: tuple[str, ...], value: int, wanted: int, blame: str, help: tuple[str, str]
) -> Outcome:
    title, text = help
    return case.failed(
        f"{words}, {show_size(wanted)} is asked for",
        facts,
        blame=blame,
        data={"value": value, "wanted": wanted},
        fixes=(Remedy("manual", {"title": title, "text": text}),),
    )
