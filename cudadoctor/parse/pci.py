"""Small files below /sys/bus/pci/devices/0000:01:00.0/.

    vendor               0x10de
    device               0x2684
    class                0x030000         VGA; 0x030200 is a 3D controller (a card without an output)
    current_link_speed   2.5 GT/s PCIe    "16.0 GT/s PCIe", old kernels "8 GT/s", "Unknown"
    current_link_width   16               0 and 255 mean: not known
    uevent               DRIVER=nvidia\\nPCI_CLASS=30000\\nPCI_ID=10DE:2684\\nPCI_SLOT_NAME=0000:01:00.0

A card shows more functions than its GPU: sound (0x0403..), USB (0x0c03..); an HGX board has NVSwitches (0x0680..).
"""

from __future__ import annotations

from cudadoctor.model.record import NamedTuple

from .digits import is_digits, is_dotted
from .errors import unlike

NVIDIA_VENDOR = 0x10DE

# PCI Code and ID Assignment Specification, base class and sub class.
_CLASSES = {
    0x0300: "vga",
    0x0302: "3d",
    0x0380: "display",
    0x0403: "audio",
    0x0680: "bridge",
    0x0C03: "usb",
    0x0C80: "serial-bus",
}
_GPU_CLASSES = (0x0300, 0x0302)

# PCI Express Base Specification: transfer rate of each generation, GT/s.
_GENERATIONS = {2.5: 1, 5.0: 2, 8.0: 3, 16.0: 4, 32.0: 5, 64.0: 6, 128.0: 7}


def parse_hex(text: str) -> int:
    r"""The number in `vendor`, `device`, `class`: "0x10de\n" -> 0x10de. ParseError for anything else."""
    text = text.strip()
    bare = text[2:] if text[:2] in ("0x", "0X") else text
    if not _is_hex(bare, 16):
        raise unlike("a hexadecimal number such as 0x10de", text)
    return int(bare, 16)


def _is_hex(text: str, most: int) -> bool:
    return 0 < len(text) <= most and not text.strip("0123456789abcdefABCDEF")


def class_name(class_code: int) -> str:
    """Either "vga", "3d", "audio", "usb", "bridge" (an NVSwitch), ... of a 24-bit class code; "other" for the rest."""
    return _CLASSES.get(class_code >> 8, "other")


def is_nvidia_gpu(vendor: int, class_code: int) -> bool:
    """Whether this function is a GPU of NVIDIA's: not its sound, not its USB port, not an NVSwitch."""
    return vendor == NVIDIA_VENDOR and class_code >> 8 in _GPU_CLASSES


class LinkSpeed(NamedTuple):
    """Transfer rate in GT/s; `generation` is None for a rate that no PCIe generation has."""

    gigatransfers: float
    generation: int | None


def parse_link_speed(text: str) -> LinkSpeed | None:
    """For example "16.0 GT/s PCIe" -> 16.0 GT/s, generation 4; None for "Unknown". ParseError for anything else."""
    text = text.strip()
    if text.lower().startswith("unknown"):
        return None
    number, unit, _ = text.partition("GT/s")
    number = number.rstrip()
    if not unit or not is_dotted(number, 1, 2, 3):
        raise unlike("a link speed such as 16.0 GT/s PCIe", text)
    rate = float(number)
    return LinkSpeed(rate, _GENERATIONS.get(rate))


def parse_link_width(text: str) -> int | None:
    """Lanes: "16" or "x16" -> 16; None where the kernel does not know (0, 255). ParseError for anything else."""
    text = text.strip()
    number = text[1:] if text.startswith("x") else text
    if not is_digits(number, 3):
        raise unlike("a link width such as 16", text)
    lanes = int(number)
    return lanes if 1 <= lanes <= 32 else None


def parse_uevent(text: str) -> dict[str, str]:
    """KEY=value lines; DRIVER is absent for a device that no driver has bound. Never fails."""
    pairs = (line.partition("=") for line in text.splitlines())
    return {key: value for key, sign, value in pairs if sign and key}


class BusId(NamedTuple):
    """A PCI address in numbers; `function` is 0 where the text had none (Xid lines)."""

    domain: int
    bus: int
    device: int
    function: int

    def __str__(self) -> str:
        return f"{self.domain:04x}:{self.bus:02x}:{self.device:02x}.{self.function:x}"


def parse_bus_id(text: str) -> BusId:
    """Every spelling of a PCI address: 00000000:3B:00.0 (NVML), 0000:3b:00.0 (/sys), 3b:00.0 (lspci), 0000:3b:00 (Xid).

    ParseError for anything else. str() of the result is the /sys spelling.
    """
    bare = text.strip()
    rest, dot, function = (bare[4:] if bare.startswith("PCI:") else bare).partition(".")
    parts = rest.split(":", 3)
    domain, bus, device = parts if len(parts) == 3 else ("0", *parts) if len(parts) == 2 else ("", "", "")
    whole = _is_hex(domain, 8) and _is_hex(bus, 2) and _is_hex(device, 2)
    if not whole or (dot and function not in tuple("01234567")):
        raise unlike("a PCI address such as 0000:01:00.0", text)
    return BusId(int(domain, 16), int(bus, 16), int(device, 16), int(function or "0", 8))


def normalise_bus_id(text: str) -> str:
    """Any spelling -> the /sys one, "0000:3b:00.0" (more than four domain digits are kept). ParseError as above."""
    return str(parse_bus_id(text))


def same_device(left: str, right: str) -> bool:
    """Whether two addresses mean the same card, whatever their function. ParseError as above."""
    return _card(parse_bus_id(left)) == _card(parse_bus_id(right))


def _card(bus_id: BusId) -> tuple[int, int, int]:
    return bus_id.domain, bus_id.bus, bus_id.device
