"""conda-forge's builds and container images: what holds of the rows, and what people ask them."""

from __future__ import annotations

import pytest

from cudadoctor.matrix import BaseImage, CondaBuild, Matrix, capability, numbers, torch_key
from cudadoctor.matrix.versions import target

# -- conda-forge: the rows


def test_builds_come_newest_first(matrix: Matrix) -> None:
    order = [(torch_key(build.torch) or (), numbers(build.cuda) or ()) for build in matrix.conda_builds()]
    assert order == sorted(order, reverse=True)
    assert len(order) > 30


def test_every_cuda_version_has_its_constraint_and_a_toolkit(matrix: Matrix) -> None:
    for build in matrix.conda_builds():
        major = build.cuda.split(".")[0]
        assert matrix.conda_virtual(build.cuda) == f">={major}"
        assert matrix.toolkit(build.cuda) is not None, build.cuda


def test_every_target_is_a_gpu_that_is_known(matrix: Matrix) -> None:
    known = {capability(one) for row in matrix.architectures() for one in row.capability}
    for build in matrix.conda_builds():
        for text in (*build.sass, *build.ptx):
            found = target(text)
            assert found is not None
            assert (found.major, found.minor) in known, (build.torch, text)


def test_ptx_is_that_of_the_last_target_as_the_recipe_s_plus_says(matrix: Matrix) -> None:
    for build in matrix.conda_builds():
        assert build.ptx == build.sass[-1:], build


def test_what_is_for_jetson_serves_jetson_alone(matrix: Matrix) -> None:
    tegra = [build for build in matrix.conda_builds() if build.tegra]
    assert tegra
    for build in tegra:
        assert build.platform == "linux-aarch64"
        assert build.sass == ("87",)


def test_pythons_that_are_inferred_are_among_the_pythons(matrix: Matrix) -> None:
    for build in matrix.conda_builds():
        assert set(build.pythons_inferred) <= set(build.pythons)


def test_a_release_of_conda_forge_is_a_release_of_torch(matrix: Matrix) -> None:
    for build in matrix.conda_builds():
        assert matrix.torch_release(build.torch) is not None, build.torch


# -- conda-forge: questions


def newest(builds: tuple[CondaBuild, ...]) -> str:
    return builds[0].spec if builds else "none"


@pytest.mark.parametrize(
    ("gpus", "driver", "wanted"),
    [
        (["8.9"], "580.95.05", "pytorch=2.13.0=cuda129*"),
        (["8.9"], "535.183.01", "pytorch=2.13.0=cuda129*"),  # the driver's CUDA major is what counts
        (["6.1"], "580.95.05", "pytorch=2.13.0=cuda129*"),
        (["6.1", "12.0"], "580.95.05", "pytorch=2.13.0=cuda129*"),  # one build for both: no wheel of PyTorch's is
        (["8.9"], "470.256.02", "pytorch=2.4.1=cuda118*"),
        (["3.5"], "470.256.02", "pytorch=2.4.1=cuda118*"),
        (["3.0"], "470.256.02", "none"),
    ],
)
def test_which_build_serves(matrix: Matrix, gpus: list[str], driver: str, wanted: str) -> None:
    assert newest(matrix.conda_builds_for(gpus, "linux-x86_64", driver=driver)) == wanted


def test_a_build_that_was_not_seen_is_never_offered(matrix: Matrix) -> None:
    announced = {(build.torch, build.cuda, build.platform) for build in matrix.conda_builds() if not build.seen}
    assert announced
    for platform in ("linux-x86_64", "linux-aarch64", "windows-x86_64"):
        for build in matrix.conda_builds_for([], platform):
            assert (build.torch, build.cuda, build.platform) not in announced


def test_windows_counts_in_windows_numbers(matrix: Matrix) -> None:
    on_552 = matrix.conda_builds_for(["8.9"], "windows-x86_64", driver="552.12", system="windows")
    assert {build.cuda.split(".")[0] for build in on_552} == {"12"}
    on_581 = matrix.conda_builds_for(["8.9"], "windows-x86_64", driver="581.57", system="windows")
    assert on_581[0].cuda.split(".")[0] == "13"


def test_what_is_asked_for_narrows(matrix: Matrix) -> None:
    found = matrix.conda_builds_for(["8.6"], "linux-x86_64", python="3.9", torch="2.6.0", glibc="2.17")
    assert [build.spec for build in found] == ["pytorch=2.6.0=cuda126*"]
    assert matrix.conda_builds_for(["8.6"], "linux-x86_64", python="3.13t") == ()
    assert matrix.conda_builds_for(["8.6"], "macos-arm64") == ()


