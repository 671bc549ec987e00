"""GPU architectures in their three spellings.

8.6                         compute capability, as NVML and torch.cuda.get_device_capability say it
sm_86, sm_90a, sm_103f      machine code (SASS): for that one, its architecture alone (a), its family (f)
compute_86                  PTX, to be compiled by the driver
86, 120                     the number in a fatbin entry and in get_arch_list's C++ source
"""

from __future__ import annotations

import re

from .errors import unlike
from .record import NamedTuple


class Arch(NamedTuple):
    """One target. `kind` is "sm" or "compute"; `suffix` is "", "a" (this architecture alone) or "f" (its family)."""

    kind: str
    major: int
    minor: int
    suffix: str = ""

    @property
    def capability(self) -> str:
        return f"{self.major}.{self.minor}"

    @property
    def name(self) -> str:
        return f"{self.kind}_{self.major}{self.minor}{self.suffix}"


def parse_arch(text: str) -> Arch:
    """ "sm_86", "compute_120", "sm_90a" -> Arch. ParseError for anything else."""
    found = re.fullmatch(r"(sm|compute)_([0-9]{1,3})([0-9])([af]?)", text.strip(), re.ASCII)
    if found is None:
        raise unlike("an architecture such as sm_86", text)
    return Arch(found.group(1), int(found.group(2)), int(found.group(3)), found.group(4))


def from_number(number: int, kind: str = "sm", suffix: str = "") -> Arch:
    """86 -> sm_86, 120 -> sm_120. ParseError outside 10..9999."""
    if not 10 <= number <= 9999:
        raise unlike("an architecture number such as 86", str(number)[:40])
    return Arch(kind, number // 10, number % 10, suffix)


def parse_capability(text: str) -> Arch:
    """ "8.6" -> sm_86 as an Arch; also accepts "sm_86". ParseError for anything else."""
    found = re.fullmatch(r"([0-9]{1,3})\.([0-9])", text.strip(), re.ASCII)
    if found is not None:
        return Arch("sm", int(found.group(1)), int(found.group(2)))
    return parse_arch(text)
