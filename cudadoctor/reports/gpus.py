"""GPU lists of several blocks -> one list, in nvidia-smi's numbering.

A CUDA program numbers its GPUs in an order of its own (the fastest first, and only those that it may see), so what it
says of "device 0" is not about nvidia-smi's GPU 0. A reader of such lines marks its entries (`cuda_gpu`); they are
matched to nvidia-smi's by name, and stand alone where nvidia-smi shows none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Optional

from cudadoctor.model import Fact, known
from cudadoctor.parse.nvidia_smi import gpu_entry

_BY_CUDA = "by_cuda"
_MIG = " MIG "

Entry = dict[str, Any]


def cuda_gpu(
    index: int, name: Optional[str], compute_capability: Optional[str] = None, memory_mib: Optional[int] = None
) -> Entry:
    """An entry for the fact `smi.gpus` out of what a CUDA program says of its device `index`."""
    entry = gpu_entry(index, name)
    entry["compute_capability"] = compute_capability
    if memory_mib and not (name and _MIG in name):  # that is the memory of an instance, not of the card
        entry["memory_total"] = memory_mib << 20
    entry[_BY_CUDA] = True
    return entry


def joined_gpus(lists: Iterable[Sequence[Entry]]) -> list[Entry]:
    """One list out of several, the better sources later."""
    stated = [dict(entry) for entries in lists for entry in entries]
    seen = by_index(entry for entry in stated if not entry.get(_BY_CUDA))
    by_cuda = by_index(entry for entry in stated if entry.pop(_BY_CUDA, False))
    if not seen:
        return by_cuda
    for entry in by_cuda:
        for same in _same(seen, entry):
            _complete(same, entry)
    return [{**gpu_entry(gpu.get("index", 0), None), **gpu} for gpu in seen]


def complete_details(facts: dict[str, Fact[Any]]) -> None:
    """Gives the details of each GPU (`gpu.0.name`) what only another source of the list knows: nvidia-smi's table cuts
    names off and tells no compute capability."""
    listed = facts.get("smi.gpus")
    if listed is None or not listed.is_known:
        return
    for entry in listed.get():
        prefix = f"gpu.{entry.get('index')}."
        if type(entry.get("index")) is not int or not any(name.startswith(prefix) for name in facts):
            continue
        for key in ("name", "compute_capability", "memory_total"):
            value = entry.get(key)
            if value is not None and prefix + key not in facts and not (key == "name" and entry.get("truncated")):
                facts[prefix + key] = known(value, listed.source)


def by_index(entries: Iterable[Entry], key: str = "index") -> list[Entry]:
    """Entries with the same key become one; what a better source knows goes over what a lesser one says, and a name
    that is cut never replaces a whole one."""
    by_key: dict[Any, Entry] = {}
    for entry in entries:
        before = by_key.setdefault(entry.get(key), {})
        if key == "index" and not _may_be_one(before, entry):
            before.clear()  # two machines, or the order of two programs
        whole = before.get("name") if before and not before.get("truncated") else None
        before.update({name: value for name, value in entry.items() if value is not None or name not in before})
        if whole and entry.get("truncated") and _plain(whole).startswith(_plain(entry.get("name")).rstrip(". ")):
            before["name"], before["truncated"] = whole, False
    return [by_key[index] for index in sorted(by_key, key=lambda value: (str(type(value)), value))]


def _may_be_one(one: Entry, other: Entry) -> bool:
    first, second = _plain(one.get("name")), _plain(other.get("name"))
    if not first or not second:
        return True
    if one.get("truncated") or other.get("truncated"):
        first, second = first.rstrip(". "), second.rstrip(". ")
        return first.startswith(second) or second.startswith(first)
    return first == second


def _same(seen: list[Entry], entry: Entry) -> list[Entry]:
    """The GPUs of nvidia-smi that a CUDA program's entry is about: those of its name; without a name all, where they
    are of one kind."""
    name = _plain(entry.get("name"))
    if not name:
        return seen if len({_plain(gpu.get("name")) for gpu in seen}) == 1 else []
    return [
        gpu
        for gpu in seen
        if _plain(gpu.get("name")) in (name, "" if len(seen) == 1 else name)
        or (gpu.get("truncated") and name.startswith(_plain(gpu.get("name")).rstrip(". ")))
    ]


def _complete(gpu: Entry, entry: Entry) -> None:
    if entry.get("name") and (gpu.get("truncated") or not gpu.get("name")):
        gpu["name"], gpu["truncated"] = entry["name"].partition(_MIG)[0], False
    for key in ("compute_capability", "memory_total"):
        if gpu.get(key) is None:
            gpu[key] = entry.get(key)


def _plain(name: object) -> str:
    """For comparing: drivers before R470 leave NVIDIA out."""
    text = str(name or "").partition(_MIG)[0].strip().lower()
    return text[7:] if text.startswith("nvidia ") else text
