"""GPU names, brought to one form so that what people type meets what NVML prints.

``NVIDIA GeForce RTX 4060 Ti``, ``RTX4060Ti`` and ``4060 ti`` become the same words. Nothing here knows a GPU:
the names themselves are in ``compat/gpus.toml``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Optional

from cudadoctor.model.pattern import pattern
from cudadoctor.model.record import NamedTuple

Words = tuple[str, ...]

# Words that name no product. "Quadro" is not among them: a Quadro RTX 4000 and an RTX 4000 Ada differ.
_NOISE = frozenset(
    ("nvidia", "corporation", "geforce", "tesla", "gpu", "graphics", "card", "grid", "nvgpu", "dgx", "hgx")
)
# Makers and lines of other processors: a number that is left beside one of them is no GPU of NVIDIA's.
_OTHERS = pattern(
    r"(amd|ati|radeon|rx|instinct|firepro|ryzen|epyc|athlon|threadripper|intel|core|xeon|arc|iris|uhd|hd|apple"
    r"|qualcomm|snapdragon|adreno|arm|mali|google|tpu|gaudi|habana|huawei|ascend|moore|biren|cambricon)\Z"
)
# Words that tell products with the same number apart; whoever wrote one meant it.
_TELLING = pattern(
    r"(rtx|gtx|gts|gt|mx|quadro|titan|jetson|ti|super|mobile|maxq|ada|blackwell|generation|pro|sff|embedded|d|\d{4})\Z"
)
_MIG = pattern(r"[\s-]+MIG[\s-]+(\d+g\.\d+gb\S*)\s*\Z", re.IGNORECASE)
# GRID A100D-10C, NVIDIA A40-48Q, NVIDIA RTX6000-Ada-24Q: the number is the profile's memory, the letter its series;
# A100-3-20C has a MIG slice behind it.
_VGPU = pattern(r"\A(?:GRID|NVIDIA)?\s*(\S.*?)-((?:\d-)?\d+[ABCQ])\Z", re.IGNORECASE)
_BRACKETS = pattern(r"\[([^\]]+)\]")
_MOST_WORDS = 8
# "2x 4090", "RTX 3090 x4"; "PCIe x1" is a part of a name.
_COUNT = pattern(
    r"\A\s*\d{1,2}\s*[x\u00d7*]\s*(?=[a-z]|\d{4})|(?:(?<=\d)|\s+)[x\u00d7*]\s*(?:[2-9]|1\d)\s*\Z", re.IGNORECASE
)

# What people glue, shorten or spell in their own way, in the order in which it is undone.
_SPELLINGS = tuple(
    (pattern(expression), becomes)
    for expression, becomes in (
        (r"\(r\)|\(tm\)", " "),
        (r"\bgeforce(?=[a-z0-9])", "geforce "),
        (r"\bwith max-?q design\b|\bmax-?q\b", " maxq "),
        (r"\blaptop gpu\b|\blaptop\b|\bnotebook\b", " mobile "),
        (r"\b(rtx|gtx|gt)(a?\d)", r"\1 \2"),
        (r"\brtx ?pro ?(\d)|\brtx (\d{4}) ?pro\b", r"rtx pro \1\2"),
        (r"\b(\d{4})m\b", r"\1 mobile"),
        (r"\b(\d{4})\s*ti\s*s(?:uper)?\b", r"\1 ti super"),
        (r"\b(\d{4})s(?:uper)?\b", r"\1 super"),
        (r"(\d)(ti|super)\b", r"\1 \2"),
        (r"\b(\d{4})d\b", r"\1 d"),
        (r"\b(\d+)\s*(?:gb|gib|g)\b", r"\1gb"),
        (r"\bblackwell dc\b", "blackwell server"),
    )
)


class Asked(NamedTuple):
    """A GPU name taken apart."""

    words: Words
    mig: Optional[str]
    """The MIG profile, ``"3g.40gb"``."""
    vgpu: Optional[str]
    """The vGPU profile, ``"10C"``."""


def words(name: str) -> Words:
    """The words of a product name, lower case, without vendor and brand, laptop spellings made one."""
    text = name.lower()
    for spelling, becomes in _SPELLINGS:
        text = spelling.sub(becomes, text)
    return tuple(word for word in re.findall(r"[a-z0-9]+", text) if word not in _NOISE)


def take_apart(text: str) -> Asked:
    """Split what was typed or printed into product words, MIG profile and vGPU profile."""
    mig = vgpu = None
    brackets = _BRACKETS.search(text)
    if brackets:  # lspci: "AD102 [GeForce RTX 4090] (rev a1)", "[GeForce RTX 3060 Mobile / Max-Q]"
        text = brackets.group(1).split("/")[0]
    text = _COUNT.sub("", text)
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
    return all(any(_same(word, have) for have in rest) for word in asked)


def _same(asked: str, have: str) -> bool:
    """The form factor is written with its generation or without: SXM, SXM4."""
    return asked == have or (asked.startswith("sxm") and have.startswith("sxm") and "sxm" in (asked, have))


def is_foreign(asked: Words) -> bool:
    """Whether the words name a processor of another maker."""
    return any(_OTHERS.match(word) for word in asked)


def parts(asked: Words) -> Iterator[Words]:
    """What may be the product in a longer text ("ASUS TUF RTX 4090 OC"), the longest first. What is left out says
    nothing that tells products apart, and the part has a number."""
    if is_foreign(asked) or len(asked) > _MOST_WORDS:
        return
    for length in range(len(asked) - 1, 0, -1):
        for start in range(len(asked) - length + 1):
            part = asked[start : start + length]
            if any(_TELLING.match(word) for word in (*asked[:start], *asked[start + length :])):
                continue
            if any(len(re.findall(r"\d", word)) > 1 for word in part):
                yield part
