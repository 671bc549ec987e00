"""What the wheel indexes really hold: releases of torch over the years, all their builds side by side.

Which builds there are, for which Pythons and platforms, was written down from the index pages and from PyPI on
2026-11-30, by hand and apart from compat/. So a plan that names a build that nobody publishes fails here as it fails
in the world, and a plan that names the wrong page, or leaves the build open, brings home the wrong torch.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from .index import SIMPLE, WheelIndex
from .wheels import LINUX, WINDOWS, Wheel, companion_wheel, tiny_wheel, torch_wheel

ARM = "manylinux_2_28_aarch64"

# The builds of glibc 2.17 bear the plain platform on PyTorch's pages and a manylinux tag on PyPI.
_OLD = {LINUX: ("linux_x86_64", "manylinux1_x86_64"), ARM: ("linux_aarch64", "manylinux2014_aarch64")}

# What companions ask of torch where they do not pin the one that they were built with.
_REQUIRES = {
    ("torchaudio", "2.11.0"): "",
    ("torchvision", "0.29.1"): ">=2.14.0",
    ("torchvision", "0.29.2"): ">=2.14",
}


class Release(NamedTuple):
    """A release of torch. `default`: PyPI's build for Linux x86_64; the other fields name the variants of PyTorch's
    pages on each platform. `old`: those that were built for glibc 2.17."""

    torch: str
    pythons: str
    torchvision: str
    torchaudio: str
    default: str
    linux: str
    arm: str = "cpu"
    windows: str = "cpu"
    old: str = ""


RELEASES = [
    Release("1.8.1", "3.9", "0.9.1", "0.8.1", "cu102", "cpu cu101 cu102 cu111", old="all"),
    Release("1.12.1", "3.9 3.10", "0.13.1", "0.12.1", "cu102", "cpu cu102 cu113 cu116", old="all"),
    Release("2.0.1", "3.9 3.10 3.11", "0.15.2", "2.0.2", "cu117", "cpu cu117 cu118", old="all"),
    Release("2.5.1", "3.9 3.10 3.11 3.12", "0.20.1", "2.5.1", "cu124", "cpu cu118 cu121 cu124", old="all"),
    Release(
        "2.6.0", "3.9 3.10 3.11 3.12 3.13", "0.21.0", "2.6.0", "cu124", "cpu cu118 cu124 cu126",
        arm="cpu cu126", windows="cpu cu118 cu124 cu126", old="cpu cu118 cu124",
    ),
    Release(
        "2.7.1", "3.9 3.10 3.11 3.12 3.13", "0.22.1", "2.7.1", "cu126", "cpu cu118 cu126 cu128",
        arm="cpu cu128", windows="cpu cu118 cu126 cu128",
    ),
    Release(
        "2.8.0", "3.9 3.10 3.11 3.12 3.13", "0.23.0", "2.8.0", "cu128", "cpu cu126 cu128 cu129",
        arm="cpu cu129", windows="cpu cu126 cu128 cu129",
    ),
    Release(
        "2.11.0", "3.10 3.11 3.12 3.13 3.14", "0.26.0", "2.11.0", "cu130", "cpu cu126 cu128 cu129 cu130",
        arm="cpu cu126 cu128 cu129 cu130", windows="cpu cu126 cu128 cu130",
    ),
    Release(
        "2.13.0", "3.10 3.11 3.12 3.13 3.14", "0.28.0", "", "cu130", "cpu cu126 cu129 cu130 cu132",
        arm="cpu cu126 cu129 cu130 cu132", windows="cpu cu126 cu130 cu132",
    ),
    Release(
        "2.14.0", "3.10 3.11 3.12 3.13 3.14", "0.29.0", "", "cu130", "cpu cu126 cu130 cu132",
        arm="cpu cu126 cu130 cu132", windows="cpu cu126 cu130 cu132",
    ),
    Release(
        "2.14.1", "3.10 3.11 3.12 3.13 3.14", "0.29.1", "", "cu130", "cpu cu126 cu130 cu132",
        arm="cpu cu126 cu130 cu132", windows="cpu cu126 cu130 cu132",
    ),
    Release("2.15.0", "3.11 3.12 3.13 3.14", "0.29.2", "", "cu132", "cpu cu132", arm="cpu cu132"),
]  # fmt: skip


def newest_on_pypi(python: str) -> Release:
    """What a plain `pip install torch` brings this Python."""
    return [release for release in RELEASES if python in release.pythons.split()][-1]


def fill(index: WheelIndex, pythons: Iterable[str], platforms: Iterable[str] = (LINUX,)) -> WheelIndex:
    """Puts on the index what there is for these Pythons and platforms: PyTorch's pages, PyPI with a build of each
    release, and there also what they all require and what is tied to torch."""
    wanted = set(pythons)
    for release in RELEASES:
        for python in sorted(wanted & set(release.pythons.split())):
            for platform in platforms:
                _add(index, release, python, platform)
    variants = [page for page in index.pages() if page != SIMPLE]
    # One torchaudio for everything from 2.11 on. Each index has its own, and none names a build.
    for page in {"cpu", "cu126", "cu130", "cu132"}.intersection(variants):
        index.add(page, _from(page, "torchaudio", "2.11.1", "torch>=2.11"))
    index.add(SIMPLE, _from("PyPI", "torchaudio", "2.11.1", "torch>=2.11"))
    for page in {"cu126", "cu128", "cu130"}.intersection(variants):
        index.add(page, _from(page, "xformers", "0.0.35", "torch>=2.10"))
    for version, torch in (("0.0.32", "torch==2.8.0"), ("0.0.35", "torch>=2.10")):
        index.add(SIMPLE, _from("PyPI", "xformers", version, torch))
    index.add(SIMPLE, _from("PyPI", "vllm", "0.33.0", "torch==2.14.0", "torchvision==0.29.0", "torchaudio==2.11.0"))
    for page in variants:
        for name, wheels in list(index.pages()[page].items()):
            if name not in ("torch", "torchvision", "torchaudio", "xformers"):
                index.add(SIMPLE, *wheels)
    return index


def _add(index: WheelIndex, release: Release, python: str, platform: str) -> None:
    variants = {LINUX: release.linux, ARM: release.arm, WINDOWS: release.windows}[platform].split()
    default = "cpu" if platform == WINDOWS or (platform == ARM and "cu130" not in variants) else release.default
    offers = [(variant, variant, True) for variant in variants]
    offers += [(SIMPLE, default, False)] if default in variants else []
    for page, variant, local in offers:
        is_old = release.old == "all" or variant in release.old.split()
        tag = _OLD.get(platform, (platform, platform))[not local] if is_old else platform
        wheels = [torch_wheel(release.torch, variant, python=python, platform=tag, local=local)]
        for name, version in (("torchvision", release.torchvision), ("torchaudio", release.torchaudio)):
            if version:
                wheels.append(
                    companion_wheel(
                        name, version, variant, release.torch,
                        python=python, platform=tag, local=local, requires=_REQUIRES.get((name, version)),
                    )
                )  # fmt: skip
        index.add(page, *wheels)


def _from(page: str, name: str, version: str, *requires: str) -> Wheel:
    """A wheel without a build in its name, that says which page it came from."""
    return tiny_wheel(name, version, requires=requires, files={f"{name}/page.py": f"page = {page!r}\n"})
