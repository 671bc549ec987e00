"""What is compared between nodes: one short text a trait, out of the facts of a snapshot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Callable, Optional

from cudadoctor.derive.gpus import HELD_DOWN
from cudadoctor.fleet.model import Traits
from cudadoctor.model.catalogue import MOST_GPUS, fits, spec_of
from cudadoctor.model.fact import ABSENT, KNOWN
from cudadoctor.model.record import NamedTuple

# A kind of nodes that is told by the cards' ids on the PCI bus begins with this word.
BY_BUS = "pci"

# The same few hundred names are asked for in each of thousands of documents.
_spec_of = lru_cache(maxsize=1 << 14)(spec_of)


class Entries:
    """The facts of a document as it has them (`{"state": ..., "value": ...}` by name). What is not as the catalogue
    says is unknown here: a document of a later version, or one that somebody has edited."""

    def __init__(self, entries: Mapping[str, Any]) -> None:
        self._entries = entries

    def names(self) -> Iterable[str]:
        return self._entries

    def value(self, name: str) -> Any:
        entry = self._entries.get(name)
        if type(entry) is not dict or entry.get("state") != KNOWN:
            return None
        value = entry.get("value")
        spec = _spec_of(name)
        return value if spec is not None and fits(spec, value) else None

    def is_absent(self, name: str) -> bool:
        entry = self._entries.get(name)
        return type(entry) is dict and entry.get("state") == ABSENT

    def first(self, *names: str) -> Any:
        return next((value for value in map(self.value, names) if value is not None), None)

    @property
    def gpus(self) -> range:
        count = self.value("gpu.count")
        return range(max(0, min(count, MOST_GPUS))) if count is not None else range(0)

    @property
    def none_listed(self) -> Optional[str]:
        return "none" if self.value("gpu.count") == 0 else None

    def of_gpus(self, part: str, say: Callable[[Any], str], none: str = "") -> Optional[str]:
        """One text for a fact of all GPUs: the values that occur, the most frequent first. What is not known of a GPU
        (a lost one, say) is left out. `none`: what an absent fact means; empty: nothing that could be compared."""
        counted: dict[str, int] = {}
        for n in self.gpus:
            name = f"gpu.{n}.{part}"
            value = self.value(name)
            text = say(value) if value is not None else none if none and self.is_absent(name) else ""
            if text:
                counted[text] = counted.get(text, 0) + 1
        if len(counted) < 2:
            return next(iter(counted), None)
        ordered = sorted(counted.items(), key=lambda item: (-item[1], item[0]))
        return ", ".join(f"{count}x {text}" for text, count in ordered)


class Trait(NamedTuple):
    """`key` is its name in documents, `label` the one for people; `read` gives its text, None where it is unknown;
    `should_be_alike`: nodes that are set up in the same way have it in common."""

    key: str
    label: str
    read: Callable[[Entries], Optional[str]]
    should_be_alike: bool = True


def _text(*names: str, none: str = "") -> Callable[[Entries], Optional[str]]:
    def read(entries: Entries) -> Optional[str]:
        value = entries.first(*names)
        if value is not None:
            return str(value)
        return none if none and entries.is_absent(names[0]) else None

    return read


def _gpus(part: str, say: Callable[[Any], str] = str, none: str = "") -> Callable[[Entries], Optional[str]]:
    return lambda entries: entries.of_gpus(part, say, none)


def _gib(value: int) -> str:
    gib = value / (1 << 30)
    return f"{gib:.0f} GiB" if gib >= 10 else f"{gib:.1f} GiB"


def _on(value: bool) -> str:
    return "on" if value else "off"


def _gpu_names(entries: Entries) -> Optional[str]:
    """The GPUs that NVML lists; a lost one tells no name."""
    counted: dict[str, int] = {}
    for n in entries.gpus:
        name = entries.value(f"gpu.{n}.name") or "GPU without a name"
        counted[name] = counted.get(name, 0) + 1
    return ", ".join(f"{count}x {name}" for name, count in sorted(counted.items())) or entries.none_listed


def _nccl(entries: Entries) -> Optional[str]:
    """NCCL's version, by the package that brings it (nvidia-nccl-cu12, nvidia-nccl-cu13)."""
    names = [name for name in entries.names() if name.startswith("package.nvidia-nccl-") and name.endswith(".version")]
    return ", ".join(sorted({str(value) for value in map(entries.value, names) if value is not None})) or None


