"""CUDA_VISIBLE_DEVICES and its kin.

(unset)                  every GPU
(empty), -1              none
NoDevFiles               none: Slurm's word for a job without GPUs
0,2                      by number, in CUDA's order
GPU-3f1c,GPU-9a          by UUID, or the start of one that no other GPU shares
MIG-4b1c...              one MIG device; before R470 MIG-GPU-<uuid>/7/0
0,7,1                    with two GPUs only 0: an entry that is not there hides itself and all after it
all, void, none          words of NVIDIA_VISIBLE_DEVICES, the container runtime's variable
"""

from __future__ import annotations

from collections.abc import Sequence

from cudadoctor.model.record import NamedTuple

from .digits import is_digits

INDEX = "index"
UUID = "uuid"
MIG = "mig"
INVALID = "invalid"


class Entry(NamedTuple):
    """What an entry is ("index", "uuid", "mig" or "invalid") and its text: as written, an index as a bare number."""

    kind: str
    text: str

    @property
    def number(self) -> int | None:
        return int(self.text) if self.kind == INDEX else None


class VisibleDevices(NamedTuple):
    """A value taken apart.

    `is_set` False: the variable does not exist, so nothing is hidden. `entries` are those that CUDA would look at;
    the first invalid one and what follows it are in `ignored`.
    """

    is_set: bool
    entries: tuple[Entry, ...]
    ignored: tuple[str, ...]

    @property
    def hides_all(self) -> bool:
        """Set, and nothing usable in it."""
        return self.is_set and not self.entries


def parse_visible_devices(value: str | None) -> VisibleDevices:
    """CUDA_VISIBLE_DEVICES; None is unset. Never fails.

    As CUDA has it: what begins with a number counts as that number ("1gpu" is 1), an entry given twice hides all GPUs,
    and a list is of one kind, so that an entry of another kind is invalid.
    """
    if value is None:
        return VisibleDevices(False, (), ())
    words = [word.strip() for word in value.split(",")]
    entries: list[Entry] = []
    for number, word in enumerate(words):
        entry = _entry(word)
        if entry.kind == INVALID or (entries and entry.kind != entries[0].kind):
            return VisibleDevices(True, tuple(entries), tuple(words[number:]) if value.strip() else ())
        if entry in entries:
            return VisibleDevices(True, (), tuple(words))
        entries.append(entry)
    return VisibleDevices(True, tuple(entries), ())


def _entry(word: str) -> Entry:
    bare = word[1:] if word.startswith("+") else word
    digits = bare[: len(bare) - len(bare.lstrip("0123456789"))]
    if is_digits(digits, 6):
        return Entry(INDEX, str(int(digits)))
    for start, kind in (("MIG-GPU-", MIG), ("MIG-", MIG), ("GPU-", UUID)):
        if word.startswith(start):
            uuid, *instances = word[len(start) :].split("/")
            whole = 0 < len(uuid) <= 40 and not uuid.strip("0123456789abcdefABCDEF-")
            numbered = kind == MIG and len(instances) <= 2 and all(is_digits(part, 4) for part in instances)
            if whole and (not instances or numbered):
                return Entry(kind, word)
    return Entry(INVALID, word)


def usable(devices: VisibleDevices, count: int, uuids: Sequence[str] = ()) -> list[int] | None:
    """The numbers of the GPUs that stay visible on a machine with `count` of them, in the order that CUDA gives them.

    `uuids` belong to the numbers 0 to count-1. None where a UUID or MIG entry cannot be followed (UUIDs not given).
    """
    if not devices.is_set:
        return list(range(count))
    seen: list[int] = []
    for entry in devices.entries:
        if entry.kind == INDEX:
            number = int(entry.text)
            if number >= count:
                break
        elif entry.kind == UUID and uuids:
            matching = [i for i, uuid in enumerate(uuids) if uuid.lower().startswith(entry.text.lower())]
            if len(matching) != 1:
                break
            number = matching[0]
        else:
            return None
        if number in seen:
            return []
        seen.append(number)
    return seen


def parse_container_devices(value: str | None) -> VisibleDevices | None:
    """NVIDIA_VISIBLE_DEVICES: None for unset and "void" (the runtime does nothing); "all" hides nothing; "none" and
    "" hide all GPUs.
    """
    if value is None or value.strip() == "void":
        return None
    if value.strip() == "all":
        return VisibleDevices(False, (), ())
    if value.strip() in ("none", ""):
        return VisibleDevices(True, (), ())
    return parse_visible_devices(value)
