"""Which checks there are, and for which GPUs they run in which process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Optional

from cudadoctor.model import ParseError
from cudadoctor.model.record import NamedTuple
from cudadoctor.parse.visible_devices import parse_visible_devices

VERSIONS = "versions"
ALLOCATION = "allocation"
# Each in the order in which it rests on those before it.
OF_ONE_GPU = (ALLOCATION, "matmul", "bandwidth", "memory-bandwidth", "cudnn", "compile")
OF_ALL_GPUS = ("peer", "nccl")
CHECKS = (VERSIONS, ALLOCATION, "matmul", "bandwidth", "memory-bandwidth", *OF_ALL_GPUS, "cudnn", "compile")

VISIBLE = "CUDA_VISIBLE_DEVICES"
ORDER = "CUDA_DEVICE_ORDER"

# Bytes, rows of square matrices, numbers of runs, the least seconds of a measurement. The whole-number products stay
# exact in their type: 7 * 7 * 1024 is below 2**24, 1024 not above fp16's 2048, 256 not above bf16's 256.
SIZES: Mapping[str, Any] = {
    "allocation": 256 << 20,
    "matmul-fp32": 1024,
    "matmul-fp16": 1024,
    "matmul-bf16": 256,
    "rounds": 32,
    "bandwidth": 256 << 20,
    "memory": 512 << 20,
    "copies": 4,
    "repeats": 6,
    "seconds": 0.5,
    "convolution": (8, 16, 64),
    "peer": 32 << 20,
    "nccl": 64 << 20,
}

# Seconds that the processes of one GPU, and that of all, may take each. Loading torch from a slow disk takes half a
# minute, the first start of a driver without persistence mode on eight GPUs a quarter.
SECONDS = 120.0


class Device(NamedTuple):
    """A GPU that gets a process of its own. `number` counts as nvidia-smi does, or within CUDA_VISIBLE_DEVICES where
    that is set; `entry` is the value for that variable, None: as it is."""

    number: int
    entry: Optional[str]


def chosen(checks: Sequence[str]) -> tuple[str, ...]:
    """The checks of these names, in the order in which they run; none: all. Raises ParseError for another name."""
    wanted = [name.strip() for text in checks for name in text.split(",") if name.strip()]
    for name in wanted:
        if name not in CHECKS:
            raise ParseError(f"there is no check {name!r}; there are {', '.join(CHECKS)}")
    return tuple(name for name in CHECKS if not wanted or name in wanted)


def devices(visible: Optional[str], count: Optional[int], asked: Sequence[int] = ()) -> tuple[Device, ...]:
    """The GPUs that get a process each. `visible` is CUDA_VISIBLE_DEVICES (None: not set), `count` what CUDA shows, or
    NVML where CUDA said nothing. Raises ParseError where an asked one is not there."""
    told = parse_visible_devices(visible)
    if told.is_set:
        entries: list[Optional[str]] = [entry.text for entry in told.entries]
        entries = entries if count is None else entries[:count]
    else:
        # One GPU needs no word; and on a card in MIG mode there is no number for the instance that CUDA takes.
        entries = [None] if count == 1 else [str(number) for number in range(count or 0)]
    found = [Device(number, entry) for number, entry in enumerate(entries)]
    for number in asked:
        if number >= len(found):
            there = f"CUDA shows {len(found)}, counted from 0" if found else "CUDA shows none"
            raise ParseError(f"there is no GPU {number}: {there}")
    return tuple(device for device in found if not asked or device.number in asked)


def environment(visible: Optional[str], entries: Sequence[Optional[str]] = ()) -> dict[str, str]:
    """What a child's environment is to have beside ours: only these GPUs. The numbers are those of nvidia-smi, unless
    somebody has already chosen by number: then they keep the meaning that they have there."""
    added = {} if parse_visible_devices(visible).is_set else {ORDER: "PCI_BUS_ID"}
    words = [entry for entry in entries if entry is not None]
    if words:
        added[VISIBLE] = ",".join(words)
    return added
