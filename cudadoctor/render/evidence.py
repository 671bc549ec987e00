"""Facts that hold a list of things, as a person would tell them: a card, a library, a module and what counts of each.

`cudadoctor facts` and the JSON report show every key; a screen shows what a finding rests on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Callable, Optional

Entry = Mapping[str, Any]


def entries_of(name: str, value: Any) -> Optional[list[str]]:
    """The entries of a fact's value in words; None for a fact that needs none."""
    words = _WORDS.get(name)
    if words is None or not value:
        return None
    entries = [value] if isinstance(value, dict) else value
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        return None
    told = [words(entry) for entry in entries]
    return [text for place, text in enumerate(told) if text not in told[:place]]


def _joined(*parts: Any) -> str:
    return " ".join(str(part) for part in parts if part)


def _in_brackets(text: str, *parts: Any) -> str:
    inside = ", ".join(str(part) for part in parts if part)
    return f"{text} ({inside})" if inside else text


def _card(entry: Entry) -> str:
    driver = f"driver {entry['driver']}" if entry.get("driver") else "no driver"
    return _in_brackets(_joined(entry.get("address"), f"10de:{entry.get('device_id')}"), driver)


def _adapter(entry: Entry) -> str:
    ids = f"{entry['vendor_id']}:{entry.get('device_id')}" if entry.get("vendor_id") else None
    return _in_brackets(str(entry.get("name") or "display adapter"), ids)


def _module_file(entry: Entry) -> str:
    return _joined(entry.get("version"), entry.get("flavour"), "for kernel", entry.get("kernel"))


def _dkms(entry: Entry) -> str:
    kernel = f"for kernel {entry['kernel']}" if entry.get("kernel") else None
    return _in_brackets(_joined(entry.get("version"), kernel), entry.get("status"))


def _libcuda(entry: Entry) -> str:
    kind = entry.get("kind")
    return _in_brackets(str(entry.get("path")), None if kind == "driver" else kind, entry.get("version"))


def _node(entry: Entry) -> str:
    closed = "closed to this user" if entry.get("usable") is False else None
    group = f"group {entry['group']}" if entry.get("group") else None
    return _in_brackets(str(entry.get("path")), f"mode {entry.get('mode')}", group, closed)


def _library(entry: Entry) -> str:
    return _joined(entry.get("soname") or entry.get("file"), entry.get("version"), "in", entry.get("directory"))


def _page_file(entry: Entry) -> str:
    from cudadoctor.render.chain import size

    if entry.get("mode") != "fixed":
        return f"{entry.get('path')}, {entry.get('mode')}"
    bounds = [size(entry[key]) for key in ("initial", "maximum") if type(entry.get(key)) is int]
    return f"{entry.get('path')}, fixed at {' to '.join(dict.fromkeys(bounds)) or 'a size that is not known'}"


def _cuda_home(entry: Entry) -> str:
    wrong = "no such folder" if entry.get("exists") is False else "no nvcc in it" if not entry.get("has_nvcc") else None
    return _in_brackets(f"{entry.get('variable')}={entry.get('path')}", wrong)


def _pip(entry: Entry) -> str:
    target = f"installs for {entry['interpreter']}" if entry.get("interpreter") else None
    return _in_brackets(str(entry.get("path")), target)


def _copies(entry: Entry) -> str:
    return _joined(entry.get("name"), " and ".join(map(str, entry.get("versions") or ())))


_WORDS: dict[str, Callable[[Entry], str]] = {
    "pci.gpus": _card,
    "windows.gpus": _adapter,
    "procfs.gpus": lambda entry: _in_brackets(str(entry.get("model")), entry.get("address")),
    "smi.gpus": lambda entry: _in_brackets(str(entry.get("name")), "lost" if entry.get("lost") else None),
    "device.nodes": _node,
    "driver.libcuda": _libcuda,
    "driver.packages": lambda entry: _joined(entry.get("name"), entry.get("version")),
    "kernel.nvidia_module_files": _module_file,
    "kernel.dkms": _dkms,
    "kernel.log_events": lambda entry: str(entry.get("text")),
    "toolkit.found": lambda entry: _joined(entry.get("version") or "no version", "in", entry.get("root")),
    "toolkit.cuda_home": _cuda_home,
    "toolkit.host_compiler": lambda entry: _in_brackets(
        _joined(entry.get("name"), entry.get("version")), entry.get("path")
    ),
    "libraries.on_search_path": _library,
    "memory.page_file": _page_file,
    "packages.duplicates": _copies,
    "python.others_with_torch": lambda entry: f"{entry.get('executable')} has torch {entry.get('torch')}",
    "python.pip_on_path": _pip,
    "examination.failed": lambda entry: f"{entry.get('probe')}: {entry.get('reason')}",
    "examination.timed_out": lambda entry: (
        f"{entry.get('folder') or entry.get('probe')} after {entry.get('seconds')} s"
    ),
}
