"""An expression that waits until it is used is the same expression."""

from __future__ import annotations

import copy
import re

import pytest

from cudadoctor.model.pattern import pattern


def test_it_does_what_re_does() -> None:
    ours, theirs = pattern(r"(?P<n>\d+)x", re.IGNORECASE), re.compile(r"(?P<n>\d+)x", re.IGNORECASE)
    text = "a 12X, 7x"
    for one in (ours, ours):  # the second time without the way round
        assert one.pattern == theirs.pattern and one.flags == theirs.flags and one.groupindex == theirs.groupindex
        assert one.findall(text) == theirs.findall(text) == ["12", "7"]
        assert one.sub(r"<\g<n>>", text) == theirs.sub(r"<\g<n>>", text)
        assert one.match(text) is None and one.search(text) is not None


def test_a_mistake_shows_when_it_is_used() -> None:
    wrong = pattern("(")
    with pytest.raises(re.error):
        wrong.match("x")


def test_it_can_be_copied() -> None:
    assert copy.copy(pattern("a+")).fullmatch("aa")


def test_it_has_no_other_attributes() -> None:
    with pytest.raises(AttributeError):
        getattr(pattern("a"), "nothing")  # noqa: B009
