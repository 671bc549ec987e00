"""Lists of nodes: what is written, what is read, and that one undoes the other."""

from __future__ import annotations

import sys

import pytest
from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st

from cudadoctor.fleet.hostlist import NoLibrary, expand, fold, is_name
from cudadoctor.model import ParseError

FOLDED = [
    ([], ""),
    (["login"], "login"),
    (["node7"], "node7"),
    (["node017", "node033"], "node[017,033]"),
    (["node3", "node1", "node2", "node10"], "node[1-3,10]"),
    (["n1", "n01", "n02", "n2"], "n[1-2,01-02]"),
    (["a1", "b1", "a2"], "a[1-2],b1"),
    (["r1n01", "r1n02", "r2n01"], "r1n[01-02],r2n01"),
    (["n1-ib", "n2-ib"], "n[1-2]-ib"),
    (["node1.site7.example", "node2.site7.example"], "node[1-2].site7.example"),
    (["n1", "odd name", "n2"], "n[1-2],odd name"),
]


@pytest.mark.parametrize("names, text", FOLDED, ids=[text or "none" for _, text in FOLDED])
def test_names_are_folded(names: list[str], text: str) -> None:
    assert fold(names) == text


EXPANDED = [
    ("node[001-003,007]", ["node001", "node002", "node003", "node007"]),
    ("r[1-2]n[08-10]", ["r1n08", "r1n09", "r1n10", "r2n08", "r2n09", "r2n10"]),
    ("n[1-2]-ib,login", ["login", "n1-ib", "n2-ib"]),
    ("n[1-2] m1\nm2", ["m1", "m2", "n1", "n2"]),
    ("node1\nnode2\nnode1\n", ["node1", "node2"]),
    ("b,a", ["a", "b"]),
]


@pytest.mark.parametrize("text, names", EXPANDED, ids=[text for text, _ in EXPANDED])
def test_lists_are_expanded(text: str, names: list[str]) -> None:
    assert sorted(expand(text)) == names


@pytest.mark.parametrize(
    "text, says",
    [
        ("", "empty"),
        (" , ", "empty"),
        ("node[1-3", "bracket"),
        ("node[]", "range"),
        ("node[3-1]", "range"),
        ("node[1-99999999]", "slip"),
        ("r[1-999]n[1-999]", "998001 nodes"),
        ("@all", "'@'"),
        ("*", "'*'"),
        ("n1;reboot", "';'"),
        ("n[1-2]!n1", "'!'"),
    ],
)
def test_what_is_no_list_is_refused_in_words(text: str, says: str) -> None:
    with pytest.raises(ParseError) as error:
        expand(text)
    assert says in str(error.value)


def test_without_the_library_plain_names_can_still_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ClusterShell.NodeSet", None)
    assert expand("node1,node2") == ["node1", "node2"]
    with pytest.raises(NoLibrary):
        expand("node[1-2]")


@pytest.mark.once
@given(st.sets(st.from_regex(r"[a-z]{1,3}[0-9]{1,3}(-[a-z]|\.x)?", fullmatch=True), max_size=40))
def test_what_was_folded_means_the_same_names(names: set[str]) -> None:
    assert set(NodeSet(fold(names), resolver=RESOLVER_NOGROUP)) == names


@pytest.mark.parametrize("name", ["", "-o", "a b", "a,b", "a[1]", "$(reboot)", "a\nb", "n" * 300])
def test_names_that_no_scheduler_takes(name: str) -> None:
    assert not is_name(name)
