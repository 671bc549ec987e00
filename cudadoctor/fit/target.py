"""Where the work is to run: GPUs and what is free on them, and the machine around them."""

from __future__ import annotations

from typing import Optional

from cudadoctor.model.record import NamedTuple


class Card(NamedTuple):
    """One GPU. Bytes; None where nobody knows. `free` is what is free now, or for a card that is only named what
    remains beside the driver's own use."""

    name: str
    total: Optional[int]
    free: Optional[int]
    bandwidth: Optional[float] = None
    """Of its memory, bytes a second."""
    tensor_rate: Optional[float] = None
    """Dense bf16/fp16 operations a second."""
    compute_capability: str = ""
    used_by_others: Optional[int] = None
    source: str = ""
    shared: bool = False
    """It has no memory of its own: GPU and processor share one."""


class Machine(NamedTuple):
    """Around the GPUs. Bytes; None: unknown."""

    memory_total: Optional[int] = None
    memory_available: Optional[int] = None
    swap: Optional[int] = None
    shared_memory: Optional[int] = None
    """Free in /dev/shm."""
    lockable: Optional[int] = None
    disk: str = ""
    """nvme, ssd, hdd, network, memory, virtual; empty: unknown."""


class Target(NamedTuple):
    """`kind`: "machine" (looked at now), "gpu" (named), "memory" (only a size was given), "none" (nothing to compare
    with: no GPU was found or named)."""

    kind: str
    cards: tuple[Card, ...] = ()
    machine: Machine = Machine()
    notes: tuple[str, ...] = ()
    system: str = ""
    """linux, windows, wsl, jetson; empty: not known. Some changes do not work everywhere."""
