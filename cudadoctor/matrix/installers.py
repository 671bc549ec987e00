"""What other installers than pip take: the CUDA builds of conda-forge, and images for containers to build on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Optional

from cudadoctor.model.record import NamedTuple

from .gpu_code import CodeQuestions
from .sections import origin
from .tables import Verdict
from .versions import numbers, torch_key


class CondaBuild(NamedTuple):
    """One CUDA build of PyTorch on conda-forge."""

    torch: str
    cuda: str
    """ "12.9": the toolkit that it was built with."""
    platform: str
    """As of a wheel: linux-x86_64, linux-aarch64, windows-x86_64."""
    pythons: tuple[str, ...]
    pythons_inferred: tuple[str, ...]
    """Those of them that follow from conda-forge's pinning; the packages themselves were not seen."""
    sass: tuple[str, ...]
    """Compiled targets, "86" for sm_86."""
    ptx: tuple[str, ...]
    tegra: bool
    """For Jetson alone (arm-variant tegra)."""
    glibc: Optional[str]
    seen: bool
    """Whether a source has seen the package. What is only in the recipe is never the choice."""
    libtorch_mb: Optional[int]
    """MB of the package libtorch; the CUDA libraries come on top."""
    listed: str
    """Source of its existence."""
    source: str
    """Source of its GPU list."""
    checked: str

    @property
    def build(self) -> str:
        """The start of its build string: "cuda129"."""
        return "cuda" + self.cuda.replace(".", "")

    @property
    def spec(self) -> str:
        """``pytorch=2.12.1=cuda129*``: this release for this CUDA version, and no CPU build."""
        return f"pytorch={self.torch}={self.build}*"


class Image(NamedTuple):
    """A container image, or a row of them: `tag` holds {python}, {cuda} or {torch} where it comes for several."""

    repository: str
    tag: str
    kind: str
    """ "python" (Python included), "system" (a distribution alone), "cuda" (nvidia/cuda), "torch" (torch included)."""
    flavour: Optional[str]
    """ "base", "runtime" or "devel" (with nvcc); None where there is but one."""
    distribution: str
    glibc: Optional[str]
    pythons: tuple[str, ...]
    """What it brings; of a system, its own python3. Empty: not known."""
    cuda: tuple[str, ...]
    """Toolkit releases that it comes for, newest first."""
    torch: Mapping[str, str]
    """torch release -> the CUDA versions that it comes for, "12.6 13.0"."""
    platforms: tuple[str, ...]
    sets_driver_environment: bool
    """Whether the variables of :meth:`InstallerQuestions.container_environment` are set in it."""
    requires_driver: bool
    """Whether it refuses to start on drivers older than its CUDA version."""
    note: Optional[str]
    source: str
    checked: str


class BaseImage(NamedTuple):
    """An image that fits: `reference` as a Dockerfile names it, "python:3.12-slim-trixie"."""

    reference: str
    image: Image


