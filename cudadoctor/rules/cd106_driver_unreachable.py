"""The NVIDIA driver does not answer

What it checks
    Whether NVML or nvidia-smi gets an answer from the driver. This is the first of the three steps to take when
    torch.cuda.is_available() is False. One of the two is enough. When a narrower cause is known (nouveau, Secure Boot,
    a module that was not built, ...), that rule names it, and this one only follows from it.

Why it matters
    Everything above the driver needs it: no torch build, no toolkit and no container setting helps while it is silent.

How to fix
    Read the kernel log for the reason: sudo dmesg | grep -iE "nvrm|nvidia|nouveau". Most often the module was not
    loaded after an update: reboot once. If it still fails, install the distribution's driver package again, which
    builds the module for the running kernel. A setting may keep the module from loading (prime-select intel, a file
    under /etc/modprobe.d): take it out. A driver that hangs rather than fails needs a reboot, and if it hangs again, a
    look at the hardware. First give it more time (--timeout 30): a driver that no job and no nvidia-persistenced keeps
    awake takes ten seconds and more to answer for eight GPUs. In a container, see whether nvidia-smi works on the host,
    and start the container again.

References
    https://docs.nvidia.com/deploy/nvidia-smi/index.html
    https://docs.nvidia.com/cuda/cuda-installation-guide-linux/
"""

from __future__ import annotations

from cudadoctor.derive.driver import NO, YES, answer, version, version_fact
from cudadoctor.derive.gpus import NONE, UNCLEAR, expected
from cudadoctor.derive.surroundings import driver_software, in_container, in_report, nvidia_nodes, on_own_linux
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
    follows_from=(*(rule for rule in NO_ANSWERING_DRIVER if rule not in ("CD106", "CD501")), "CD113", "CD713"),
    precedence=29,
)

# Failures of nvidia-smi that name their cause, and the rule for it. On the machine itself there is more to look at.
_NARROWER = {
    "mismatch": "CD105",
    "permission": "CD111",
    "no-devices": "CD109",
    "gpu-lost": "CD113",
    "device-handle": "CD113",
}

_SAID = "symptom.smi_no_driver"

# What is shown of a program's words; nvidia-smi's sentence is 130 characters long.
_WORDS = 60


def judge(case: Case) -> Outcome:
    reply = case.derived(answer)
    if reply.state == YES:
        driver = case.derived(version)
        if driver.is_known:
            return case.passed(f"driver {driver.get()} answers", (case.derived(version_fact),))
        return case.passed(reply.reason, reply.evidence)
    seen = case.derived(expected)
    if seen.state == NONE:
        return case.skipped("there is no NVIDIA GPU that a driver could serve")
    if reply.state != NO:
        if in_report(case) and case.fact(_SAID).is_known:
            return _reported(case, (_SAID,), "somebody says that nvidia-smi finds none")
        return case.undecided(f"cannot tell whether the driver answers: {reply.reason}", reply.evidence)
    if seen.state == UNCLEAR and not driver_software(case):
        unclear = f"no driver is seen, and whether there is a GPU cannot be told: {seen.reason}"
        return case.undecided(unclear, seen.evidence)
    evidence = tuple(name for name in ("driver.nvml_error", "driver.smi_failure") if case.fact(name).is_known)
    if case.value("driver.nvml_unresponsive", False) or case.value("driver.smi_failure") == "timed-out":
        return case.failed(
            "the NVIDIA driver did not answer in time: it hangs",
            (*evidence, "driver.nvml_unresponsive"),
            fixes=(
                Remedy("reboot", {"why": "a driver that hangs seldom comes back without one", "effect": _works(case)}),
            ),
            not_helping=("another torch build: the driver answers nobody",),
        )
    if in_report(case):
        if case.value("torch.cuda_available") is True:
            return case.skipped("CUDA works: the driver answers, and CD121 judges nvidia-smi")
        narrower = _NARROWER.get(case.value("driver.smi_failure", ""))
        if narrower is not None:
            return case.skipped(f"how nvidia-smi fails says more: {narrower} judges it")
        return _reported(case, evidence or reply.evidence, _short(reply.reason))
    if on_own_linux(case) and case.fact("driver.module_loaded").value is False:
        return _not_loaded(case, evidence)
    if in_container(case) and nvidia_nodes(case):
        return _in_container(case, evidence or reply.evidence, _short(reply.reason))
    # Without libraries there is nobody to answer, and a reboot brings none.
    nobody = case.fact("driver.nvml_library").is_absent and case.fact("driver.smi_path").is_absent
    return case.failed(
        f"the NVIDIA driver does not answer ({_short(reply.reason)})",
        evidence or reply.evidence,
        fixes=(Remedy("install-driver" if nobody and on_own_linux(case) else "reload-module", {}),),
        not_helping=("another torch build or toolkit: nothing works before the driver does",),
    )


def _reported(case: Case, evidence: tuple[str, ...], reason: str) -> Outcome:
    """Of a text no more is known than that nvidia-smi failed: where, and for want of what, it may not say."""
    return case.failed(
        f"the NVIDIA driver does not answer ({reason})",
        evidence,
        certainty=LIKELY,
        fixes=(Remedy("reload-module", {}),),
        not_helping=("another torch build or toolkit: nothing works before the driver does",),
    )


def _works(case: Case) -> dict[str, object]:
    """What is seen once the driver answers again."""
    version = case.value("driver.module_version") or case.value("driver.library_version") or "unknown"
    return {
        "driver.nvml_unresponsive": False,
        "driver.nvml_error": None,
        "driver.nvml_version": version,
        "driver.smi_failure": None,
    }


def _short(words: str) -> str:
    return words if len(words) <= _WORDS else words[: _WORDS - 3].rstrip(" ,.") + "..."


def _not_loaded(case: Case, evidence: tuple[str, ...]) -> Outcome:
    """The module is there, perhaps, and nobody has loaded it."""
    evidence = (*evidence, "driver.module_loaded")
    not_helping = ("another torch build or toolkit: nothing works before the module is loaded",)
    blacklisted = case.value("kernel.nvidia_blacklisted_by")
    if blacklisted:
        return case.failed(
            f"the NVIDIA module is kept from loading by {blacklisted[0]}",
            (*evidence, "kernel.nvidia_blacklisted_by"),
            fixes=(Remedy("remove-module-blacklist", {"files": list(blacklisted)}),),
            not_helping=("installing the driver again: the setting stays", *not_helping),
        )
    return case.failed(
        "the NVIDIA module is not loaded, so its driver does not answer",
        evidence,
        fixes=(Remedy("reload-module", {}),),
        not_helping=not_helping,
    )


def _in_container(case: Case, evidence: tuple[str, ...], reason: str) -> Outcome:
    return case.failed(
        f"the driver does not answer inside this container ({reason})",
        (*evidence, "device.nodes"),
        fixes=(
            Remedy(
                "manual",
                {
                    "title": "Start the container again",
                    "text": "Run nvidia-smi on the host. If it works there, start the container again: one that has "
                    "run for long loses its devices when the host reloads its services. If it fails there too, mend "
                    "the host's driver first.",
                    "kind": "container",
                    "effect": _works(case),
                },
            ),
        ),
        not_helping=("another torch build or toolkit: nothing works before the driver does",),
    )
