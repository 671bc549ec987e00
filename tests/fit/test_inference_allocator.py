"""What torch's allocator leaves with tensors: worked out by hand from its rules."""

from __future__ import annotations

import pytest

from cudadoctor.fit.allocator import left_over

pytestmark = pytest.mark.once

MIB = 1 << 20

CASES = [
    ([], 0, "nothing"),
    ([512], 0, "a multiple of 512 bytes"),
    ([513], 511, "rounded up to 512 bytes"),
    ([MIB] * 7, 0, "small tensors share segments"),
    ([43 * MIB], MIB, "44 MiB are taken, and 1 MiB is not split off"),
    ([43 * MIB - 512], 0, "the rest is more than 1 MiB: it is split off"),
    ([44 * MIB], 0, "fits exactly"),
    ([8 * MIB, 8 * MIB], 0, "both come out of 20 MiB, 4 MiB remain"),
    ([9 * MIB + MIB // 2] * 2, MIB, "20 MiB are full but for 1 MiB"),
    ([42 * MIB + 512, 3 * MIB // 2], MIB // 2 - 512, "the rest of the one is a block for the other"),
]


@pytest.mark.parametrize(("sizes", "wasted", "why"), CASES, ids=[row[2] for row in CASES])
def test_it_leaves(sizes: list[int], wasted: int, why: str) -> None:
    assert left_over(sizes) == wasted


def test_the_matrices_of_qwen25_3b_are_an_odd_number_of_mebibytes() -> None:
    """Gate, up and down of 36 layers take 43 MiB each and hold 44: 108 MiB more than they have numbers for."""
    assert left_over([11008 * 2048 * 2] * 3 * 36) == 108 * MIB
