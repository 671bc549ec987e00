"""What people ask: which driver serves which CUDA, which build runs on which GPU, what a number stands for.

The machines below are the ones that installers get wrong; the truth of each is a line of its own.
"""

from __future__ import annotations

from typing import Optional

import pytest

from cudadoctor.matrix import Build, Matrix, MatrixError, numbers
from cudadoctor.parse.versions import satisfies

LINUX = "linux-x86_64"
ARM = "linux-aarch64"
WINDOWS = "windows-x86_64"


# -- does the driver serve this CUDA?


@pytest.mark.parametrize(
    ("driver", "system", "cuda", "answer", "needed"),
    [
        # By major, not by minor: "CUDA 12.2" in nvidia-smi runs every 12.x wheel.
        ("535.183.01", "linux", "12.8", "yes", None),
        ("525.60.13", "linux", "12.9", "yes", None),
        ("550.54.14", "linux", "12.6", "yes", None),
        ("525.60.12", "linux", "12.0", "no", "525.60.13"),
        ("470.223.02", "linux", "11.8", "yes", None),
        ("470.223.02", "linux", "12.1", "no", "525.60.13"),
        ("418.87.00", "linux", "11.8", "no", "450.80.02"),
        ("450.80.02", "linux", "11.8", "yes", None),
        ("450.51.06", "linux", "11.8", "no", "450.80.02"),
        ("579.99", "linux", "13.0", "no", "580.65.06"),
        ("580.65.06", "linux", "13.2", "yes", None),
        ("620.70.06", "linux", "11.7", "yes", None),
        ("700.1", "linux", "13.9", "yes", None),
        # Windows counts in numbers of its own, and WSL in those of Windows.
        ("566.36", "windows", "13.0", "no", "580"),
        ("566.36", "windows", "12.8", "yes", None),
        ("581.29", "windows", "13.2", "yes", None),
        ("527.41", "windows", "12.1", "no", "528.33"),
        ("528.33", "wsl", "12.1", "yes", None),
        ("452.38", "windows", "11.8", "no", "452.39"),
        # The first release of a major came with less than the floor of the whole major, and runs on that.
        ("450.51.06", "linux", "11.0", "yes", None),
        ("450.36.05", "linux", "11.0", "no", "450.80.02"),
        ("527.41", "windows", "12.0", "yes", None),
        ("527.40", "windows", "12.0", "no", "528.33"),
        # Only a branch is given: NVIDIA's own table names the branch.
        ("525", "linux", "12.8", "yes", None),
        # All of R580 serves CUDA 13; of R525 there were earlier ones than 525.60.13.
        ("580.65", "linux", "13.2", "yes", None),
        ("525.60", "linux", "12.8", "unknown", "525.60.13"),
        ("R580", "linux", "13.0", "yes", None),
        ("528", "windows", "12.8", "unknown", "528.33"),
        ("580.95", "linux", "13.0", "yes", None),
        # Before CUDA 11 each minor has its own driver.
        ("440.33", "linux", "10.2", "yes", None),
        ("418.39", "linux", "10.2", "no", "440.33"),
        ("418.87.00", "linux", "10.1", "yes", None),
        ("410.48", "linux", "10.1", "no", "418.39"),
        ("396.37", "linux", "9.2", "yes", None),
        ("425.25", "windows", "10.1", "yes", None),
        ("411.31", "windows", "10.1", "no", "418.96"),
        # What the data does not have is not a no.
        ("580.95.05", "linux", "14.0", "unknown", None),
        ("580.95.05", "linux", "4.0", "unknown", None),
        ("driver", "linux", "12.0", "unknown", None),
        ("580.95.05", "linux", "", "unknown", None),
        ("580.95.05", "linux", "12", "yes", None),
    ],
)
def test_driver_serves(matrix: Matrix, driver: str, system: str, cuda: str, answer: str, needed: Optional[str]) -> None:
    verdict = matrix.driver_serves(driver, system, cuda)
    assert (verdict.answer, verdict.needed) == (answer, needed), verdict.reason
    assert verdict.reason
    if answer in ("yes", "no"):
        assert verdict.source


