"""Which NVIDIA GPUs are in the machine, out of all sources: NVML, nvidia-smi, `/proc`, the PCI bus, the registry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

from cudadoctor.derive.surroundings import built_for_rocm, in_report, jetson_nodes, nvidia_nodes, on_jetson
from cudadoctor.derive.symptoms import symptom
from cudadoctor.model import Fact, absent, known, unknown
from cudadoctor.model.catalogue import gpu_numbers
from cudadoctor.model.record import NamedTuple

if TYPE_CHECKING:
    from cudadoctor.derive.case import Case

PRESENT = "present"
NONE = "none"
UNCLEAR = "unclear"


class Gpu(NamedTuple):
    """One GPU as far as the sources tell. `facts` are the names of the facts that it was read from.

    `index` is NVML's (nvidia-smi's) number, None where neither answered; `memory` is in bytes; `name_is_cut` says that
    nvidia-smi cut the name off, so that it may stand for several products.
    """

    label: str
    compute_capability: Fact[str]
    memory: Fact[int]
    index: Optional[int]  # type: ignore[assignment]  # a field of this name hides the tuple's method
    pci_address: Optional[str]
    pci_device_id: Optional[str]
    bound_driver: Optional[str]
    lost: bool
    name_is_cut: bool
    facts: tuple[str, ...]


class Presence(NamedTuple):
    """Whether the machine has an NVIDIA GPU: `present`, `none` or `unclear`, why, and the facts behind it."""

    state: str
    reason: str
    evidence: tuple[str, ...]


# Drivers that hold a card for virtual machines: it is in the machine, and this system cannot use it.
LENT_TO_GUESTS = ("vfio-pci", "pci-stub", "pciback")

# NVML's reasons for lower clocks that a healthy card does not give: heat, and all. (An idle card clocks down, and one
# at work stays within its power limit.)
THERMAL = ("hw_thermal_slowdown", "sw_thermal_slowdown")
HELD_DOWN = ("hw_slowdown", *THERMAL, "hw_power_brake_slowdown")


def gpus(case: Case) -> tuple[Gpu, ...]:
    """The NVIDIA GPUs that this system could use, each once, in NVML's order where NVML answered.

    A card that only the PCI bus shows gets its name and compute capability from the matrix by its device id. Cards
    that are lent to virtual machines are left out.
    """
    found = _from_nvml(case)
    found = _told_by_both(found, _from_smi(case), case.fact("gpu.count").is_known) if found else _from_smi(case)
    on_bus = [_from_pci(case, entry) for entry in _pci_entries(case)]
    # NVML leaves out cards that it cannot use; they are in the machine all the same.
    rest = list(on_bus)
    for position, gpu in enumerate(found):
        same = next((card for card in on_bus if card.pci_address == gpu.pci_address), None)
        if same is not None:
            found[position] = _completed(gpu, same)
            rest = [card for card in rest if card is not same]
    # A lost card tells no address, and an old table cuts it off: as many cards of the bus are the same cards.
    for position, gpu in enumerate(found):
        if gpu.pci_address is None and rest:
            same = next((card for card in rest if card.label == gpu.label), rest[0])
            if same.label == gpu.label or len(rest) == 1:
                found[position] = _completed(gpu, same)
            rest = [card for card in rest if card is not same]
    found += rest
    if not found:
        found = _from_procfs(case) or _from_registry(case) or _told(case)
    return tuple(found)


def _told_by_both(found: list[Gpu], listed: list[Gpu], counted: bool) -> list[Gpu]:
    """NVML's GPUs with the names that only nvidia-smi's list has (it may have cut them), and, where nobody counted the
    GPUs, those that are in that list alone: a report may tell details of one GPU, and list all of them elsewhere."""
    by_index: dict[Optional[int], Gpu] = {gpu.index: gpu for gpu in listed if gpu.index is not None}
    for position, gpu in enumerate(found):
        other = by_index.pop(gpu.index, None)
        if other is None or gpu.label != f"GPU {gpu.index}" or other.label == gpu.label:
            continue
        found[position] = gpu._replace(
            label=other.label,
            name_is_cut=other.name_is_cut,
            compute_capability=gpu.compute_capability if gpu.compute_capability.is_known else other.compute_capability,
            memory=gpu.memory if gpu.memory.is_known else other.memory,
            pci_address=gpu.pci_address or other.pci_address,
            lost=gpu.lost or other.lost,
            facts=tuple(dict.fromkeys((*(name for name in gpu.facts if name != "gpu.count"), *other.facts))),
        )
    if counted:
        return found
    return sorted((*found, *by_index.values()), key=lambda gpu: gpu.index or 0)


def _pci_entries(case: Case) -> list[dict[str, Any]]:
    return [entry for entry in case.value("pci.gpus", []) if entry.get("driver") not in LENT_TO_GUESTS]


def _completed(gpu: Gpu, on_bus: Gpu) -> Gpu:
    """A card that NVML or nvidia-smi lists, with what they did not tell and the bus does."""
    capability = gpu.compute_capability if gpu.compute_capability.is_known else on_bus.compute_capability
    learned = capability is not gpu.compute_capability or gpu.pci_address is None
    return gpu._replace(
        label=on_bus.label if gpu.label == f"GPU {gpu.index}" else gpu.label,
        compute_capability=capability,
        pci_address=on_bus.pci_address,
        pci_device_id=gpu.pci_device_id or on_bus.pci_device_id,
        bound_driver=on_bus.bound_driver,
        facts=tuple(dict.fromkeys((*gpu.facts, *on_bus.facts))) if learned else gpu.facts,
    )


def presence(case: Case) -> Presence:
    """Whether there is an NVIDIA GPU at all. What nobody could look at stays unclear."""
    if case.value("request.gpu", False):
        return Presence(PRESENT, "a GPU was asked for", ("request.gpu",))
    here = case.derived(gpus)
    if here:
        return Presence(PRESENT, here[0].label, here[0].facts)
    nodes = case.derived(nvidia_nodes)
    if nodes:
        return Presence(PRESENT, f"{nodes[0]['path']} exists", ("device.nodes",))
    if case.derived(on_jetson):
        shown = "system.jetson" if case.fact("system.jetson").is_known else "system.kernel_release"
        return Presence(PRESENT, "a Jetson has its GPU on the chip", ("device.nodes" if jetson_nodes(case) else shown,))
    if case.fact("system.wsl").is_known:
        return _presence_in_wsl(case)
    os_name = case.value("system.os")
    if os_name == "darwin":
        return Presence(NONE, "macOS has no CUDA", ("system.os",))
    inventory = "windows.gpus" if os_name == "windows" else "pci.gpus"
    bus = case.fact(inventory)
    sign = _sign_of_a_driver(case)
    if sign:
        # A driver that runs was loaded for a card, whatever the bus shows of it.
        return Presence(UNCLEAR, "a driver is at work, and no source shows its GPU", (sign, inventory))
    if bus.is_known and bus.get() and inventory == "pci.gpus":
        holder = bus.get()[0].get("driver")
        return Presence(NONE, f"the NVIDIA GPU is held for virtual machines ({holder})", (inventory,))
    if bus.is_known:
        return Presence(NONE, "no NVIDIA display device among the machine's devices", (inventory,))
    if bus.is_absent and case.fact("driver.nvml_library").is_absent and not case.value("device.nodes", []):
        return Presence(NONE, "no PCI bus, no NVIDIA library and no NVIDIA device node", (inventory, "device.nodes"))
    if in_report(case) and not _speaks_of_nvidia(case):
        other = next((name for name in _OTHER_MACHINES if case.fact(name).is_known), None)
        if other is not None and not (other == _APPLE and _was_elsewhere(case)):
            return Presence(NONE, _OTHER_MACHINES[other], (other,))
    return Presence(UNCLEAR, bus.reason or "the machine's devices could not be listed", (inventory,))


_APPLE = "symptom.apple_machine_named"
_OTHER_MACHINES = {
    _APPLE: "the report is about a machine of Apple's, which has no CUDA",
    "symptom.other_gpu_named": "the report speaks of a GPU of another maker, and of none of NVIDIA's",
}


def _speaks_of_nvidia(case: Case) -> bool:
    """Whether a report shows anything of a driver of NVIDIA's."""
    if case.facts.under("driver") or case.fact("torch.cuda").is_known or case.fact("system.wsl").is_known:
        return True
    if "+cu" in str(case.value("torch.version") or "") or case.fact("toolkit.nvcc_on_path_version").is_known:
        return True
    return bool(case.value("torch.cuda_available", False)) and not built_for_rocm(case)


