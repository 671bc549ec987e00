"""What the file name of a wheel of torch, torchvision or torchaudio tells.

    torch-2.15.0+cu132-cp312-cp312-manylinux_2_28_x86_64.whl     a page of PyTorch's index
    torch-2.15.0-cp315-cp315t-win_amd64.whl                      the default index; free-threaded
    torch-2.4.1-cp39-none-macosx_11_0_arm64.whl
    torchaudio-2.11.1-py3-none-manylinux_2_28_aarch64.whl        for any Python
    torch-2.0.0-1-cp310-cp310-manylinux2014_aarch64.whl          with a build number

In addresses "+" is written %2B.
"""

from __future__ import annotations

import re

from cudadoctor.model.record import NamedTuple

from .dist_info import parse_wheel_name

_RELEASE = re.compile(r"[0-9]{1,6}(\.[0-9]{1,6}){1,4}", re.ASCII)
_PYTHON = re.compile(r"cp([23])([0-9]{1,2})", re.ASCII)
_MANYLINUX = re.compile(r"manylinux_2_([0-9]{1,3})_(\w{1,20})", re.ASCII)
# The names from before the glibc version stood in the tag (PEP 513, 571, 599).
_OLD_MANYLINUX = {"manylinux1": "2.5", "manylinux2010": "2.12", "manylinux2014": "2.17"}
_MACHINES = {"x86_64": "linux-x86_64", "aarch64": "linux-aarch64"}


class TaggedWheel(NamedTuple):
    """A wheel's name, read.

    `release` and `local` are the two halves of the version ("2.15.0", "cu132"; local None: it has none). `is_release`:
    plain numbers, no alpha, candidate, nightly or post-release. `python`: "3.12", free-threaded "3.15t"; None: bound to
    no single one. `platform`: linux-x86_64, linux-aarch64, windows-x86_64, macos-arm64, macos-x86_64; None: another, or
    any. `glibc`: the oldest that a Linux tag names; None: it names none.
    """

    name: str
    release: str
    local: str | None
    is_release: bool
    python: str | None
    platform: str | None
    glibc: str | None


def parse_tagged_wheel(text: str) -> TaggedWheel:
    """A file name, also with %2B for its plus sign, -> TaggedWheel. ParseError where it is no wheel's."""
    wheel = parse_wheel_name(text)
    release, _, local = wheel.version.partition("+")
    platform, glibc = _platform(wheel.platform)
    return TaggedWheel(
        wheel.name,
        release,
        local or None,
        _RELEASE.fullmatch(release) is not None,
        _python(wheel.python, wheel.abi),
        platform,
        glibc,
    )


def _python(python: str, abi: str) -> str | None:
    found = _PYTHON.fullmatch(python)
    if found is None or abi.startswith("abi"):
        return None
    version = f"{found.group(1)}.{int(found.group(2))}"
    return version + "t" if re.fullmatch(r"cp[0-9]{2,3}t", abi, re.ASCII) else version


def _platform(tags: str) -> tuple[str | None, str | None]:
    """The platform of a tag of one or several parts, and the oldest glibc that one of them admits."""
    platform, floors = None, []
    for tag in tags.split("."):
        found = _MANYLINUX.fullmatch(tag)
        family, _, machine = tag.partition("_")
        if found is not None:
            platform = _MACHINES.get(found.group(2))
            floors.append((int(found.group(1)), f"2.{int(found.group(1))}"))
        elif family in _OLD_MANYLINUX:
            platform = _MACHINES.get(machine)
            floors.append((int(_OLD_MANYLINUX[family][2:]), _OLD_MANYLINUX[family]))
        elif family == "linux":
            platform = _MACHINES.get(machine)
        elif tag == "win_amd64":
            platform = "windows-x86_64"
        elif family == "macosx" and machine.endswith(("_arm64", "_x86_64")):
            platform = "macos-arm64" if machine.endswith("_arm64") else "macos-x86_64"
    return platform, min(floors)[1] if floors else None
