"""Small files of /sys/bus/pci, and PCI addresses in every spelling."""

from __future__ import annotations

import pytest

from cudadoctor.parse import pci
from cudadoctor.parse.errors import ParseError


@pytest.mark.parametrize(
    ("text", "number"), [("0x10de\n", 0x10DE), ("0x030000", 0x30000), ("10DE", 0x10DE), ("0X1F", 31)]
)
def test_hex(text: str, number: int) -> None:
    assert pci.parse_hex(text) == number


@pytest.mark.parametrize("text", ["", "0x", "0xg", "-0x1", "0x_1", "0x 1", "1" * 17])
def test_no_hex(text: str) -> None:
    with pytest.raises(ParseError):
        pci.parse_hex(text)


@pytest.mark.parametrize(
    ("vendor", "class_code", "name", "is_gpu"),
    [
        (0x10DE, 0x030000, "vga", True),
        (0x10DE, 0x030200, "3d", True),
        (0x10DE, 0x040300, "audio", False),
        (0x10DE, 0x0C0330, "usb", False),
        (0x10DE, 0x0C8000, "serial-bus", False),
        (0x10DE, 0x068000, "bridge", False),  # NVSwitch
        (0x8086, 0x030000, "vga", False),
        (0x1002, 0x038000, "display", False),
        (0x10DE, 0x020000, "other", False),  # a network card of theirs
    ],
)
def test_which_functions_are_gpus(vendor: int, class_code: int, name: str, is_gpu: bool) -> None:
    assert pci.class_name(class_code) == name
    assert pci.is_nvidia_gpu(vendor, class_code) is is_gpu


@pytest.mark.parametrize(
    ("text", "rate", "generation"),
    [
        ("2.5 GT/s PCIe\n", 2.5, 1),
        ("5.0 GT/s PCIe", 5.0, 2),
        ("8 GT/s", 8.0, 3),
        ("16.0 GT/s PCIe", 16.0, 4),
        ("32.0 GT/s PCIe", 32.0, 5),
        ("64.0 GT/s PCIe", 64.0, 6),
        ("7.0 GT/s PCIe", 7.0, None),
    ],
)
def test_link_speed(text: str, rate: float, generation: int | None) -> None:
    assert pci.parse_link_speed(text) == pci.LinkSpeed(rate, generation)


@pytest.mark.parametrize("text", ["Unknown\n", "Unknown speed"])
def test_unknown_link_speed(text: str) -> None:
    assert pci.parse_link_speed(text) is None


@pytest.mark.parametrize("text", ["", "GT/s", "16.0", "fast GT/s", "1.2.3 GT/s"])
def test_no_link_speed(text: str) -> None:
    with pytest.raises(ParseError):
        pci.parse_link_speed(text)


@pytest.mark.parametrize(("text", "lanes"), [("16\n", 16), ("1", 1), ("x8", 8), ("0", None), ("255", None)])
def test_link_width(text: str, lanes: int | None) -> None:
    assert pci.parse_link_width(text) == lanes


@pytest.mark.parametrize("text", ["", "x", "-1", "sixteen", "1024"])
def test_no_link_width(text: str) -> None:
    with pytest.raises(ParseError):
        pci.parse_link_width(text)


def test_uevent() -> None:
    text = "DRIVER=nvidia\nPCI_CLASS=30000\nPCI_ID=10DE:2684\nMODALIAS=pci:v000010DE\nnonsense\n"
    assert pci.parse_uevent(text) == {
        "DRIVER": "nvidia",
        "PCI_CLASS": "30000",
        "PCI_ID": "10DE:2684",
        "MODALIAS": "pci:v000010DE",
    }
    assert "DRIVER" not in pci.parse_uevent("PCI_CLASS=30000\n")


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("00000000:3B:00.0", "0000:3b:00.0"),  # NVML, nvidia-smi
        ("0000:3b:00.0", "0000:3b:00.0"),  # /sys
        ("3b:00.0", "0000:3b:00.0"),  # lspci
        ("0000:3b:00", "0000:3b:00.0"),  # an Xid line
        ("PCI:0000:3b:00", "0000:3b:00.0"),
        ("0000000F:01:00.0", "000f:01:00.0"),
        ("10000:e1:00.0", "10000:e1:00.0"),  # behind Intel VMD
        ("01:00.7", "0000:01:00.7"),
    ],
)
def test_bus_id(text: str, normal: str) -> None:
    assert pci.normalise_bus_id(text) == normal


@pytest.mark.parametrize(
    "text", ["", "N/A", "1", "01:00.8", "01:00.", "01:00.00", "g1:00.0", "0:0:0:0.0", "000000000:01:00.0"]
)
def test_no_bus_id(text: str) -> None:
    with pytest.raises(ParseError):
        pci.parse_bus_id(text)


def test_same_device() -> None:
    assert pci.same_device("00000000:3B:00.0", "3b:00.1")
    assert not pci.same_device("0000:3b:00.0", "0001:3b:00.0")


def test_addresses_sort_by_number() -> None:
    ids = ["0000:81:00.0", "0000:0a:00.0", "0001:01:00.0"]
    assert [str(one) for one in sorted(map(pci.parse_bus_id, ids))] == ["0000:0a:00.0", "0000:81:00.0", "0001:01:00.0"]
