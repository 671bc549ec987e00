"""The quick named tuples behave as typing.NamedTuple does."""

from __future__ import annotations

import copy
import pickle
import typing

import pytest

from cudadoctor.model.record import NamedTuple


class Quick(NamedTuple):
    """A record."""

    name: str
    size: int | None
    unit: str = "MiB"

    @property
    def shown(self) -> str:
        return f"{self.size} {self.unit}"


class Standard(typing.NamedTuple):
    """A record."""

    name: str
    size: typing.Optional[int]
    unit: str = "MiB"

    @property
    def shown(self) -> str:
        return f"{self.size} {self.unit}"


BOTH = pytest.mark.parametrize("kind", [Quick, Standard])


@BOTH
def test_making_and_reading(kind: type[Standard]) -> None:
    one = kind("a", 3)
    assert (one.name, one.size, one.unit, one.shown) == ("a", 3, "MiB", "3 MiB")
    assert one == kind(name="a", size=3) == kind("a", size=3, unit="MiB") == ("a", 3, "MiB")
    assert one != kind("a", 3, "GiB")
    assert len({one, kind("a", 3)}) == 1
    name, size, _ = one
    assert (name, size) == ("a", 3)


@BOTH
def test_helpers(kind: type[Standard]) -> None:
    one = kind("a", None)
    assert kind._fields == ("name", "size", "unit")
    assert one._asdict() == {"name": "a", "size": None, "unit": "MiB"}
    assert one._replace(size=4) == kind("a", 4)
    assert type(one._replace(size=4)) is kind
    assert repr(one) == f"{kind.__name__}(name='a', size=None, unit='MiB')"


@BOTH
def test_copies(kind: type[Standard]) -> None:
    one = kind("a", 3, "GiB")
    copies: list[Standard] = [copy.copy(one), copy.deepcopy(one), pickle.loads(pickle.dumps(one))]
    for other in copies:
        assert other == one and type(other) is kind


@BOTH
def test_mistakes(kind: type[Standard]) -> None:
    make: typing.Callable[..., typing.Any] = kind
    mistakes: list[typing.Callable[[], typing.Any]] = [
        lambda: make("a"),
        lambda: make("a", 1, "u", 2),
        lambda: make("a", 1, name="b"),
        lambda: make("a", 1, x=2),
    ]
    for wrong in mistakes:
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises((TypeError, ValueError)):
        make("a", 1)._replace(nothing=1)
    with pytest.raises(AttributeError):
        make("a", 1).name = "b"