def test_a_minor_that_is_newer_than_the_drivers_is_never_a_reason(matrix: Matrix) -> None:
    """The classic false alarm, tried on every pair of branch and toolkit of one major."""
    for branch in matrix.branches():
        driver = branch.latest_linux
        if driver is None:
            continue
        for toolkit in matrix.toolkits():
            if numbers(toolkit.cuda)[:1] == numbers(branch.cuda)[:1] and numbers(toolkit.cuda)[0] >= 11:  # type: ignore[index]
                assert matrix.driver_serves(driver, "linux", toolkit.cuda).answer == "yes", (branch.name, toolkit.cuda)


def test_the_needed_driver_is_one_that_serves(matrix: Matrix) -> None:
    for floor in matrix.floors():
        for system in ("linux", "windows", "wsl"):
            verdict = matrix.driver_serves("300.0", system, f"{floor.cuda}.0")
            assert verdict.answer == "no" and verdict.needed
            assert matrix.driver_serves(verdict.needed, system, f"{floor.cuda}.0").answer == "yes"


def test_an_unknown_system_is_a_mistake_of_the_caller(matrix: Matrix) -> None:
    with pytest.raises(ValueError, match="plan9"):
        matrix.driver_serves("580.95.05", "plan9", "13.0")


@pytest.mark.parametrize(
    ("driver", "system", "cuda", "answer"),
    [
        ("535.183.01", "linux", "12.2", "yes"),
        ("535.183.01", "linux", "12.8", "no"),  # runs such a wheel, but cannot compile its PTX
        ("565.57.01", "linux", "12.6", "yes"),
        ("581.29", "windows", "13.0", "yes"),
        ("581.29", "windows", "13.2", "no"),
        ("999.1", "linux", "13.0", "unknown"),
    ],
)
def test_ptx_needs_the_minor(matrix: Matrix, driver: str, system: str, cuda: str, answer: str) -> None:
    assert matrix.ptx_ok(driver, system, cuda).answer == answer


# -- what a driver number is


@pytest.mark.parametrize(
    ("driver", "system", "branch"),
    [
        ("450.80.02", "linux", "R450"),
        ("525.147.05", "linux", "R525"),
        ("580.95.05", "linux", "R580"),
        ("R580", "linux", "R580"),
        ("566.36", "windows", "R565"),
        ("571.96", "windows", "R570"),
        ("573.48", "windows", "R570"),
        ("539.41", "windows", "R535"),
        ("582.53", "windows", "R580"),
        ("596.36", "wsl", "R595"),
        ("616.92", "windows", "R615"),
        ("617.14", "windows", "R615"),
        ("512.15", "wsl", "R510"),
        ("566.36", "linux", None),  # a Windows number is no Linux driver
        ("1.2.3", "linux", None),
        ("", "linux", None),
        ("N/A", "windows", None),
    ],
)
def test_branch_of(matrix: Matrix, driver: str, system: str, branch: Optional[str]) -> None:
    found = matrix.branch_of(driver, system)
    assert (found.name if found else None) == branch


def test_a_windows_number_known_from_memory_only_is_marked(matrix: Matrix) -> None:
    found = matrix.branch_of("575.10", "windows")
    assert found is not None and found.guessed
    sure = matrix.branch_of("576.57", "windows")
    assert sure is not None and not sure.guessed and sure.name == found.name


def test_a_driver_can_show_a_cuda_that_never_had_a_toolkit(matrix: Matrix) -> None:
    branch = matrix.branch("R565")
    assert branch is not None
    assert matrix.toolkit(branch.cuda) is None


def test_toolkit_by_minor_is_its_first_release(matrix: Matrix) -> None:
    first = matrix.toolkit("12.6")
    assert first is not None and first.release == "12.6.0"
    update = matrix.toolkit("12.6.3")
    assert update is not None and update.release == "12.6.3"
    assert matrix.toolkit("12.6.99") is None
    assert matrix.toolkit("cuda") is None


def test_sources_that_disagree_on_an_end_of_life_are_both_told(matrix: Matrix) -> None:
    branch = matrix.branch("R610")
    assert branch is not None
    assert branch.end_of_life and branch.end_of_life_other
    assert branch.end_of_life < branch.end_of_life_other


def test_newer_branches_come_oldest_first(matrix: Matrix) -> None:
    later = [row.linux for row in matrix.newer_branches("R580")]
    assert later == sorted(later) and later and later[0] > 580
    assert matrix.newer_branches("R123") == ()


# -- first and last driver of a GPU


