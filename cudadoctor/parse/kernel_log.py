"""Kernel log lines about NVIDIA devices -> events.

Lines come with `[ seconds]`, `[date]` (dmesg -T), `Mon DD HH:MM:SS host kernel: ` (journal), an ISO time, or bare.
One message of the NVIDIA module spans up to five lines, each beginning with NVRM: after its own or no time:

    [  812.123456] NVRM: API mismatch: the client has the version 535.183.01, but
    [  812.123456] NVRM: this kernel module has the version 535.161.07.  Please
    [ 9000.123456] NVRM: Xid (PCI:0000:01:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.
    [    5.123456] NVRM: GPU 0000:01:00.0: RmInitAdapter failed! (0x26:0x56:1482)
    [    2.123456] Loading of module with unavailable key is rejected
    modprobe: ERROR: could not insert 'nvidia': Key was rejected by service

A network card's "XID 541" and the harmless "module verification failed ... tainting kernel" are no faults; the latter
is reported as an event of its own kind so that nobody takes it for one.
"""

from __future__ import annotations

import re
from typing import Optional

from cudadoctor.model.pattern import pattern
from cudadoctor.model.record import NamedTuple

from .digits import is_digits, is_dotted
from .errors import ParseError
from .kernel import parse_nvrm_version
from .pci import normalise_bus_id

# Kinds of events.
XID = "xid"  # values: number, detail
SXID = "sxid"  # an error of an NVSwitch; values: number, fatal (yes, no; absent where the line does not say), detail
API_MISMATCH = "api-mismatch"  # values: client, module
MODULE_LOADED = "module-loaded"  # values: version, flavour
DEVICE_TAKEN = "device-taken"  # another driver (nouveau) owns the card; values: drivers
NEEDS_OPEN_MODULE = "needs-open-module"
NEEDS_PROPRIETARY_MODULE = "needs-proprietary-module"
NEEDS_LEGACY_DRIVER = "needs-legacy-driver"  # values: branch
UNSUPPORTED_GPU = "unsupported-gpu"  # the driver does not know the card, or no longer; values: driver, device_id
INIT_FAILED = "init-failed"  # values: codes; gsp where it is the card's own processor that does not start
FIRMWARE_MISSING = "firmware-missing"  # values: file
BAR_INVALID = "bar-invalid"
OFF_THE_BUS = "off-the-bus"
BOUND_TO_VFIO = "bound-to-vfio"
KEY_REJECTED = "key-rejected"  # values: module; absent where the text names none: it may be about any module
UNSIGNED_LOADED = "unsigned-loaded"  # harmless
WRONG_KERNEL = "wrong-kernel"  # vermagic or symbols of another kernel; values: module, built_for, running
MODULE_NOT_FOUND = "module-not-found"  # values: module, kernel
NO_SUCH_DEVICE = "no-such-device"  # values: module
NOUVEAU_PROBED = "nouveau-probed"
PCIE_ERROR = "pcie-error"  # values: severity where the text names it
NO_POWER_STATE = "no-power-state"
PROCESS_KILLED = "process-killed"  # the OOM killer; values: pid, name, scope (system, cgroup)
LOG_UNREADABLE = "log-unreadable"

_BUS = r"([0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?)"


class KernelEvent(NamedTuple):
    """One event.

    `seconds` since boot where the line has them; `bus_id` in the /sys spelling; `text` the first line, bare.
    """

    kind: str
    text: str
    bus_id: str | None
    seconds: float | None
    values: dict[str, str]


def parse_kernel_log(text: str) -> list[KernelEvent]:
    """The events of a log, in order. Lines about anything else are passed over. Never fails."""
    # A boot log has thousands of lines; looking for words is much cheaper than the expressions below.
    words = [word for word in _WORDS if word in text]
    lines: list[tuple[float | None, str]] = []
    for raw in text.splitlines() if words else ():
        if any(word in raw for word in words):
            lines.append(_bare(raw[:2000]))
    events: list[KernelEvent] = []
    for number, (seconds, line) in enumerate(lines):
        event = _event(line, [later for _, later in lines[number + 1 : number + 6]])
        if event is not None:
            kind, bus, values = event
            events.append(KernelEvent(kind, line, _bus(bus), seconds, values))
    return events


_WORDS = (
    "NVRM",
    "nvidia",
    "NVIDIA",
    "nouveau",
    "is rejected",
    "rejected by service",
    "Required key not available",
    "kernel_lockdown",
    "Out of memory",
    "out of memory: Killed",
    "PCIe Bus Error",
    "dmesg: ",
)


