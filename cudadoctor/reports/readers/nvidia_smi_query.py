"""nvidia-smi -q in a text, whole, or some sections of it.

    ==============NVSMI LOG==============
    Driver Version                            : 535.183.01
    Attached GPUs                             : 1
    GPU 00000000:01:00.0
        Product Name                          : NVIDIA A100-SXM4-80GB
        Clocks Event Reasons
            SW Power Cap                      : Not Active

Lines are told apart by their words, not by how far they are indented: pasting loses that. People paste single sections
(`-d PERFORMANCE`, or through grep): then the first is GPU 0's, and a line that comes again belongs to the next GPU.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Optional

from cudadoctor.matrix import Matrix
from cudadoctor.model.pattern import pattern
from cudadoctor.parse.digits import is_digits
from cudadoctor.reports.blocks import STRUCTURED, Block
from cudadoctor.reports.readers import _nvidia_smi_tree as tree
from cudadoctor.reports.readers._nvidia_smi import lines_like
from cudadoctor.reports.text import Text

_HEAD = "nvsmi log"
# Sections (and keys) of which people paste one alone.
_SECTIONS = (
    "clocks throttle reasons",
    "clocks event reasons",
    "fb memory usage",
    "bar1 memory usage",
    "remapped rows",
    "retired pages",
    "gpu link info",
    "pcie generation",
    "ecc errors",
    "ecc mode",
    "gpu current temp",
    "power readings",
    "mig mode",
    "persistence mode",
    "compute mode",
    "addressing mode",
    "performance state",
    "product name ",
    "gpu recovery action",
    "fabric",
    "max clocks",
    "remapping failure occurred",
    "gpu slowdown temp",
)
TRIGGERS = (_HEAD, "gpu 00000000:", "attached gpus", *_SECTIONS)

_GPU = pattern(r"GPU ([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])\s*$")
_HEADING = pattern(r"[A-Z][A-Za-z0-9 ./_()-]{1,48}")
_KEY = pattern(r"[A-Za-z][\w ./()#&-]{0,60}")
_OF_A_GPU = pattern(r"NVIDIA |GeForce |Tesla |Quadro |GRID |TITAN |[A-Z]\d{2,3}[ -]")
_LONGEST = 40_000
# Lines that are none of -q's in a row, after which it has ended.
_FOREIGN = 3

_VERSIONS = ("driver version", "cuda version", "kmd version", "cuda umd version")
_ANYWHERE = {
    "product name": "name",
    "persistence mode": "persistence_mode",
    "display active": "display_active",
    "addressing mode": "addressing_mode",
    "bus id": "pci_address",
    "device id": "pci_device_id",
    "performance state": "performance_state",
    "compute mode": "compute_mode",
    "gpu current temp": "temperature",
    "gpu slowdown temp": "temperature_slowdown",
    "virtualization mode": "virtualization",
    "gpu recovery action": "recovery_action",
    "remapping failure occurred": "remap_failure",
    "pending page blacklist": "retired_pending",
    "pending page retirement": "retired_pending",
    "process id": tree.PID,
    "used gpu memory": tree.PROGRAM_MEMORY,
}
_POWER = {
    "power draw": "power",
    "average power draw": "power",
    "instantaneous power draw": "power",
    "enforced power limit": "power_limit",
    "current power limit": "power_limit",
    "default power limit": "power_limit_default",
}
_UNDER = {
    "mig mode": {"current": "mig_mode", "pending": tree.MIG_PENDING},
    "driver model": {"current": "driver_model"},
    "ecc mode": {"current": "ecc_mode"},
    "pcie generation": {"current": "pcie_generation", "max": "pcie_generation_max"},
    "link width": {"current": "pcie_width", "max": "pcie_width_max"},
    "fb memory usage": {"total": "memory_total", "used": "memory_used", "free": "memory_free"},
    "bar1 memory usage": {"total": "bar1_total"},
    "utilization": {"gpu": "utilization"},
    "retired pages": {"pending": "retired_pending"},
    "remapped rows": {"pending": "remap_pending"},
    "power readings": _POWER,
    "gpu power readings": _POWER,
    "clocks": {"sm": "clock_sm"},
    "max clocks": {"sm": "clock_sm_max"},
    "fabric": {"state": "fabric_state", "status": "fabric_status"},
    "processes": {"type": tree.TYPE, "name": tree.PROGRAM},
}
_REASONS = ("clocks throttle reasons", "clocks event reasons")
# What stands behind a GPU's MIG devices, whose memory and errors are not the GPU's.
_BEHIND_MIG = ("accounting mode", "driver model", "serial number", "gpu uuid")


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    reader: Optional[_Reader] = None
    first = end = -1
    for hit in hits:
        if hit <= end:
            continue
        head = _HEAD in text[hit].lower()
        if not head and not _is_of_query(text[hit]):
            continue
        if reader is not None and (head or reader.whole or hit - end > _FOREIGN):
            yield from reader.block(first, end)
            reader = None
        if reader is None:
            reader, first = _Reader(), hit
        end = reader.read(text, hit, head)
    if reader is not None:
        yield from reader.block(first, end)


def _is_of_query(line: str) -> bool:
    key, colon, value = line.partition(":")
    words = key.strip().lower()
    if _GPU.match(line.strip()):
        return True
    if not colon:
        return words in _SECTIONS or words in _UNDER or words in _REASONS
    return words in _ANYWHERE or (words == "attached gpus" and is_digits(value.strip(), 3))


class _Reader:
    def __init__(self) -> None:
        self.tree = tree.Tree()
        self.whole = False
        self._heading = self._scope = ""
        self._in_mig = False
        self._seen: set[tuple[str, str]] = set()

    def block(self, first: int, last: int) -> Iterator[Block]:
        claims = tuple(self.tree.claims(self.whole))
        if claims:
            kind = "nvidia-smi -q" if self.whole else "nvidia-smi -q, in part"
            yield Block(kind, first, last, claims, STRUCTURED, self.tree.driver)

    def read(self, text: Text, first: int, head: bool) -> int:
        """Reads on from line `first`; the last line that was read."""
        self.whole = self.whole or head
        last, foreign = first, 0
        for index, line in lines_like(text, first, first, first + _LONGEST):
            if index > first and _HEAD in line.lower():
                break
            if self._line(line, index):
                last, foreign = index, 0
                continue
            if line == "" and self.whole:
                continue
            foreign += 1
            if foreign >= (_FOREIGN if self.whole else 1):
                break
        return last

    def _line(self, line: str, index: int) -> bool:
        key, colon, value = line.partition(" : ")
        if not colon and line.endswith(" :"):
            key, colon, value = line[:-2], ":", ""
        if not colon and ":" in line and not _GPU.match(line):
            key, colon, value = line.partition(":")  # the blanks before it are lost
        if not colon:
            return self._no_value(line, index)
        words = key.strip().lower()
        if not _KEY.fullmatch(words):
            return False
        self._leaf(words, value.strip(), index)
        return True

    def _no_value(self, line: str, index: int) -> bool:
        gpu = _GPU.match(line)
        if gpu:
            self.whole = True
            self._heading, self._in_mig = "", False
            self.tree.gpu(gpu.group(1), index)
            return True
        if "=" in line and not line.strip("="):
            return True
        if _HEAD in line.lower() or not line:
            return bool(line)
        if not _HEADING.fullmatch(line):
            return False
        self._heading = line.lower()
        if self._heading in ("volatile", "aggregate"):
            self._scope = self._heading
        elif self._heading not in ("single bit", "double bit"):
            self._scope = ""
        if self._heading == "mig device":
            self._in_mig = True
            self.tree.mig_device(index)
        elif self._heading in _BEHIND_MIG:
            self._in_mig = False
        return self.whole or self._heading in _SECTIONS or self._heading in _UNDER or bool(self._scope)

    def _leaf(self, words: str, value: str, index: int) -> None:
        if words in _VERSIONS:
            self.tree.version(words, value, index)
        elif words == "attached gpus":
            self.whole = True
            self.tree.count = int(value) if is_digits(value, 3) else None
        elif words in _BEHIND_MIG:
            self._in_mig = False
        if self._in_mig:
            return
        if not self.whole:
            # Without a line "GPU 0000...": what comes again is of the next GPU.
            if (self._heading, words) in self._seen and self._heading != "processes":
                self.tree.gpu("", index)
                self._seen.clear()
            self._seen.add((self._heading, words))
            if not self.tree.gpus:
                self.tree.gpu("", index)
        if self._heading in _REASONS:
            self.tree.reason(words, value, index)
        if words == "processes" and value == "None":
            self.tree.leaf(tree.NO_PROCESSES, value, index)
        elif self._scope == "volatile":
            if "uncorrectable" in words or (self._heading == "double bit" and words == "total"):
                self.tree.leaf(tree.ECC_ERRORS, value, index)
        else:
            name = _UNDER.get(self._heading, {}).get(words) or _ANYWHERE.get(words)
            # Outside a whole one "Product Name" may be a computer's (dmidecode).
            if name == "name" and not self.whole and not _OF_A_GPU.match(value):
                return
            if name and (self.tree.gpus or not self.whole):
                self.tree.leaf(name, value, index)
        if words == "process id":
            self._heading = "processes"
