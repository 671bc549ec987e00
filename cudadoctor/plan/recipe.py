"""What the forms for other programs are made of: the choice, where its wheels lie, and what surrounds it. Pure."""

from __future__ import annotations

from typing import Optional

from cudadoctor.matrix import Matrix, TorchRelease, numbers
from cudadoctor.model.record import NamedTuple
from cudadoctor.plan.context import index_of
from cudadoctor.plan.index import Index
from cudadoctor.plan.plan import Options
from cudadoctor.resolve import Choice, Need, Resolution

_PLATFORM_WORDS = {
    "linux-x86_64": "sys_platform == 'linux' and platform_machine == 'x86_64'",
    "linux-aarch64": "sys_platform == 'linux' and platform_machine == 'aarch64'",
    "windows-x86_64": "sys_platform == 'win32'",
}
MACOS = ("macos-arm64", "macos-x86_64")


class Recipe(NamedTuple):
    """`pins` and `extras` (from PyPI) are what is installed; `python` is the Python that it is for, picked among the
    choice's where nobody named one; `elsewhere` are the pins for macOS, empty where that release has no wheel for it;
    `has_windows`: the same build is there for Windows too; `need`: the machine."""

    choice: Choice
    source: Index
    pins: tuple[str, ...]
    extras: tuple[str, ...]
    python: str
    is_python_given: bool
    elsewhere: tuple[str, ...]
    platforms: tuple[str, ...]
    need: Need

    @property
    def marker(self) -> str:
        """The environment marker of the platforms on which the build exists; empty where that is nearly everywhere."""
        if self.elsewhere and set(self.platforms) >= {"linux-x86_64", "windows-x86_64"}:
            return "sys_platform != 'darwin'"
        if set(self.platforms) >= {"linux-x86_64", "linux-aarch64", "windows-x86_64"}:
            return "sys_platform != 'darwin'"
        words = [_PLATFORM_WORDS[name] for name in self.platforms if name in _PLATFORM_WORDS]
        if {"linux-x86_64", "linux-aarch64"} <= set(self.platforms):
            words = ["sys_platform == 'linux'", *([_PLATFORM_WORDS["windows-x86_64"]] if len(words) > 2 else [])]
        if len(words) == 1:
            return words[0]
        return " or ".join(f"({word})" if " and " in word else word for word in words)

    @property
    def system(self) -> str:
        return "windows" if self.need.platform.startswith("windows") else "linux"

    @property
    def arch(self) -> str:
        return self.need.platform.partition("-")[2]


def recipe(found: Resolution, need: Need, matrix: Matrix, options: Options) -> Optional[Recipe]:
    """None without a choice."""
    choice = found.choice
    if choice is None:
        return None
    release = matrix.torch_release(choice.torch)
    platforms = _platforms(release, choice)
    return Recipe(
        choice,
        index_of(choice.variant, matrix, options),
        choice.requirements,
        (
            *(f"{name}=={version}" for name, version in choice.partners),
            *(item.requirement for item in found.frameworks if item.requirement is not None),
        ),
        (choice.python or _usual(choice.pythons)).rstrip("t"),
        choice.python is not None,
        _on_macos(release, choice),
        platforms,
        need,
    )


def _platforms(release: Optional[TorchRelease], choice: Choice) -> tuple[str, ...]:
    variant = release.variant(choice.variant) if release is not None else None
    if variant is None:
        return (choice.platform,)
    return tuple(build.platform for build in variant.builds if build.seen and build.platform not in MACOS)


def _on_macos(release: Optional[TorchRelease], choice: Choice) -> tuple[str, ...]:
    """The same versions without their builds, where the default index has them for Macs."""
    if release is None or not any(release.build("cpu", platform) for platform in MACOS):
        return ()
    return (f"torch=={choice.torch}", *(f"{name}=={version.partition('+')[0]}" for name, version in choice.companions))


def _usual(pythons: tuple[str, ...]) -> str:
    """The Python that most people would take of several: neither the oldest nor the newest."""
    plain = sorted((python for python in pythons if not python.endswith("t")), key=lambda text: numbers(text) or ())
    return plain[len(plain) // 2]
