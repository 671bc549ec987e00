"""The chain GPU - driver - wheel - Python - toolkit - system: which checks and facts make up each of its lines.

`CHAIN` is the whole table. The three steps behind `torch.cuda.is_available()` are lines of their own: does nvidia-smi
answer (`smi`), does the driver serve this build's CUDA (`CUDA`), is it a build with CUDA at all (`wheel`).
"""

from __future__ import annotations

from typing import Any, Callable, Optional

from cudadoctor.model import Fact, Facts
from cudadoctor.model.catalogue import gpu_numbers
from cudadoctor.model.record import NamedTuple

GIB = 1 << 30


class Described(NamedTuple):
    """What a link is on this machine, and where that was read."""

    text: str
    source: str


Describe = Callable[[Facts], Optional[Described]]


class Link(NamedTuple):
    """One line. `rules` decide its word, the worst of them; those of `beside` only where they found something: that
    they did not makes nothing fine. `missing`: what is not there is not ok, whichever rules passed. `facts` gives its
    text, and the first rule's message does where that is None. `pass_says`: a passing rule explains more than the
    facts, so its message is the text then. `quiet`: shown only where one of its rules found something. `answers`: the
    facts alone say ok or not, and the rules only whether a no is a fault."""

    label: str
    rules: tuple[str, ...]
    facts: Optional[Describe] = None
    beside: tuple[str, ...] = ()
    missing: Optional[Callable[[Facts], bool]] = None
    pass_says: bool = False
    quiet: bool = False
    answers: Optional[Callable[[Facts], Optional[bool]]] = None


# -- pieces ---------------------------------------------------------------------------------------------------------