@pytest.mark.parametrize(
    ("what", "first", "decisive", "last"),
    [
        ("RTX 5090", "R570", True, None),
        ("GeForce RTX 4090", "R520", True, None),  # an upper bound of the card alone would say R525
        ("RTX 3090", "R455", True, None),
        ("GTX 1080 Ti", "R367", True, "R580"),
        ("V100", "R384", True, "R580"),
        ("K80", None, None, "R470"),
        ("A100-SXM4-80GB", "R460", True, None),
        ("sm_107", "R615", True, None),
        ("2.0", None, None, "R390"),
        ("1.3", None, None, "R340"),
        ("8.7", None, None, None),
    ],
)
def test_first_and_last_branch(
    matrix: Matrix, what: str, first: Optional[str], decisive: Optional[bool], last: Optional[str]
) -> None:
    match = matrix.gpu(what)
    assert match.found
    for gpu in match.rows[:1] or (match.capability or "",):
        begin, end = matrix.first_branch_for(gpu), matrix.last_branch_for(gpu)
        if first is not None:
            assert begin is not None and (begin.branch, begin.decisive) == (first, decisive)
        else:
            assert begin is None or not begin.decisive
        assert (end.branch if end else None) == last


# -- does this code run on that GPU?


@pytest.mark.parametrize(
    ("sass", "ptx", "gpu", "answer", "via"),
    [
        ("75 80 86 90", "", "8.9", "yes", "sm_86"),  # no sm_89 anywhere, and none needed
        ("75 80 86 90", "", "8.6", "yes", "sm_86"),
        ("80 90", "", "8.6", "yes", "sm_80"),
        ("86 90", "", "8.0", "no", None),  # never downwards
        ("50 60 70", "", "6.1", "yes", "sm_60"),
        ("50 60 70", "", "5.2", "yes", "sm_50"),
        ("75 80 86 90 100 120", "", "6.1", "no", None),
        ("50 60 70 75 80 86 90", "", "12.0", "no", None),  # never across majors
        ("90 100 120", "", "12.1", "yes", "sm_120"),
        ("90 100 120", "", "10.3", "yes", "sm_100"),
        ("37 50", "", "3.7", "yes", "sm_37"),
        ("37 50", "", "3.5", "no", None),
        ("90a", "", "9.0", "yes", "sm_90a"),
        ("100a", "", "10.3", "no", None),  # a suffix binds to exactly that GPU
        ("100f", "", "10.3", "yes", "sm_100f"),
        ("80 86", "", "8.7", "unknown", None),  # desktop code on a Tegra part is not promised
        ("87", "", "8.9", "unknown", None),
        ("87", "", "8.7", "yes", "sm_87"),
        ("80 90 110", "", "11.0", "yes", "sm_110"),
        ("75 80 86 90", "90", "12.0", "likely", "compute_90"),
        ("75", "75", "12.0", "likely", "compute_75"),
        ("120", "120", "9.0", "no", None),  # PTX does not go down either
        ("", "", "8.9", "no", None),
        ("sm_75 sm_86", "compute_86", "8.9", "yes", "sm_86"),
        ("75 86", "", "banana", "unknown", None),
        ("gfx90a", "", "9.0", "unknown", None),  # what cannot be read is not a no
        ("75 gfx90a", "", "7.5", "yes", "sm_75"),
    ],
)
def test_runs_on(matrix: Matrix, sass: str, ptx: str, gpu: str, answer: str, via: Optional[str]) -> None:
    verdict = matrix.runs_on(sass.split(), ptx.split(), gpu)
    assert (verdict.answer, verdict.via) == (answer, via), verdict.reason
    assert verdict.reason


@pytest.mark.parametrize(("compiles", "answer"), [("yes", "likely"), ("no", "no"), ("unknown", "unknown")])
def test_ptx_counts_for_what_the_driver_makes_of_it(matrix: Matrix, compiles: str, answer: str) -> None:
    assert matrix.runs_on(["75"], ["120"], "12.0", ptx_compiles=compiles).answer == answer


def test_where_sources_contradict_each_other_nothing_is_said(matrix: Matrix) -> None:
    assert matrix.runs_on(["75", "80"], [], "7.0", disputed=["70"]).answer == "unknown"
    assert matrix.runs_on(["80", "110"], [], "11.0", disputed=["110"]).answer == "unknown"
    assert matrix.runs_on(["75", "80"], [], "8.6", disputed=["70"]).answer == "yes"


