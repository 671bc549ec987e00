"""Snapshots of many nodes -> one report: who is there, who is missing, who fails, who differs, and the exit status."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Optional, Union

from cudadoctor.derive.case import Case
from cudadoctor.diagnose import judge_rule
from cudadoctor.fleet.compare import differences, kinds
from cudadoctor.fleet.hostlist import sort_key
from cudadoctor.fleet.model import (
    CRASH,
    FAIL,
    FINE,
    STATES,
    UNDECIDED,
    Difference,
    FleetReport,
    Group,
    Judgement,
    Node,
    Place,
    Repeated,
    Snapshot,
    Unreadable,
    Version,
)
from cudadoctor.fleet.verdict import verdict
from cudadoctor.matrix import Matrix
from cudadoctor.model import MACHINE, Facts, Outcome, known
from cudadoctor.model.record import NamedTuple
from cudadoctor.model.report import EXIT_FINDINGS, EXIT_FINE, EXIT_UNDECIDED, counts

# The rule whose word stands for differences between nodes.
NODES_DISAGREE = "CD707"


class Asked(NamedTuple):
    """What a person asked for: the nodes that have to be there (None: nobody said), the least severity that fails, and
    the exit status in the place of 1 where all that fails is the machines' fault."""

    expected: Optional[Sequence[str]] = None
    fail_on: str = "error"
    retry_code: Optional[int] = None


def merge(found: Iterable[Union[Snapshot, Unreadable]], matrix: Matrix, asked: Asked) -> FleetReport:
    """The report on all snapshots that were read, and on what could not be read."""
    snapshots = []
    unreadable = []
    for item in found:
        if isinstance(item, Unreadable):
            unreadable.append(item)
        else:
            snapshots.append(item)
    nodes, repeated = _nodes(snapshots)
    nodes, missing, unexpected = _against(nodes, asked.expected)
    found_differences = differences(nodes, matrix)
    disagreement = _disagreement(found_differences, matrix)
    report = FleetReport(
        exit=EXIT_FINE,
        word="",
        verdict="",
        nodes=nodes,
        groups=_groups(nodes),
        kinds=kinds(nodes, matrix),
        differences=found_differences,
        disagreement=disagreement,
        expected=None if asked.expected is None else len(asked.expected),
        missing=missing,
        unexpected=unexpected,
        repeated=repeated,
        unreadable=tuple(unreadable),
        versions=_versions(nodes),
        fail_on=asked.fail_on,
    )
    disagrees = disagreement if disagreement is not None and counts(disagreement, asked.fail_on) else None
    failing = {node.name for node in nodes if node.snapshot.judgement.state == FAIL}
    odd = _odd(found_differences) if disagrees is not None else set()
    bad = sorted({*failing, *odd, *missing}, key=sort_key)
    status = _exit(report, disagrees, asked)
    return report._replace(
        exit=status,
        bad=tuple(bad),
        good=tuple(n.name for n in nodes if n.snapshot.judgement.state == FINE and n.name not in odd),
        **verdict(report, disagrees),
    )


def _exit(report: FleetReport, disagrees: Optional[Outcome], asked: Asked) -> int:
    failing = [node.snapshot.judgement for node in report.nodes if node.snapshot.judgement.state == FAIL]
    if failing or report.missing or disagrees is not None:
        machines = all(finding.blame == MACHINE for judgement in failing for finding in judgement.counted)
        # A node that sends nothing is no fault of a job's environment.
        retry = asked.retry_code is not None and machines and disagrees is None
        return asked.retry_code if retry and asked.retry_code is not None else EXIT_FINDINGS
    without = [node for node in report.nodes if node.snapshot.judgement.state in (CRASH, UNDECIDED)]
    return EXIT_UNDECIDED if without or report.unreadable else EXIT_FINE


# -- who is there -----------------------------------------------------------------------------------------------------


def _nodes(snapshots: Sequence[Snapshot]) -> tuple[tuple[Node, ...], tuple[Repeated, ...]]:
    """One snapshot a node. Of several the newest counts: by the node's own date, the file's time, the order."""
    unnamed: dict[str, int] = {}
    for snapshot in snapshots:
        if not snapshot.node:
            unnamed[snapshot.place.file] = unnamed.get(snapshot.place.file, 0) + 1
    by_name: dict[str, list[Node]] = {}
    for snapshot in snapshots:
        name = snapshot.node or _name_of(snapshot.place, unnamed[snapshot.place.file] > 1)
        by_name.setdefault(name, []).append(Node(name, snapshot, not snapshot.node))
    nodes = []
    repeated = []
    for name in sorted(by_name, key=sort_key):
        same = by_name[name]
        # The last of equals: max() would take the first.
        newest = max(range(len(same)), key=lambda n: (same[n].snapshot.date, same[n].snapshot.written, n))
        nodes.append(same[newest])
        if len(same) > 1:
            others = tuple(node.snapshot.place for node in same if node is not same[newest])
            repeated.append(Repeated(name, same[newest].snapshot.place, others))
    return tuple(nodes), tuple(repeated)


