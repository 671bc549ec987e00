"""The verdict on a node: out of its report, or, where a snapshot holds facts alone, from the same rules as a check.

Nodes of a fleet are nearly alike. What a rule says follows from the facts that it looked at and from nothing else, so
each rule is asked once for every combination of these: a node whose temperature alone is another one is judged anew by
the rules that look at temperatures. Nothing is left out of the comparison: sources and reasons count, too.
"""

from __future__ import annotations

import marshal
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Optional, TypeVar

from cudadoctor.derive.case import Case
from cudadoctor.diagnose import diagnose, judge_rule
from cudadoctor.fleet.model import CRASH, FINE, Finding, Judgement
from cudadoctor.fleet.model import FAIL as FAILS
from cudadoctor.fleet.model import UNDECIDED as OPEN
from cudadoctor.matrix import Matrix
from cudadoctor.model import ABSENT, FAIL, INFO, UNDECIDED, Fact, Facts, Outcome, Rule, known
from cudadoctor.model import CRASH as CRASHED
from cudadoctor.model.catalogue import read_facts
from cudadoctor.model.fact import FACTS_SCHEMA
from cudadoctor.model.outcome import SEVERITIES
from cudadoctor.model.report import (
    EXIT_FINDINGS,
    EXIT_FINE,
    EXIT_UNDECIDED,
    EXIT_UNUSABLE,
    blamed,
    counts,
    exit_status,
    rank,
)
from cudadoctor.rules import rule_files

T = TypeVar("T")

_Answer = tuple[Rule, Outcome]
_Contents = tuple[object, ...]
# By the names of the facts that were asked for: the answers by what these held.
_Memory = dict[tuple[str, ...], dict[_Contents, Any]]
_Derived = dict[Callable[[Case], Any], _Memory]

# Answers of one rule that are kept: more different ones come from facts that are different on every node.
_MOST_ANSWERS = 256
# Contents of facts that are kept to compare with, before all is forgotten.
_MOST_CONTENTS = 100_000
_MOST_VERDICTS = 2048

# The name under which it is noted that somebody went through the names of all facts.
_ALL_NAMES = ""


class _Watched(Facts):
    """Facts that note which of them were asked for."""

    __slots__ = ("_held", "asked")

    def __init__(self, facts: Mapping[str, Fact[Any]]) -> None:
        super().__init__(facts)
        self.asked: set[str] = set()
        self._held: dict[str, object] = dict(zip(facts, map(id, facts.values())))

    def contents(self, names: tuple[str, ...]) -> _Contents:
        """What the facts of these names hold: equal for two nodes exactly when they hold the same."""
        if names and names[0] == _ALL_NAMES and _ALL_NAMES not in self._held:
            self._held[_ALL_NAMES] = "\n".join(sorted(self._facts))
        return tuple(map(self._held.get, names))

    def __getitem__(self, name: str) -> Fact[Any]:
        self.asked.add(name)
        return super().__getitem__(name)

    def __contains__(self, name: object) -> bool:
        self.asked.add(str(name))
        return super().__contains__(name)

    def __iter__(self) -> Iterator[str]:
        self.asked.add(_ALL_NAMES)
        return super().__iter__()

    def __len__(self) -> int:
        self.asked.add(_ALL_NAMES)
        return super().__len__()

    def __eq__(self, other: object) -> bool:
        self._everything()
        return super().__eq__(other)

    __hash__ = None

    def updated(self, changes: Mapping[str, Fact[Any]]) -> Facts:
        self._everything()
        return super().updated(changes)

    def without(self, names: Any) -> Facts:
        self._everything()
        return super().without(names)

    def under(self, prefix: str) -> dict[str, Fact[Any]]:
        found = super().under(prefix)
        self.asked.add(_ALL_NAMES)
        self.asked.update(f"{prefix}.{rest}" for rest in found)
        return found

    def to_json(self) -> dict[str, Any]:
        self._everything()
        return super().to_json()

    def _everything(self) -> None:
        self.asked.add(_ALL_NAMES)
        self.asked.update(self._facts)