def test_a_guessed_gpu_list_decides_nothing(matrix: Matrix) -> None:
    guessed = [
        build
        for release in matrix.torch_releases()
        for variant in release.variants
        for build in variant.builds
        if build.archs_guessed or build.guessed
    ]
    assert guessed
    for build in guessed:
        for gpu in ("6.1", "8.0", "9.0", "12.0"):
            assert matrix.build_runs_on(build, gpu).answer == "unknown"


# -- which builds run on a machine (GPU code and driver floor only; choosing among them is not the matrix's part)


def _serving(matrix: Matrix, gpu: str, driver: str, system: str, platform: str, python: str = "3.12") -> list[Build]:
    """Every build that has been seen, has code for the GPU, is served by the driver and has a wheel for the Python."""
    found = []
    for release in matrix.torch_releases():
        for build in reversed(release.builds(platform)):
            if build.cuda is None or not build.seen or build.guessed or not build.has_python(python):
                continue
            if matrix.build_runs_on(build, gpu).answer != "yes":
                continue
            if matrix.driver_serves(driver, system, build.cuda).answer == "yes":
                found.append(build)
    return found


@pytest.mark.parametrize(
    ("gpu", "driver", "system", "platform", "python", "newest"),
    [
        # Old cards: the last release with code for them, from cu126, whatever the driver could serve.
        ("GTX 1080", "580.95.05", "linux", LINUX, "3.12", "2.14.1+cu126"),
        ("V100", "580.95.05", "linux", LINUX, "3.12", "2.14.1+cu126"),
        ("GTX 1080 Ti", "580.88", "windows", WINDOWS, "3.12", "2.14.1+cu126"),
        ("GTX 1080 Ti", "470.223.02", "linux", LINUX, "3.11", "2.7.1+cu118"),
        # 12.x-only drivers: the newest 12.x build.
        ("RTX 4090", "550.54.14", "linux", LINUX, "3.12", "2.14.1+cu126"),
        ("RTX 4090", "535.183.01", "linux", LINUX, "3.12", "2.14.1+cu126"),
        ("A100-SXM4-80GB", "550.54.14", "linux", LINUX, "3.12", "2.14.1+cu126"),
        ("RTX 4090", "566.36", "windows", WINDOWS, "3.12", "2.14.1+cu126"),
        # Blackwell has no code in cu126.
        ("RTX 5090", "570.124.06", "linux", LINUX, "3.12", "2.13.0+cu129"),
        ("RTX 5090", "572.61", "windows", WINDOWS, "3.12", "2.11.0+cu128"),
        # Everything new: the newest.
        ("RTX 5090", "580.65.06", "linux", LINUX, "3.12", "2.15.0+cu132"),
        ("RTX 5090", "610.43.02", "linux", LINUX, "3.12", "2.15.0+cu132"),
        ("RTX 4090", "580.95.05", "linux", LINUX, "3.12", "2.15.0+cu132"),
        ("H100 PCIe", "580.95.05", "linux", LINUX, "3.10", "2.14.1+cu132"),
        ("GH200", "580.95.05", "linux", ARM, "3.12", "2.15.0+cu132"),
        ("GB10", "580.95.05", "linux", ARM, "3.12", "2.15.0+cu132"),
        # Windows wheels of the newest release have not been seen on an index.
        ("RTX 5090", "581.29", "windows", WINDOWS, "3.12", "2.14.1+cu132"),
        # A card that nothing current has code for.
        ("K80", "470.256.02", "linux", LINUX, "3.11", "2.7.1+cu118"),
        ("K80", "418.87.00", "linux", LINUX, "3.11", None),
        ("K40m", "470.256.02", "linux", LINUX, "3.11", None),
        # Desktop code on a Jetson is promised by nobody.
        ("Jetson AGX Orin 64 GB", "580.95.05", "linux", ARM, "3.12", None),
    ],
)
def test_the_newest_build_that_runs(
    matrix: Matrix, gpu: str, driver: str, system: str, platform: str, python: str, newest: Optional[str]
) -> None:
    match = matrix.gpu(gpu)
    assert match.capability is not None
    builds = _serving(matrix, match.capability, driver, system, platform, python)
    assert (f"{builds[0].torch}+{builds[0].variant}" if builds else None) == newest


