"""Driver packages on systems where the plain name of the distribution's package is the wrong answer."""

from __future__ import annotations

from typing import Any, NamedTuple, Optional

import pytest

from cudadoctor import diagnose_text
from cudadoctor.diagnose import diagnose
from cudadoctor.matrix import load_matrix
from cudadoctor.model import FixStep
from cudadoctor.plan import Options, make_plan
from cudadoctor.plan.context import Context
from cudadoctor.plan.remedies import spell_out
from cudadoctor.plan.remedies.kernel import is_of_distribution
from cudadoctor.plan.shell import quote
from cudadoctor.testing import GONE, Machine, linux

MATRIX = load_matrix()
NEW_MACHINE = linux().no_driver()


def on(name: str, like: str = "", version: str = "", kernel: Optional[str] = None, **more: Any) -> Machine:
    facts: dict[str, Any] = {
        "system.distribution": name,
        "system.distribution_like": like.split(),
        "system.distribution_version": version or GONE,
        **{f"system.{key}": value for key, value in more.items()},
    }
    if kernel is not None:
        facts["system.kernel_release"] = kernel
    return NEW_MACHINE.set(facts)


def steps(machine: Machine) -> dict[str, FixStep]:
    return {step.id: step for step in make_plan(diagnose(machine.facts, MATRIX), MATRIX, strict=True).steps}


class Row(NamedTuple):
    title: str
    machine: Machine
    command: str
    says: str


IMAGES = [
    Row(
        "Silverblue layers packages onto its image",
        on("fedora", "", "43", ostree=True),
        "sudo rpm-ostree install akmod-nvidia xorg-x11-drv-nvidia-cuda",
        "layered onto the system's image",
    ),
    Row(
        "Bazzite has an image with the driver",
        on("bazzite", "fedora", "43", ostree=True),
        "",
        "take the one with nvidia in its name",
    ),
    Row(
        "Manjaro's own tool picks the package of the kernel",
        on("manjaro", "arch", kernel="6.12.50-1-MANJARO"),
        "sudo mhwd -a pci nonfree 0300",
        "",
    ),
    Row(
        "plain Fedora",
        on("fedora", "", "43", ostree=False),
        "sudo dnf install akmod-nvidia xorg-x11-drv-nvidia-cuda",
        "RPM Fusion",
    ),
]


@pytest.mark.parametrize("row", IMAGES, ids=lambda row: row.title)
def test_how_the_driver_is_installed(row: Row) -> None:
    step = steps(row.machine)["install-driver"]
    assert (quote(step.argv) if step.argv else "") == row.command
    assert row.says in step.instructions


def test_apples_computers_have_no_driver() -> None:
    machine = on("fedora-asahi-remix", "fedora", "42", kernel="6.14.2-401.asahi.fc42.aarch64+16k", arch="aarch64")
    found = steps(machine)
    assert "install-driver" not in found
    assert "no driver for Apple" in found["no-driver-for-apple"].instructions


def test_the_boot_image_of_an_image_is_not_written_anew() -> None:
    machine = on("fedora", "", "43", ostree=True)
    pci = [dict(entry, driver="nouveau") for entry in machine.facts.value("pci.gpus")]
    machine = machine.set(
        {"kernel.modules": ["nouveau", "video"], "kernel.nouveau_blacklisted_by": [], "pci.gpus": pci}
    )
    step = steps(machine)["initramfs"]
    assert step.argv is None
    assert "rpm-ostree kargs" in step.instructions


