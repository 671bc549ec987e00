"""The document `cudadoctor.fleet/1` as types. The shipped schema is generated from these; keys are only ever added."""

from __future__ import annotations

from typing import Literal, Optional, TypedDict

from cudadoctor.render.documents import FindingEntry, ToolEntry

NodeState = Literal["fail", "crash", "undecided", "fine"]


class GroupEntry(TypedDict):
    """Nodes of the same verdict. `causes` are what fails them, `noted` weaker findings, `left_open` what could not be
    judged or crashed; the messages are the first node's."""

    state: NodeState
    causes: list[FindingEntry]
    noted: list[FindingEntry]
    left_open: list[FindingEntry]
    nodes: list[str]
    node_list: str


class NodeEntry(TypedDict):
    """`causes` are rule ids; `kind` is a label of `kinds`; `source` is the file and line of the snapshot."""

    name: str
    state: NodeState
    causes: list[str]
    kind: str
    source: str


class KindEntry(TypedDict):
    """Nodes with the same GPU models: only these are compared."""

    label: str
    nodes: list[str]


class ValueEntry(TypedDict):
    value: str
    nodes: list[str]


class DifferenceEntry(TypedDict):
    """In what nodes of one kind differ. `norm` is what nearly all have, null where no value is so frequent;
    `should_be_alike` is false of a state, such as clocks that are held down."""

    what: str
    kind: str
    norm: Optional[ValueEntry]
    others: list[ValueEntry]
    should_be_alike: bool


class RepeatedEntry(TypedDict):
    """A node with several snapshots: the source of the one that counts, and the others'."""

    node: str
    counts: str
    others: list[str]


class UnreadableEntry(TypedDict):
    """What could not be read, from line `line` to line `last` of `file`; `node` is empty where no name is known."""

    file: str
    line: int
    last: int
    node: str
    reason: str


class VersionEntry(TypedDict):
    tool: str
    matrix: str
    nodes: list[str]


class FleetDocument(TypedDict):
    """`cudadoctor fleet --format json`. `expected` is how many nodes were asked for, null where nobody said; `bad` are
    the nodes to keep jobs away from, `good` those with nothing against them; `disagreement` is what the rule CD707 says
    of the differences, null where there are none; `versions` is empty where all nodes were judged by the same one."""

    schema: Literal["cudadoctor.fleet/1"]
    tool: ToolEntry
    exit: int
    verdict: str
    expected: Optional[int]
    bad: list[str]
    bad_list: str
    good: list[str]
    good_list: str
    groups: list[GroupEntry]
    nodes: list[NodeEntry]
    kinds: list[KindEntry]
    differences: list[DifferenceEntry]
    disagreement: Optional[FindingEntry]
    missing: list[str]
    unexpected: list[str]
    repeated: list[RepeatedEntry]
    unreadable: list[UnreadableEntry]
    versions: list[VersionEntry]
