"""What lets the kernel load a driver or keeps it from it: parameters, blacklists, Secure Boot, headers."""

from __future__ import annotations

from typing import Any, Optional

from cudadoctor.model.fact import Fact, absent, known, unknown
from cudadoctor.parse.kernel import CommandLine, parse_bracketed_choice, parse_command_line
from cudadoctor.parse.module_files import ModprobeLine, module_options, parse_modprobe
from cudadoctor.probes.api import LINUX, Probe
from cudadoctor.system.port import System

COMMAND_LINE = "/proc/cmdline"
MODULES = "/lib/modules"
FIRMWARE = "/sys/firmware"
_EFI_VARIABLES = f"{FIRMWARE}/efi/efivars"
# The global variable's GUID of the UEFI specification.
_SECURE_BOOT = f"{_EFI_VARIABLES}/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
_SECURITY = "/sys/kernel/security"

# modprobe.d(5): the first folder wins among files of one name.
_MODPROBE_FOLDERS = (
    "/etc/modprobe.d",
    "/run/modprobe.d",
    "/usr/local/lib/modprobe.d",
    "/usr/lib/modprobe.d",
    "/lib/modprobe.d",
)

_BLACKLISTS = ("modprobe.blacklist", "module_blacklist", "rd.driver.blacklist", "rdblacklist")
_PLAIN_PARAMETERS = (
    "nomodeset",
    "nomodule",
    "iommu",
    "intel_iommu",
    "amd_iommu",
    "pci",
    "pcie_aspm",
    "vfio-pci.ids",
    "module.sig_enforce",
    "lockdown",
)


def look(system: System) -> dict[str, Fact[Any]]:
    release = system.kernel_release()
    command_line = system.read_text(COMMAND_LINE).map(parse_command_line)
    nouveau, nvidia = _blacklists(system, command_line)
    return {
        "kernel.command_line": command_line.map(_of_interest),
        "kernel.nouveau_blacklisted_by": nouveau,
        "kernel.nvidia_blacklisted_by": nvidia,
        "kernel.secure_boot": _secure_boot(system),
        "kernel.lockdown": _lockdown(system),
        "kernel.headers": _headers(system, release),
        "kernel.installed": system.list_folder(MODULES),
    }


def _text(key: str, value: Optional[str]) -> str:
    return key if value is None else f"{key}={value}"


def _of_interest(line: CommandLine) -> list[str]:
    found: list[str] = []
    for key, value in line.parameters:
        spelled = key.replace("-", "_")
        if (
            spelled.startswith(("nouveau.", "nvidia"))
            or key in _PLAIN_PARAMETERS
            or (key in _BLACKLISTS and ("nouveau" in (value or "") or "nvidia" in (value or "")))
        ):
            found.append(_text(key, value))
    return found


# -- blacklists -----------------------------------------------------------------------------------------------------


def _blacklists(system: System, command_line: Fact[CommandLine]) -> tuple[Fact[list[str]], Fact[list[str]]]:
    """What keeps nouveau, and what keeps nvidia from loading."""
    nouveau: list[str] = []
    nvidia: list[str] = []
    unread: Optional[Fact[Any]] = None
    if command_line.is_known:
        line = command_line.get()
        nouveau += _blacklisting_parameters(line, "nouveau")
        nvidia += _blacklisting_parameters(line, "nvidia")
    elif command_line.is_unknown:
        unread = command_line
    seen: set[str] = set()
    for folder in _MODPROBE_FOLDERS:
        listing = system.list_folder(folder)
        if listing.is_unknown:
            unread = listing
        for name in listing.value or ():
            # "/lib" is "/usr/lib" on most systems, so the second look finds the same names.
            if not name.endswith(".conf") or name in seen:
                continue
            seen.add(name)
            path = f"{folder}/{name}"
            text = system.read_text(path)
            if text.is_unknown:
                unread = text
            if text.is_known and ("nouveau" in text.get() or "nvidia" in text.get()):
                lines = parse_modprobe(text.get())
                if _keeps_away(lines, "nouveau") or module_options(lines, "nouveau").get("modeset") == "0":
                    nouveau.append(path)
                if _keeps_away(lines, "nvidia"):
                    nvidia.append(path)
    return _list_of(nouveau, unread), _list_of(nvidia, unread)


def _list_of(found: list[str], unread: Optional[Fact[Any]]) -> Fact[list[str]]:
    if found or unread is None:
        return known(found, "modprobe.d and the kernel command line")
    return unknown(unread.reason, unread.source)


def _keeps_away(lines: list[ModprobeLine], module: str) -> bool:
    return any(line.module == module and line.keeps_away for line in lines)


def _blacklisting_parameters(line: CommandLine, module: str) -> list[str]:
    keys = line.blacklists(module)
    found = [_text(key, value) for key, value in line.parameters if key in keys and value and module in value]
    if module == "nouveau":
        if line.last("nouveau.modeset") == "0":
            found.append("nouveau.modeset=0")
        elif line.has("nomodeset"):
            found.append("nomodeset")
    return found


# -- firmware and kernel ----------------------------------------------------------------------------------------------


def _secure_boot(system: System) -> Fact[bool]:
    from cudadoctor.parse.secure_boot import parse_efi_flag

    fact = system.read_bytes(_SECURE_BOOT, 64)
    if not fact.is_absent:
        return fact.map(parse_efi_flag)
    firmware = system.list_folder(FIRMWARE)
    if firmware.is_unknown:
        return unknown(firmware.reason, FIRMWARE)
    if not firmware.value:
        # Container engines cover this folder with an empty one.
        return unknown("the firmware's folder is empty or not there", FIRMWARE)
    if "efi" not in firmware.get():
        return absent(f"{FIRMWARE}/efi")
    variables = system.list_folder(_EFI_VARIABLES)
    if variables.is_unknown:
        return unknown(variables.reason, _EFI_VARIABLES)
    if not variables.value:
        return unknown("the firmware's variables are not mounted", _EFI_VARIABLES)
    # UEFI without this variable is a firmware that has no Secure Boot.
    return known(False, _EFI_VARIABLES)


def _lockdown(system: System) -> Fact[str]:
    path = f"{_SECURITY}/lockdown"
    fact = system.read_text(path, 256)
    if not fact.is_absent:
        return fact.map(parse_bracketed_choice)
    if system.list_folder(_SECURITY).value:
        return absent(path)  # the kernel has security modules and this is not among them
    return unknown("the kernel's security folder is not mounted", _SECURITY)


def _headers(system: System, release: Fact[str]) -> Fact[bool]:
    if not release.is_known:
        return unknown(release.reason, release.source)
    # A dangling link (the headers' package is gone) is absent, too.
    path = f"{MODULES}/{release.get()}/build"
    build = system.status(path)
    if build.is_unknown:
        return unknown(build.reason, path)
    return known(build.is_known and build.get().kind == "directory", path)


PROBE = Probe(
    "kernel",
    (LINUX,),
    (
        "kernel.command_line",
        "kernel.nouveau_blacklisted_by",
        "kernel.nvidia_blacklisted_by",
        "kernel.secure_boot",
        "kernel.lockdown",
        "kernel.headers",
        "kernel.installed",
    ),
    look,
)
