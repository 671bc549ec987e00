"""One machine before one rule: its facts, the matrix, what was derived once, and the words in which a rule answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Callable, Optional, TypeVar

from cudadoctor.matrix import Matrix
from cudadoctor.model import CERTAIN, FAIL, PASS, SKIP, UNDECIDED, Evidence, Fact, Facts, Outcome, Rule
from cudadoctor.model.outcome import Fix

T = TypeVar("T")

__all__ = ["Case"]


class Case:
    """One machine before one rule."""

    def __init__(self, facts: Facts, matrix: Matrix, shared: Optional[dict[Any, Any]] = None) -> None:
        self.facts = facts
        self.matrix = matrix
        self._shared: dict[Any, Any] = {} if shared is None else shared
        self.rule: Rule = _NO_RULE

    def for_rule(self, rule: Rule) -> Case:
        """The same case, answering in the name of `rule`; what was derived once is kept."""
        case = Case(self.facts, self.matrix, self._shared)
        case.rule = rule
        return case

    def derived(self, question: Callable[[Case], T]) -> T:
        """The answer to a question of `derive/`, worked out once for all rules."""
        if question not in self._shared:
            self._shared[question] = question(self)
        answer: T = self._shared[question]
        return answer

    def fact(self, name: str) -> Fact[Any]:
        return self.facts[name]

    def value(self, name: str, default: Any = None) -> Any:
        return self.facts.value(name, default)

    # -- answers ----------------------------------------------------------------------------------------------

    def passed(self, message: str, evidence: Iterable[str] = (), data: Optional[Mapping[str, Any]] = None) -> Outcome:
        return self._outcome(PASS, message, evidence, data)

    def failed(
        self,
        message: str,
        evidence: Iterable[str],
        *,
        certainty: str = CERTAIN,
        severity: Optional[str] = None,
        blame: Optional[str] = None,
        data: Optional[Mapping[str, Any]] = None,
        fixes: Sequence[Fix] = (),
        not_helping: Sequence[str] = (),
    ) -> Outcome:
        """`message` names what is wrong, as the first line of the screen would say it; `evidence` the facts by name."""
        return self._outcome(
            FAIL, message, evidence, data, certainty, severity, blame, tuple(fixes), tuple(not_helping)
        )

    def undecided(self, message: str, evidence: Iterable[str] = ()) -> Outcome:
        """The facts that would decide could not be read; the message says which."""
        return self._outcome(UNDECIDED, message, evidence, None)

    def skipped(self, message: str, because_of: Optional[str] = None, unread: Iterable[str] = ()) -> Outcome:
        """There is nothing to judge on this machine. `unread`: facts that could not be read and are no loss, unless a
        policy wants this rule decided."""
        return self._outcome(SKIP, message, unread, None, because_of=because_of)

    def _outcome(
        self,
        status: str,
        message: str,
        evidence: Iterable[str],
        data: Optional[Mapping[str, Any]],
        certainty: str = CERTAIN,
        severity: Optional[str] = None,
        blame: Optional[str] = None,
        fixes: tuple[Fix, ...] = (),
        not_helping: tuple[str, ...] = (),
        because_of: Optional[str] = None,
    ) -> Outcome:
        rule = self.rule
        return Outcome(
            rule=rule.id,
            name=rule.name,
            status=status,
            severity=severity or rule.severity,
            certainty=certainty,
            blame=blame or rule.blame,
            message=message,
            data=data or {},
            evidence=tuple(self._evidence(name) for name in evidence),
            because_of=because_of,
            fixes=fixes,
            not_helping=not_helping,
            chain=rule.chain,
        )

    def _evidence(self, name: str) -> Evidence:
        fact = self.facts[name]
        if fact.is_known:
            return Evidence(name, fact.value, fact.source)
        return Evidence(name, None, fact.source or (fact.reason if fact.is_unknown else ""))


_NO_RULE = Rule("CD000", "none", "", "error", "tool")
