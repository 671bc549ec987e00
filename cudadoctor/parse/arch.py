"""GPU architectures in their spellings.

8.6                         compute capability, as NVML and torch.cuda.get_device_capability say it
sm_86, sm_90a, sm_103f      machine code (SASS): for that one, for its architecture alone (a), for its family (f)
compute_86                  PTX, to be compiled by the driver
86, 120                     the number in a fatbin entry
"""

from __future__ import annotations

from cudadoctor.model.record import NamedTuple

from .digits import is_digits
from .errors import unlike


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
    """For example "sm_86", "compute_120", "sm_90a" -> Arch. ParseError for anything else."""
    kind, _, rest = text.strip().partition("_")
    suffix = rest[-1:] if rest[-1:] in ("a", "f") else ""
    number = rest[:-1] if suffix else rest
    if kind not in ("sm", "compute") or len(number) < 2 or not is_digits(number, 4):
        raise unlike("an architecture such as sm_86", text)
    return Arch(kind, int(number[:-1]), int(number[-1]), suffix)


def from_number(number: int, kind: str = "sm", suffix: str = "") -> Arch:
    """86 -> sm_86, 120 -> sm_120. ParseError outside 10..9999."""
    if not 10 <= number <= 9999:
        raise unlike("an architecture number such as 86", str(number)[:40])
    return Arch(kind, number // 10, number % 10, suffix)


def parse_capability(text: str) -> Arch:
    """For example "8.6" -> sm_86 as an Arch; also accepts "sm_86". ParseError for anything else."""
    major, dot, minor = text.strip().partition(".")
    if dot and is_digits(major, 3) and is_digits(minor, 1):
        return Arch("sm", int(major), int(minor))
    return parse_arch(text)
