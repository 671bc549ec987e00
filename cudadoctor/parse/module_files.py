"""What decides whether a kernel module can and may be loaded: modprobe.d, DKMS, modinfo.

A file below /etc/modprobe.d, /run/modprobe.d or /usr/lib/modprobe.d ("-" and "_" are the same in names):

    # kept away so that the NVIDIA driver can have the card
    blacklist nouveau
    options nouveau modeset=0
    install nouveau /bin/false
    alias nouveau off

`dkms status`, DKMS 3 and DKMS 2:

    nvidia/535.183.01, 6.8.0-79-generic, x86_64: installed (WARNING! Diff between built and installed module!)
    nvidia/580.95.05: added
    nvidia, 450.102.04, 5.8.0-36-generic, x86_64: installed

`modinfo nvidia`:

    filename:       /lib/modules/6.8.0-79-generic/updates/dkms/nvidia.ko.zst
    version:        535.183.01
    license:        NVIDIA                    the open module: Dual MIT/GPL
    vermagic:       6.8.0-79-generic SMP preempt mod_unload modversions
    signer:         host Secure Boot Module Signature key
"""

from __future__ import annotations

import re

from cudadoctor.model.record import NamedTuple

from .kernel import OPEN, PROPRIETARY


def module_name(name: str) -> str:
    """A module's name as /proc/modules spells it: "nvidia-uvm" -> "nvidia_uvm"."""
    return name.replace("-", "_")


class ModprobeLine(NamedTuple):
    """One directive: its kind (blacklist, options, install, alias, softdep, remove), the module it is about, the
    rest.
    """

    kind: str
    module: str
    rest: str
    line_number: int

    @property
    def keeps_away(self) -> bool:
        """Whether the directive keeps its module from being loaded by itself or at all."""
        if self.kind == "blacklist":
            return True
        if self.kind == "install":
            words = self.rest.split()
            return bool(words) and words[0].rsplit("/", 1)[-1] in ("false", "true", ":")
        return self.kind == "alias" and self.rest.strip() == "off"


def parse_modprobe(text: str) -> list[ModprobeLine]:
    """The directives of one modprobe.d file, in order; comments are gone, continued lines joined. Never fails."""
    lines: list[ModprobeLine] = []
    pending, start = "", 0
    for number, raw in enumerate(text.splitlines(), 1):
        if not pending:
            start = number
        if raw.endswith("\\"):
            pending += raw[:-1] + " "
            continue
        line, pending = (pending + raw).strip(), ""
        if not line or line.startswith("#"):
            continue
        words = line.split(None, 2)
        if len(words) >= 2 and words[0] in ("blacklist", "options", "install", "alias", "softdep", "remove"):
            rest = words[2] if len(words) > 2 else ""
            lines.append(ModprobeLine(words[0], module_name(words[1]), rest.split("#")[0].strip(), start))
    return lines


def module_options(lines: list[ModprobeLine], module: str) -> dict[str, str]:
    """All options of a module, the last one of each name counting: {"modeset": "0"}; a bare word has the value ""."""
    options: dict[str, str] = {}
    for line in lines:
        if line.kind == "options" and line.module == module_name(module):
            for word in line.rest.split():
                key, _, value = word.partition("=")
                options[key] = value
    return options


class DkmsEntry(NamedTuple):
    """One line of `dkms status`. `kernel` and `machine` are None for a module that was added and never built.

    `state` is "installed", "built", "added" or whatever else DKMS says; `notes` holds the texts in brackets.
    """

    module: str
    version: str
    kernel: str | None
    machine: str | None
    state: str
    notes: tuple[str, ...]


def parse_dkms_status(text: str) -> list[DkmsEntry]:
    """`dkms status`; lines that are no entries (errors, deprecation notes) are passed over. Never fails."""
    entries: list[DkmsEntry] = []
    for line in text.splitlines():
        line = line.strip()[:500]
        names, colon, rest = line.partition(": ")
        parts = [part.strip() for part in names.replace("/", ",", 1).split(",")]
        state = rest.split("(")[0].strip()
        if not colon or len(parts) not in (2, 4) or not state.isalpha():
            continue
        if not all(parts) or any(" " in part for part in parts):
            continue
        module, version = parts[:2]
        kernel, machine = (parts[2], parts[3]) if len(parts) == 4 else (None, None)
        notes = tuple(note.split(")")[0].strip() for note in rest.split("(")[1:])
        entries.append(DkmsEntry(module, version, kernel, machine, state, notes))
    return entries


class ModInfo(NamedTuple):
    """What `modinfo` says about a module file. Fields that it does not show are None."""

    filename: str | None
    version: str | None
    license: str | None
    vermagic: str | None
    signer: str | None
    firmware: tuple[str, ...]

    @property
    def flavour(self) -> str | None:
        """Either "open" or "proprietary" for NVIDIA's modules, by licence; None for others."""
        if self.license == "NVIDIA":
            return PROPRIETARY
        return OPEN if self.license in ("Dual MIT/GPL", "MIT", "GPL v2", "Dual MIT/GPL v2") else None

    @property
    def kernel(self) -> str | None:
        """The kernel release that the module was built for (the first word of vermagic)."""
        return self.vermagic.split()[0] if self.vermagic and self.vermagic.split() else None


def parse_modinfo(text: str) -> ModInfo | None:
    """The first module in `modinfo`'s output; None where there is none ("modinfo: ERROR: Module nvidia not found.").

    Never fails.
    """
    fields: dict[str, str] = {}
    firmware: list[str] = []
    for line in text.splitlines():
        found = re.match(r"([a-z_]{2,20}):[ \t]{1,40}(\S.*)?$", line[:1000], re.ASCII)
        if found is None:
            continue
        key, value = found.group(1), (found.group(2) or "").strip()
        if key == "filename" and "filename" in fields:
            break
        if key == "firmware":
            firmware.append(value)
        elif value:
            fields.setdefault(key, value)
    if not {"filename", "version", "license", "vermagic"} & set(fields):
        return None
    get = fields.get
    return ModInfo(get("filename"), get("version"), get("license"), get("vermagic"), get("signer"), tuple(firmware))