def test_no_single_current_build_serves_blackwell_and_pascal_together(matrix: Matrix) -> None:
    both = [
        build
        for build in _serving(matrix, "12.0", "580.95.05", "linux", LINUX)
        if matrix.build_runs_on(build, "6.1").answer == "yes"
    ]
    assert both == []


@pytest.mark.parametrize(
    ("gpu", "driver", "torch", "variant", "code", "served"),
    [
        ("GTX 1080 Ti", "580.95.05", "2.14.1", "cu130", "no", "yes"),
        ("RTX 5090", "580.95.05", "2.6.0", "cu118", "no", "yes"),
        ("RTX 4090", "580.95.05", "2.14.1", "cu130", "yes", "yes"),
        ("A100-SXM4-80GB", "550.54.14", "2.9.1", "cu128", "yes", "yes"),
        ("GTX 1080 Ti", "470.223.02", "2.7.1", "cu118", "yes", "yes"),
        # Both are wrong: a newer driver alone would not help.
        ("GTX 1080 Ti", "470.223.02", "2.13.0", "cu130", "no", "no"),
        ("RTX 5090", "550.54.14", "2.6.0", "cu124", "no", "yes"),
    ],
)
def test_is_this_environment_all_right(
    matrix: Matrix, gpu: str, driver: str, torch: str, variant: str, code: str, served: str
) -> None:
    release = matrix.torch_release(torch)
    assert release is not None
    build = release.build(variant, LINUX)
    capability = matrix.gpu(gpu).capability
    assert build is not None and build.cuda is not None and capability is not None
    assert matrix.build_runs_on(build, capability, driver, "linux").answer == code
    assert matrix.driver_serves(driver, "linux", build.cuda).answer == served


# -- torch


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("2.14.1", "2.14.1"),
        ("2.14.1+cu126", "2.14.1"),
        ("2.6.0+cpu", "2.6.0"),
        ("2.15.0.dev20260904+cu130", None),  # a nightly is no release
        ("2.7.0rc1", None),
        ("9.9.9", None),
        ("torch", None),
        ("", None),
    ],
)
def test_torch_release(matrix: Matrix, asked: str, found: Optional[str]) -> None:
    release = matrix.torch_release(asked)
    assert (release.version if release else None) == found


def test_arm_wheels_of_the_default_index_had_no_cuda_at_first(matrix: Matrix) -> None:
    defaults = {release.version: release.default.get(ARM) for release in matrix.torch_releases()}
    assert defaults["1.7.1"] is None
    assert defaults["2.10.0"] == "cpu"
    assert defaults["2.11.0"] == "cu130"


def test_the_requirement_is_pinned_with_its_local_version_where_the_wheel_has_one(matrix: Matrix) -> None:
    newest = matrix.torch_release("2.14.1")
    older = matrix.torch_release("2.5.1")
    assert newest is not None and older is not None
    cuda, cpu = newest.build("cu126", LINUX), newest.build("cpu", LINUX)
    assert cuda is not None and cpu is not None
    assert cuda.requirement == "torch==2.14.1+cu126"
    assert cuda.index_url == matrix.index_url("cu126") == "https://download.pytorch.org/whl/cu126"
    assert cpu.requirement == "torch==2.14.1+cpu"
    unmarked = older.build("cu124", ARM)
    mac = newest.build("cpu", "macos-arm64")
    assert unmarked is not None and unmarked.requirement == "torch==2.5.1"
    assert mac is not None and mac.requirement == "torch==2.14.1"


def test_one_variant_of_a_release_can_need_a_newer_glibc(matrix: Matrix) -> None:
    release = matrix.torch_release("2.6.0")
    assert release is not None
    old, new = release.build("cu124", LINUX), release.build("cu126", LINUX)
    assert old is not None and new is not None
    assert (old.glibc, old.cxx11_abi) == ("2.17", False)
    assert (new.glibc, new.cxx11_abi) == ("2.28", True)


def test_free_threaded_pythons_are_their_own(matrix: Matrix) -> None:
    release = matrix.torch_release("2.14.1")
    assert release is not None
    build = release.build("cu130", LINUX)
    assert build is not None
    assert build.has_python("3.14") and build.has_python("3.14t") and not build.has_python("3.13t")
    assert not build.has_python("3.9")


