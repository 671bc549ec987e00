r"""The Linux kernel and its modules, from /proc and /sys.

/proc/driver/nvidia/version, the proprietary and the open module (the date and the second line vary):

    NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Thu Jan  1 00:00:00 UTC 2024
    GCC version:  gcc version 12.3.0 (Ubuntu 12.3.0-1ubuntu1~22.04)
    NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build  (builder@host)

/proc/modules (in brackets: P proprietary, O out of tree, E unsigned; an open nvidia module has no P):

    nvidia 56717312 66 nvidia_uvm,nvidia_modeset, Live 0x0000000000000000 (POE)
    nouveau 2445312 4 - Live 0x0000000000000000

/proc/version, `uname -r` or `uname -a`:

    Linux version 5.15.133.1-microsoft-standard-WSL2 (root@builder) (gcc ...) #1 SMP ...
    6.8.0-79-generic
    5.15.148-tegra

/proc/cmdline:

    BOOT_IMAGE=/vmlinuz-6.8.0-79-generic root=UUID=... ro quiet nouveau.modeset=0 modprobe.blacklist=nouveau,nova_core
"""

from __future__ import annotations

import re

from cudadoctor.model.record import NamedTuple

from .digits import is_digits, is_dotted, leading_dotted
from .errors import unlike

OPEN = "open"
PROPRIETARY = "proprietary"


class NvrmVersion(NamedTuple):
    """The loaded NVIDIA module: its version, "open" or "proprietary", the machine it was built for, the compiler's
    line.
    """

    version: str
    flavour: str
    machine: str | None
    compiler: str | None


def parse_nvrm_version(text: str) -> NvrmVersion:
    """/proc/driver/nvidia/version, or the same words in a kernel log line.

    ParseError when there is no such line in it.
    """
    before, kind, after = text.partition("Kernel Module")
    words = after[:200].split(None, 3)
    if words[:1] == ["for"]:
        machine, version = words[1:2], words[2:3]
    else:
        machine, version = before.rpartition("NVIDIA UNIX")[2].split(), words[:1]
    if not kind or "NVIDIA UNIX" not in before or not version or not is_dotted(version[0], 2, 4, 6):
        raise unlike("/proc/driver/nvidia/version", text.strip())
    compiler = text.partition("GCC version:")[2].strip().splitlines()
    return NvrmVersion(
        version[0],
        OPEN if before.rstrip().endswith("Open") else PROPRIETARY,
        machine[0] if machine else None,
        compiler[0].strip() if compiler else None,
    )


class LoadedModule(NamedTuple):
    """One line of /proc/modules. `size` in bytes; `state` Live, Loading or Unloading; `taints` such as "POE" or ""."""

    name: str
    size: int
    users: int
    used_by: tuple[str, ...]
    state: str
    taints: str

    @property
    def is_proprietary(self) -> bool:
        return "P" in self.taints

    @property
    def is_unsigned(self) -> bool:
        return "E" in self.taints


def parse_modules(text: str) -> dict[str, LoadedModule]:
    """/proc/modules by module name (names have underscores). Lines of another shape are passed over.

    ParseError when there is text but no module in it. An empty text means that no module is loaded.
    """
    modules: dict[str, LoadedModule] = {}
    for line in text.splitlines():
        parts = line.split()
        if len(parts) < 5 or not is_digits(parts[1]) or not (parts[2] == "-" or is_digits(parts[2].lstrip("-"), 9)):
            continue
        used_by = tuple(name for name in parts[3].split(",") if name and name != "-")
        taints = parts[6].strip("()+-") if len(parts) > 6 and parts[6].startswith("(") else ""
        users = int(parts[2]) if is_digits(parts[2], 9) else 0
        modules[parts[0]] = LoadedModule(parts[0], int(parts[1]), users, used_by, parts[4], taints)
    if not modules and text.strip():
        raise unlike("/proc/modules", text.strip())
    return modules


class KernelRelease(NamedTuple):
    """`release` as `uname -r` says it; `wsl` is 1, 2 or None; `is_tegra` marks NVIDIA's Jetson kernels."""

    release: str
    wsl: int | None
    is_tegra: bool


def parse_kernel_release(text: str) -> KernelRelease:
    """From /proc/version, `uname -a` or a bare release. ParseError when no release is in it.

    A kernel that someone built for WSL under a name of their own is not told from an ordinary one here: look at
    /dev/dxg.
    """
    words = text.split(None, 3)
    at = 2 if len(words) > 2 and words[0] == "Linux" else 0  # after "version" or the machine's name
    release = words[at].split("(")[0][:200] if len(words) > at else ""
    if not is_dotted(".".join(leading_dotted(release).split(".")[:2]), 2, 2, 4):
        raise unlike("a kernel release", text.strip())
    lowered = release.lower()
    wsl: int | None = None
    if "wsl2" in lowered or "microsoft-standard" in lowered:
        wsl = 2
    elif "microsoft" in lowered:
        wsl = 1
    return KernelRelease(release, wsl, "tegra" in lowered)


class CommandLine(NamedTuple):
    """The kernel's parameters in order; a flag without "=" has the value None."""

    parameters: tuple[tuple[str, str | None], ...]

    def last(self, key: str) -> str | None:
        """The last value of a key ("-" and "_" are the same); None where it is absent or a bare flag."""
        wanted = key.replace("-", "_")
        values = [value for name, value in self.parameters if name.replace("-", "_") == wanted]
        return values[-1] if values else None

    def has(self, key: str) -> bool:
        """Whether the key is there, with a value or without."""
        wanted = key.replace("-", "_")
        return any(name.replace("-", "_") == wanted for name, _ in self.parameters)

    def blacklists(self, module: str) -> tuple[str, ...]:
        """The keys that name this module in their list: modprobe.blacklist (no loading by alias), rd.driver.blacklist
        (not in the initramfs), module_blacklist (never, the kernel's own)."""
        wanted = module.replace("-", "_")
        keys = ("modprobe.blacklist", "rd.driver.blacklist", "rdblacklist", "module_blacklist")
        return tuple(
            key
            for key, value in self.parameters
            if key in keys and wanted in (name.strip().replace("-", "_") for name in (value or "").split(","))
        )

    @property
    def switches_nouveau_off(self) -> bool:
        """Whether nouveau is kept from driving the card: nouveau.modeset=0, nomodeset, or a blacklist that names it."""
        return self.last("nouveau.modeset") == "0" or self.has("nomodeset") or bool(self.blacklists("nouveau"))


def parse_command_line(text: str) -> CommandLine:
    """/proc/cmdline. Quotes hold blanks together, as in the kernel. Never fails."""
    words: list[str] = []
    word, quoted = "", False
    for letter in text.replace("\x00", " "):
        if letter == '"':
            quoted = not quoted
        elif letter.isspace() and not quoted:
            words.append(word)
            word = ""
        else:
            word += letter
    words.append(word)
    parameters: list[tuple[str, str | None]] = []
    for word in words:
        if word == "--":
            break  # what follows is for init
        if word:
            key, sign, value = word.partition("=")
            parameters.append((key, value if sign else None))
    return CommandLine(tuple(parameters))


def parse_bracketed_choice(text: str) -> str:
    """The chosen one of "none [integrity] confidentiality" (/sys/kernel/security/lockdown and others).

    ParseError without one.
    """
    found = re.search(r"\[([\w-]{1,40})\]", text, re.ASCII)
    if found is None:
        raise unlike("a choice such as none [integrity]", text.strip())
    return found.group(1)