def test_jetson_and_a_server_take_different_builds(matrix: Matrix) -> None:
    (orin, *_) = matrix.conda_builds_for(["8.7"], "linux-aarch64", tegra=True)
    assert orin.tegra
    assert all(not build.tegra for build in matrix.conda_builds_for(["9.0"], "linux-aarch64"))


def test_ptx_alone_is_likely_at_most(matrix: Matrix) -> None:
    build = next(build for build in matrix.conda_builds("linux-x86_64") if build.ptx == ("90",))
    verdict = matrix.conda_build_runs_on(build, "12.0", "580.95.05", "linux")
    assert verdict.answer in ("likely", "unknown")
    assert verdict.source == build.source


# -- images


def reference(found: BaseImage | None) -> str:
    return found.reference if found else "none"


@pytest.mark.parametrize(
    ("python", "glibc", "below", "wanted"),
    [
        ("3.12", "2.28", None, "python:3.12-slim-trixie"),
        ("3.15", "2.28", None, "python:3.15-slim-trixie"),
        ("3.8", "2.17", None, "python:3.8-slim-bookworm"),
        ("3.6", "2.17", None, "python:3.6-slim-bullseye"),
        ("3.9", "2.17", "2.41", "python:3.9-slim-bookworm"),  # torch 1.10 to 1.12: glibc 2.41 does not load them
        ("3.13t", "2.28", None, "none"),
        ("3.12", "2.99", None, "none"),
    ],
)
def test_an_image_with_that_python(matrix: Matrix, python: str, glibc: str, below: str | None, wanted: str) -> None:
    assert reference(matrix.python_image(python, "linux-x86_64", glibc, below)) == wanted


def test_every_default_build_for_linux_finds_an_image(matrix: Matrix) -> None:
    for release in matrix.torch_releases():
        for platform in ("linux-x86_64", "linux-aarch64"):
            build = release.build(release.default.get(platform, ""), platform)
            for python in build.pythons if build else ():
                if build and not python.endswith("t"):
                    found = matrix.python_image(python, platform, build.glibc, build.glibc_below)
                    assert found is not None, (release.version, python)


@pytest.mark.parametrize(
    ("cuda", "flavour", "wanted"),
    [
        ("12.6", "devel", "nvidia/cuda:12.6.3-devel-ubuntu24.04"),
        ("13.2", "devel", "nvidia/cuda:13.2.1-devel-ubuntu24.04"),
        ("12.1", "devel", "nvidia/cuda:12.1.1-devel-ubuntu22.04"),
        ("9.2", "devel", "none"),
        ("12.1", "runtime", "none"),
    ],
)
def test_an_image_with_nvcc(matrix: Matrix, cuda: str, flavour: str, wanted: str) -> None:
    assert reference(matrix.cuda_image(cuda, "linux-x86_64", flavour)) == wanted


def test_an_image_with_torch_is_exact_or_none(matrix: Matrix) -> None:
    found = matrix.torch_image("2.14.1", "13.2", "linux-x86_64")
    assert reference(found) == "pytorch/pytorch:2.14.1-cuda13.2-cudnn9-runtime"
    assert matrix.torch_image("2.14.1", "12.8", "linux-x86_64") is None
    assert matrix.torch_image("2.14.1", "13.2", "linux-aarch64") is None


def test_tags_are_filled_in_whole(matrix: Matrix) -> None:
    """No tag keeps a place for a value that its row does not have."""
    for image in matrix.images():
        places = {word for word in ("python", "cuda", "torch") if "{" + word + "}" in image.tag}
        assert (
            places == {"python": {"python"}, "system": set(), "cuda": {"cuda"}, "torch": {"torch", "cuda"}}[image.kind]
        )


def test_images_that_come_for_a_build_come_for_a_build_that_exists(matrix: Matrix) -> None:
    for image in matrix.images("torch"):
        for torch, versions in image.torch.items():
            for cuda in versions.split(" "):
                release = matrix.torch_release(torch)
                assert release is not None
                assert any(variant.cuda == cuda for variant in release.variants), (torch, cuda)


def test_what_the_container_toolkit_goes_by(matrix: Matrix) -> None:
    assert matrix.container_environment()["NVIDIA_VISIBLE_DEVICES"] == "all"
    assert "compute" in matrix.container_environment()["NVIDIA_DRIVER_CAPABILITIES"]
