"""Distributions, compilers, libraries and power plans."""

from __future__ import annotations

from typing import Optional

import pytest

from cudadoctor.matrix import Matrix

KERNEL = "6.8.0-40-generic"


@pytest.mark.parametrize(
    ("id", "id_like", "version", "row", "relative"),
    [
        ("ubuntu", "debian", "24.04", "ubuntu", False),
        ("linuxmint", "ubuntu debian", "22", "ubuntu", True),
        ("pop", "ubuntu debian", "22.04", "ubuntu", True),
        ("debian", "", "13", "debian", False),
        ("rocky", "rhel centos fedora", "9.4", "rhel", False),
        ("almalinux", "rhel centos fedora", "10.0", "rhel", False),
        ("fedora", "", "43", "fedora", False),
        ("opensuse-leap", "suse opensuse", "15.6", "opensuse-tumbleweed", False),
        ("sles", "suse", "15.7", "sles", False),
        ("arch", "", None, "arch", False),
        ("endeavouros", "arch", None, "arch", True),
        ("amzn", "fedora", "2023", "amzn", False),
        ("UBUNTU", "", "24.04", "ubuntu", False),
        ("rhel", "fedora", "7.9", None, False),  # too old for the commands that are known
        ("wolfi", "", "1", None, False),
        ("", "", None, None, False),
    ],
)
def test_distribution(
    matrix: Matrix, id: str, id_like: str, version: Optional[str], row: Optional[str], relative: bool
) -> None:
    found = matrix.distribution(id, id_like, version)
    assert (found.id if found else None) == row
    if found:
        assert found.relative == relative


@pytest.mark.parametrize(
    ("id", "version", "driver", "initramfs", "rebuild"),
    [
        (
            "ubuntu",
            "24.04",
            ("apt-get", "install", "nvidia-driver-580-open"),
            ("update-initramfs", "-u"),
            ("dkms", "autoinstall", "-k", KERNEL),
        ),
        (
            "debian",
            "13",
            ("apt-get", "install", "nvidia-driver", "nvidia-open-kernel-dkms"),
            ("update-initramfs", "-u"),
            ("dkms", "autoinstall", "-k", KERNEL),
        ),
        (
            "fedora",
            "43",
            ("dnf", "install", "akmod-nvidia", "xorg-x11-drv-nvidia-cuda"),
            ("dracut", "--force"),
            ("akmods", "--force", "--kernels", KERNEL),
        ),
        (
            "rocky",
            "9.4",
            ("dnf", "install", "nvidia-open"),
            ("dracut", "--force"),
            ("dkms", "autoinstall", "-k", KERNEL),
        ),
        (
            "arch",
            None,
            ("pacman", "-S", "--needed", "nvidia-open-dkms", "nvidia-utils"),
            ("mkinitcpio", "-P"),
            ("dkms", "autoinstall", "-k", KERNEL),
        ),
    ],
)
def test_the_distributions_own_commands(
    matrix: Matrix,
    id: str,
    version: Optional[str],
    driver: tuple[str, ...],
    initramfs: tuple[str, ...],
    rebuild: tuple[str, ...],
) -> None:
    row = matrix.distribution(id, "", version)
    assert row is not None
    assert row.install_command(row.driver_packages(580, open_modules=True)) == driver
    assert row.initramfs == initramfs
    assert row.rebuild(KERNEL) == rebuild


def test_each_distribution_can_install_and_remove_and_says_what_pip_needs(matrix: Matrix) -> None:
    for data in matrix.raw("distributions")["distribution"]:
        version = {">=10": "10.0", ">=8 <10": "9.4", ">=2023": "2023"}.get(data.get("versions", ""))
        row = matrix.distribution(data["id"], "", version)
        assert row is not None and row.title == data["title"]
        assert row.install and row.remove and row.venv and row.pip
        assert row.install_command(("x",))[-1] == "x"
        assert row.remove_command(("x",))[-1] == "x"
        for word in (*row.headers(KERNEL), *row.rebuild(KERNEL), *row.driver_packages(580, True)):
            assert "{" not in word, (row.id, word)
        assert "{" not in (row.compiler_package(13) or "")
        assert all("{" not in word for word in row.kernel_args("nvidia-drm.modeset=1"))


def test_a_release_that_is_bound_to_an_old_branch_says_so(matrix: Matrix) -> None:
    debian = matrix.distribution("debian", "", "13")
    assert debian is not None
    branch = debian.driver_branch()
    assert branch is not None
    shown = matrix.branch(branch)
    assert shown is not None
    assert matrix.driver_serves(shown.latest_linux or "", "linux", "12.6").answer == "yes"
    assert matrix.driver_serves(shown.latest_linux or "", "linux", "13.0").answer == "no"
    assert debian.nvidia_packages(open_modules=True)
    relative = matrix.distribution("kali", "debian", "2026.1")
    assert relative is not None and relative.driver_branch() is None


def test_cards_that_newer_branches_dropped_have_packages_of_their_own(matrix: Matrix) -> None:
    ubuntu = matrix.distribution("ubuntu", "", "24.04")
    fedora = matrix.distribution("fedora", "", "43")
    arch = matrix.distribution("arch")
    assert ubuntu and fedora and arch
    assert ubuntu.driver_packages(470, open_modules=False) == ("nvidia-driver-470",)
    assert fedora.driver_packages(580, open_modules=False)[0] == "akmod-nvidia-580xx"
    assert arch.driver_packages(580, open_modules=False) == ("AUR:nvidia-580xx-dkms",)
    assert arch.driver_packages(595, open_modules=False) == ()