class InstallerQuestions(CodeQuestions):
    """The solver and the container toolkit have rules of their own; GPUs and drivers are asked as for wheels."""

    # -- conda-forge

    def conda_builds(self, platform: Optional[str] = None) -> tuple[CondaBuild, ...]:
        """The CUDA builds of PyTorch on conda-forge, newest torch first, of one torch the newest CUDA first."""
        found = self.once("conda builds", self._make_conda)
        return found if platform is None else tuple(build for build in found if build.platform == platform)

    def _make_conda(self) -> tuple[CondaBuild, ...]:
        data = self.raw("conda_forge")
        builds = [_conda_build(data, row, item) for row in data["release"] for item in row["builds"]]
        builds.sort(key=lambda build: (torch_key(build.torch) or (), numbers(build.cuda) or ()), reverse=True)
        return tuple(builds)

    def conda_virtual(self, cuda: str) -> Optional[str]:
        """What conda's ``__cuda`` must be for packages of a CUDA version: ">=12" for "12.9"; None: not known.

        ``__cuda`` is what the driver shows, or CONDA_OVERRIDE_CUDA where that is set; without a driver there is none.
        """
        major = (numbers(cuda) or (0,))[0]
        for row in self.raw("conda_forge")["virtual"]:
            if row["cuda_major"] == major:
                return str(row["needs"])
        return None

    def conda_build_runs_on(
        self, build: CondaBuild, compute_capability: str, driver: Optional[str] = None, system: Optional[str] = None
    ) -> Verdict:
        """Whether it has code for the GPU, as :meth:`build_runs_on` for a wheel: PTX counts for what the driver
        compiles."""
        compiles = "unknown"
        if build.ptx and driver and system:
            compiles = self.ptx_ok(driver, system, build.cuda).answer
        return self.runs_on(build.sass, build.ptx, compute_capability, (), compiles)._replace(source=build.source)

    def conda_builds_for(
        self,
        compute_capabilities: Iterable[str],
        platform: str,
        *,
        driver: Optional[str] = None,
        system: str = "linux",
        python: Optional[str] = None,
        glibc: Optional[str] = None,
        torch: Optional[str] = None,
        tegra: bool = False,
    ) -> tuple[CondaBuild, ...]:
        """Every seen build that surely runs on all these GPUs, newest first; empty: none is known.

        What is not given (driver, Python, glibc, torch) does not narrow. PTX alone is not enough.
        """
        wanted = tuple(compute_capabilities)
        floor = numbers(glibc) if glibc else None
        release = torch_key(torch) if torch else None
        found = []
        for build in self.conda_builds(platform):
            if not build.seen or build.tegra != tegra or (python and python not in build.pythons):
                continue
            if release and torch_key(build.torch) != release:
                continue
            if floor and build.glibc and (numbers(build.glibc) or ()) > floor:
                continue
            if driver and self.driver_serves(driver, system, build.cuda).answer != "yes":
                continue
            if all(self.conda_build_runs_on(build, one, driver, system).answer == "yes" for one in wanted):
                found.append(build)
        return tuple(found)

    # -- containers

    def images(self, kind: Optional[str] = None) -> tuple[Image, ...]:
        """Images in the order of preference within their kind."""
        found = self.once("images", self._make_images)
        return found if kind is None else tuple(image for image in found if image.kind == kind)

    def _make_images(self) -> tuple[Image, ...]:
        data = self.raw("images")
        return tuple(
            Image(
                row["repository"],
                row["tag"],
                row["kind"],
                row.get("flavour"),
                row["distribution"],
                row.get("glibc"),
                tuple(row["pythons"].split(" ")) if "pythons" in row else (),
                tuple(row["cuda"].split(" ")) if "cuda" in row else (),
                row.get("torch", {}),
                tuple(row["platforms"]),
                bool(row.get("sets_driver_environment", False)),
                bool(row.get("requires_driver", False)),
                row.get("note"),
                *origin(data, row),
            )
            for row in data["image"]
        )

    def container_environment(self) -> Mapping[str, str]:
        """What an image must set for the NVIDIA Container Toolkit to give it GPUs, where it does not do so already."""
        return {row["name"]: row["value"] for row in self.raw("images")["environment"]}

    def python_image(
        self, python: str, platform: str, glibc: Optional[str] = None, glibc_below: Optional[str] = None
    ) -> Optional[BaseImage]:
        """An image with this Python, whose glibc is at least `glibc` and below `glibc_below`; None: none is known.

        The driver and the CUDA libraries need nothing of it. Free-threaded Pythons have no such image.
        """
        for image in self.images("python"):
            if python in image.pythons and platform in image.platforms and _within(image.glibc, glibc, glibc_below):
                return _base(image, python=python)
        return None

    def cuda_image(
        self, cuda: str, platform: str, flavour: str = "devel", glibc: Optional[str] = None
    ) -> Optional[BaseImage]:
        """nvidia/cuda of a CUDA version ("12.6": its newest known release), with nvcc where `flavour` is devel."""
        want = (numbers(cuda) or ())[:2]
        for image in self.images("cuda"):
            if image.flavour != flavour or platform not in image.platforms or not _within(image.glibc, glibc, None):
                continue
            fitting = [one for one in image.cuda if (numbers(one) or ())[:2] == want]
            if fitting:
                return _base(image, cuda=max(fitting, key=lambda one: numbers(one) or ()))
        return None

    def torch_image(self, torch: str, cuda: str, platform: str, flavour: str = "runtime") -> Optional[BaseImage]:
        """pytorch/pytorch with exactly this release and CUDA version; None: no such tag is known."""
        for image in self.images("torch"):
            known = image.torch.get(torch, "").split(" ")
            if image.flavour == flavour and platform in image.platforms and cuda in known:
                return _base(image, torch=torch, cuda=cuda)
        return None


def _conda_build(data: Mapping[str, Any], row: Mapping[str, Any], item: Mapping[str, Any]) -> CondaBuild:
    listed, checked = origin(data, item, "listed")
    return CondaBuild(
        row["version"],
        item["cuda"],
        item["platform"],
        tuple(row["pythons"].split(" ")),
        tuple(row["pythons_inferred"].split(" ")) if "pythons_inferred" in row else (),
        tuple(item["sass"].split(" ")),
        tuple(item["ptx"].split(" ")) if "ptx" in item else (),
        bool(item.get("tegra", False)),
        item.get("glibc"),
        bool(item.get("seen", True)),
        item.get("libtorch_mb"),
        listed,
        origin(data, item, "archs")[0],
        checked,
    )


def _within(have: Optional[str], least: Optional[str], below: Optional[str]) -> bool:
    """Whether a glibc lies in the range; one that is not known lies in none but the open one."""
    if have is None:
        return least is None and below is None
    own = numbers(have) or ()
    return not (least and own < (numbers(least) or ())) and not (below and own >= (numbers(below) or ()))


def _base(image: Image, **values: str) -> BaseImage:
    return BaseImage(f"{image.repository}:{image.tag.format(**values)}", image)
