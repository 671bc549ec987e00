"""GPUs on the PCI bus, which the kernel lists even where no driver is installed."""

from __future__ import annotations

from typing import Any, Callable, Optional, TypeVar

from cudadoctor.model.fact import Fact, ParseError, known, unknown
from cudadoctor.parse.pci import NVIDIA_VENDOR, is_nvidia_gpu, parse_hex, parse_link_speed, parse_link_width
from cudadoctor.probes.api import LINUX, Probe
from cudadoctor.system.port import System

T = TypeVar("T")

FOLDER = "/sys/bus/pci/devices"
_DISPLAY = 0x03  # base class of display controllers


def look(system: System) -> dict[str, Fact[Any]]:
    gpus, others = system.once(display_devices)
    return {"pci.gpus": gpus, "pci.other_display": others}


def display_devices(system: System) -> tuple[Fact[list[dict[str, Any]]], Fact[list[str]]]:
    """`pci.gpus` and `pci.other_display`; for `system.once`, since other probes ask it too."""
    listing = system.list_folder(FOLDER)
    if not listing.is_known:
        nothing = _no_bus(system, listing)
        return nothing, nothing
    gpus: list[dict[str, Any]] = []
    others: set[str] = set()
    unread: Optional[Fact[Any]] = None
    for address in listing.get():
        folder = f"{FOLDER}/{address}"
        try:
            class_code = _number(system, f"{folder}/class")
            if class_code >> 16 != _DISPLAY:
                continue
            vendor = _number(system, f"{folder}/vendor")
            if vendor != NVIDIA_VENDOR:
                others.add(f"{vendor:04x}")
            elif is_nvidia_gpu(vendor, class_code):
                gpus.append(_gpu(system, address, folder, class_code))
        except _Unread as error:
            unread = error.fact
    if unread is not None and not gpus:
        # One of those could be the GPU.
        return unread, known(sorted(others), FOLDER)
    return known(gpus, FOLDER), known(sorted(others), FOLDER)


def _no_bus(system: System, listing: Fact[Any]) -> Fact[Any]:
    if listing.is_unknown:
        return unknown(listing.reason, FOLDER)
    # A sandbox (gVisor) shows a /sys with nothing in it; a board without PCI has other buses.
    if system.list_folder("/sys/bus").value:
        return Fact(listing.state, None, FOLDER)
    return unknown("/sys does not show the machine's buses", FOLDER)


class _Unread(Exception):
    def __init__(self, fact: Fact[Any]) -> None:
        super().__init__(fact.reason)
        self.fact = fact


def _number(system: System, path: str) -> int:
    fact = system.read_text(path, 64).map(parse_hex)
    if not fact.is_known:
        raise _Unread(unknown(fact.reason or "the file is not there", path))
    return fact.get()


def _gpu(system: System, address: str, folder: str, class_code: int) -> dict[str, Any]:
    driver = system.link_target(f"{folder}/driver")
    speed, top_speed = (
        _optional(system, f"{folder}/{name}", parse_link_speed) for name in ("current_link_speed", "max_link_speed")
    )
    node = _optional(system, f"{folder}/numa_node", _signed)
    return {
        "address": address,
        "device_id": f"{_number(system, f'{folder}/device'):04x}",
        "class": f"{class_code:06x}",
        "driver": driver.get().rpartition("/")[2] if driver.is_known else None,
        "numa_node": node if node is not None and node >= 0 else None,
        "link_speed_gts": speed.gigatransfers if speed else None,
        "link_width": _optional(system, f"{folder}/current_link_width", parse_link_width),
        "max_link_speed_gts": top_speed.gigatransfers if top_speed else None,
        "max_link_width": _optional(system, f"{folder}/max_link_width", parse_link_width),
    }


def _signed(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ParseError(f"not a number: {text[:40]!a}") from None


def _optional(system: System, path: str, parse: Callable[[str], Optional[T]]) -> Optional[T]:
    return system.read_text(path, 64).map(parse).value


PROBE = Probe("pci", (LINUX,), ("pci.gpus", "pci.other_display"), look)