@pytest.mark.parametrize(
    ("package", "version", "torch", "answer"),
    [
        ("torchvision", "0.21.0", "2.6.0", "yes"),
        ("torchvision", "0.21.0+cpu", "2.6.0+cu124", "yes"),  # build tags are another question
        ("torchvision", "0.21.0", "2.7.0", "no"),
        ("torchvision", "0.29.1", "2.15.0", "yes"),
        ("torchvision", "0.29.1", "2.13.0", "no"),
        ("torchaudio", "2.6.0", "2.6.0", "yes"),
        ("torchaudio", "2.6.0", "2.14.1", "no"),
        ("torchaudio", "2.11.0", "2.14.1", "yes"),
        ("torchaudio", "2.11.0", "2.10.0", "no"),
        ("torchvision", "0.99.0", "2.6.0", "unknown"),
        ("torchvision", "0.21.0", "2.16.0.dev20261101", "unknown"),
        ("torchtext", "0.18.0", "2.6.0", "unknown"),
    ],
)
def test_companion_ok(matrix: Matrix, package: str, version: str, torch: str, answer: str) -> None:
    verdict = matrix.companion_ok(package, version, torch)
    assert verdict.answer == answer, verdict.reason


def test_what_pins_torch(matrix: Matrix) -> None:
    pins = matrix.pins("vLLM")
    assert pins and numbers(pins[0].version) == max(numbers(pin.version) or () for pin in pins)
    assert all(pin.torch.startswith("==") for pin in pins)
    assert matrix.pin("flash_attn", "9.9") is None


# -- age


def test_age(matrix: Matrix) -> None:
    assert matrix.age_days(matrix.checked) == 0
    assert matrix.age_days("2020-01-01") == 0
    assert matrix.age_days("2027-11-30") == 365
    with pytest.raises(ValueError):
        matrix.age_days("tomorrow")
    assert numbers(matrix.revision) is not None


def test_records_are_immutable(matrix: Matrix) -> None:
    branch = matrix.branches()[0]
    with pytest.raises(AttributeError):
        branch.cuda = "1.0"  # type: ignore[misc]
    release = matrix.torch_releases()[0]
    with pytest.raises(TypeError):
        release.default["linux-x86_64"] = "cpu"  # type: ignore[index]
    assert issubclass(MatrixError, Exception)


@pytest.mark.parametrize(
    ("branch", "first", "last"),
    [
        ("R390", "Fermi", "Volta"),
        ("R470", "Kepler", "Ampere"),
        ("R525", "Maxwell", "Hopper"),
        ("R580", "Maxwell", "Blackwell"),
        ("R590", "Turing", "Blackwell"),
        ("R615", "Turing", "Blackwell"),
    ],
)
def test_the_oldest_and_the_newest_gpus_of_a_branch(matrix: Matrix, branch: str, first: str, last: str) -> None:
    found = matrix.architectures_of(branch)
    assert (found[0].name, found[-1].name) == (first, last)
    assert not any(row.tegra for row in found)


def test_a_branch_that_is_not_known_drives_nothing_that_is(matrix: Matrix) -> None:
    assert matrix.architectures_of("R999") == ()


# -- packages that are tied to torch or to CUDA


@pytest.mark.parametrize(
    ("name", "found", "torch"),
    [
        ("vllm", "vllm", "=="),
        ("vLLM", "vllm", "=="),
        ("flash_attn", "flash-attn", "built"),
        ("flash-attention", "flash-attn", "built"),
        ("flashinfer", "flashinfer-python", "any"),
        ("jax", "jax", "none"),
        ("cupy-cuda12x", "cupy", "none"),
        ("faiss-gpu-cu11", "faiss-gpu", "none"),
        ("nvidia-cudnn-cu13", "cudnn", "=="),
        ("requests", None, None),
        ("", None, None),
    ],
)
def test_framework(matrix: Matrix, name: str, found: Optional[str], torch: Optional[str]) -> None:
    framework = matrix.framework(name)
    assert (framework.name if framework else None, framework.torch if framework else None) == (found, torch)
    assert framework is None or framework.source


