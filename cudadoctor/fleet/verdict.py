"""The first line of a fleet's report: how many nodes fail and with what, who is missing, who has no verdict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional

from cudadoctor.fleet.hostlist import fold
from cudadoctor.fleet.model import CRASH, FAIL, UNDECIDED, FleetReport, Group
from cudadoctor.model import ERROR, Outcome
from cudadoctor.rules import judges_requirements

# More than this of anything makes a first line that nobody reads: the rest is counted, and listed below.
_MOST_CAUSES = 3
_MOST_LETTERS = 60


def verdict(report: FleetReport, disagrees: Optional[Outcome]) -> dict[str, Any]:
    """`word` (FAIL, ???? or OK) and `verdict`, the sentence. `disagrees`: nodes that differ make it a failure."""
    failing = [group for group in report.groups if group.judgement.state == FAIL]
    parts = []
    if failing:
        parts.append(_failing(report, failing))
    if report.missing:
        parts.append(_missing(report))
    if disagrees is not None:
        parts.append(f"{disagrees.message} ({disagrees.rule})")
    if parts:
        return {"word": "FAIL", "verdict": "; ".join(parts)}
    without = [group for group in report.groups if group.judgement.state in (CRASH, UNDECIDED)]
    if without or report.unreadable:
        return {"word": "????", "verdict": "undecided: " + _without(report, without)}
    return {"word": "OK", "verdict": _fine(report)}


def short(names: Sequence[str], most: int = _MOST_LETTERS) -> str:
    """The names as a list of at most `most` letters or so; how many there are beside those that are shown."""
    text = fold(names)
    if len(text) <= most:
        return text
    shown = len(names)
    while shown > 1 and len(text) > most:
        shown = max(1, shown * most // max(len(text), most + 1))
        text = fold(names[:shown])
    return f"{text[:253]} and {len(names) - shown} more" if shown < len(names) else text[: most + 200]


def of_nodes(count: int) -> str:
    """`1 node`, `2 nodes`."""
    return f"{count} node{'' if count == 1 else 's'}"


def _failing(report: FleetReport, groups: Sequence[Group]) -> str:
    count = sum(len(group.nodes) for group in groups)
    total = len(report.nodes) + len(report.missing)
    causes = [cause for group in groups for cause in group.judgement.counted[:1]]
    # What a site's policy asks for is not what CUDA needs.
    broken = report.fail_on == ERROR and all(c.severity == ERROR and not judges_requirements(c.rule) for c in causes)
    verb = ("cannot run CUDA" if broken else "fails") if count == 1 else ("cannot run CUDA" if broken else "fail")
    texts = [
        f"{short(group.nodes)} {cause.name} ({cause.rule})"
        for group, cause in zip(groups[:_MOST_CAUSES], causes[:_MOST_CAUSES])
    ]
    if len(groups) > _MOST_CAUSES:
        rest = sum(len(group.nodes) for group in groups[_MOST_CAUSES:])
        texts.append(f"{of_nodes(rest)} with other causes")
    whole = f"all {total} nodes" if count == total > 1 else f"{count} of {of_nodes(total)}"
    return f"{whole} {verb}: {', '.join(texts)}"


def _missing(report: FleetReport) -> str:
    count = len(report.missing)
    verb = "is" if count == 1 else "are"
    if any(group.judgement.state == FAIL for group in report.groups):
        return f"{of_nodes(count)} {verb} missing: {short(report.missing)}"
    return f"{count} of {of_nodes(report.expected or count)} {verb} missing: {short(report.missing)}"


def _without(report: FleetReport, groups: Sequence[Group]) -> str:
    parts = []
    count = sum(len(group.nodes) for group in groups)
    if count:
        reason = next((f"{finding.message} ({finding.rule})" for finding in groups[0].judgement.left_open), "")
        names = [name for group in groups for name in group.nodes]
        verb = "has" if count == 1 else "have"
        parts.append(f"{count} of {of_nodes(len(report.nodes))} {verb} no verdict: {short(names)}")
        if reason:
            parts[-1] += f", {reason}"
    if report.unreadable:
        first = report.unreadable[0]
        number = len(report.unreadable)
        what = "a snapshot cannot be read" if number == 1 else f"{number} snapshots cannot be read"
        parts.append(f"{what}: {first.place}" + (f" and {number - 1} more" if number > 1 else ""))
    return "; ".join(parts)


def _fine(report: FleetReport) -> str:
    text = f"nothing found that breaks CUDA on {'all ' if report.expected else ''}{of_nodes(len(report.nodes))}"
    notes = []
    warned = sum(len(group.nodes) for group in report.groups if group.judgement.noted)
    if warned:
        notes.append(f"{of_nodes(warned)} with warnings")
    odd = {
        name
        for difference in report.differences
        if difference.norm is not None
        for value in difference.others
        for name in value.nodes
    }
    if odd:
        notes.append(f"{of_nodes(len(odd))} unlike the others")
    split = list(dict.fromkeys(difference.what for difference in report.differences if difference.norm is None))
    if split:
        notes.append(f"nodes split in {', '.join(split[:3])}")
    return f"{text} ({'; '.join(notes)}: below)" if notes else text