# What only programs built with CUDA say, and there are none for macOS.
_NOT_ON_A_MAC = ("no_driver_found", "driver_too_old", "driver_insufficient", "no_cuda_gpus", "cuda_unknown_error")


def _was_elsewhere(case: Case) -> bool:
    """Whether the machine of the report is none of Apple's, though one is named ("from my MacBook, over ssh")."""
    return case.fact("system.os").is_known or symptom(case, *_NOT_ON_A_MAC) is not None


def gpus_answer(case: Case) -> bool:
    """Whether NVML was asked on the machine itself and every GPU answered it."""
    numbers = gpu_numbers(case.facts)
    return bool(
        not in_report(case)
        and numbers
        and case.fact("driver.nvml_version").is_known
        and all(case.value(f"gpu.{number}.lost") is False for number in numbers)
    )


def expected(case: Case) -> Presence:
    """`presence`; a report that says nothing for or against a GPU is about one: somebody asks about its driver."""
    seen = case.derived(presence)
    if seen.state == UNCLEAR and in_report(case):
        return Presence(PRESENT, "the report is about one", ("examination.kind",))
    return seen


# NVML's codes for "no driver is loaded" and "no library": all others come from a driver that is there.
_NVML_WITHOUT_DRIVER = (9, 12)
_SMI_WITHOUT_DRIVER = ("no-driver", "no-library", "no-devices", "unreadable")


