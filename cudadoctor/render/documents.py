"""The JSON documents as types. The shipped schemas are generated from these; keys are only ever added."""

from __future__ import annotations

from typing import Any, Literal, Optional, TypedDict

Severity = Literal["error", "warning", "info"]
Status = Literal["pass", "fail", "skip", "unknown", "crash"]
Certainty = Literal["certain", "likely", "possible"]
Blame = Literal["environment", "machine", "allocation", "tool"]
State = Literal["known", "absent", "unknown"]
Safety = Literal["safe", "careful", "manual"]


class _FactState(TypedDict):
    state: State


class FactEntry(_FactState, total=False):
    """`value` is there exactly when the state is known; `source` says where it was read, `reason` why it was not."""

    value: Any
    source: str
    reason: str


class FactsDocument(TypedDict):
    """`cudadoctor facts`: everything that is known about one machine."""

    schema: Literal["cudadoctor.facts/1"]
    facts: dict[str, FactEntry]


class ToolEntry(TypedDict):
    name: str
    version: str


class MatrixEntry(TypedDict):
    """`checked` is YYYY-MM-DD; `age_days` is null where either date is not known."""

    revision: str
    checked: str
    age_days: Optional[int]


class EvidenceEntry(TypedDict):
    """`value` is null where the fact is absent or unknown; the document's `facts` tell which."""

    fact: str
    value: Any
    source: str


class OutcomeEntry(TypedDict):
    """`because_of` is the rule that explains this one or leaves it nothing to judge."""

    rule: str
    name: str
    status: Status
    severity: Severity
    certainty: Certainty
    blame: Blame
    chain: bool
    message: str
    data: dict[str, Any]
    evidence: list[EvidenceEntry]
    because_of: Optional[str]
    not_helping: list[str]


class FindingEntry(TypedDict):
    """A finding in short; `blame` is who can mend it."""

    rule: str
    name: str
    severity: Severity
    certainty: Certainty
    blame: Blame
    message: str


class StepEntry(TypedDict):
    """`argv` is the exact command, or null for a step by hand, which `instructions` spells out."""

    id: str
    title: str
    kind: str
    argv: Optional[list[str]]
    needs: list[str]
    safety: Safety
    effect: dict[str, Any]
    changes: str
    undo: str
    instructions: str
    mends: list[str]


class PlanEntry(TypedDict):
    """`advice` holds steps that nothing is broken without."""

    steps: list[StepEntry]
    advice: list[StepEntry]


class ReadEntry(TypedDict):
    """A block of a pasted text: lines count from 1, `text` is empty where there was only one. `used` is false for the
    output of another machine than the one that is judged."""

    text: str
    kind: str
    first: int
    last: int
    used: bool


class QuestionEntry(TypedDict):
    """A command whose output would decide most, and the rules that it would help."""

    command: str
    tells: str
    rules: list[str]


class UnexplainedEntry(TypedDict):
    """An error wording that no failing rule explains; `causes` are rule ids, the likeliest first."""

    symptom: str
    text: str
    meaning: str
    causes: list[str]
    source: str


class PastedEntry(TypedDict):
    """What was read of pasted texts (`--from`) or of a run's log (`--log`)."""

    read: list[ReadEntry]
    notes: list[str]
    questions: list[QuestionEntry]
    unexplained: list[UnexplainedEntry]


class HandOverEntry(TypedDict):
    """What a user in a job can do about a fault of the machine, and what to send to its administrators."""

    yours: str
    message: str


class ReportDocument(TypedDict):
    """`cudadoctor check --format json`. `root_causes` are rule ids, the likeliest first; `ignored` maps rule ids to the
    reasons for which they were ignored; `pasted` is null where no text was given."""

    schema: Literal["cudadoctor.report/1"]
    tool: ToolEntry
    matrix: MatrixEntry
    exit: int
    root_causes: list[str]
    outcomes: list[OutcomeEntry]
    plan: PlanEntry
    hand_over: Optional[HandOverEntry]
    ignored: dict[str, str]
    pasted: Optional[PastedEntry]
    facts: dict[str, FactEntry]


class ChoiceEntry(TypedDict):
    """A torch build. `version` is what torch.__version__ says; `companions` maps names to versions with their local
    part; `python` is the Python that it is for, null where that is not known; `requirements` are what pip is told;
    `index_layout` says whether `index_url` has a page a project below it (index) or lists the wheels itself (flat);
    `partners` come from PyPI, after torch."""

    torch: str
    variant: str
    version: str
    index_url: str
    index_layout: Literal["index", "flat"]
    companions: dict[str, str]
    partners: dict[str, str]
    python: Optional[str]
    pythons: list[str]
    requirements: list[str]
    reasons: list[str]
    certainty: Certainty
    assumes: list[str]
    breaks: list[str]


class BlockerEntry(TypedDict):
    """One change that would open a better build; `needed` is the driver number or Python that it takes."""

    by: str
    needed: Optional[str]
    change: str
    opens: ChoiceEntry


class SplitEntry(TypedDict):
    """GPUs that one build serves, where no single one serves all."""

    gpus: list[str]
    choice: ChoiceEntry


class MoveEntry(TypedDict):
    """A package of the environment that has to change with torch; `to` is null where no release is known."""

    package: str
    have: str
    to: Optional[str]
    direction: str
    reason: str


class OtherWayEntry(TypedDict):
    """Something else than a blocker's change that opens a better build, as NVIDIA's forward-compatibility package."""

    kind: str
    change: str
    needed: Optional[str]
    opens: ChoiceEntry
    reason: str


class DriversEntry(TypedDict):
    """Driver branches ("R580") for all GPUs of the machine: the first and the last that drive them (null: not known, or
    no end in sight), the one to install, and what its Linux kernel modules have to be."""

    first: Optional[str]
    last: Optional[str]
    fitting: Optional[str]
    flavour: Optional[str]


class FrameworkEntry(TypedDict):
    """A package that is bound to CUDA, not to torch; `requirement` is null where no release serves this machine."""

    name: str
    requirement: Optional[str]
    cuda: Optional[str]
    reasons: list[str]
    better: list[str]
    certainty: Certainty


class OnlineEntry(TypedDict):
    """What the index said with `--online`."""

    state: Literal["confirmed", "replaced", "missing", "not-confirmed"]
    message: str


class PlanDocument(TypedDict):
    """`cudadoctor fix --format json`. `choice` is the torch that suits the machine, null where none does or it is not
    known; `driver_first` says why the driver is to be mended before any wheel matters. `before` are the versions of
    what the plan replaces, `undo` is the one command that brings them back (empty: there is none),
    `download_bytes` what the steps download, null where that is not known."""

    schema: Literal["cudadoctor.plan/1"]
    exit: int
    verdict: str
    choice: Optional[ChoiceEntry]
    alternatives: list[ChoiceEntry]
    blocked_by: list[BlockerEntry]
    reasons: list[str]
    split: list[SplitEntry]
    nothing_to_do: bool
    driver_first: Optional[str]
    undecided: Optional[str]
    steps: list[StepEntry]
    advice: list[StepEntry]
    not_helping: list[str]
    notes: list[str]
    before: dict[str, str]
    undo: str
    download_bytes: Optional[int]
    moves: list[MoveEntry]
    other_ways: list[OtherWayEntry]
    drivers: Optional[DriversEntry]
    frameworks: list[FrameworkEntry]
    online: Optional[OnlineEntry]
