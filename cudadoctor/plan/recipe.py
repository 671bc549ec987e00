"""What the forms for other programs are made of: the choice, where its wheels lie, and what surrounds it. Pure."""

from __future__ import annotations

from typing import Optional

from cudadoctor.matrix import Matrix, TorchRelease, numbers
from cudadoctor.matrix.installers import BaseImage, CondaBuild
from cudadoctor.model.record import NamedTuple
from cudadoctor.parse.versions import satisfies
from cudadoctor.plan.context import index_of
from cudadoctor.plan.index import ON_TORCHS_INDEX, Index
from cudadoctor.plan.plan import Options
from cudadoctor.resolve import Choice, Need, Resolution, fitting_branch
from cudadoctor.resolve.judge import torch_specifier
from cudadoctor.resolve.need import BROKEN, BY_DRIVER, UNKNOWN
from cudadoctor.resolve.need import NONE as ABSENT

_PLATFORM_WORDS = {
    "linux-x86_64": "sys_platform == 'linux' and platform_machine == 'x86_64'",
    "linux-aarch64": "sys_platform == 'linux' and platform_machine == 'aarch64'",
    "windows-x86_64": "sys_platform == 'win32'",
}
# Come as source, and are compiled for the torch that is there.
COMPILED = ("flash-attn", "transformer-engine", "deepspeed")
MACOS = ("macos-arm64", "macos-x86_64")


class Recipe(NamedTuple):
    """`pins` lie on the index at `source`, `extras` on PyPI; `python` is the Python that it is for, picked among the
    choice's where nobody named one; `elsewhere` are the pins for macOS, empty where that release has no wheel for it;
    `platforms` are those on which the same build exists. `conda`: the CUDA build of conda-forge that serves the machine
    best (None: none is known). `image`: a container image to build on, `variables` what it has to set for the GPUs.
    `override`: what CONDA_OVERRIDE_CUDA says where the driver is not at hand. `need`: the machine."""

    choice: Choice
    source: Index
    pins: tuple[str, ...]
    extras: tuple[str, ...]
    python: str
    is_python_given: bool
    elsewhere: tuple[str, ...]
    platforms: tuple[str, ...]
    need: Need
    conda: Optional[CondaBuild] = None
    override: Optional[str] = None
    image: Optional[BaseImage] = None
    variables: tuple[tuple[str, str], ...] = ()

    @property
    def is_free_threaded(self) -> bool:
        return bool(self.choice.python and self.choice.python.endswith("t"))

    @property
    def marker(self) -> str:
        """The environment marker of the platforms on which the build exists; empty for a Mac, which has no builds to
        choose among."""
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
    python = (choice.python or _usual(_pythons(choice, matrix))).rstrip("t")
    partners = [(name, f"{name}=={version}") for name, version in choice.partners]
    image = _image(choice, python, matrix)
    after = after_driver(found, need, matrix)
    return Recipe(
        choice,
        index_of(choice.variant, matrix, options),
        (*choice.requirements, *(pin for name, pin in partners if name in ON_TORCHS_INDEX)),
        (
            *(pin for name, pin in partners if name not in ON_TORCHS_INDEX),
            *(item.requirement for item in found.frameworks if item.requirement is not None),
        ),
        python,
        choice.python is not None,
        _on_macos(release, choice),
        _platforms(release, choice),
        need,
        conda_build(choice, after, matrix),
        _override(after, matrix),
        image,
        _variables(image, choice, matrix),
    )


def after_driver(found: Resolution, need: Need, matrix: Matrix) -> Need:
    """The machine as it is once the plan's driver step is taken; as it is now where there is none."""
    needed = 0
    if found.choice is None:
        blocker = next((b for b in found.blocked_by if b.by == BY_DRIVER and b.needed is not None), None)
        if blocker is None:
            return need
        row = matrix.branch_of(blocker.needed or "", need.numbering)
        needed = row.linux if row is not None else 0
    elif found.driver_first is None:
        return need
    branch = fitting_branch(need.gpus, matrix, needed, need.numbering)
    number = branch.number(need.numbering) if branch is not None else None
    return need if number is None else need._replace(driver=number, driver_state=UNKNOWN)