def _sign_of_a_driver(case: Case) -> str:
    """The name of a fact that shows a loaded driver, or an empty text."""
    if case.value("driver.nvml_unresponsive", False):
        return "driver.nvml_unresponsive"
    if case.fact("driver.nvml_error").is_known and case.value("driver.nvml_error") not in _NVML_WITHOUT_DRIVER:
        return "driver.nvml_error"
    if case.fact("driver.smi_failure").is_known and case.value("driver.smi_failure") not in _SMI_WITHOUT_DRIVER:
        return "driver.smi_failure"
    if case.value("driver.module_loaded", False):
        return "driver.module_loaded"
    # A library that was asked and said nothing yet: without a driver it says so at once.
    silent = case.fact("driver.nvml_version").is_unknown and case.fact("driver.nvml_error").is_unknown
    return "driver.nvml_library" if case.fact("driver.nvml_library").is_known and silent else ""


def _presence_in_wsl(case: Case) -> Presence:
    # WSL has no NVIDIA device on its bus: the card shows itself by the libraries that the Windows driver brings.
    libraries = case.fact("driver.libcuda")
    if any(entry.get("kind") == "wsl" for entry in case.value("driver.libcuda", [])):
        return Presence(PRESENT, "Windows' NVIDIA driver lends its libcuda to WSL", ("driver.libcuda",))
    if libraries.is_unknown:
        return Presence(UNCLEAR, libraries.reason, ("driver.libcuda",))
    reason = "WSL gets it from Windows' driver, whose libraries are not here"
    return Presence(UNCLEAR, reason, ("system.wsl", "driver.libcuda"))


# -- one source each ----------------------------------------------------------------------------------------------


def _from_nvml(case: Case) -> list[Gpu]:
    found = []
    for index in gpu_numbers(case.facts):
        prefix = f"gpu.{index}."
        name = case.value(prefix + "name")
        address = case.value(prefix + "pci_address")
        device_id = case.value(prefix + "pci_device_id")
        capability: Fact[str] = case.fact(prefix + "compute_capability")
        memory: Fact[int] = case.fact(prefix + "memory_total")
        if not capability.is_known:
            capability = _capability_by_matrix(case, name, device_id) or capability
        found.append(
            Gpu(
                label=name or f"GPU {index}",
                compute_capability=capability,
                memory=memory,
                index=index,
                pci_address=address,
                pci_device_id=device_id,
                bound_driver=None,
                lost=bool(case.value(prefix + "lost", False)),
                name_is_cut=False,
                facts=tuple(
                    prefix + key for key in ("name", "compute_capability") if not case.fact(prefix + key).is_unknown
                )
                or ("gpu.count",),
            )
        )
    return found