class _WatchedCase(Case):
    """A case whose derived answers count as looks at the facts that they were derived from, whoever asked first."""

    def __init__(
        self, facts: _Watched, matrix: Matrix, shared: dict[Any, Any], asked: dict[Any, set[str]], derived: _Derived
    ) -> None:
        super().__init__(facts, matrix, shared)
        self._watched = facts
        self._asked = asked
        self._derived = derived

    def for_rule(self, rule: Rule) -> Case:
        case = _WatchedCase(self._watched, self.matrix, self._shared, self._asked, self._derived)
        case.rule = rule
        return case

    def derived(self, question: Callable[[Case], T]) -> T:
        if question not in self._asked and not self._remembered(question):
            outside, self._watched.asked = self._watched.asked, set()
            try:
                answer = super().derived(question)
            finally:
                self._asked[question], self._watched.asked = self._watched.asked, outside
            names = tuple(sorted(self._asked[question]))
            _keep(self._derived.setdefault(question, {}), names, self._watched.contents(names), answer)
        self._watched.asked |= self._asked[question]
        return super().derived(question)

    def _remembered(self, question: Callable[[Case], T]) -> bool:
        """Whether the answer is that of another node, which had the same facts."""
        for names, answers in self._derived.get(question, {}).items():
            contents = self._watched.contents(names)
            if contents in answers:
                self._shared[question] = answers[contents]
                self._asked[question] = set(names)
                return True
        return False


_SHOWN = (FAIL, UNDECIDED, CRASHED)

_PLAIN = (str, int, float, bool, type(None))


class Judge:
    """Judges nodes one after the other, and remembers what each rule said of which facts."""

    def __init__(self, matrix: Matrix, fail_on: str = "error", unknown_ok: bool = False) -> None:
        self._matrix = matrix
        self._fail_on = fail_on
        self._unknown_ok = unknown_ok
        # Each different fact once, by its name and what a document says of it: two nodes have the same fact exactly
        # when they have the same object.
        self._facts: dict[tuple[str, bytes], Fact[Any]] = {}
        # By rule, by the names of the facts that it asked for in one run or another: its answers by what these held.
        self._answers: dict[str, _Memory] = {}
        # The same of the questions that rules have in common.
        self._derived: _Derived = {}
        # The node before, and by rule what was said of it and the names of the facts that the rule asked for.
        self._before: dict[str, Fact[Any]] = {}
        self._entries_before: Mapping[str, Any] = {}
        self._said: dict[str, tuple[_Answer, frozenset[str]]] = {}
        # By the answers of all rules, which are kept with the verdict: no other one may get their place in memory.
        self._verdicts: dict[_Contents, tuple[Judgement, list[_Answer]]] = {}
        self._judgements: dict[Judgement, Judgement] = {}

    @property
    def revision(self) -> str:
        """The compatibility data that facts are judged with."""
        return self._matrix.revision

    def of_facts(self, entries: Mapping[str, Any]) -> Judgement:
        """The verdict of all rules on a node's facts, by the `facts` of a document; ParseError where they are none."""
        if len(self._facts) > _MOST_CONTENTS:
            self._facts.clear()
            self._answers.clear()
            self._derived.clear()
            self._verdicts.clear()
            self._before = {}
        facts, differs = self._read(entries)
        node = _AtHand(facts, self._matrix, self._derived)
        answers = self._answers_about(node, differs)
        self._before, self._entries_before = facts, entries
        # Of what passed or was skipped nothing is shown, and nothing follows from it.
        key = tuple([id(a) if a[1].status in _SHOWN else a[1].status for a in answers.values()])
        found = self._verdicts.get(key)
        if found is None:
            report = diagnose(node.facts, self._matrix, judge=lambda rule_id, _: answers[rule_id])
            found = self.of_outcomes(report.outcomes, report.root_causes), list(answers.values())
            if len(self._verdicts) >= _MOST_VERDICTS:
                self._verdicts.clear()
            self._verdicts[key] = found
        return found[0]

    def _read(self, entries: Mapping[str, Any]) -> tuple[dict[str, Fact[Any]], set[str]]:
        """The facts, and the names of those in which the node differs from the one before."""
        known_facts, before, entries_before = self._facts, self._before, self._entries_before
        facts: dict[str, Fact[Any]] = {}
        differs: set[str] = set()
        for name, entry in entries.items():
            # What two documents say of a fact is mostly the same, and seen to be so sooner than it is looked up. Values
            # that are equal may be of two types still (True and 1), and what a list holds, too.
            last = entries_before.get(name)
            if last == entry and type(last) is dict:
                value = last.get("value")
                if type(value) in _PLAIN and type(value) is type(entry.get("value")) and name in before:
                    facts[name] = before[name]
                    continue
            # Unlike the values, which compare as equal, this form tells True from 1 and 1 from 1.0.
            key = (name, marshal.dumps(entry, 0))
            fact = known_facts.get(key)
            if fact is None:
                fact = known_facts[key] = read_fact(name, entry)
            facts[name] = fact
            if fact is not before.get(name):
                differs.add(name)
        if "examination.kind" not in facts or facts["examination.kind"].state != ABSENT:
            facts["examination.kind"] = _OF_A_DOCUMENT
            (differs.discard if before.get("examination.kind") is _OF_A_DOCUMENT else differs.add)("examination.kind")
        gone = before.keys() - facts.keys()
        if gone or len(before) != len(facts):
            differs |= gone
            differs.add(_ALL_NAMES)
        return facts, differs

    def _answers_about(self, node: _AtHand, differs: set[str]) -> dict[str, _Answer]:
        """What each rule says of the node. A rule that asked for nothing in which the node differs from the one before
        says the same of it."""
        answers = {}
        for rule_id in rule_files():
            said = self._said.get(rule_id)
            if said is None or not said[1].isdisjoint(differs):
                said = self._said[rule_id] = self._answer(rule_id, node)
            answers[rule_id] = said[0]
        return answers

    def _answer(self, rule_id: str, node: _AtHand) -> tuple[_Answer, frozenset[str]]:
        known_answers = self._answers.setdefault(rule_id, {})
        for names, answers in known_answers.items():
            found: Optional[_Answer] = answers.get(node.contents(names))
            if found is not None:
                return found, frozenset(names)
        answer, names = node.judged(rule_id)
        _keep(known_answers, names, node.contents(names), answer)
        return answer, frozenset(names)

    def of_outcomes(
        self, outcomes: Collection[Outcome], root_causes: Collection[str], there: Optional[int] = None
    ) -> Judgement:
        """The verdict that follows from outcomes; those that passed or were skipped may be left out. `there`: the exit
        status of the node's own check."""
        fail_on, unknown_ok = self._weights(tuple(outcomes), there)
        status = exit_status(tuple(outcomes), fail_on, unknown_ok)
        state = {EXIT_FINDINGS: FAILS, EXIT_UNUSABLE: CRASH, EXIT_FINE: FINE}.get(status, OPEN)
        by_id = {outcome.rule: outcome for outcome in outcomes}
        order = {rule_id: place for place, rule_id in enumerate(root_causes)}
        failed = [outcome for outcome in outcomes if outcome.status == FAIL]
        failed.sort(key=lambda o: (order.get(o.rule, len(order)), rank(o), o.rule))
        at_threshold = [outcome for outcome in failed if counts(outcome, fail_on)]
        roots = [outcome for outcome in at_threshold if outcome.because_of is None] or at_threshold
        noted = [o for o in failed if o not in at_threshold and o.because_of is None and o.severity != INFO]
        left_open = [o for o in outcomes if o.status == CRASHED or (o.status == UNDECIDED and o.chain)]
        judgement = Judgement(
            state,
            tuple(_finding(outcome, by_id) for outcome in roots),
            tuple(_finding(outcome, by_id) for outcome in noted),
            tuple(_finding(outcome, by_id) for outcome in left_open),
        )
        return self._judgements.setdefault(judgement, judgement)

    def _weights(self, outcomes: tuple[Outcome, ...], there: Optional[int]) -> tuple[str, bool]:
        """The least severity that fails, and whether what is undecided is fine. A policy of the node may have asked for
        more, or put up with less: what was a failure there is one here, and what was fine there is not undecided."""
        if there in (EXIT_UNUSABLE, EXIT_UNDECIDED, None):
            return self._fail_on, self._unknown_ok
        if there == EXIT_FINE:
            return self._fail_on, True
        for severity in SEVERITIES[SEVERITIES.index(self._fail_on) :]:
            if exit_status(outcomes, severity) == EXIT_FINDINGS:
                return severity, self._unknown_ok
        return self._fail_on, self._unknown_ok


