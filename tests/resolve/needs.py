"""Needs in the words of people: machines by the names of their GPUs, and the whole of an answer as one text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Optional

from cudadoctor.matrix import load_matrix
from cudadoctor.resolve import Choice, Gpu, Need, Resolution, resolve
from cudadoctor.resolve.need import BROKEN, NONE, PRESENT, UNKNOWN, WORKS

MATRIX = load_matrix()
WHEELS = "https://download.pytorch.org/whl"

# The newest that an index has today; its Windows wheels were not seen on one.
NEWEST = "2.15.0+cu132"
NEWEST_ON_WINDOWS = "2.14.1+cu132"


def gpu(name: str, number: Optional[int] = 0) -> Gpu:
    match = MATRIX.gpu(name)
    assert match.capability is not None, name
    return Gpu(name, match.capability, number)


def machine(*names: str, driver: Optional[str] = None, **more: Any) -> Need:
    """A machine with these GPUs and a working driver (none: it is broken, unless `more` says otherwise)."""
    known: dict[str, Any] = {
        "gpus": tuple(gpu(name) for name in names),
        "gpu_state": PRESENT if names else NONE,
        "driver": driver,
        "driver_state": WORKS if driver else BROKEN,
    }
    return Need(**{**known, **more})


def planned(*names: str, driver: Optional[str] = None, **more: Any) -> Need:
    """A machine that nobody looked at, as the options --gpu and --driver describe it."""
    known: dict[str, Any] = {
        "gpus": tuple(gpu(name, None) for name in names),
        "gpu_state": PRESENT if names else UNKNOWN,
        "driver": driver,
    }
    return Need(**{**known, **more})


WINDOWS: dict[str, Any] = {"numbering": "windows", "platform": "windows-x86_64"}
WSL: dict[str, Any] = {"numbering": "windows", "wsl": True}
ARM: dict[str, Any] = {"platform": "linux-aarch64"}


def windows(*names: str, driver: str, **more: Any) -> Need:
    return machine(*names, driver=driver, **{**WINDOWS, **more})


def answer(need: Need) -> Resolution:
    return resolve(need, MATRIX)


def chosen(need: Need) -> str:
    """ "2.14.1+cu126"; empty where there is no choice."""
    choice = answer(need).choice
    return "" if choice is None else choice.version


def whole(found: Resolution) -> str:
    """All that an answer says, a sentence a line."""
    return "\n".join(_lines(found))


def _lines(found: Resolution) -> Iterator[str]:
    yield from _of(found.choice)
    yield from found.reasons
    yield from (f"blocked by {b.by}: {b.change} opens {b.opens.version}" for b in found.blocked_by)
    for part in found.split:
        cards = " ".join(dict.fromkeys(card.label for card in part.gpus))
        yield f"{cards}: {part.choice.version}"
    yield from (f"{m.direction} {m.package} {m.have} to {m.to}: {m.reason}" for m in found.moves)
    yield from (f"{way.kind}: {way.change} opens {way.opens.version}: {way.reason}" for way in found.other_ways)
    yield from (f"not {text}" for text in found.not_helping)
    yield from filter(None, (found.driver_first, found.undecided))
    if found.drivers is not None:
        names = [branch.name if branch else "-" for branch in found.drivers[:3]]
        yield f"drivers {' '.join(names)} {found.drivers.flavour or 'clash'}"
    yield from (f"{fw.name}: {fw.requirement}: {'; '.join((*fw.reasons, *fw.better))}" for fw in found.frameworks)


def _of(choice: Optional[Choice]) -> Iterator[str]:
    if choice is not None:
        yield from choice.reasons
        yield from (f"taken for granted: {text}" for text in choice.assumes)
        yield from (f"breaks: {text}" for text in choice.breaks)
        yield from (f"with {name} {version}" for name, version in (*choice.companions, *choice.partners))
