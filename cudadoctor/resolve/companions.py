"""torchvision and torchaudio: which version, in which build, belongs to a build of torch."""

from __future__ import annotations

from functools import lru_cache
from typing import Optional

from cudadoctor.matrix import Build, Matrix, TorchRelease, numbers
from cudadoctor.model import ParseError
from cudadoctor.parse.dist_info import parse_requirement
from cudadoctor.resolve.need import Need


@lru_cache(maxsize=256)
def asked(text: str) -> tuple[str, str]:
    """ "vllm<0.30" as a person asks for it: the package and what its version has to be (empty: anything)."""
    try:
        found = parse_requirement(text)
    except ParseError:
        return text, ""
    return found.name, found.specifier


def wanted_companions(need: Need) -> tuple[tuple[str, str], ...]:
    """Companions that have to be there, and in which range: those that are installed and those that were asked for."""
    wanted = {name: "" for name, _ in need.installed.companions} if need.installed else {}
    for text in need.companions:
        name, specifier = asked(text)
        wanted[name] = specifier
    return tuple(wanted.items())


def companion_version(name: str, build: Build, release: TorchRelease, matrix: Matrix) -> Optional[str]:
    """The version of torchvision or torchaudio that belongs to `build`, with its local part where it has one.

    A companion that several torch releases share was built beside the first of them, for the variants of that time.
    """
    version = release.companions.get(name)
    if version is None or not numbers(version):
        return None
    first = _first_release_with(name, version, matrix) or release
    twin = first.build(build.variant, build.platform)
    if twin is None or (not twin.seen and twin.torch != build.torch):
        return None
    tagged = twin.local is not None and name not in first.companions_untagged
    return version + (f"+{twin.local}" if tagged else "")


def _first_release_with(name: str, version: str, matrix: Matrix) -> Optional[TorchRelease]:
    def make() -> Optional[TorchRelease]:
        for release in reversed(matrix.torch_releases()):
            if release.companions.get(name) == version:
                return release
        return None

    return matrix.once(f"first torch with {name} {version}", make)
