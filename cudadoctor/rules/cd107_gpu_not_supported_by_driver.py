"""The driver does not support this GPU

What it checks
    Whether a loaded driver leaves out a card of the machine because the card is older than the driver's branch still
    serves, or newer than it knows.

Why it matters
    NVIDIA drops old GPUs from newer branches and adds new ones: a card outside of both ends is not found ("No devices
    were found"), however well the driver is installed.

How to fix
    For an old card, install the last branch that has it, and keep it from being updated beyond. For a new card,
    install a branch that knows it.

References
    https://www.nvidia.com/en-us/drivers/unix/legacy-gpu/
    https://docs.nvidia.com/datacenter/tesla/drivers/
"""

from __future__ import annotations

from cudadoctor.derive.driver import numbering, version, version_fact
from cudadoctor.derive.gpus import Gpu, gpus
from cudadoctor.derive.kernel_log import events
from cudadoctor.derive.surroundings import in_container, in_wsl
from cudadoctor.rules.api import CERTAIN, ERROR, LIKELY, MACHINE, WARNING, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD107",
    name="gpu-not-supported-by-driver",
    title="The driver does not support this GPU",
    severity=ERROR,
    blame=MACHINE,
    precedence=16,
)


def judge(case: Case) -> Outcome:
    if in_wsl(case) or in_container(case) or case.fact("system.jetson").is_known:
        return case.skipped("which cards the driver leaves out shows on the machine itself")
    found = case.derived(gpus)
    if not found:
        return case.skipped("no NVIDIA GPU is known to be here")
    # What NVML or nvidia-smi lists, the driver supports.
    left_out = [gpu for gpu in found if gpu.index is None]
    if not left_out:
        return case.passed("the driver lists every card", found[0].facts)
    legacy = events(case, "needs-legacy-driver")
    if legacy:
        branch = str(legacy[0].get("values", {}).get("branch", ""))
        return _too_old(case, left_out[0], f"R{branch}", CERTAIN, ("kernel.log_events", "pci.gpus"), _severity(found))
    driver = case.derived(version)
    if driver.is_absent:
        return case.skipped("no driver is at work")
    if not driver.is_known:
        return case.undecided("cannot tell the driver's version", (version_fact(case),))
    branch_row = case.matrix.branch_of(driver.get(), numbering(case))
    if branch_row is None:
        reason = f"driver {driver.get()} is of a branch that the matrix does not know"
        return case.undecided(reason, (version_fact(case),))
    evidence = (version_fact(case), *left_out[0].facts)
    for gpu in left_out:
        if not gpu.compute_capability.is_known:
            continue
        product = case.matrix.gpu_by_pci(gpu.pci_device_id).exact if gpu.pci_device_id else None
        last = case.matrix.last_branch_for(product or gpu.compute_capability.get())
        if last is not None and last.decisive and branch_row.linux > last.number:
            return _too_old(case, gpu, last.branch, LIKELY, evidence, _severity(found))
        first = case.matrix.first_branch_for(product or gpu.compute_capability.get())
        if first is not None and first.decisive and branch_row.linux < first.number:
            return case.failed(
                f"driver {driver.get()} is too old for the {gpu.label}: it needs branch {first.branch} or newer",
                evidence,
                certainty=LIKELY,
                severity=_severity(found),
                data={"first_branch": first.branch},
                fixes=(Remedy("update-driver", {"minimum_branch": first.number, "for": "gpu"}),),
            )
    return case.passed("nothing says that the branch leaves this card out", evidence)


def _severity(found: tuple[Gpu, ...]) -> str:
    """A card that is left out beside others that work is a warning: often an old one that only drives a screen."""
    return WARNING if any(gpu.index is not None for gpu in found) else ERROR


def _too_old(
    case: Case, gpu: Gpu, branch: str, certainty: str, evidence: tuple[str, ...], severity: str
) -> Outcome:
    return case.failed(
        f"the installed driver no longer supports the {gpu.label}: {branch} is the last branch that does",
        evidence,
        certainty=certainty,
        severity=severity,
        data={"last_branch": branch},
        fixes=(Remedy("install-driver", {"branch": int(branch[1:])} if branch[1:].isdigit() else {}),),
        not_helping=(f"a newer driver: support for this card ended with {branch}",),
    )