def _bare(line: str) -> tuple[float | None, str]:
    line = line.strip()
    if line.startswith("<") and line[1:4].split(">")[0].isdigit():
        line = line.partition(">")[2]  # the level, in dmesg -r and /dev/kmsg dumps
    if line.startswith("[") and "]" in line:
        time, _, rest = line[1:].partition("]")
        time = time.strip()
        if is_dotted(time, 2, 2, 12):
            return float(time), rest.strip()
        if ":" in time and time[-4:].isdigit():  # dmesg -T
            return None, rest.strip()
    before, kernel, rest = line.partition(" kernel: ")
    if kernel and ":" in before and len(before) < 300 and "NVRM" not in before:
        return _bare(rest) if rest.startswith("[") and not rest.startswith("[[") else (None, rest.strip())
    # Other loggers have fields of their own before it: "kern: err: [2026-01-31T10:00:00Z]: NVRM: ..."
    before, nvrm, rest = line.partition(": NVRM: ")
    if nvrm and len(before) < 120 and "NVRM" not in before:
        return None, "NVRM: " + rest
    return None, line


def _bus(text: str | None) -> str | None:
    return normalise_bus_id(text) if text else None


_Event = tuple[str, Optional[str], dict[str, str]]


def _event(line: str, later: list[str]) -> _Event | None:
    if line.startswith("NVRM:"):
        return _nvrm(line[5:].strip(), [text[5:].strip() for text in _run_of_nvrm(later)])
    if line.startswith("nvidia-nvswitch"):
        return _nvswitch(line)
    return _modules(line) or _bus_and_memory(line)


def _run_of_nvrm(lines: list[str]) -> list[str]:
    run: list[str] = []
    for line in lines:
        if not line.startswith("NVRM:"):
            break
        run.append(line)
    return run


def _nvrm(text: str, later: list[str]) -> _Event | None:
    if text.startswith("Xid ("):
        bus, _, rest = text[5:].partition("):")
        number, _, detail = rest.strip().partition(",")
        try:
            place = normalise_bus_id(bus)
        except ParseError:
            return None
        return (XID, place, {"number": number, "detail": detail.strip()}) if is_digits(number, 4) else None
    if text.startswith("API mismatch:"):
        return _api_mismatch(" ".join([text, *later[:4]]))
    if "NVIDIA UNIX" in text and "Kernel Module" in text:
        try:
            loaded = parse_nvrm_version(text)
        except ParseError:
            return None
        return MODULE_LOADED, None, {"version": loaded.version, "flavour": loaded.flavour}
    if text.startswith("The NVIDIA probe routine was not called"):
        joined = " ".join(later[:4])
        drivers = re.search(r"a driver such as:\s{0,20}(.{1,100}?)\s{1,20}was loaded", joined)
        return DEVICE_TAKEN, None, {"drivers": drivers.group(1).strip(" ,")} if drivers else {}
    if "Open nvidia.ko is only ready for use on Data Center GPUs" in text:
        return NEEDS_PROPRIETARY_MODULE, None, {}
    if text.startswith("The NVIDIA") and _INSTALLED.search(" ".join([text, *later[:2]])):
        return _unsupported(" ".join([text, *later[:5]]))
    if "RmInitAdapter failed" in text or ("rm_init_adapter" in text and "failed" in text):
        codes = re.search(r"\((0x[0-9a-f]{1,8}:0x[0-9a-f]{1,8}:[0-9]{1,8})\)", text, re.ASCII)
        return INIT_FAILED, _first_bus(text), {"codes": codes.group(1)} if codes else {}
    if "cannot bootstrap riscv/gsp" in text or "Cannot initialize GSP firmware" in text:
        return INIT_FAILED, _first_bus(text), {"gsp": "yes"}
    if "Cannot attach gpu" in text or "Cannot pre-initialize the device" in text or "failed to copy vbios" in text:
        return INIT_FAILED, _first_bus(text), {}
    if "No firmware image found" in text:
        return FIRMWARE_MISSING, _first_bus(text), {}
    if "PCI I/O region assigned to your NVIDIA device is invalid" in text:
        return BAR_INVALID, _first_bus(" ".join([text, *later[:1]])), {}
    if "has fallen off the bus" in text:
        return OFF_THE_BUS, _first_bus(text), {}
    if "already bound to vfio-pci" in text:
        return BOUND_TO_VFIO, _first_bus(text), {}
    return None


def _nvswitch(line: str) -> _Event | None:
    found = re.match(
        r"nvidia-nvswitch[0-9]{0,3}: SXid \((?:PCI:)?([0-9a-fA-F:.]{7,16})\): ([0-9]{4,6})(?:, *(.{0,300}))?",
        line,
        re.ASCII,
    )
    if found is None:
        return None
    detail = (found.group(3) or "").strip()
    values = {"number": found.group(2), "detail": detail}
    if detail.startswith(("Fatal", "Non-fatal")):
        values["fatal"] = "yes" if detail.startswith("Fatal") else "no"
    try:
        return SXID, normalise_bus_id(found.group(1)), values
    except ParseError:
        return None


def _api_mismatch(joined: str) -> _Event:
    version = r"([0-9]{1,6}(?:\.[0-9]{1,6}){1,3})"
    client = re.search(rf"(?:the client|pid [0-9]{{1,10}}\)) has the version {version}", joined, re.ASCII)
    module = re.search(rf"this kernel module has the version {version}", joined, re.ASCII)
    values: dict[str, str] = {}
    if client:
        values["client"] = client.group(1)
    if module:
        values["module"] = module.group(1)
    return API_MISMATCH, None, values


