"""What the kernel log says about GPUs since the machine was started.

Asked of `dmesg`, and only where there is an NVIDIA device or module that it could speak of. Where users may not read
the kernel's buffer, the journal is asked, which takes longer: only while the card has no working driver.
"""

from __future__ import annotations

from typing import Any

from cudadoctor.model.fact import Fact, ParseError, known, unknown
from cudadoctor.parse.kernel_log import XID, KernelEvent, parse_kernel_log
from cudadoctor.probes.api import LINUX, Probe
from cudadoctor.probes.driver_files import library_version
from cudadoctor.probes.pci import display_devices
from cudadoctor.system.port import ProgramResult, System

_SECONDS = 3.0
# A card that falls off the bus again and again writes thousands of lines; the newest tell enough.
_MOST_EVENTS = 200


def look(system: System) -> dict[str, Fact[Any]]:
    events = _events(system)
    facts: dict[str, Fact[Any]] = {"kernel.log_events": events}
    if any(event["kind"] == XID for event in events.value or ()):
        # How long ago an Xid was: its line tells the seconds since the start.
        facts["system.uptime"] = system.read_text("/proc/uptime", 128).map(_uptime)
    return facts


def _uptime(text: str) -> float:
    try:
        return float(text.split()[0])
    except (ValueError, IndexError):
        raise ParseError("it holds no number") from None


def event_entry(event: KernelEvent) -> dict[str, Any]:
    """An event as `kernel.log_events` lists it."""
    return {
        "kind": event.kind,
        "text": event.text,
        "bus_id": event.bus_id,
        "seconds": event.seconds,
        "values": dict(event.values),
    }


def _events(system: System) -> Fact[list[dict[str, Any]]]:
    devices = system.once(display_devices)[0]
    module = system.status("/sys/module/nvidia")
    if not devices.value and not module.is_known and not system.status("/proc/driver/nvidia").is_known:
        return unknown("not read: nothing of NVIDIA is on the PCI bus", "dmesg")
    log = _dmesg(system)
    if log.is_unknown and _in_trouble(system, devices, module):
        journal = _journal(system)
        if journal.is_known:
            log = journal
    return log.map(lambda text: [event_entry(event) for event in parse_kernel_log(text)[-_MOST_EVENTS:]])


def _dmesg(system: System) -> Fact[str]:
    program = system.which("dmesg")
    if not program.is_known:
        return unknown("there is no dmesg", program.source)
    return _output(system.run([program.get()], timeout=_SECONDS))


def _journal(system: System) -> Fact[str]:
    program = system.which("journalctl")
    if not program.is_known:
        return unknown("there is no journalctl", program.source)
    command = [program.get(), "--dmesg", "--boot", "--no-pager", "--output=short"]
    result = _output(system.run(command, timeout=_SECONDS))
    if result.is_known and " kernel: " not in result.get():
        return unknown("the journal shows this user no kernel messages", result.source)
    return result


def _output(result: Fact[ProgramResult]) -> Fact[str]:
    if not result.is_known:
        return unknown(result.reason or "there is no such program", result.source)
    ended = result.get()
    if ended.timed_out:
        return unknown("timed out", result.source)
    if ended.exit_status != 0:
        denied = "not permitted" in ended.stderr or "ermission" in ended.stderr or "denied" in ended.stderr
        reason = "reading the kernel log needs root" if denied else f"it failed (exit status {ended.exit_status})"
        return unknown(reason, result.source)
    return known(ended.stdout, result.source)


def _in_trouble(system: System, devices: Fact[list[dict[str, Any]]], module: Fact[Any]) -> bool:
    """Whether a card on the bus lacks its driver, or module and library are of two versions."""
    if module.is_absent or any(device["driver"] != "nvidia" for device in devices.value or ()):
        return True
    version = system.read_text("/sys/module/nvidia/version", 256)
    library = system.once(library_version)
    return version.is_known and library.is_known and version.get().strip() != library.get()


PROBE = Probe("kernel_log", (LINUX,), ("kernel.log_events", "system.uptime"), look)
