"""The driver's branch is no longer maintained

What it checks
    Whether NVIDIA has ended the branch of the driver at work, by the later of the dates that are known. It is mentioned
    only: what works goes on working. Of a branch without a known date nothing is said.

Why it matters
    An ended branch gets no security fixes any more, and no support for new kernels, cards and CUDA versions. CUDA works
    on it as before.

How to fix
    Update the driver to a maintained branch when it suits you, with your distribution's or system's own means. Nothing
    is broken, so that cudadoctor fix leaves it as it is. A card that newer branches have dropped stays on its last one.

References
    https://docs.nvidia.com/datacenter/tesla/drivers/
    https://endoflife.date/nvidia
"""

from __future__ import annotations

from cudadoctor.derive.driver import numbering, version, version_fact
from cudadoctor.derive.gpus import gpus
from cudadoctor.derive.surroundings import on_jetson
from cudadoctor.rules.api import INFO, MACHINE, Case, Outcome, Rule

RULE = Rule(
    id="CD120",
    name="driver-branch-end-of-life",
    title="The driver's branch is no longer maintained",
    severity=INFO,
    blame=MACHINE,
    precedence=95,
)


def judge(case: Case) -> Outcome:
    if on_jetson(case):
        return case.skipped("a Jetson's driver is part of its system")
    driver = case.derived(version)
    if driver.is_absent:
        return case.skipped("no driver is at work")
    fact = case.derived(version_fact)
    if not driver.is_known:
        return case.undecided("the driver's version is not known", (fact,))
    branch = case.matrix.branch_of(driver.get(), case.derived(numbering))
    if branch is None:
        return case.undecided(f"driver {driver.get()} is of a branch that the matrix does not know", (fact,))
    ends = [end for end in (branch.end_of_life, branch.end_of_life_other) if end]
    if not ends or branch.guessed:
        return case.skipped(f"when {branch.name} ends is not known")
    end = max(ends)
    # A month stands for its last day; a report tells no day, so the data's own counts.
    today = str(case.value("system.date") or case.matrix.checked)
    if today[: len(end)] <= end:
        return case.passed(f"{branch.name} is maintained until {end}", (fact,))
    data = {"branch": branch.name, "end_of_life": end}
    last = [gpu.label for gpu in case.derived(gpus) if _is_last(case, gpu.compute_capability.value, branch.linux)]
    if last:
        return case.failed(
            f"{branch.name} ended in {end[:7]}, and is the last branch for the {last[0]}",
            (fact,),
            data=data,
            not_helping=("a newer driver: it leaves this card out",),
        )
    return case.failed(f"{branch.name} ended in {end[:7]}", (fact,), data=data)


def _is_last(case: Case, capability: str | None, branch: int) -> bool:
    if capability is None:
        return False
    last = case.matrix.last_branch_for(capability)
    return last is not None and last.number <= branch