# A terminal may have cut the line after "system".
_INSTALLED = pattern(r"\binstalled\s{1,4}in\s{1,4}this\s{1,4}system")


def _unsupported(joined: str) -> _Event | None:
    bus = _first_bus(joined)
    if "fallen off the bus" in joined:
        return OFF_THE_BUS, bus, {}
    if "requires use of the NVIDIA open kernel modules" in joined:
        return NEEDS_OPEN_MODULE, bus, {}
    if "not supported by open nvidia.ko" in joined:
        return NEEDS_PROPRIETARY_MODULE, bus, {}
    legacy = re.search(r"supported through the NVIDIA ([0-9]{2,4})\.[0-9xX]{1,3} Legacy", joined, re.ASCII)
    if legacy:
        return NEEDS_LEGACY_DRIVER, bus, {"branch": legacy.group(1)}
    unknown = re.search(r"not supported by the(?: NVIDIA)? ([0-9]{2,4}(?:\.[0-9]{1,4}){1,2})", joined, re.ASCII)
    if unknown is None:
        return None
    card = re.search(r"PCI ID: 10de:([0-9a-f]{4})\b", joined)
    return UNSUPPORTED_GPU, bus, {"driver": unknown.group(1), **({"device_id": card.group(1)} if card else {})}


def _first_bus(text: str) -> str | None:
    found = re.search(_BUS, text, re.ASCII)
    return found.group(1) if found else None


def _modules(line: str) -> _Event | None:
    if line.startswith("dmesg:") and ("not permitted" in line or "denied" in line):
        return LOG_UNREADABLE, None, {}
    found = "could not insert" in line and re.search(r"could not insert (?:module |')?([\w-]{1,60})", line, re.ASCII)
    inserted = {"module": found.group(1).replace("-", "_")} if found else {}
    if inserted and not inserted["module"].startswith(("nvidia", "nouveau")):
        return None
    if any(words in line for words in _REJECTED):
        return KEY_REJECTED, None, inserted
    if inserted and "No such device" in line:
        return NO_SUCH_DEVICE, None, inserted
    if inserted and ("Exec format error" in line or "Invalid module format" in line):
        return WRONG_KERNEL, None, inserted
    if "version magic" in line:
        found = re.search(
            r"\b(nvidia\w{0,30}): version magic '([^'\s]{1,100})[^']{0,200}' should be '([^'\s]{1,100})", line, re.ASCII
        )
        if found:
            module, built_for, running = found.groups()
            return WRONG_KERNEL, None, {"module": module, "built_for": built_for, "running": running}
    name = line.partition(":")[0]
    if name.startswith("nvidia") and (": disagrees about version of symbol " in line or ": Unknown symbol " in line):
        return WRONG_KERNEL, None, {"module": name} if name.replace("_", "").isalnum() else {}
    if "not found in directory" in line:
        found = re.search(r"Module (nvidia[\w-]{0,30}|nouveau) not found in directory (\S{1,200})", line, re.ASCII)
        if found:
            kernel = found.group(2).rpartition("/")[2]
            return MODULE_NOT_FOUND, None, {"module": found.group(1).replace("-", "_"), "kernel": kernel}
    if line.startswith("nvidia") and ": module verification failed" in line:
        return UNSIGNED_LOADED, None, {}
    return None


_REJECTED = (
    "Key was rejected by service",
    "Required key not available",
    "module with unavailable key is rejected",
    "unsigned module is rejected",
    "unsigned module loading is restricted",
)


def _bus_and_memory(line: str) -> _Event | None:
    driver, _, rest = line.partition(" ")
    place, _, said = rest.partition(": ")
    if driver in ("nouveau", "nvidia", "pcieport") and re.fullmatch(_BUS, place, re.ASCII):
        if driver == "nouveau" and said.startswith("NVIDIA "):
            return NOUVEAU_PROBED, place, {}
        if driver == "nvidia" and said.startswith("Direct firmware load for "):
            return FIRMWARE_MISSING, place, {"file": said.split()[4]} if len(said.split()) > 4 else {}
        if driver == "nvidia" and said.startswith("Unable to change power state from "):
            return NO_POWER_STATE, place, {}
        if "PCIe Bus Error: severity=" in said:
            return PCIE_ERROR, place, {"severity": said.partition("severity=")[2].partition(",")[0].strip()}
        return None
    if line.startswith("nvidia: probe of "):
        return INIT_FAILED, _first_bus(line), {}
    before, killed, rest = line.partition("ut of memory: Killed process ")
    if killed:
        pid, _, rest = rest.partition(" (")
        name = rest.partition(")")[0]
        scope = "cgroup" if before.rstrip().endswith("Memory cgroup o") else "system"
        return (PROCESS_KILLED, None, {"pid": pid, "name": name[:64], "scope": scope}) if is_digits(pid, 10) else None
    return None