@pytest.mark.parametrize(
    ("name", "cuda", "system", "driver", "capability"),
    [
        ("jax", "13", "linux", "580.65.06", "7.5"),
        ("jax", "12", "linux", "525.60.13", "5.2"),
        ("cupy", "11", "windows", "452.39", None),
        ("tensorrt", "12", "linux", "535", "7.5"),  # more than CUDA 12 itself wants
        ("tensorrt", "12", "wsl", "537", "7.5"),
        ("tensorflow", "13", "linux", None, None),  # there is no such build
        ("xformers", "12", "linux", None, None),  # it follows torch
    ],
)
def test_what_a_framework_wants(
    matrix: Matrix, name: str, cuda: str, system: str, driver: Optional[str], capability: Optional[str]
) -> None:
    framework = matrix.framework(name)
    assert framework is not None
    assert (framework.driver(cuda, system), framework.capability.get(cuda)) == (driver, capability)


@pytest.mark.parametrize(
    ("name", "version", "cuda", "install"),
    [
        ("jax", "0.11.2", "12", "jax[cuda12]==0.11.2"),
        ("jax", "0.11.2", "13", "jax[cuda13]==0.11.2"),
        ("jax", "0.6.2", "13", None),
        ("tensorflow", "2.14.1", "11", "tensorflow[and-cuda]==2.14.1"),
        ("cupy", "14.2.0", "12", "cupy-cuda12x[ctk]==14.2.0"),
        ("cupy", "13.6.0", "12", "cupy-cuda12x==13.6.0"),  # that release had no such extra
        ("onnxruntime-gpu", "1.26.0", "12", "onnxruntime-gpu[cuda,cudnn]==1.26.0"),
        ("faiss-gpu", "1.15.1", "12", "faiss-gpu==1.15.1"),
        ("faiss-gpu", "1.14.1.post1", "12", "faiss-gpu-cu12==1.14.1.post1"),
    ],
)
def test_how_a_release_is_installed(matrix: Matrix, name: str, version: str, cuda: str, install: Optional[str]) -> None:
    release = next(row for row in matrix.framework_releases(name) if row.version == version)
    assert release.install.get(cuda) == install
    assert (cuda in release.cuda) == (install is not None)


def test_each_torch_since_2_1_finds_its_partners(matrix: Matrix) -> None:
    minors = {release.minor for release in matrix.torch_releases() if (numbers(release.version) or ()) >= (2, 1)}
    without = {"vllm": {"2.12", "2.15"}, "xformers": set()}  # no vLLM was ever made for these
    for package, none in without.items():
        served = set()
        for release in matrix.torch_releases():
            for pin in matrix.pins(package):
                if satisfies(release.version, pin.torch):
                    served.add(release.minor)
        assert minors - served == none, package
        assert all(pin.python and pin.date for pin in matrix.pins(package))


# -- forward compatibility packages


@pytest.mark.parametrize(
    ("branch", "cuda", "gpus", "package"),
    [
        ("R535", "13.0", ("8.0",), "cuda-compat-13-0"),
        ("535", "13.2", ("9.0",), "cuda-compat-13-2"),
        ("R535", "13", ("8.0",), "cuda-compat-13-0"),
        ("R470", "12.6", ("8.0",), "cuda-compat-12-6"),
        ("R418", "11.3", ("7.0",), "cuda-compat-11-3"),
        ("R575", "13.2", ("8.0",), "cuda-compat-13-1"),  # none newer for that branch; all of 13.x runs on it
        ("R535", "13.2", ("7.0",), "cuda-compat-13-0"),  # the driver behind 13.2 has dropped Volta
        ("R535", "13.2", ("3.7",), None),
        ("R530", "13.0", (), None),
        ("R535", "14.0", (), None),
        ("R999", "13.0", (), None),
        ("R535", "", (), None),
    ],
)
def test_forward_compat(matrix: Matrix, branch: str, cuda: str, gpus: tuple[str, ...], package: Optional[str]) -> None:
    found = matrix.forward_compat(branch, cuda, gpus)
    assert (found.package if found else None) == package
    assert found is None or found.source


@pytest.mark.parametrize(
    ("klass", "answer"), [("datacenter", "yes"), ("workstation", "some"), ("geforce", "no"), ("soc", "unknown")]
)
def test_forward_compat_is_not_for_every_class_of_gpu(matrix: Matrix, klass: str, answer: str) -> None:
    assert matrix.forward_compat_for(klass) == answer
