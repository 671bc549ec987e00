"""GPU names, brought to one form so that what people type meets what NVML prints.

``NVIDIA GeForce RTX 4060 Ti``, ``RTX4060Ti`` and ``4060 ti`` become the same words. Nothing here knows a GPU:
the names themselves are in ``compat/gpus.toml``.
"""

from __future__ import annotations

import re
from typing import Optional

from cudadoctor.model.record import NamedTuple

Words = tuple[str, ...]

# Words that name no product. "Quadro" is not among them: a Quadro RTX 4000 and an RTX 4000 Ada differ.
_NOISE = frozenset(("nvidia", "corporation", "geforce", "tesla", "gpu", "graphics", "card", "grid", "nvgpu"))
_MIG = re.compile(r"\s+MIG\s+(\d+g\.\d+gb\S*)\s*\Z", re.IGNORECASE)
# GRID A100D-10C, NVIDIA A40-48Q, NVIDIA RTX6000-Ada-24Q: the number is the profile's memory, the letter its series.
_VGPU = re.compile(r"\A(?:GRID|NVIDIA)?\s*(\S.*?)-(\d+[ABCQ])\Z", re.IGNORECASE)
_BRACKETS = re.compile(r"\[([^\]]+)\]")


class Asked(NamedTuple):
    """A GPU name taken apart."""

    words: Words
    mig: Optional[str]
    """The MIG profile, ``"3g.40gb"``."""
    vgpu: Optional[str]
    """The vGPU profile, ``"10C"``."""


def words(name: str) -> Words:
    """The words of a product name, lower case, without vendor and brand, laptop spellings made one."""
    text = name.lower().replace("(r)", " ").replace("(tm)", " ")
    text = re.sub(r"\bwith max-?q design\b|\bmax-?q\b", " maxq ", text)
    text = re.sub(r"\blaptop gpu\b|\blaptop\b|\bnotebook\b", " mobile ", text)
    text = re.sub(r"\b(rtx|gtx|gt)(\d)", r"\1 \2", text)
    text = re.sub(r"(\d)(ti|super)\b", r"\1 \2", text)
    text = re.sub(r"\b(\d{4})d\b", r"\1 d", text)
    text = re.sub(r"\b(\d+)\s*(?:gb|gib|g)\b", r"\1gb", text)
    return tuple(word for word in re.findall(r"[a-z0-9]+", text) if word not in _NOISE)


def take_apart(text: str) -> Asked:
    """Split what was typed or printed into product words, MIG profile and vGPU profile."""
    mig = vgpu = None
    brackets = _BRACKETS.search(text)
    if brackets:  # lspci: "AD102 [GeForce RTX 4090] (rev a1)", "[GeForce RTX 3060 Mobile / Max-Q]"
        text = brackets.group(1).split("/")[0]
    found = _MIG.search(text)
    if found:
        mig = found.group(1).lower()
        text = text[: found.start()]
    else:
        found = _VGPU.match(text.strip())
        if found:
            vgpu = found.group(2).upper()
            text = found.group(1)
    return Asked(words(text), mig, vgpu)


def cut_off(text: str) -> Optional[str]:
    """The part before the dots of a name that nvidia-smi's table has cut ("NVIDIA GeForce RTX 4060 ..."); else None."""
    for dots in ("...", "\u2026"):
        if text.endswith(dots):
            return text[: -len(dots)]
    return None


def key(parts: Words) -> str:
    return " ".join(parts)


def contains(row: Words, asked: Words) -> bool:
    """Whether all asked words stand in the row's name, in that order."""
    rest = iter(row)
    return all(word in rest for word in asked)
