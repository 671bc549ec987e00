"""What is read as a snapshot, and what is said of all else: where it stands and what was expected."""

from __future__ import annotations

import json

import pytest
from fleet_nodes import facts_line, node, outcome, read, report, report_line
from hypothesis import given
from hypothesis import strategies as st

from cudadoctor.fleet.lines import MOST_LETTERS, Document, documents
from cudadoctor.fleet.model import CRASH, FAIL, FINE, UNDECIDED, Snapshot, Unreadable

ONE = report_line("n1", outcome())
TWO = report_line("n2")


def names(text: str) -> list[str]:
    """The nodes that were read, and `!` with the line for what was not."""
    return [item.node if isinstance(item, Snapshot) else f"!{item.place.line}" for item in read(text)]


LAYOUTS = [
    ("a line a node", ONE + TWO, ["n1", "n2"]),
    ("no newline at the end", ONE + TWO.rstrip("\n"), ["n1", "n2"]),
    ("Windows' line ends and empty lines", ONE.replace("\n", "\r\n\r\n") + TWO, ["n1", "n2"]),
    ("a byte order mark", "\ufeff" + ONE, ["n1"]),
    ("over many lines", json.dumps(report("n1"), indent=2), ["n1"]),
    ("several over many lines", 2 * (json.dumps(report("n1"), indent=2) + "\n"), ["n1", "n1"]),
    ("both", json.dumps(report("n1"), indent=4) + "\n" + TWO, ["n1", "n2"]),
    ("a list", json.dumps([report("n1"), report("n2")]), ["n1", "n2"]),
    ("a list over many lines", json.dumps([report("n1"), report("n2")], indent=2), ["n1", "n2"]),
    ("facts", facts_line(node("n1")), ["n1"]),
    ("pdsh's labels", "".join(f"x{n}: {report_line(None)}" for n in (1, 2)), ["x1", "x2"]),
    ("srun's labels are numbers of tasks", f"0: {ONE}1: {TWO}", ["n1", "n2"]),
    ("a name of its own goes before a label", f"x1: {ONE}", ["n1"]),
]


@pytest.mark.parametrize("text, found", [row[1:] for row in LAYOUTS], ids=[row[0] for row in LAYOUTS])
def test_snapshots_are_found_however_they_are_written(text: str, found: list[str]) -> None:
    assert names(text) == found


BROKEN = [
    ("the last line is cut off", ONE + TWO[:100], ["n1", "!2"], "ends too soon"),
    ("a line in the middle is cut off", ONE + TWO[:100] + "\n" + TWO, ["n1", "!2", "n2"], "ends too soon"),
    ("a long document is cut off", json.dumps(report("n1"), indent=2)[:200] + "\n" + TWO, ["!1", "n2"], "too soon"),
    ("words among them", ONE + "srun: error: task 3\n" + TWO, ["n1", "!2", "n2"], "no JSON"),
    ("a page of words is one thing", "FAIL  no driver\n\n  ok\n", ["!1", "!3"], "no JSON"),
    ("binary", "\x7fELF\x00\x01\x02\n\x00\n", ["!1"], "no JSON"),
    ("nested too deeply", "[" * 100_000 + "\n" + TWO, ["!1", "n2"], "nested"),
    ("no object", "3\n", ["!1"], "no JSON"),
    ("a list of texts", '["a", "b"]\n', ["!1", "!1"], "a text of JSON"),
    ("an empty list", "[]\n", ["!1"], "empty list"),
    ("another schema", '{"schema": "cudadoctor.plan/1", "facts": {}}\n', ["!1"], "'cudadoctor.plan/1'"),
    ("a later major version", '{"schema": "cudadoctor.report/2"}\n', ["!1"], "expected 'cudadoctor.report/1'"),
    ("no schema", "{}\n", ["!1"], "there is no 'schema'"),
    ("a schema that is no text", '{"schema": [1]}\n', ["!1"], "'schema' is [1]"),
    ("no facts", '{"schema": "cudadoctor.facts/1"}\n', ["!1"], "'facts' must be an object"),
    ("a fact of the wrong type", facts_line(node("n")).replace('"2330"', "2330"), ["!1"], "must be a"),
    ("a number that is none", '{"schema": NaN}\n', ["!1"], "a number that is none"),
    ("no outcomes", json.dumps({**report("n"), "outcomes": 3}), ["!1"], "'outcomes' must be a list"),
    ("a severity nobody knows", report_line("n", outcome(severity="bad")), ["!1"], "'severity' of outcomes[0]"),
    ("a status that is no text", report_line("n", outcome(status=["fail"])), ["!1"], "'status' of outcomes[0]"),
    ("roots that are no list", json.dumps({**report("n"), "root_causes": {}}), ["!1"], "'root_causes'"),
    ("two on one line", ONE.rstrip("\n") + TWO, ["!1"], "column"),
]