def _from_smi(case: Case) -> list[Gpu]:
    source = case.fact("smi.gpus").source or "nvidia-smi"
    found = []
    for entry in case.value("smi.gpus", []):
        name = entry.get("name")
        cut = bool(entry.get("truncated"))
        stated = entry.get("compute_capability")
        capability: Optional[Fact[str]] = known(stated, source) if stated else None
        if capability is None and name and not cut:
            capability = _capability_by_matrix(case, name, None)
        memory = entry.get("memory_total")
        found.append(
            Gpu(
                label=name or f"GPU {entry.get('index', '?')}",
                compute_capability=capability or unknown("nvidia-smi does not tell the compute capability", source),
                memory=known(memory, source) if memory else unknown("nvidia-smi does not tell the memory", source),
                index=entry.get("index"),
                pci_address=entry.get("address"),
                pci_device_id=None,
                bound_driver=None,
                lost=bool(entry.get("lost")),
                name_is_cut=cut,
                facts=("smi.gpus",),
            )
        )
    return found


def _told(case: Case) -> list[Gpu]:
    """What somebody writes in an issue's form. No driver lists these, so they have no number."""
    return [
        Gpu(
            label=name,
            compute_capability=_capability_by_matrix(case, name, None) or unknown("no table knows this name"),
            memory=unknown("nobody tells the memory"),
            index=None,
            pci_address=None,
            pci_device_id=None,
            bound_driver=None,
            lost=False,
            name_is_cut=False,
            facts=("gpu.told",),
        )
        for name in case.value("gpu.told", [])
    ]


def _from_pci(case: Case, entry: dict[str, Any]) -> Gpu:
    device_id = entry.get("device_id")
    label = _label_by_id(case, device_id)
    return Gpu(
        label=label,
        compute_capability=_capability_by_matrix(case, None, device_id)
        or unknown(f"the matrix does not know PCI id 10de:{device_id}", "pci.gpus"),
        memory=absent("pci.gpus"),
        index=None,
        pci_address=entry.get("address"),
        pci_device_id=device_id,
        bound_driver=entry.get("driver"),
        lost=False,
        name_is_cut=False,
        facts=("pci.gpus",),
    )


def _label_by_id(case: Case, device_id: Optional[str]) -> str:
    if not device_id:
        return "NVIDIA GPU"
    product = case.matrix.gpu_by_pci(device_id).exact
    return f"NVIDIA {product.name}" if product is not None else f"NVIDIA GPU (PCI id 10de:{device_id})"


def _from_procfs(case: Case) -> list[Gpu]:
    entries = case.value("procfs.gpus", [])
    return [_by_name(case, entry.get("model"), "procfs.gpus", entry.get("address")) for entry in entries]


def _from_registry(case: Case) -> list[Gpu]:
    return [
        # A card that no driver of NVIDIA's serves goes by the name of Windows' own adapter.
        _by_name(
            case,
            None if str(entry.get("name")).startswith("Microsoft") else entry.get("name"),
            "windows.gpus",
            None,
            entry.get("device_id"),
        )
        for entry in case.value("windows.gpus", [])
        if str(entry.get("vendor_id", "")).lower() == "10de" or "nvidia" in str(entry.get("name", "")).lower()
    ]


def _by_name(
    case: Case, name: Optional[str], fact: str, address: Optional[str], device_id: Optional[str] = None
) -> Gpu:
    return Gpu(
        label=name or _label_by_id(case, device_id),
        compute_capability=_capability_by_matrix(case, name, device_id)
        or unknown("the matrix does not know this name", fact),
        memory=absent(fact),
        index=None,
        pci_address=address,
        pci_device_id=device_id,
        bound_driver=None,
        lost=False,
        name_is_cut=False,
        facts=(fact,),
    )


def _capability_by_matrix(case: Case, name: Optional[str], device_id: Optional[str]) -> Optional[Fact[str]]:
    """The compute capability that every product of this id (else name) has, or None where they differ."""
    if device_id:
        by_id = case.matrix.gpu_by_pci(device_id)
        if by_id.capability is not None:
            return known(by_id.capability, f"compat/gpus.toml, PCI id 10de:{device_id}")
    if name:
        by_name = case.matrix.gpu(name)
        if by_name.capability is not None:
            return known(by_name.capability, f"compat/gpus.toml, {name}")
    return None
