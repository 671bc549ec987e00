from __future__ import annotations

from typing import Any, Optional

import pytest

from cudadoctor.probes.pci import PROBE

from .tables import ABSENT, DENIED, Unknown, check, machine

BUS = "/sys/bus/pci/devices"


def device(
    address: str, vendor: str, device_id: str, class_code: str, driver: Optional[str] = None, **files: str
) -> Any:
    """Files and links of one device, as a recording has them."""
    folder = f"{BUS}/{address}"
    shown = {"vendor": f"0x{vendor}", "device": f"0x{device_id}", "class": f"0x{class_code}", **files}
    return {
        "files": {f"{folder}/{name}": f"{text}\n" for name, text in shown.items()},
        "links": {f"{folder}/driver": f"../../../../bus/pci/drivers/{driver}"} if driver else {},
    }


def bus(*devices: Any) -> dict[str, Any]:
    return {
        "files": {path: text for one in devices for path, text in one["files"].items()},
        "links": {path: text for one in devices for path, text in one["links"].items()},
    }


def gpu(address: str, device_id: str, driver: Optional[str], **more: Any) -> dict[str, Any]:
    empty = ("numa_node", "link_speed_gts", "link_width", "max_link_speed_gts", "max_link_width")
    return {
        "address": address,
        "device_id": device_id,
        "class": "030000",
        "driver": driver,
        **dict.fromkeys(empty),
        **more,
    }


INTEL = device("0000:00:02.0", "8086", "4680", "030000", "i915")
SOUND = device("0000:01:00.1", "10de", "22ba", "040300", "snd_hda_intel")
NETWORK = device("0000:02:00.0", "10ec", "8125", "020000", "r8169")
RTX_4090 = device(
    "0000:01:00.0",
    "10de",
    "2684",
    "030000",
    "nvidia",
    numa_node="-1",
    current_link_speed="2.5 GT/s PCIe",
    current_link_width="16",
    max_link_speed="16.0 GT/s PCIe",
    max_link_width="16",
)
IDLE_LINK = {"link_speed_gts": 2.5, "link_width": 16, "max_link_speed_gts": 16.0, "max_link_width": 16}

CASES: list[tuple[str, dict[str, Any], Any, Any]] = [
    (
        "a 4090 with its driver, its sound, and the processor's own graphics",
        bus(INTEL, RTX_4090, SOUND, NETWORK),
        [gpu("0000:01:00.0", "2684", "nvidia", **IDLE_LINK)],
        ["8086"],
    ),
    (
        "nouveau holds the card",
        bus(device("0000:01:00.0", "10de", "1c82", "030000", "nouveau")),
        [gpu("0000:01:00.0", "1c82", "nouveau")],
        [],
    ),
    (
        "no driver holds the card",
        bus(device("0000:01:00.0", "10de", "1c82", "030000")),
        [gpu("0000:01:00.0", "1c82", None)],
        [],
    ),
    (
        "a server: 3D controllers, an NVSwitch that is no GPU, NUMA nodes",
        bus(
            device("0000:4e:00.0", "10de", "2330", "030200", "nvidia", numa_node="1"),
            device("0000:06:00.0", "10de", "22a3", "068000", "nvidia"),
            device("0000:03:00.0", "1a03", "2000", "030000", "ast"),
        ),
        [gpu("0000:4e:00.0", "2330", "nvidia", **{"class": "030200", "numa_node": 1})],
        ["1a03"],
    ),
    (
        "a link whose speed the kernel does not know",
        bus(device("0000:01:00.0", "10de", "2684", "030000", current_link_speed="Unknown", current_link_width="255")),
        [gpu("0000:01:00.0", "2684", None)],
        [],
    ),
    ("no card of NVIDIA's", bus(INTEL, NETWORK), [], ["8086"]),
    ("a virtual machine with nothing to look at", bus(NETWORK), [], []),
    ("WSL: the screen is Microsoft's", bus(device("1a2b:00:00.0", "1414", "008e", "030200", "dxgkrnl")), [], ["1414"]),
    ("a board without PCI", {"folders": {"/sys/bus": ["cpu", "platform", "usb"]}}, ABSENT, ABSENT),
    ("a sandbox whose /sys is empty", {"folders": {"/sys/bus": []}}, Unknown("does not show"), Unknown()),
    ("no /sys at all", {}, Unknown("does not show"), Unknown("does not show")),
    ("no right to list the bus", {"folders": {BUS: DENIED}}, Unknown("denied"), Unknown("denied")),
    (
        "a device that cannot be read could be the card",
        {"files": {f"{BUS}/0000:01:00.0/class": DENIED}, "folders": {BUS: ["0000:01:00.0"]}},
        Unknown("permission denied"),
        [],
    ),
]


@pytest.mark.parametrize(("title", "sections", "gpus", "others"), CASES, ids=[case[0] for case in CASES])
def test_pci(title: str, sections: dict[str, Any], gpus: Any, others: Any) -> None:
    check(PROBE, machine(**sections), {"pci.gpus": gpus, "pci.other_display": others})
