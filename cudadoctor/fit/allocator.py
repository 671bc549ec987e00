"""How torch's caching allocator cuts blocks for tensors: what it counts as allocated is the block, not the tensor.

The numbers are constants of c10/cuda/CUDACachingAllocator.cpp, part of how torch works since its first release with it.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable

_MIB = 1 << 20
_SMALL = _MIB  # up to here tensors share segments in which every rest is used
_MIDDLE = 10 * _MIB  # up to here segments are of one size
_SEGMENT = 20 * _MIB
_STEP = 2 * _MIB
_ROUND = 512


def left_over(sizes: Iterable[int]) -> int:
    """Bytes that stay with tensors which are made one after the other and kept: a block is split only where more than
    1 MiB would be left."""
    free: list[int] = []
    wasted = 0
    for size in sizes:
        wanted = -(-size // _ROUND) * _ROUND
        wasted += wanted - size
        if wanted <= _SMALL:
            continue
        place = bisect_left(free, wanted)
        new = _SEGMENT if wanted < _MIDDLE else -(-wanted // _STEP) * _STEP
        block = free.pop(place) if place < len(free) else new
        rest = block - wanted
        if rest > _SMALL:
            insort(free, rest)
        else:
            wasted += rest
    return wasted
