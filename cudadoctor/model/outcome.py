"""What is said about a machine: rules, their outcomes, and the steps that mend what is broken. Data only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Optional, Union

from cudadoctor.model.record import NamedTuple

# Severity: how bad a failing rule is.
ERROR = "error"
WARNING = "warning"
INFO = "info"
SEVERITIES = (ERROR, WARNING, INFO)

# Status: what became of a rule.
PASS = "pass"
FAIL = "fail"
SKIP = "skip"
UNDECIDED = "unknown"
CRASH = "crash"
STATUSES = (PASS, FAIL, SKIP, UNDECIDED, CRASH)

# Certainty of a failing rule: what the evidence carries.
CERTAIN = "certain"
LIKELY = "likely"
POSSIBLE = "possible"
CERTAINTIES = (CERTAIN, LIKELY, POSSIBLE)

# Blame: who can mend it.
ENVIRONMENT = "environment"  # the user, in their packages and settings
MACHINE = "machine"  # whoever runs the machine
ALLOCATION = "allocation"  # the job's or container's request
TOOL = "tool"  # cudadoctor itself
BLAMES = (ENVIRONMENT, MACHINE, ALLOCATION, TOOL)


_NOTHING: Mapping[str, Any] = {}


class Rule(NamedTuple):
    """One thing that cudadoctor looks for.

    `chain`: the rule is a link of the chain GPU - driver - wheel, so that leaving it undecided leaves the verdict
    undecided (exit 3). `blocked_by`: rules whose failure leaves this one nothing to judge (it is skipped "because
    of" them). `follows_from`: rules whose failure explains a failure of this one, which then is no root cause.
    `precedence`: among failing rules of equal severity and certainty, the smaller number is the likelier root cause.
    """

    id: str
    name: str
    title: str
    severity: str
    blame: str
    chain: bool = False
    blocked_by: tuple[str, ...] = ()
    follows_from: tuple[str, ...] = ()
    precedence: int = 50


class Evidence(NamedTuple):
    """A fact that an outcome rests on, as it stood when the rule looked."""

    fact: str
    value: Any
    source: str


class FixStep(NamedTuple):
    """One step that a person can take.

    `argv` is the exact command as an argument vector (None: a step by hand, which `instructions` spells out);
    `kind` is what it is about (install, driver, kernel, reboot, setting, container, job, manual); `needs` names what
    it takes (root, admin, network, reboot, restart-shell, download:<bytes>); `safety` is `safe` (may run after a yes or
    with --apply: it touches only the patient's Python environment or can be undone by one command), `careful` (a person
    should run it themselves) or `manual`; `effect` maps fact names to the values that they have afterwards (None:
    absent); `changes` and `undo` say in words what it changes and how to take it back.
    """

    id: str
    title: str
    kind: str
    argv: Optional[tuple[str, ...]] = None
    needs: tuple[str, ...] = ()
    safety: str = "careful"
    effect: Mapping[str, Any] = _NOTHING
    changes: str = ""
    undo: str = ""
    instructions: str = ""
    mends: tuple[str, ...] = ()


class Remedy(NamedTuple):
    """What would help, named by a rule and spelled out by `plan/` for this machine's system and installer.

    `kind` is a key of `plan.remedies.REMEDIES`; `parameters` are its arguments.
    """

    kind: str
    parameters: Mapping[str, Any] = _NOTHING


Fix = Union[FixStep, Remedy]


class Outcome(NamedTuple):
    """What a rule found on one machine."""

    rule: str
    name: str
    status: str
    severity: str
    certainty: str
    blame: str
    message: str
    data: Mapping[str, Any] = _NOTHING
    evidence: tuple[Evidence, ...] = ()
    because_of: Optional[str] = None
    fixes: tuple[Fix, ...] = ()
    # What people would try and what would not help, each one sentence.
    not_helping: tuple[str, ...] = ()
    chain: bool = False

    @property
    def failed(self) -> bool:
        return self.status == FAIL