@pytest.mark.parametrize("text, found, says", [row[1:] for row in BROKEN], ids=[row[0] for row in BROKEN])
def test_one_bad_snapshot_is_named_and_the_rest_counts(text: str, found: list[str], says: str) -> None:
    assert names(text) == found
    assert any(says in item.reason for item in read(text) if isinstance(item, Unreadable))


def test_a_line_that_no_node_can_have_written_is_not_parsed() -> None:
    huge = '{"schema": "' + "x" * MOST_LETTERS + '"}\n'
    found = read([huge, TWO])
    assert isinstance(found[0], Unreadable) and "larger than" in found[0].reason
    assert found[1].node == "n2"


def test_the_verdict_is_worked_out_anew_from_what_the_node_found() -> None:
    weak = outcome("CD117", "persistence-mode-off", severity="warning")
    (failed, fine) = read(ONE + report_line("n2", weak))
    assert failed.judgement.state == FAIL
    assert [finding.rule for finding in failed.judgement.counted] == ["CD113"]
    assert fine.judgement.state == FINE
    assert [finding.rule for finding in fine.judgement.noted] == ["CD117"]


# What a check found, the exit status that it had by its own options or policy, what becomes of the node here.
THERE = [
    (outcome(severity="warning"), 1, FAIL, "--fail-on warning"),
    (outcome(severity="warning"), 75, FAIL, "--fail-on warning --retry-code 75"),
    (outcome(severity="info"), 1, FAIL, "--fail-on info"),
    (outcome(severity="warning"), 0, FINE, "no options"),
    (outcome(), 0, FAIL, "a report that somebody has edited"),
    (outcome(severity="warning", status="unknown", chain=True), 0, FINE, "--unknown-ok"),
    (outcome(severity="warning", status="unknown", chain=True), 3, UNDECIDED, "no options"),
    (outcome(status="crash", chain=True), 2, CRASH, "no options"),
    (outcome(severity="warning"), "1", FINE, "an exit status that is none"),
]


@pytest.mark.parametrize("found, status, state, options", THERE, ids=[f"{row[3]} {row[2]}" for row in THERE])
def test_a_node_is_no_better_here_than_by_its_own_policy(
    found: dict[str, object], status: object, state: str, options: str
) -> None:
    (snapshot,) = read(json.dumps({**report("n1", found), "exit": status}))
    assert snapshot.judgement.state == state


def test_a_finding_that_follows_from_another_is_the_fault_of_whoever_can_mend_that_one() -> None:
    (found,) = read(report_line("n", outcome(), outcome("CD302", "x", blame="environment", because_of="CD113")))
    assert [(finding.rule, finding.blame) for finding in found.judgement.counted] == [("CD113", "machine")]


@pytest.mark.once
@given(st.text(alphabet='{}[]",: \n01ae\ufeff\r', max_size=60) | st.text(max_size=60))
def test_no_text_stops_the_reading(text: str) -> None:
    for item in documents("x", [*text.splitlines(keepends=True), "\n", TWO]):
        assert isinstance(item, (Document, Unreadable))
        assert item.place.line >= 1


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
KEYS = st.sampled_from(sorted(report("n", outcome())))


@pytest.mark.once
@given(st.dictionaries(KEYS, JSON, max_size=4), st.dictionaries(st.sampled_from(sorted(outcome())), JSON, max_size=3))
def test_no_document_stops_the_reading(changes: dict[str, object], within: dict[str, object]) -> None:
    for document in ({**report("n", outcome()), **changes}, report("n", {**outcome(), **within})):
        for item in read(json.dumps(document)):
            assert isinstance(item, (Snapshot, Unreadable))


def test_a_part_of_a_fact_that_nobody_expects_is_unknown() -> None:
    entry = {"state": "known", "value": [{"firmware": {"version": "580"}}, {"firmware": "580"}], "source": "x"}
    document = report("n1")
    document["facts"]["procfs.gpus"] = entry
    (snapshot,) = read(json.dumps(document))
    assert "580" in snapshot.traits.values