def size(value: int) -> str:
    """Bytes for people, in binary units."""
    for unit, name in ((1 << 40, "TiB"), (GIB, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if value >= unit:
            number = value / unit
            # A card of 24 GiB holds back some MiB for itself: whole numbers, unless that would hide much.
            whole = number >= 10 or abs(number - round(number)) < 0.05
            return f"{number:.0f} {name}" if whole else f"{number:.1f} {name}"
    return f"{value} bytes"


def sm(capability: str) -> str:
    """`8.9` as `sm_89`."""
    return "sm_" + capability.replace(".", "")


def _first_known(facts: Facts, *names: str) -> Optional[Fact[Any]]:
    return next((facts[name] for name in names if facts[name].is_known), None)


def _grouped(texts: list[str]) -> str:
    """Equal neighbours counted: `2x NVIDIA A100; NVIDIA T4`."""
    counted: list[tuple[str, int]] = []
    for text in texts:
        if counted and counted[-1][0] == text:
            counted[-1] = (text, counted[-1][1] + 1)
        else:
            counted.append((text, 1))
    return "; ".join(f"{count}x {text}" if count > 1 else text for text, count in counted)


def _gpu(*parts: Optional[str]) -> str:
    return ", ".join(part for part in parts if part)


def _named(facts: Facts) -> tuple[list[str], str]:
    """Product names by the best source other than NVML and nvidia-smi, and that source."""
    models = [str(entry["model"]) for entry in facts.value("procfs.gpus", []) if entry.get("model")]
    if models:
        return models, facts["procfs.gpus"].source
    names = []
    for entry in facts.value("windows.gpus", []):
        name = str(entry.get("name") or "display adapter")
        if entry.get("vendor_id") == "10de" or "NVIDIA" in name:
            # Without NVIDIA's driver Windows calls every card by the name of its own.
            names.append(name if "NVIDIA" in name else f"{name} (10de:{entry.get('device_id')})")
    if not names and facts["gpu.told"].is_known:
        return list(facts["gpu.told"].get()), facts["gpu.told"].source
    return names, facts["windows.gpus"].source


def _listed_name(facts: Facts, number: int) -> Optional[str]:
    """The name of NVML's GPU `number`, else what nvidia-smi's list has of it."""
    entries = (entry for entry in facts.value("smi.gpus", []) if entry.get("index") == number)
    return facts.value(f"gpu.{number}.name") or _with_its_dots(next(entries, {}))


def _with_its_dots(entry: dict[str, Any]) -> Optional[str]:
    """A name of nvidia-smi's table; one that is cut off ends in dots."""
    name = entry.get("name")
    return f"{name}..." if name and entry.get("truncated") and not str(name).endswith("...") else name


def gpu_names(facts: Facts) -> list[str]:
    """The GPUs' product names, by the best source there is; empty where none is known."""
    numbers = gpu_numbers(facts)
    if numbers:
        return [_listed_name(facts, n) or "GPU" for n in numbers]
    return [str(entry["name"]) for entry in facts.value("smi.gpus", []) if entry.get("name")] or _named(facts)[0]


def driver_version(facts: Facts) -> Optional[Fact[Any]]:
    """The driver's version by the best source: the loaded module before programs, these before the registry."""
    return _first_known(
        facts,
        "driver.module_version",
        "driver.procfs_version",
        "driver.nvml_version",
        "driver.smi_version",
        "driver.windows_version",
        "driver.told_version",
    )


# -- links ------------------------------------------------------------------------------------------------------------


def _gpus(facts: Facts) -> Optional[Described]:
    numbers = gpu_numbers(facts)
    if numbers:
        texts = []
        for n in numbers:
            memory = facts.value(f"gpu.{n}.memory_total")
            capability = facts.value(f"gpu.{n}.compute_capability")
            texts.append(
                _gpu(
                    _listed_name(facts, n) or f"GPU {n}",
                    size(memory) if memory else None,
                    sm(capability) if capability else None,
                    "LOST" if facts.value(f"gpu.{n}.lost") else None,
                )
            )
        return Described(_grouped(texts), facts["gpu.0.name"].source or facts["gpu.count"].source)
    entries = facts.value("smi.gpus", [])
    if entries:
        texts = []
        for entry in entries:
            memory, capability = entry.get("memory_total"), entry.get("compute_capability")
            name = _with_its_dots(entry) or "GPU"
            texts.append(_gpu(name, size(memory) if memory else None, sm(capability) if capability else None))
        return Described(_grouped(texts), facts["smi.gpus"].source)
    names, source = _named(facts)
    if names:
        return Described(_grouped(names), source)
    # WSL shows no device of the host's on its own bus.
    if facts["pci.gpus"].is_known and not facts["system.wsl"].is_known:
        return Described(_on_the_bus(facts["pci.gpus"].get()), facts["pci.gpus"].source)
    return None


def _on_the_bus(entries: list[dict[str, Any]]) -> str:
    if not entries:
        return "no NVIDIA GPU on the PCI bus"
    return _grouped([f"NVIDIA device {_number(entry)}{_bound(entry)}" for entry in entries])


def _number(entry: dict[str, Any]) -> str:
    return f"10de:{entry['device_id']}" if entry.get("device_id") else "on the PCI bus"


def _bound(entry: dict[str, Any]) -> str:
    """A plain lspci does not say which driver holds a card."""
    if "driver" not in entry:
        return ""
    return f", used by {entry['driver']}" if entry["driver"] else ", no driver bound"


def named_on_the_bus(facts: Facts, names: str) -> Optional[Described]:
    """Cards that only the bus shows, by the `names` that their ids have in the compatibility data."""
    described = _gpus(facts)
    if described is None or not described.text.startswith("NVIDIA device "):
        return described
    bound = " or".join(dict.fromkeys(_bound(entry).replace(",", "") for entry in facts["pci.gpus"].get()))
    return Described(f"{names},{bound}" if bound else names, described.source)


_KERNEL_SAYS = (
    ("kernel.secure_boot", "Secure Boot is on"),
    ("kernel.nvidia_blacklisted_by", "nvidia is blacklisted"),
)


def _kernel(facts: Facts) -> Optional[Described]:
    release = facts["system.kernel_release"]
    if not release.is_known:
        return None
    modules = facts.value("kernel.modules", [])
    parts = [str(release.get())]
    parts += [f"{module} is loaded" for module in ("nouveau", "nvidia") if module in modules]
    parts += [says for name, says in _KERNEL_SAYS if facts.value(name)]
    if facts.value("kernel.headers") is False:
        parts.append("no headers for it")
    return Described(", ".join(parts), release.source)


def _driver(facts: Facts) -> Optional[Described]:
    version = driver_version(facts)
    if version is None:
        loaded = facts["driver.module_loaded"]
        if loaded.is_known and not loaded.get() and facts["system.wsl"].value != 2:
            return Described("no nvidia kernel module is loaded", loaded.source)
        return None
    text = str(version.get())
    flavour = facts.value("driver.module_flavour")
    if flavour:
        text += f", {flavour} kernel module"
    library = facts.value("driver.library_version") or facts.value("driver.nvml_library_version")
    if library and facts.value("driver.module_version") and library != text.partition(",")[0]:
        text += f"; user-space library {library}"
    return Described(text, version.source)


def _no_driver(facts: Facts) -> bool:
    return driver_version(facts) is None and facts["driver.module_loaded"].value is False


def _ceiling(facts: Facts) -> Optional[Fact[Any]]:
    return _first_known(facts, "driver.smi_cuda", "driver.nvml_cuda")


def _smi(facts: Facts) -> Optional[Described]:
    failure = facts["driver.smi_failure"]
    if failure.is_known:
        said = facts.value("driver.smi_failure_text")
        if failure.get() == "timed-out":
            return Described("nvidia-smi did not end in time", failure.source)
        return Described(f"nvidia-smi fails: {said or failure.get()}", failure.source)
    if facts["driver.smi_path"].is_absent:
        return Described("no nvidia-smi on PATH or in its usual places", facts["driver.smi_path"].source)
    answered = facts["driver.smi_version"]
    if not answered.is_known:
        return None
    text = "nvidia-smi answers"
    ceiling = facts.value("driver.smi_cuda")
    if ceiling:
        # The commonest misreading of that table, so it is said where people look for the number.
        text += f'; its "CUDA Version: {ceiling}" is the newest CUDA that the driver serves, not an installed one'
    return Described(text, answered.source)


def _smi_answers(facts: Facts) -> Optional[bool]:
    if facts["driver.smi_failure"].is_known or facts["driver.smi_path"].is_absent:
        return False
    return True if facts["driver.smi_version"].is_known else None


def _serves(facts: Facts) -> Optional[Described]:
    built, version, ceiling = facts["torch.cuda"], driver_version(facts), _ceiling(facts)
    if not built.is_known or version is None:
        return None
    text = f"torch is built with CUDA {built.get()}, driver {version.get()}"
    return Described(text + (f" serves up to {ceiling.get()}" if ceiling else ""), (ceiling or version).source)


def _wheel(facts: Facts) -> Optional[Described]:
    version = facts["torch.version"]
    if version.is_absent:
        return Described("no torch in this environment", version.source)
    if not version.is_known:
        return None
    text = f"torch {version.get()}"
    cuda = facts["torch.cuda"]
    if cuda.is_known:
        text += f", built with CUDA {cuda.get()}"
    elif cuda.is_absent:
        hip = facts.value("torch.hip")
        text += f", built with ROCm {hip}" if hip else ", a build without CUDA"
    return Described(text, version.source)


def _code(facts: Facts) -> Optional[Described]:
    sass = facts["torch.sass"]
    if not sass.is_known:
        return None
    names = [name[3:] if name.startswith("sm_") else name for name in sass.get()]
    text = "the wheel has code for " + ("sm_" + " ".join(names) if names else "no GPU")
    ptx = facts["torch.ptx"]
    if ptx.is_known:
        text += ", PTX for " + " ".join(ptx.get()) if ptx.get() else ", no PTX"
    capabilities = [facts.value(f"gpu.{n}.compute_capability") for n in gpu_numbers(facts)]
    here = sorted({sm(capability) for capability in capabilities if capability})
    if here:
        text += f"; here: {' '.join(here)}"
    return Described(text, sass.source)


def _python(facts: Facts) -> Optional[Described]:
    version = facts["python.version"]
    if not version.is_known:
        return None
    kind, name = facts.value("python.environment"), facts.value("python.environment_name")
    place = " ".join(part for part in (kind, name if name != kind else None) if part)
    text = str(version.get()) + (f" ({place})" if place else "")
    if facts.value("python.bits") == 32:
        text += ", 32-bit"
    if facts.value("python.free_threaded"):
        text += ", free-threaded"
    if facts["system.glibc"].is_known:
        text += f", glibc {facts['system.glibc'].get()}"
    return Described(text, str(facts.value("python.executable") or version.source))


def _toolkit(facts: Facts) -> Optional[Described]:
    version = facts["toolkit.nvcc_on_path_version"]
    if version.is_known:
        path = facts["toolkit.nvcc_on_path"]
        return Described(f"nvcc {version.get()}; used only to build extensions", str(path.value or version.source))
    found = [entry for entry in facts.value("toolkit.found", []) if entry.get("version")]
    if found:
        versions = ", ".join(sorted({str(entry["version"]) for entry in found}))
        return Described(f"CUDA toolkit {versions}, its nvcc not on PATH", str(found[0].get("root") or ""))
    return None


def _system(facts: Facts) -> Optional[Described]:
    name = _first_known(facts, "system.distribution_name", "system.distribution", "system.os")
    if name is None:
        return None
    parts = [str(name.get())]
    if facts["system.wsl"].is_known:
        parts.append(f"WSL{facts['system.wsl'].get()}")
    container = facts["system.container"]
    if container.is_known:
        parts.append(f"{container.get()} container")
    if facts["system.arch"].is_known:
        parts.append(str(facts["system.arch"].get()))
    if facts["memory.total"].is_known:
        parts.append(f"{size(facts['memory.total'].get())} RAM")
    swap = facts["memory.swap_total"]
    if any(entry.get("mode") == "system-managed" for entry in facts.value("memory.page_file", [])):
        parts.append("automatic page file")
    elif swap.is_known:
        kind = "page file" if facts.value("system.os") == "windows" else "swap"
        parts.append(f"{size(swap.get())} {kind}" if swap.get() else f"no {kind}")
    return Described(", ".join(parts), name.source)


# Failures of these leave nvidia-smi without an answer.
_DRIVER_RULES = ("CD101", "CD105", "CD106", "CD107", "CD109", "CD110", "CD111")
_KERNEL_RULES = ("CD102", "CD103", "CD104", "CD108")

CHAIN: tuple[Link, ...] = (
    Link("GPU", ("CD501", "CD113"), _gpus),
    Link("kernel", _KERNEL_RULES, _kernel, quiet=True),
    Link("driver", _DRIVER_RULES, _driver, beside=("CD112", "CD207", "CD208"), missing=_no_driver),
    Link("smi", (*_DRIVER_RULES, *_KERNEL_RULES, "CD113", "CD207"), _smi, answers=_smi_answers),
    Link("CUDA", ("CD303", "CD312"), _serves, pass_says=True),
    Link("wheel", ("CD302", "CD301", "CD313", "CD314"), _wheel),
    Link("GPU code", ("CD304", "CD305"), _code, pass_says=True),
    Link("python", ("CD401", "CD402", "CD403", "CD404", "CD405", "CD409"), _python),
    Link("toolkit", ("CD201", "CD202", "CD203", "CD204", "CD205"), _toolkit),
    Link("system", ("CD601", "CD602", "CD603", "CD604", "CD610"), _system),
)

# What a finding outside the chain is about, by its id or the first digit of it.
SUBJECTS: dict[str, str] = {
    "CD0": "policy",
    "CD1": "driver",
    "CD2": "library",
    "CD3": "package",
    "CD4": "python",
    "CD5": "GPU",
    "CD6": "system",
    "CD7": "container",
    "CD703": "WSL",
    "CD704": "WSL",
    "CD705": "job",
    "CD706": "GPU",
    "CD707": "nodes",
    "CD708": "pod",
    "CD713": "WSL",
    "CD8": "memory",
    "CD801": "policy",
    "CD9": "doctor",
}


def subject_of(rule: str) -> str:
    """What a finding is about, in one word."""
    return SUBJECTS.get(rule) or SUBJECTS.get(rule[:3], "other")