def _firmware(entries: Entries) -> Optional[str]:
    """The GPUs' GSP firmware, by /proc/driver/nvidia/gpus."""
    found = [entry.get("firmware") for entry in entries.value("procfs.gpus") or ()]
    return ", ".join(sorted({text for text in found if isinstance(text, str)})) or None


def _mig(entries: Entries) -> Optional[str]:
    mode = entries.of_gpus("mig_mode", _on)
    if mode is None or mode == "off":
        return mode
    devices = entries.of_gpus("mig_devices", str)
    return f"{mode}, {devices} devices a GPU" if devices is not None else mode


def _slowed(reasons: list[str]) -> str:
    return " and ".join(reason.replace("_", " ") for reason in HELD_DOWN if reason in reasons) or "no"


def _memory(entries: Entries) -> Optional[str]:
    """The machine's memory in steps of some percent: the kernel takes away a little more or less."""
    total = entries.value("memory.total")
    if total is None or total <= 0:
        return None
    gib = total / (1 << 30)
    step = max(1, 1 << max(0, int(gib).bit_length() - 4))
    return f"about {round(gib / step) * step} GiB"


TRAITS: tuple[Trait, ...] = (
    Trait("gpus", "GPUs", _gpu_names),
    Trait(
        "driver",
        "driver",
        _text("driver.module_version", "driver.procfs_version", "driver.nvml_version", "driver.smi_version"),
    ),
    Trait("module", "kernel module", _text("driver.module_flavour")),
    Trait("torch", "torch", _text("torch.version", none="none")),
    Trait("cuda", "CUDA of torch", _text("torch.cuda", none="none")),
    Trait("nccl", "NCCL", _nccl),
    Trait("python", "Python", _text("python.version")),
    Trait("kernel", "kernel", _text("system.kernel_release")),
    Trait("distribution", "distribution", _text("system.distribution_name")),
    Trait("glibc", "glibc", _text("system.glibc")),
    Trait("firmware", "GPU firmware", _firmware),
    Trait("gpu_memory", "GPU memory", _gpus("memory_total", _gib)),
    Trait("ecc", "ECC", _gpus("ecc_mode", _on, "none")),
    Trait("mig", "MIG", _mig),
    Trait("persistence", "persistence mode", _gpus("persistence_mode", _on)),
    Trait("compute_mode", "compute mode", _gpus("compute_mode")),
    Trait("clock_max", "highest SM clock", _gpus("clock_sm_max", "{} MHz".format)),
    Trait("power_limit", "power limit", _gpus("power_limit", "{:.0f} W".format)),
    Trait("pcie_generation", "PCIe generation", _gpus("pcie_generation_max")),
    Trait("pcie_width", "PCIe lanes", _gpus("pcie_width_max")),
    Trait("fabric_manager", "fabric manager", _text("driver.fabric_manager", none="not installed")),
    Trait("imex", "IMEX service", _text("driver.imex", none="not installed")),
    Trait("fabric", "NVLink fabric", _gpus("fabric_state"), False),
    Trait("memory", "memory", _memory),
    Trait("memlock", "lockable memory", _text("limits.memlock", none="unlimited")),
    Trait("slowed", "clocks held down", _gpus("throttle_reasons", _slowed), False),
    Trait("ecc_errors", "uncorrected ECC errors", _gpus("ecc_uncorrected"), False),
    Trait("retired_pending", "page retirement pending", _gpus("retired_pending", _on), False),
    Trait("remap_pending", "row remapping pending", _gpus("remap_pending", _on), False),
    Trait("remap_failure", "row remapping failed", _gpus("remap_failure", _on), False),
)


def traits_of(facts: Mapping[str, Any]) -> Traits:
    """What is compared of the node whose facts a document holds."""
    entries = Entries(facts)
    kind, label = _kind(entries)
    return Traits(kind, label, tuple(trait.read(entries) for trait in TRAITS))


def _kind(entries: Entries) -> tuple[str, str]:
    """The GPU models of a node. The bus tells them even where no driver does; Windows and WSL show no bus."""
    names = sorted({str(name) for n in entries.gpus if (name := entries.value(f"gpu.{n}.name")) is not None})
    label = " and ".join(names)
    cards = {str(entry.get("device_id")) for entry in entries.value("pci.gpus") or () if entry.get("device_id")}
    if cards:
        return f"{BY_BUS} {' '.join(sorted(cards))}", label
    if entries.value("pci.gpus") == [] and not names:
        return "no GPU", "no GPU"
    return ("name " + label, label) if names else ("unknown", "GPUs unknown")