@pytest.mark.parametrize("kernel", ["", "6.8; rm -rf /", "$(reboot)", "../..", "6.8\n", "a b"])
def test_a_kernel_name_that_is_none_reaches_no_command(matrix: Matrix, kernel: str) -> None:
    row = matrix.distribution("ubuntu", "", "24.04")
    assert row is not None
    assert row.headers(kernel) == () and row.rebuild(kernel) == ()


# -- compilers


@pytest.mark.parametrize(
    ("cuda", "gcc"),
    [("12.6", 13), ("12.8", 14), ("13.0", 15), ("13.4", 16), ("12.6.3", 13), ("12.7", None), ("x", None)],
)
def test_host_compiler(matrix: Matrix, cuda: str, gcc: Optional[int]) -> None:
    row = matrix.host_compiler(cuda)
    assert (row.gcc_max if row else None) == gcc


def test_a_newer_toolkit_takes_at_least_the_compilers_of_the_older(matrix: Matrix) -> None:
    rows = [matrix.host_compiler(row["cuda"]) for row in matrix.raw("host_compilers")["compiler"]]
    for newer, older in zip(rows, rows[1:]):
        assert newer is not None and older is not None
        assert newer.gcc_max >= older.gcc_max
        assert newer.clang_max >= older.clang_max
        assert newer.msvc_below >= older.msvc_below
        assert matrix.toolkit(newer.cuda) is not None


# -- libraries


@pytest.mark.parametrize(
    ("name", "major", "packages"),
    [
        ("libcudart.so.13", None, ("nvidia-cuda-runtime",)),
        ("libcudart.so.12", None, ("nvidia-cuda-runtime-cu12",)),
        ("libcudart.so.11.0", None, ("nvidia-cuda-runtime-cu11",)),
        ("libcudart.so.12.6.77", None, ("nvidia-cuda-runtime-cu12",)),
        ("libnvJitLink.so.12", None, ("nvidia-nvjitlink-cu12",)),
        ("libcublasLt.so.12", None, ("nvidia-cublas-cu12",)),
        ("libcudnn.so.9", 12, ("nvidia-cudnn-cu12",)),
        ("libcudnn.so.9", 13, ("nvidia-cudnn-cu13",)),
        ("libcusparse.so.12", 12, ("nvidia-cusparse-cu12",)),
        ("libcusparse.so.12", 13, ("nvidia-cusparse",)),
        ("libcufft.so.11", None, ("nvidia-cufft-cu12",)),
        ("libnccl.so.2", 13, ("nvidia-nccl-cu13",)),
        ("libcudart.so.99", None, ()),
        ("cudart64_12.dll", None, ("nvidia-cuda-runtime-cu12",)),
        ("cudart64_110.dll", None, ("nvidia-cuda-runtime-cu11",)),
        ("nvrtc64_120_0.dll", None, ("nvidia-cuda-nvrtc-cu12",)),
        ("cudnn64_9.dll", 12, ("nvidia-cudnn-cu12",)),
    ],
)
def test_the_wheel_that_brings_a_library(
    matrix: Matrix, name: str, major: Optional[int], packages: tuple[str, ...]
) -> None:
    found = matrix.library(name, major)
    assert found is not None and found.packages == packages and not found.from_driver


@pytest.mark.parametrize("name", ["libcuda.so.1", "libnvidia-ml.so.1", "nvml.dll", "nvcuda.dll"])
def test_what_the_driver_brings_has_no_wheel(matrix: Matrix, name: str) -> None:
    found = matrix.library(name)
    assert found is not None and found.from_driver and found.packages == ()


@pytest.mark.parametrize("name", ["libm.so.6", "libstdc++.so.6", "", "kernel32.dll", "libcudartx.so.1"])
def test_other_libraries_are_not_ours(matrix: Matrix, name: str) -> None:
    assert matrix.library(name) is None


def test_kernel_modules(matrix: Matrix) -> None:
    assert {"nvidia", "nvidia_uvm"} <= set(matrix.kernel_modules("nvidia"))
    assert "nouveau" in matrix.kernel_modules("nouveau")


# -- power plans


def test_power_plans_are_known_by_guid_in_any_spelling(matrix: Matrix) -> None:
    plan = matrix.power_plan("{381B4222-F694-41F0-9685-FF5BB260DF2E}")
    assert plan is not None and plan.kind == "balanced" and not plan.overlay
    fast = [row for row in matrix.power_plans() if row.kind == "performance" and not row.overlay]
    assert any(row.alias for row in fast)
    assert matrix.power_plan("11111111-2222-3333-4444-555555555555") is None


# -- Xids


@pytest.mark.parametrize(
    ("code", "family", "severity", "programs"),
    [
        (13, "program", "error", True),
        (31, "program", "error", True),
        (43, "follow-up", "info", True),
        (45, "follow-up", "info", True),
        (48, "memory", "critical", False),
        (63, "memory", "warning", False),
        (64, "memory", "critical", False),
        (74, "nvlink", "critical", False),
        (79, "lost", "critical", False),
        (119, "gsp", "critical", False),
    ],
)
def test_xids_say_what_they_are_about(matrix: Matrix, code: int, family: str, severity: str, programs: bool) -> None:
    xid = matrix.xid(code)
    assert xid is not None and xid in matrix.xids()
    assert (xid.family, xid.severity, xid.is_programs_fault) == (family, severity, programs)
    assert xid.meaning and xid.advice and not xid.meaning.endswith(".")


def test_an_xid_that_nobody_lists_is_not_known(matrix: Matrix) -> None:
    assert matrix.xid(9999) is None


# -- WSL


def test_what_wsl_needs(matrix: Matrix) -> None:
    needs = matrix.wsl_needs()
    assert (needs.windows_build, needs.kernel) == (19044, "5.10.16") and needs.source