# Family, its distribution, kernels of its own and others.
KERNELS = [
    (
        ("ubuntu", "", "24.04"),
        ["6.8.0-79-generic", "6.8.0-1015-aws", "6.8.0-1013-nvidia-64k"],
        ["6.14.0-061400-generic", "6.9.3", "6.12.1-x64v3-xanmod1"],
    ),
    (
        ("debian", "", "13"),
        ["6.12.48-1-amd64", "6.1.0-28-cloud-amd64", "6.12.9+deb13-amd64"],
        ["6.8.12-4-pve", "6.16.0"],
    ),
    (("fedora", "", "43"), ["6.17.4-200.fc43.x86_64"], ["6.17.4", "6.12.0-custom"]),
    (("rocky", "rhel", "9.5"), ["5.14.0-503.el9.x86_64"], ["6.6.10"]),
    (("opensuse-leap", "suse", "15.6"), ["6.4.0-150600.23.25-default"], ["6.12.0-me"]),
    (("arch", "", ""), ["6.17.1-arch1-1", "6.12.50-1-lts", "6.17.1-zen1-1-zen"], ["6.17.1-cachyos", "6.17.1"]),
]


@pytest.mark.parametrize(("names", "own", "foreign"), KERNELS, ids=[row[0][0] for row in KERNELS])
def test_whose_kernel_it_is(names: tuple[str, str, str], own: list[str], foreign: list[str]) -> None:
    distribution = MATRIX.distribution(*names)
    assert distribution is not None
    assert [kernel for kernel in own if not is_of_distribution(distribution, kernel)] == []
    assert [kernel for kernel in foreign if is_of_distribution(distribution, kernel)] == []


def test_no_package_has_the_headers_of_a_kernel_that_somebody_built() -> None:
    machine = on("ubuntu", "debian", "24.04", kernel="6.9.3-mine").set({"kernel.headers": False})
    step = steps(machine)["install-kernel-headers"]
    assert step.argv is None
    assert "none of Ubuntu's own" in step.instructions


def test_arch_names_headers_after_the_kernels_package() -> None:
    machine = on("arch", kernel="6.12.50-1-lts").set({"kernel.headers": False})
    assert quote(steps(machine)["install-kernel-headers"].argv or ()) == "sudo pacman -S --needed linux-lts-headers"


# The GTX 1080 was dropped after R580: a package without a branch in its name brings a driver that does not drive it.
PASCAL = linux().gpu("NVIDIA GeForce GTX 1080", "6.1", 8, device_id="1b80").no_driver()

LAST_BRANCH = [
    ("ubuntu", "24.04", "sudo apt-get install nvidia-driver-580"),
    ("debian", "12", "sudo apt-get install cuda-drivers-580"),
    ("debian", "13", "sudo apt-get install cuda-drivers-580"),
    ("fedora", "43", "sudo dnf install akmod-nvidia-580xx xorg-x11-drv-nvidia-580xx-cuda"),
    ("rocky", "9.5", "sudo dnf install cuda-drivers"),
    ("rocky", "10.0", ""),
    ("arch", "", ""),
]


@pytest.mark.parametrize(("name", "version", "command"), LAST_BRANCH)
def test_the_last_branch_of_a_card_and_no_newer_one(name: str, version: str, command: str) -> None:
    machine = PASCAL.set(
        {"system.distribution": name, "system.distribution_like": [], "system.distribution_version": version}
    )
    found = steps(machine)
    step = found["install-driver"]
    assert "R580 (proprietary kernel modules)" in step.title
    assert (quote(step.argv) if step.argv else "") == command
    if name == "rocky" and version.startswith("9"):
        assert quote(found["driver-stream"].argv or ()).endswith("nvidia-driver:580-dkms")
    if not command:
        assert "lock the packages to R580" in step.instructions or "nvidia-580xx-dkms" in step.instructions


def test_a_branch_that_nobody_maintains_is_not_gone_back_to() -> None:
    """R610 has dropped the card. Debian's own R535 would drive it, and its end of life has passed."""
    machine = (
        linux()
        .gpu("NVIDIA GeForce GTX 1080", "6.1", 8, device_id="1b80")
        .driver("610.43.02", "13.3")
        .no_devices()
        .set({"system.distribution": "debian", "system.distribution_like": [], "system.distribution_version": "12"})
    )
    context = Context(machine.facts, MATRIX, Options())
    found = {item.step.id: item.step for item in spell_out("update-driver", context, {"minimum_cuda_major": 12})}
    assert quote(found["install-driver"].argv or ()) == "sudo apt-get install cuda-drivers-580"
    assert found["install-driver"].title.startswith("Go back to the NVIDIA driver R580")


