"""Version numbers as the matrix compares them: drivers, CUDA, torch, GPU targets.

Plain tuples of integers. A driver's ``450.80.02`` keeps its zero as text and loses it only for comparing.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Optional

from cudadoctor.model.pattern import pattern
from cudadoctor.model.record import NamedTuple

Numbers = tuple[int, ...]

# No version has ten digits; int() refuses what has thousands.
_DOTTED = pattern(r"\d{1,9}(?:\.\d{1,9})*\Z")
_TORCH = pattern(r"(\d{1,9})\.(\d{1,9})(?:\.(\d{1,9}))?(?:\.post\d+)?(?:\+[A-Za-z0-9.]+)?\Z")
_VARIANT = pattern(r"cu(\d{2,3})\Z")
_TARGET = pattern(r"(?:sm_|compute_)?(\d{1,2})(\d)([af]?)\Z")
_CAPABILITY = pattern(r"(\d{1,2})\.(\d)\Z")

# Choosing a wheel compares some hundred different numbers ten thousand times: each is read once.


@lru_cache(maxsize=4096)
def numbers(text: str) -> Optional[Numbers]:
    """``"580.95.05"`` -> ``(580, 95, 5)``; None where the text is not dotted digits."""
    text = text.strip()
    if not _DOTTED.match(text):
        return None
    return tuple(int(part) for part in text.split("."))


@lru_cache(maxsize=4096)
def torch_key(text: str) -> Optional[tuple[int, int, int]]:
    """``"2.14.1+cu126"`` -> ``(2, 14, 1)``; None for a nightly, a release candidate or no version."""
    match = _TORCH.match(text.strip())
    if not match:
        return None
    return int(match.group(1)), int(match.group(2)), int(match.group(3) or 0)


@lru_cache(maxsize=4096)
def cuda_of_variant(variant: str) -> Optional[str]:
    """``"cu126"`` -> ``"12.6"``, ``"cu92"`` -> ``"9.2"``; None for ``"cpu"`` and anything else."""
    match = _VARIANT.match(variant)
    if not match:
        return None
    digits = match.group(1)
    return f"{digits[:-1]}.{digits[-1]}"


def variant_of_cuda(cuda: str) -> Optional[str]:
    """``"12.6"`` or ``"12.6.3"`` -> ``"cu126"``; None where the text is no CUDA version."""
    parts = numbers(cuda)
    if parts is None or len(parts) < 2:
        return None
    return f"cu{parts[0]}{parts[1]}"


class Target(NamedTuple):
    """A compiled GPU target: ``sm_90a`` is ``(9, 0, "a")``."""

    major: int
    minor: int
    suffix: str

    @property
    def name(self) -> str:
        return f"sm_{self.major}{self.minor}{self.suffix}"


@lru_cache(maxsize=4096)
def target(text: str) -> Optional[Target]:
    """Read ``"86"``, ``"sm_86"``, ``"compute_86"``, ``"sm_90a"`` or ``"8.6"``; None for anything else."""
    text = text.strip().lower()
    match = _CAPABILITY.match(text)
    if match:
        return Target(int(match.group(1)), int(match.group(2)), "")
    match = _TARGET.match(text)
    if match:
        return Target(int(match.group(1)), int(match.group(2)), match.group(3))
    return None


def capability(text: str) -> Optional[tuple[int, int]]:
    """``"8.9"`` -> ``(8, 9)``; also takes ``"sm_89"``. None for anything else."""
    found = target(text)
    return None if found is None else (found.major, found.minor)
