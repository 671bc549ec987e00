"""Facts: three states that never blur, on whatever machines say, and through JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cudadoctor.model import Fact, Facts, ParseError, absent, known, unknown
from cudadoctor.model.catalogue import CATALOGUE, fits, read_value, spec_of

# What JSON can carry. It knows no NaN, and the halves of a broken letter are escaped.
scalar = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
value = st.recursive(scalar, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8)
words = st.text(max_size=20)


def facts_of_any_kind() -> st.SearchStrategy[Facts]:
    fact = st.builds(known, value, words) | st.builds(absent, words) | st.builds(unknown, words, words)
    return st.dictionaries(st.sampled_from(sorted(CATALOGUE)) | words, fact, max_size=8).map(Facts)


@given(facts_of_any_kind())
def test_facts_survive_json(facts: Facts) -> None:
    assert Facts.from_json(json.loads(json.dumps(facts.to_json()))) == facts


@given(facts_of_any_kind(), words)
def test_what_nobody_looked_at_is_unknown_and_never_absent(facts: Facts, name: str) -> None:
    fact = facts.without([name])[name]
    assert fact.is_unknown and fact.reason
    assert facts.without([name]).value(name, "default") == "default"


@pytest.mark.parametrize("fact", [absent("/dev"), unknown("no permission", "/dev")])
def test_what_is_not_known_has_no_value(fact: Fact[Any]) -> None:
    with pytest.raises(LookupError):
        fact.get()
    assert fact.map(len) == fact


def test_a_value_that_cannot_be_read_becomes_unknown_with_the_reason() -> None:
    def refuse(text: str) -> int:
        raise ParseError(f"{text!r} is no number")

    assert known("x", "/proc/x").map(refuse) == unknown("'x' is no number", "/proc/x")
    assert known("12", "/proc/x").map(int) == known(12, "/proc/x")


# What a person writes after --assume, and the value that it stands for.
WRITTEN: list[tuple[str, str, Any]] = [
    ("torch.version", "2.6.0+cpu", "2.6.0+cpu"),
    ("gpu.0.lost", "yes", True),
    ("gpu.0.lost", "off", False),
    ("gpu.count", "2", 2),
    ("gpu.1.power", "61.5", 61.5),
    ("torch.sass", "sm_80, sm_90", ["sm_80", "sm_90"]),
    ("toolkit.cuda_home", '{"path": "/usr/local/cuda"}', {"path": "/usr/local/cuda"}),
    ("pci.gpus", "[]", []),
]


@pytest.mark.parametrize(("name", "text", "expected"), WRITTEN)
def test_a_value_that_a_person_wrote(name: str, text: str, expected: Any) -> None:
    assert read_value(name, text) == expected


@pytest.mark.parametrize(
    ("name", "text"), [("gpu.0.power", "nan"), ("gpu.0.power", "-inf"), ("memory.swap_devices", '[{"size": NaN}]')]
)
def test_what_no_document_can_carry_is_no_value(name: str, text: str) -> None:
    with pytest.raises(ParseError, match=r"is a number|is written as JSON"):
        read_value(name, text)


WRITINGS = st.sampled_from(["", "0", "on", "nan", "12.5", "a,b", "[]", "{}", "[1]", '[{"a": 1}]']) | words


@given(st.sampled_from(sorted(CATALOGUE)), WRITINGS)
def test_a_value_that_was_read_is_of_the_catalogues_type(template: str, text: str) -> None:
    """Whatever is written: a value of the fact's type that JSON can carry, or one sentence."""
    name = template.replace("{n}", "0").replace("{name}", "torch")
    spec = spec_of(name)
    assert spec is not None
    try:
        read = read_value(name, text)
    except ParseError as error:
        assert str(error)
    else:
        assert fits(spec, read)
        assert json.loads(json.dumps(read, allow_nan=False)) == read