_ENDINGS = (".json", ".ndjson", ".jsonl", ".json-line", ".txt", ".log", ".out")


def _name_of(place: Place, is_one_of_many: bool) -> str:
    """The name of a node that tells none: its file's, which people name after the node."""
    name = place.file.replace("\\", "/").rpartition("/")[2].removesuffix(".gz")
    for ending in _ENDINGS:
        if name.endswith(ending) and name != ending:
            name = name[: -len(ending)]
            break
    return f"{name}:{place.line}" if is_one_of_many else name


def _against(
    nodes: tuple[Node, ...], expected: Optional[Sequence[str]]
) -> tuple[tuple[Node, ...], tuple[str, ...], tuple[str, ...]]:
    """The nodes by the names under which they are expected, those that are missing and those that nobody expects."""
    if expected is None:
        return nodes, (), ()
    wanted = set(expected)
    by_host: dict[str, list[str]] = {}
    for name in wanted:
        by_host.setdefault(name.partition(".")[0], []).append(name)
    named = []
    unexpected = []
    seen: set[str] = {node.name for node in nodes if node.name in wanted}
    for node in nodes:
        name = node.name
        if name not in wanted:
            # The same host, where either is given without its domain.
            host, _, domain = name.partition(".")
            same = [other for other in by_host.get(host, ()) if not (domain and "." in other) and other not in seen]
            if len(same) == 1:
                seen.add(same[0])
                node = node._replace(name=same[0])
            else:
                unexpected.append(name)
        named.append(node)
    named.sort(key=lambda node: sort_key(node.name))
    return tuple(named), tuple(sorted(wanted - seen, key=sort_key)), tuple(unexpected)


# -- what they have in common -----------------------------------------------------------------------------------------


def _groups(nodes: Sequence[Node]) -> tuple[Group, ...]:
    grouped: dict[tuple[object, ...], list[Node]] = {}
    for node in nodes:
        grouped.setdefault(_key(node.snapshot.judgement), []).append(node)
    groups = [Group(members[0].snapshot.judgement, tuple(n.name for n in members)) for members in grouped.values()]
    groups.sort(key=lambda group: (STATES.index(group.judgement.state), -len(group.nodes), sort_key(group.nodes[0])))
    return tuple(groups)


def _key(judgement: Judgement) -> tuple[object, ...]:
    findings = judgement.counted or judgement.left_open or judgement.noted
    return judgement.state, tuple(finding.rule for finding in findings)


def _disagreement(found: Sequence[Difference], matrix: Matrix) -> Optional[Outcome]:
    """What the rule about nodes that differ says of them; None where there is nothing to say."""
    told = [_told(difference) for difference in found if difference.should_be_alike]
    if not told:
        return None
    facts = Facts({"nodes.differences": known(told, "fleet")})
    return judge_rule(NODES_DISAGREE, Case(facts, matrix))[1]


def _told(difference: Difference) -> dict[str, Any]:
    values = [*([difference.norm] if difference.norm is not None else []), *difference.others]
    return {"what": difference.what, "values": [value.text for value in values]}


def _odd(found: Sequence[Difference]) -> set[str]:
    """The nodes that are not as nearly all of their kind. In a split nobody is."""
    return {
        name
        for difference in found
        if difference.norm is not None and difference.should_be_alike
        for value in difference.others
        for name in value.nodes
    }


def _versions(nodes: Sequence[Node]) -> tuple[Version, ...]:
    """Who judged the nodes, where that was not the same cudadoctor with the same data everywhere."""
    by_version: dict[tuple[str, str], list[str]] = {}
    for node in nodes:
        by_version.setdefault((node.snapshot.tool, node.snapshot.matrix), []).append(node.name)
    if len(by_version) < 2:
        return ()
    ordered = sorted(by_version.items(), key=lambda item: -len(item[1]))
    return tuple(Version(tool, matrix, tuple(names)) for (tool, matrix), names in ordered)