# R390 is the last branch for the GTX 580.
FERMI = linux().gpu("NVIDIA GeForce GTX 580", "2.0", 1, device_id="1080").no_driver()

NO_BRANCH = [
    ("ubuntu", "22.04", "sudo apt-get install nvidia-driver-390"),
    ("debian", "12", ""),
    ("debian", "13", ""),
    ("fedora", "43", ""),
]


@pytest.mark.parametrize(("name", "version", "command"), NO_BRANCH)
def test_no_package_that_brings_a_branch_which_dropped_the_card(name: str, version: str, command: str) -> None:
    machine = FERMI.set(
        {"system.distribution": name, "system.distribution_like": [], "system.distribution_version": version}
    )
    context = Context(machine.facts, MATRIX, Options())
    step = {item.step.id: item.step for item in spell_out("install-driver", context, {})}["install-driver"]
    assert (quote(step.argv) if step.argv else "") == command
    assert command or "has no package of R390" in step.instructions


VGPU = ["install-driver", "update-driver", "install-open-kernel-module"]


@pytest.mark.parametrize("kind", VGPU)
def test_a_vgpu_guest_takes_only_its_hosts_driver(kind: str) -> None:
    machine = linux().gpu("GRID A100-10C", "8.0", 10).driver("535.104.05", "12.2")
    (step,) = spell_out(kind, Context(machine.facts, MATRIX, Options()), {})
    assert step.step.argv is None
    assert "the host's administrator provides it" in step.step.instructions


# Debian's own branches are older than CUDA 13; NVIDIA's packages without a number are whatever is newest.
PINNED = [("12", "nvidia-open-580"), ("13", "nvidia-open-580")]


@pytest.mark.parametrize(("version", "package"), PINNED)
def test_a_step_that_names_a_branch_installs_that_branch(version: str, package: str) -> None:
    machine = linux().gpu("NVIDIA A100-SXM4-40GB", "8.0", 40).driver("470.57.02", "11.4")
    machine = machine.set(
        {"system.distribution": "debian", "system.distribution_like": [], "system.distribution_version": version}
    )
    context = Context(machine.facts, MATRIX, Options())
    found = {item.step.id: item.step for item in spell_out("update-driver", context, {"minimum_cuda_major": 13})}
    assert quote(found["install-driver"].argv or ()) == f"sudo apt-get install {package}"
    assert "R580" in found["install-driver"].title


def told(text: str) -> str:
    """What `fix --from` would say of a text: titles and words of all steps."""
    steps = diagnose_text(text).document["plan"]["steps"]
    return "\n".join(f"{step['title']}\n{step.get('instructions', '')}" for step in steps)


def test_a_card_that_is_known_by_its_last_branch_alone_gets_the_modules_that_it_demands() -> None:
    said = told(
        "[ 9.1] NVRM: The NVIDIA NVIDIA GeForce GTX 1080 GPU installed in this system is\n"
        "[ 9.1] NVRM:  supported through the NVIDIA 580.xx Legacy drivers. Please\n"
    )
    assert "R580 (proprietary kernel modules)" in said


def test_without_a_distribution_every_builder_of_modules_is_named() -> None:
    said = told(
        "$ nvidia-smi\nNVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n"
        "Error! Bad return status for module build on kernel: 6.12.9-zen1-1-zen (x86_64)\n"
        "Consult /var/lib/dkms/nvidia/570.86.16/build/make.log for more information.\n"
    )
    assert "for kernel 6.12.9-zen1-1-zen" in said
    assert "'None'" not in said
