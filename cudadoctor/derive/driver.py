"""Which driver is at work, in which numbering, whether it answers, and which CUDA it serves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cudadoctor.derive.surroundings import built_for_rocm, in_report, jetson_nodes, nvidia_nodes, on_jetson
from cudadoctor.model import Fact, absent, known, unknown
from cudadoctor.model.record import NamedTuple

if TYPE_CHECKING:
    from cudadoctor.derive.case import Case

YES = "yes"
NO = "no"
UNCLEAR = "unclear"


def numbering(case: Case) -> str:
    """Whose driver numbers are meant: `windows` (also inside WSL, which the Windows driver serves) or `linux`."""
    if case.value("system.os") == "windows" or case.fact("system.wsl").is_known:
        return "windows"
    return "linux"


# In the order of trust. What only lies on disk (library, package) is not the driver at work.
_VERSION_FACTS: tuple[str, ...] = (
    "driver.nvml_version",
    "driver.smi_version",
    "driver.module_version",
    "driver.procfs_version",
)
# What somebody writes in an issue's form is believed last, and says nothing of whether the driver answers.
_TOLD = "driver.told_version"


def version_fact(case: Case) -> str:
    """The name of the fact that `version` was read from."""
    names: tuple[str, ...] = _VERSION_FACTS
    if case.fact("system.wsl").is_known:
        names = _VERSION_FACTS[:2]
    elif case.value("system.os") == "windows":
        names = (*_VERSION_FACTS[:2], "driver.windows_version")
    return next((name for name in (*names, _TOLD) if case.fact(name).is_known), names[0])


def version(case: Case) -> Fact[str]:
    """The version of the driver at work, from the most trusted source that tells it."""
    fact: Fact[str] = case.fact(version_fact(case))
    if fact.is_known:
        return fact
    if case.derived(answer).state == NO and not case.value("driver.module_loaded", False):
        return absent(fact.source)
    return unknown("no source tells the driver's version")


def cuda_ceiling(case: Case) -> Fact[str]:
    """The newest CUDA that the driver serves by itself: what it says, else what its branch is known to show.

    nvidia-smi and NVML show libcuda's number, which a container with newer CUDA libraries raises.
    """
    for name in ("driver.nvml_cuda", "driver.smi_cuda"):
        fact: Fact[str] = case.fact(name)
        if fact.is_known:
            return fact
    driver = case.derived(version)
    if driver.is_known:
        branch = case.matrix.branch_of(driver.get(), numbering(case))
        if branch is not None and branch.cuda:
            return known(branch.cuda, f"compat/driver_branches.toml, {branch.name}")
    return unknown("the driver's version is not known")


class Answer(NamedTuple):
    """Whether a driver answers: `yes`, `no` or `unclear`, why, and the facts behind it."""

    state: str
    reason: str
    evidence: tuple[str, ...]


# What a program says that finds no GPU: beside these, that torch once found one is no proof that it does.
IN_VAIN = (
    "symptom.cuda_unknown_error",
    "symptom.no_cuda_device",
    "symptom.no_cuda_gpus",
    "symptom.cuda_init_failed",
    "symptom.no_driver_found",
    "symptom.driver_too_old",
)


def cuda_works(case: Case) -> bool:
    """Whether a pasted report shows CUDA at work: torch found a GPU, and no program says that it did not. Then there is
    a driver, it answers, and it serves the CUDA that this torch was built with."""
    return (
        in_report(case)
        and case.value("torch.cuda_available") is True
        and not built_for_rocm(case)
        and not any(case.fact(name).is_known for name in IN_VAIN)
    )


def answer(case: Case) -> Answer:
    """Whether the driver answers, through NVML or nvidia-smi. That both were never asked is unclear.

    One of the two is enough: NVML's library may be missing or slow where nvidia-smi is fine, and the other way round.
    """
    stopped = case.value("driver.nvml_unresponsive", False)
    if case.fact("driver.nvml_version").is_known and not stopped:
        return Answer(YES, "NVML answers", ("driver.nvml_version",))
    if case.fact("driver.smi_version").is_known:
        return Answer(YES, "nvidia-smi answers", ("driver.smi_version",))
    if case.fact("driver.nvml_error").is_known:
        text = case.value("driver.nvml_error_text", "")
        return Answer(NO, f"NVML: {text or 'error'} ({case.value('driver.nvml_error')})", ("driver.nvml_error",))
    if case.fact("driver.smi_failure").is_known:
        text = case.value("driver.smi_failure_text") or case.value("driver.smi_failure")
        return Answer(NO, f"nvidia-smi: {text}", ("driver.smi_failure",))
    if stopped:
        # It told its version, perhaps, and then hung at a card.
        return Answer(NO, "NVML did not answer in time", ("driver.nvml_unresponsive",))
    if case.derived(cuda_works):
        return Answer(YES, "torch finds a GPU", ("torch.cuda_available",))
    if on_jetson(case):
        # Older Jetson releases have neither NVML nor nvidia-smi.
        if jetson_nodes(case) or nvidia_nodes(case):
            return Answer(
                YES, "a Jetson's driver is part of its system, and its device nodes are there", ("device.nodes",)
            )
        return Answer(UNCLEAR, "no device node of the Jetson's GPU is seen", ("device.nodes",))
    if case.fact("driver.nvml_library").is_absent and case.fact("driver.smi_path").is_absent:
        if any(entry.get("kind") in ("driver", "wsl") for entry in case.value("driver.libcuda", [])):
            # A container that was given the capability "compute" alone: CUDA works there.
            reason = "there is the driver's libcuda.so.1, and neither NVML nor nvidia-smi to ask"
            return Answer(UNCLEAR, reason, ("driver.libcuda", "driver.nvml_library", "driver.smi_path"))
        return Answer(NO, "there is neither an NVML library nor nvidia-smi", ("driver.nvml_library", "driver.smi_path"))
    return Answer(UNCLEAR, "neither NVML nor nvidia-smi could be asked", ("driver.nvml_version", "driver.smi_version"))