class _AtHand:
    """The node that is being judged."""

    def __init__(self, facts: dict[str, Fact[Any]], matrix: Matrix, derived: _Derived) -> None:
        self.facts = Facts(facts)
        self._watched = _Watched(facts)
        self._case = _WatchedCase(self._watched, matrix, {}, {}, derived)
        self.contents = self._watched.contents

    def judged(self, rule_id: str) -> tuple[_Answer, tuple[str, ...]]:
        """What a rule says, and the names of the facts that it asked for."""
        self._watched.asked = set()
        answer = judge_rule(rule_id, self._case)
        return answer, tuple(sorted(self._watched.asked))


def _keep(memory: _Memory, names: tuple[str, ...], contents: _Contents, answer: Any) -> None:
    answers = memory.setdefault(names, {})
    if len(answers) >= _MOST_ANSWERS:
        answers.clear()
    answers[contents] = answer


def read_fact(name: str, entry: Any) -> Fact[Any]:
    """A fact as a document has it, or ParseError."""
    return read_facts({"schema": FACTS_SCHEMA, "facts": {name: entry}})[name]


# How `check --facts` has it.
_OF_A_DOCUMENT = known("facts", "snapshot")


def _finding(outcome: Outcome, by_id: Mapping[str, Outcome]) -> Finding:
    return Finding(
        outcome.rule,
        outcome.name,
        outcome.severity,
        outcome.certainty,
        blamed(outcome, by_id),
        outcome.message,
    )
