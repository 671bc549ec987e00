"""The document of `cudadoctor verify` as a type. The shipped schema is generated from it; keys are only ever added."""

from __future__ import annotations

from typing import Literal, Optional, TypedDict

from cudadoctor.render.documents import Certainty, FindingEntry, MatrixEntry, ToolEntry


class ExpectedEntry(TypedDict):
    """In the unit of the value: from `least` on it passes, `most` is what link or card can do."""

    least: float
    most: float
    source: str


class ResultEntry(TypedDict):
    """One check; `gpu` is null where it is about the whole environment. `severity` is warning for what works and is
    slow. `how` says how it failed, `rule` what that means, `suspects` what such a failure can mean, `because` what that
    rule found on this machine, `error` what was said. `seconds` and `value` are null where nothing was measured."""

    check: str
    variant: str
    gpu: Optional[int]
    status: Literal["pass", "fail", "skip"]
    severity: Literal["error", "warning"]
    how: Literal["", "wrong", "error", "crash", "ended", "hang", "slow", "missing", "no-cuda", "unavailable"]
    rule: Optional[str]
    certainty: Certainty
    suspects: list[str]
    because: str
    message: str
    value: Optional[float]
    unit: str
    expected: Optional[ExpectedEntry]
    seconds: Optional[float]
    error: str


class SeenGpuEntry(TypedDict):
    """A GPU as torch shows it; amounts are bytes, null where this torch does not tell."""

    number: int
    name: str
    capability: str
    total: Optional[int]
    free: Optional[int]
    allocated: Optional[int]
    reserved: Optional[int]
    pci: Optional[str]


class TorchEntry(TypedDict):
    """What torch says of itself; `gpus` is how many it sees."""

    version: Optional[str]
    cuda: Optional[str]
    hip: Optional[str]
    cudnn: Optional[str]
    nccl: Optional[str]
    path: Optional[str]
    archs: list[str]
    gpus: Optional[int]


class PythonEntry(TypedDict):
    """The interpreter that was used; both are empty where there is none."""

    executable: str
    version: str


class VerifyDocument(TypedDict):
    """`cudadoctor verify --format json`. `checks` are those that were asked for; `causes` what `check` finds on
    the machine where something failed, the likeliest first."""

    schema: Literal["cudadoctor.verify/1"]
    tool: ToolEntry
    matrix: MatrixEntry
    exit: int
    verdict: str
    python: PythonEntry
    torch: TorchEntry
    checks: list[str]
    gpus: list[SeenGpuEntry]
    results: list[ResultEntry]
    causes: list[FindingEntry]
