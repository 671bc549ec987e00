"""The kernel, its modules and its command line."""

from __future__ import annotations

import pytest

from cudadoctor.parse import kernel
from cudadoctor.parse.errors import ParseError

NVRM = [
    # /proc/driver/nvidia/version, version, flavour, machine, compiler
    (
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  525.147.05  Wed Oct 25 20:27:35 UTC 2023\n"
        "GCC version:  gcc version 11.4.0 (Ubuntu 11.4.0-1ubuntu1~22.04) \n",
        ("525.147.05", "proprietary", "x86_64", "gcc version 11.4.0 (Ubuntu 11.4.0-1ubuntu1~22.04)"),
    ),
    (
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build  (builder@host)  Tue Sep\n"
        "GCC version:  gcc version 13.3.0 (Ubuntu 13.3.0-6ubuntu2~24.04) \n",
        ("580.95.05", "open", "x86_64", "gcc version 13.3.0 (Ubuntu 13.3.0-6ubuntu2~24.04)"),
    ),
    (
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  610.43.03  Release Build  (root@archlinux)\n"
        "GCC version:  Selected multilib: .;@m64\n",
        ("610.43.03", "open", "x86_64", "Selected multilib: .;@m64"),
    ),
    (
        "NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  540.4.0  Release Build  (builder@host)\n",
        ("540.4.0", "open", "aarch64", None),
    ),
    (
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  390.157  Wed Oct 12 09:19:07 UTC 2022\nGCC version:\n",
        ("390.157", "proprietary", "x86_64", None),
    ),
    # the line in a kernel log
    (
        "[    3.42] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  535.183.01  Thu Jan  1",
        ("535.183.01", "proprietary", "x86_64", None),
    ),
]


@pytest.mark.parametrize(("text", "expected"), NVRM)
def test_nvrm_version(text: str, expected: tuple[object, ...]) -> None:
    assert kernel.parse_nvrm_version(text) == expected


@pytest.mark.parametrize(
    "text",
    ["", "cat: /proc/driver/nvidia/version: No such file", "NVIDIA UNIX x86_64 Kernel Module", "Kernel Module  5.1"],
)
def test_no_nvrm_version(text: str) -> None:
    with pytest.raises(ParseError, match="/proc/driver/nvidia/version"):
        kernel.parse_nvrm_version(text)


MODULES = """\
nvidia_uvm 4694016 2 - Live 0x0000000000000000 (POE)
nvidia_modeset 1314816 7 nvidia_drm, Live 0x0000000000000000 (POE)
nvidia 56717312 306 nvidia_uvm,nvidia_modeset, Live 0x0000000000000000 (POE)
nouveau 2445312 0 - Unloading 0x0000000000000000
dm_mod 155648 -1 [permanent], Live 0x0000000000000000 (O)
nf_tables 299008 - - Live 0x0000000000000000
"""


def test_modules() -> None:
    modules = kernel.parse_modules(MODULES)
    assert modules["nvidia"] == kernel.LoadedModule(
        "nvidia", 56717312, 306, ("nvidia_uvm", "nvidia_modeset"), "Live", "POE"
    )
    assert modules["nvidia_uvm"].used_by == ()
    assert (modules["nouveau"].state, modules["nouveau"].taints) == ("Unloading", "")
    assert modules["nf_tables"].users == 0
    assert list(modules) == ["nvidia_uvm", "nvidia_modeset", "nvidia", "nouveau", "dm_mod", "nf_tables"]


@pytest.mark.parametrize(
    ("taints", "proprietary", "unsigned"),
    [("(POE)", True, True), ("(PO)", True, False), ("(OE)", False, True), ("(O)", False, False), ("", False, False)],
)
def test_module_taints(taints: str, proprietary: bool, unsigned: bool) -> None:
    module = kernel.parse_modules(f"nvidia 1 0 - Live 0x0 {taints}".rstrip())["nvidia"]
    assert (module.is_proprietary, module.is_unsigned) == (proprietary, unsigned)


def test_no_modules() -> None:
    assert kernel.parse_modules("") == {}
    with pytest.raises(ParseError, match="/proc/modules"):
        kernel.parse_modules("cat: /proc/modules: No such file or directory\n")


