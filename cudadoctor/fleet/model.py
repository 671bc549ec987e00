"""What is known and said about many nodes. Data only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Optional

from cudadoctor.model import Outcome
from cudadoctor.model.record import NamedTuple

# What became of a node, from the worst to the best.
FAIL = "fail"  # a finding at the threshold
CRASH = "crash"  # a rule of cudadoctor's own failed there
UNDECIDED = "undecided"
FINE = "fine"
STATES = (FAIL, CRASH, UNDECIDED, FINE)

_NOTHING: Mapping[str, Any] = {}


class Finding(NamedTuple):
    """What a rule found on a node, as far as a fleet's report shows it. `blame` is who can mend it."""

    rule: str
    name: str
    severity: str
    certainty: str
    blame: str
    message: str


class Judgement(NamedTuple):
    """The verdict on one node. `counted` are the findings at the threshold that follow from nothing else (all that do,
    where each follows from another), `noted` the weaker ones, both the likeliest first; `left_open` are the
    links of the chain that could not be judged, or the rules that crashed."""

    state: str
    counted: tuple[Finding, ...] = ()
    noted: tuple[Finding, ...] = ()
    left_open: tuple[Finding, ...] = ()


class Place(NamedTuple):
    """Where a snapshot was read: a file and the line at which it begins."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class Traits(NamedTuple):
    """What is compared between nodes. `kind` is the set of GPU models (only nodes of the same kind are compared),
    `kind_label` its name for people; `values` hold one text for each of `traits.TRAITS`, None where it is unknown."""

    kind: str
    kind_label: str
    values: tuple[Optional[str], ...]


class Snapshot(NamedTuple):
    """One document about one node. `node` is empty where the document does not tell its name; `date` is the node's
    own, YYYY-MM-DD, and `written` the file's time of change in seconds since 1970, to tell which of two is newer."""

    node: str
    place: Place
    judgement: Judgement
    traits: Traits
    tool: str = ""
    matrix: str = ""
    date: str = ""
    written: float = 0.0


class Unreadable(NamedTuple):
    """Something where a snapshot was expected: `reason` is what is wrong there. `node` is the name that the line or
    the file gave it, empty where none did; `last` is the last line that it takes up."""

    place: Place
    reason: str
    node: str = ""
    last: int = 0


class Node(NamedTuple):
    """A node with the snapshot that counts for it. `by_file`: only the file's name tells how it is called."""

    name: str
    snapshot: Snapshot
    by_file: bool = False


class Group(NamedTuple):
    """Nodes of the same verdict. The judgement is the first node's: another one's messages may name another GPU."""

    judgement: Judgement
    nodes: tuple[str, ...]


class Kind(NamedTuple):
    """Nodes with the same GPU models."""

    label: str
    nodes: tuple[str, ...]


class Value(NamedTuple):
    """What some nodes of one kind have in common."""

    text: str
    nodes: tuple[str, ...]


class Difference(NamedTuple):
    """In what the nodes of one kind differ. `norm` is what nearly all have, None where no value is common enough to be
    one (a split); `others` are the rest, the most frequent first. `should_be_alike` is False of what is a state and no
    setting: a node that is hot is no node that was set up in another way."""

    what: str
    kind: str
    norm: Optional[Value]
    others: tuple[Value, ...]
    should_be_alike: bool = True


class Repeated(NamedTuple):
    """A node of which there are several snapshots, the one that counts and the others."""

    node: str
    counts: Place
    others: tuple[Place, ...]


class Version(NamedTuple):
    """What cudadoctor and which compatibility data judged some of the nodes."""

    tool: str
    matrix: str
    nodes: tuple[str, ...]


class FleetReport(NamedTuple):
    """The report on a fleet. `expected` is how many nodes were asked for (None: nobody said); `bad` are the nodes to
    keep jobs away from (those that fail and those that are missing), `good` those with nothing against them."""

    exit: int
    word: str
    verdict: str
    nodes: tuple[Node, ...]
    groups: tuple[Group, ...]
    kinds: tuple[Kind, ...]
    differences: tuple[Difference, ...]
    disagreement: Optional[Outcome]
    expected: Optional[int] = None
    missing: tuple[str, ...] = ()
    unexpected: tuple[str, ...] = ()
    repeated: tuple[Repeated, ...] = ()
    unreadable: tuple[Unreadable, ...] = ()
    versions: tuple[Version, ...] = ()
    bad: tuple[str, ...] = ()
    good: tuple[str, ...] = ()
    fail_on: str = "error"
