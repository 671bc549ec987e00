"""The NVIDIA driver does not answer

What it checks
    Whether NVML or nvidia-smi gets an answer from the driver. This is the first of the three steps to take when
    torch.cuda.is_available() is False. When a narrower cause is known (nouveau, Secure Boot, a module that was not
    built, ...), that rule names it, and this one only follows from it.

Why it matters
    Everything above the driver needs it: no torch build, no toolkit and no container setting helps while it is silent.

How to fix
    Read the kernel log for the reason: sudo dmesg | grep -iE "nvrm|nvidia|nouveau". Most often the module was not
    loaded after an update: reboot once. If it still fails, install the distribution's driver package again, which
    builds the module for the running kernel. A driver that hangs rather than fails needs a reboot, and if it hangs
    again, a look at the hardware.

References
    https://docs.nvidia.com/deploy/nvidia-smi/index.html
    https://docs.nvidia.com/cuda/cuda-installation-guide-linux/
"""

from __future__ import annotations

from cudadoctor.derive.driver import NO, YES, answer, version, version_fact
from cudadoctor.derive.gpus import NONE, presence
from cudadoctor.rules.api import ERROR, LIKELY, MACHINE, Case, Outcome, Remedy, Rule
from cudadoctor.rules.causes import NO_ANSWERING_DRIVER

RULE = Rule(
    id="CD106",
    name="driver-unreachable",
    title="The NVIDIA driver does not answer",
    severity=ERROR,
    blame=MACHINE,
    chain=True,
    blocked_by=("CD501",),
    follows_from=tuple(rule for rule in NO_ANSWERING_DRIVER if rule not in ("CD106", "CD501")),
    precedence=29,
)


def judge(case: Case) -> Outcome:
    reply = case.derived(answer)
    if reply.state == YES:
        driver = case.derived(version)
        return case.passed(f"driver {driver.get()} answers", (version_fact(case),))
    if case.derived(presence).state == NONE:
        return case.skipped("there is no NVIDIA GPU that a driver could serve")
    if reply.state != NO:
        return case.undecided(f"cannot tell whether the driver answers: {reply.reason}", reply.evidence)
    hangs = case.value("driver.nvml_unresponsive", False) or case.value("driver.smi_failure") == "timed-out"
    evidence = tuple(name for name in ("driver.nvml_error", "driver.smi_failure") if case.fact(name).is_known)
    if hangs:
        return case.failed(
            "the NVIDIA driver did not answer in time: it hangs",
            (*evidence, "driver.nvml_unresponsive"),
            fixes=(Remedy("reboot", {"why": "a driver that hangs seldom comes back without one"}),),
            not_helping=("another torch build: the driver answers nobody",),
        )
    return case.failed(
        f"the NVIDIA driver does not answer ({reply.reason})",
        evidence or reply.evidence,
        certainty=LIKELY,
        fixes=(Remedy("reload-module", {}),),
        not_helping=("another torch build or toolkit: nothing works before the driver does",),
    )