RELEASES = [
    # text, release, WSL, Tegra
    ("6.8.0-79-generic\n", "6.8.0-79-generic", None, False),
    (
        "Linux version 5.15.133.1-microsoft-standard-WSL2 (root@1c602f52c2e4) (gcc (GCC) 11.2.0) #1 SMP Thu Oct 5",
        "5.15.133.1-microsoft-standard-WSL2",
        2,
        False,
    ),
    ("Linux version 4.4.0-19041-Microsoft (Microsoft@Microsoft.com) (gcc 5.4.0)", "4.4.0-19041-Microsoft", 1, False),
    ("Linux box 6.6.87.2-microsoft-standard-WSL2+ #1 SMP x86_64", "6.6.87.2-microsoft-standard-WSL2+", 2, False),
    ("Linux nano 5.15.148-tegra #1 SMP PREEMPT aarch64 GNU/Linux", "5.15.148-tegra", None, True),
    ("4.18.0-553.el8_10.x86_64", "4.18.0-553.el8_10.x86_64", None, False),
    ("Linux 6 6.17.5-arch1-1 #1 SMP", "6.17.5-arch1-1", None, False),  # a machine that is named "6"
    ("Linux version 6.12.0(builder)", "6.12.0", None, False),
    # A kernel of one's own for WSL has no mark in its name: /dev/dxg tells.
    ("6.1.21-mykernel", "6.1.21-mykernel", None, False),
]


@pytest.mark.parametrize(("text", "release", "wsl", "tegra"), RELEASES)
def test_kernel_release(text: str, release: str, wsl: int | None, tegra: bool) -> None:
    assert kernel.parse_kernel_release(text) == (release, wsl, tegra)


@pytest.mark.parametrize("text", ["", "Linux", "Linux version", "Darwin Kernel Version 23.1.0", "6", "generic-6.8"])
def test_no_kernel_release(text: str) -> None:
    with pytest.raises(ParseError):
        kernel.parse_kernel_release(text)


COMMAND_LINES = [
    # line, nouveau is switched off, keys that blacklist nouveau
    ("BOOT_IMAGE=/vmlinuz root=UUID=1 ro quiet splash", False, ()),
    ("ro nouveau.modeset=0", True, ()),
    ("ro nouveau.modeset=1", False, ()),
    ("ro nouveau.modeset=0 nouveau.modeset=1", False, ()),  # the last one counts
    ("ro nomodeset", True, ()),
    ("ro modprobe.blacklist=nouveau", True, ("modprobe.blacklist",)),
    ("ro modprobe.blacklist=nova-core,nouveau quiet", True, ("modprobe.blacklist",)),
    (
        "ro rd.driver.blacklist=nouveau,nova_core modprobe.blacklist=nouveau",
        True,
        ("rd.driver.blacklist", "modprobe.blacklist"),
    ),
    ("ro module_blacklist=nouveau", True, ("module_blacklist",)),
    ("ro modprobe.blacklist=nouveau_extra", False, ()),
    ("ro -- nouveau.modeset=0", False, ()),  # after -- it is for init
    ('ro comment="nouveau.modeset=0 nomodeset"', False, ()),
    ("", False, ()),
]


@pytest.mark.parametrize(("line", "off", "keys"), COMMAND_LINES)
def test_command_line(line: str, off: bool, keys: tuple[str, ...]) -> None:
    parsed = kernel.parse_command_line(line + "\n")
    assert parsed.switches_nouveau_off is off
    assert parsed.blacklists("nouveau") == keys


def test_command_line_parameters() -> None:
    parsed = kernel.parse_command_line('root=/dev/sda1 dyndbg="file a.c +p" nvidia-drm.modeset=1 quiet pci=a,b=c\n')
    assert parsed.parameters == (
        ("root", "/dev/sda1"),
        ("dyndbg", "file a.c +p"),
        ("nvidia-drm.modeset", "1"),
        ("quiet", None),
        ("pci", "a,b=c"),
    )
    assert parsed.last("nvidia_drm.modeset") == "1"
    assert (parsed.has("quiet"), parsed.last("quiet"), parsed.has("splash")) == (True, None, False)
    assert kernel.parse_command_line("modprobe.blacklist=nvidia-uvm").blacklists("nvidia_uvm") == (
        "modprobe.blacklist",
    )


@pytest.mark.parametrize(
    ("text", "choice"),
    [
        ("none [integrity] confidentiality\n", "integrity"),
        ("[none] integrity confidentiality", "none"),
        ("always [madvise] never", "madvise"),
        ("[none] mq-deadline", "none"),
        ("none [mq-deadline]", "mq-deadline"),
    ],
)
def test_bracketed_choice(text: str, choice: str) -> None:
    assert kernel.parse_bracketed_choice(text) == choice


@pytest.mark.parametrize("text", ["", "none integrity", "[]"])
def test_no_bracketed_choice(text: str) -> None:
    with pytest.raises(ParseError):
        kernel.parse_bracketed_choice(text)