def conda_build(choice: Choice, need: Need, matrix: Matrix) -> Optional[CondaBuild]:
    """Of conda-forge's CUDA builds that surely run on this machine the one of the chosen release, else the newest."""
    if choice.cuda is None or not need.gpus:
        return None
    builds = matrix.conda_builds_for(
        {gpu.capability for gpu in need.gpus if gpu.capability},
        need.platform,
        driver=need.driver if need.driver_state not in (BROKEN, ABSENT) else None,
        system=need.numbering,
        python=need.python_tag,
        glibc=need.glibc,
        tegra=need.jetson,
    )
    asked = torch_specifier(need.torch)
    fitting = [build for build in builds if not asked or satisfies(build.torch, asked)]
    same = [build for build in fitting if numbers(build.torch) == numbers(choice.torch)]
    return next(iter(same or fitting), None)


def _override(need: Need, matrix: Matrix) -> Optional[str]:
    """The CUDA version that the machine's driver shows, which is what conda asks for."""
    branch = matrix.branch_of(need.driver, need.numbering) if need.driver is not None else None
    return None if branch is None or branch.guessed else branch.cuda


def _image(choice: Choice, python: str, matrix: Matrix) -> Optional[BaseImage]:
    """A container is Linux, whatever runs it."""
    platform = choice.platform if choice.platform.startswith("linux") else "linux-x86_64"
    release = matrix.torch_release(choice.torch)
    build = release.build(choice.variant, platform) if release is not None else None
    glibc = build.glibc if build is not None else None
    compiled = [name for name, _ in choice.partners if _is_compiled(name, matrix)]
    if compiled and choice.cuda is not None:
        image = matrix.cuda_image(choice.cuda, platform, "devel", glibc)
        # Its own Python is the only one there.
        if image is not None and python in image.image.pythons:
            return image
    newest = matrix.python_image(python, platform, glibc)
    if newest is None or glibc in matrix.glibc_floors(platform)[:1]:
        return newest
    # An old wheel may ask for an executable stack, which the newest glibc grants to no library.
    return matrix.python_image(python, platform, glibc, newest.image.glibc) or newest


def _is_compiled(name: str, matrix: Matrix) -> bool:
    """Whether an install of the package wants nvcc: it comes as source, for the torch that is there."""
    row = matrix.framework(name)
    return row is not None and row.name in COMPILED


def _variables(image: Optional[BaseImage], choice: Choice, matrix: Matrix) -> tuple[tuple[str, str], ...]:
    if choice.cuda is None or (image is not None and image.image.sets_driver_environment):
        return ()
    return tuple(matrix.container_environment().items())


def _platforms(release: Optional[TorchRelease], choice: Choice) -> tuple[str, ...]:
    if choice.platform in MACOS:
        return ()
    variant = release.variant(choice.variant) if release is not None else None
    if variant is None:
        return (choice.platform,)
    return tuple(
        build.platform
        for build in variant.builds
        # CPU wheels for aarch64 have no build in their version.
        if build.seen and build.platform not in MACOS and build.local == choice.local
    )


def _on_macos(release: Optional[TorchRelease], choice: Choice) -> tuple[str, ...]:
    """The same versions without their builds, where the default index has them for Macs."""
    if release is None or not any(release.build("cpu", platform) for platform in MACOS):
        return ()
    return (f"torch=={choice.torch}", *(f"{name}=={version.partition('+')[0]}" for name, version in choice.companions))


def _pythons(choice: Choice, matrix: Matrix) -> tuple[str, ...]:
    """The Pythons that the choice has wheels for, and that the packages which were asked for beside it take."""
    pins = [pin for name, version in choice.partners if (pin := matrix.pin(name, version)) is not None and pin.python]
    fitting = tuple(
        python
        for python in choice.pythons
        if all(satisfies(python.rstrip("t"), pin.python or "") is not False for pin in pins)
    )
    return fitting or choice.pythons


def _usual(pythons: tuple[str, ...]) -> str:
    """The Python that most people would take of several: neither the oldest nor the newest."""
    plain = sorted((python for python in pythons if not python.endswith("t")), key=lambda text: numbers(text) or ())
    return plain[len(plain) // 2]
