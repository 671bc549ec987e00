"""Cards that are on the PCI bus and that the driver does not list, each with the reason that the facts give."""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional

from cudadoctor.derive.driver import numbering, version, version_fact
from cudadoctor.derive.gpus import Gpu, gpus
from cudadoctor.derive.kernel_log import events
from cudadoctor.derive.surroundings import in_container, in_job
from cudadoctor.model.record import NamedTuple

if TYPE_CHECKING:
    from cudadoctor.derive.case import Case
    from cudadoctor.matrix import DriverBound
    from cudadoctor.matrix import Gpu as Product

OTHER_DRIVER = "other-driver"  # another driver holds it, as a rule for a screen
NOT_GIVEN = "not-given"  # a container or a job is given some cards of a machine
EXCLUDED = "excluded"  # by a setting of the driver
VIRTUAL = "virtual-function"  # a part of a card that the driver lists
TOO_OLD = "too-old"  # the driver's branch no longer serves it
TOO_NEW = "too-new"  # the driver does not know it yet
NEEDS_OPEN = "needs-open"
NEEDS_PROPRIETARY = "needs-proprietary"
UNEXPLAINED = "unexplained"

# With these, nothing is wrong.
BY_DESIGN = (OTHER_DRIVER, NOT_GIVEN, EXCLUDED, VIRTUAL)

_OF_THE_LOG = (
    ("needs-legacy-driver", TOO_OLD),
    ("needs-open-module", NEEDS_OPEN),
    ("needs-proprietary-module", NEEDS_PROPRIETARY),
)


class LeftOut(NamedTuple):
    """A card that the driver does not list. `by_log`: the kernel log says so itself; `branch`: for TOO_OLD the last
    branch that serves it, for TOO_NEW the first; `evidence`: names of facts."""

    gpu: Gpu
    why: str
    by_log: bool
    branch: Optional[str]
    evidence: tuple[str, ...]


def listed(case: Case) -> tuple[Gpu, ...]:
    """The cards that NVML or nvidia-smi lists."""
    return tuple(gpu for gpu in case.derived(gpus) if gpu.index is not None)


def left_out(case: Case) -> tuple[LeftOut, ...]:
    """The cards that only the bus shows, in its order."""
    return tuple(_why(case, gpu) for gpu in case.derived(gpus) if gpu.index is None and gpu.pci_address is not None)


def within_reach(case: Case) -> tuple[Gpu, ...]:
    """The GPUs that a program here could be given: all, less those that are left out by design or that the driver's
    branch no longer serves while it serves others."""
    if not case.derived(listed):
        return case.derived(gpus)
    out_of_reach = {entry.gpu.pci_address for entry in case.derived(left_out) if entry.why in (*BY_DESIGN, TOO_OLD)}
    return tuple(gpu for gpu in case.derived(gpus) if gpu.index is not None or gpu.pci_address not in out_of_reach)


def _why(case: Case, gpu: Gpu) -> LeftOut:
    if gpu.bound_driver not in (None, "nvidia"):
        return LeftOut(gpu, OTHER_DRIVER, False, None, ("pci.gpus",))
    if in_container(case) or (in_job(case) and case.derived(listed)):
        return LeftOut(gpu, NOT_GIVEN, False, None, ("pci.gpus",))
    if any(
        entry.get("excluded") and entry.get("address") == gpu.pci_address for entry in case.value("procfs.gpus", [])
    ):
        return LeftOut(gpu, EXCLUDED, False, None, ("procfs.gpus",))
    slot = str(gpu.pci_address).rpartition(":")[0]
    if any(str(other.pci_address).rpartition(":")[0] == slot for other in case.derived(listed) if other.pci_address):
        return LeftOut(gpu, VIRTUAL, False, None, ("pci.gpus",))
    return _by_log(case, gpu) or _by_branch(case, gpu) or _by_flavour(case, gpu) or _unexplained(gpu)


def _unexplained(gpu: Gpu) -> LeftOut:
    return LeftOut(gpu, UNEXPLAINED, False, None, gpu.facts)


def _by_log(case: Case, gpu: Gpu) -> Optional[LeftOut]:
    for kind, why in _OF_THE_LOG:
        for event in events(case, kind):
            # A line without an address is about this card where it is the only one.
            place = event.get("bus_id")
            if place == gpu.pci_address or (place is None and len(case.derived(gpus)) == 1):
                branch = (event.get("values") or {}).get("branch")
                return LeftOut(gpu, why, True, f"R{branch}" if branch else None, ("kernel.log_events", *gpu.facts))
    return None


def _product(case: Case, gpu: Gpu) -> Optional[Product]:
    return case.matrix.gpu_by_pci(gpu.pci_device_id).exact if gpu.pci_device_id else None


def _by_branch(case: Case, gpu: Gpu) -> Optional[LeftOut]:
    driver = case.derived(version)
    if not driver.is_known:
        return None
    branch = case.matrix.branch_of(driver.get(), case.derived(numbering))
    subject = _product(case, gpu) or gpu.compute_capability.value
    if branch is None or subject is None:
        return None
    evidence = (case.derived(version_fact), *gpu.facts)
    last: Optional[DriverBound] = case.matrix.last_branch_for(subject)
    if last is not None and last.decisive and branch.linux > last.number:
        return LeftOut(gpu, TOO_OLD, False, last.branch, evidence)
    first: Optional[DriverBound] = case.matrix.first_branch_for(subject)
    if first is not None and first.decisive and branch.linux < first.number:
        return LeftOut(gpu, TOO_NEW, False, first.branch, evidence)
    return None


def _by_flavour(case: Case, gpu: Gpu) -> Optional[LeftOut]:
    flavour = case.fact("driver.module_flavour")
    needed = flavour_needed(case, gpu)
    if not flavour.is_known or needed is None or needed == flavour.get():
        return None
    why = NEEDS_OPEN if needed == "open" else NEEDS_PROPRIETARY
    return LeftOut(gpu, why, False, None, ("driver.module_flavour", *gpu.facts))


def flavour_needed(case: Case, gpu: Gpu) -> Optional[str]:
    """`open` or `proprietary` where the card works with that kernel module only."""
    product = _product(case, gpu)
    if product is not None and product.modules is not None and "modules" not in product.guessed:
        return str(product.modules) if product.modules in ("open", "proprietary") else None
    if gpu.compute_capability.is_known:
        architecture = case.matrix.architecture(gpu.compute_capability.get())
        if architecture is not None and architecture.modules in ("open", "proprietary"):
            return str(architecture.modules)
    return None
