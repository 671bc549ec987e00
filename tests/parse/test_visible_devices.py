"""CUDA_VISIBLE_DEVICES, NVIDIA_VISIBLE_DEVICES."""

from __future__ import annotations

import pytest

from cudadoctor.parse.visible_devices import parse_container_devices, parse_visible_devices, usable

A = "GPU-3f1c0000-0000-4000-8000-000000000000"
B = "GPU-9a2b0000-0000-4000-8000-000000000000"
C = "GPU-9a2c0000-0000-4000-8000-000000000000"

VALUES = [
    # value, kinds of the entries, ignored words, hides everything
    (None, [], (), False),
    ("", [], (), True),
    (" ", [], (), True),
    ("-1", [], ("-1",), True),
    ("NoDevFiles", [], ("NoDevFiles",), True),
    ("none", [], ("none",), True),
    ("0", ["index"], (), False),
    ("0,2", ["index", "index"], (), False),
    (" 0 , 1 ", ["index", "index"], (), False),
    ("0,-1,1", ["index"], ("-1", "1"), False),
    ("0,,1", ["index"], ("", "1"), False),
    ("0,0", [], ("0", "0"), True),
    ("0,00", [], ("0", "00"), True),
    (f"{A},{B}", ["uuid", "uuid"], (), False),
    ("GPU-3f1c", ["uuid"], (), False),
    ("GPU-", [], ("GPU-",), True),
    ("1gpu,+2", ["index", "index"], (), False),
    (f"0,{A},1", ["index"], (A, "1"), False),
    (f"{A},0", ["uuid"], ("0",), False),
    ("MIG-22222222-0000-5000-8000-000000000000", ["mig"], (), False),
    (f"MIG-{A}/7/0", ["mig"], (), False),
    (f"{A}/7/0", [], (f"{A}/7/0",), True),
    ("all", [], ("all",), True),
    ("cuda:0", [], ("cuda:0",), True),
]


@pytest.mark.parametrize(("value", "kinds", "ignored", "hides"), VALUES)
def test_value(value: str | None, kinds: list[str], ignored: tuple[str, ...], hides: bool) -> None:
    got = parse_visible_devices(value)
    assert [entry.kind for entry in got.entries] == kinds
    assert (got.ignored, got.hides_all, got.is_set) == (ignored, hides, value is not None)


@pytest.mark.parametrize(
    ("value", "count", "visible"),
    [
        (None, 2, [0, 1]),
        ("", 2, []),
        ("0", 2, [0]),
        ("1,0", 2, [1, 0]),
        ("0,7,1", 2, [0]),  # an entry that is not there hides itself and all after it
        ("7", 2, []),
        ("0,-1,1", 2, [0]),
        ("1,1", 2, []),
        (A, 3, [0]),
        ("GPU-9A2B", 3, [1]),
        ("GPU-9a2", 3, []),  # the start of two
        (f"{C},{A},{B}", 3, [2, 0, 1]),
        (f"{A},GPU-3f1c", 3, []),  # the same GPU twice
        (f"{C},0,{B}", 3, [2]),
        ("GPU-77", 3, []),
        ("MIG-22222222-0000-5000-8000-000000000000", 3, None),
    ],
)
def test_usable(value: str | None, count: int, visible: list[int] | None) -> None:
    assert usable(parse_visible_devices(value), count, (A, B, C)[:count]) == visible


def test_a_uuid_cannot_be_followed_without_the_uuids() -> None:
    assert usable(parse_visible_devices(A), 1) is None


@pytest.mark.parametrize(
    ("value", "is_set", "hides"),
    [("all", False, False), ("none", True, True), ("", True, True), ("0,1", True, False), (A, True, False)],
)
def test_container_devices(value: str, is_set: bool, hides: bool) -> None:
    got = parse_container_devices(value)
    assert got is not None and (got.is_set, got.hides_all) == (is_set, hides)


@pytest.mark.parametrize("value", [None, "void"])
def test_the_container_runtime_does_nothing(value: str | None) -> None:
    assert parse_container_devices(value) is None
