"""What came of the checks, as data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional

from cudadoctor.model import ERROR, FAIL, PASS, POSSIBLE, WARNING, Outcome
from cudadoctor.model.record import NamedTuple
from cudadoctor.model.report import EXIT_FINDINGS, EXIT_FINE, EXIT_UNDECIDED

# How a check failed.
WRONG = "wrong"  # other numbers than the CPU's
REFUSED = "error"  # CUDA or torch raised an error
CRASHED = "crash"  # a signal, or an exception code of Windows, ended the process
ENDED = "ended"  # the process ended by itself and gave no result
HUNG = "hang"  # the deadline passed
SLOW = "slow"  # less than what is expected, in GB/s
MISSING = "missing"  # there is no torch
NO_CUDA = "no-cuda"  # torch was built without CUDA
UNAVAILABLE = "unavailable"  # torch is there and cannot use CUDA
HOWS = (WRONG, REFUSED, CRASHED, ENDED, HUNG, SLOW, MISSING, NO_CUDA, UNAVAILABLE)


class Expected(NamedTuple):
    """What a measurement is held against, in its own unit: from `least` on it passes; `most` is what the way or the
    card can do."""

    least: float
    most: float
    source: str


class Result(NamedTuple):
    """One check of one GPU (`gpu` None: of the whole environment).

    `status` is pass, fail or skip; of a failure `severity` is error, or warning where CUDA works and is slow, and `how`
    one of HOWS. `rule` is what it means: a rule's id, with the certainty that the evidence carries; `suspects` are what
    such a failure can mean, the likeliest first; `because` is what that rule found on this machine. `value` was
    measured, in `unit`; `error` is what CUDA, torch or the system said.
    """

    check: str
    status: str
    message: str
    gpu: Optional[int] = None
    variant: str = ""
    severity: str = ERROR
    how: str = ""
    rule: Optional[str] = None
    certainty: str = POSSIBLE
    suspects: tuple[str, ...] = ()
    because: str = ""
    value: Optional[float] = None
    unit: str = ""
    expected: Optional[Expected] = None
    seconds: Optional[float] = None
    error: str = ""

    @property
    def failed(self) -> bool:
        return self.status == FAIL

    @property
    def name(self) -> str:
        """The check with its variant, "matmul fp16"."""
        return f"{self.check} {self.variant}".rstrip()

    def plain(self) -> dict[str, Any]:
        """As plain data, for documents and facts."""
        entry = self._asdict()
        entry["suspects"] = list(self.suspects)
        entry["expected"] = None if self.expected is None else self.expected._asdict()
        return entry


class SeenGpu(NamedTuple):
    """A GPU as torch shows it. Amounts are bytes; `allocated` and `reserved` are torch's own, after the first check;
    None: this torch does not tell."""

    number: int
    name: str
    capability: str
    total: Optional[int]
    free: Optional[int]
    allocated: Optional[int]
    reserved: Optional[int]
    pci: Optional[str]


class Torch(NamedTuple):
    """What torch says of itself; None: it does not, or has no such part."""

    version: Optional[str] = None
    cuda: Optional[str] = None
    hip: Optional[str] = None
    cudnn: Optional[str] = None
    nccl: Optional[str] = None
    path: Optional[str] = None
    archs: tuple[str, ...] = ()
    gpus: Optional[int] = None


class Proof(NamedTuple):
    """What was proven in one environment. `checks` are those that were asked for."""

    python: str
    checks: tuple[str, ...]
    results: tuple[Result, ...]
    python_version: str = ""
    torch: Torch = Torch()
    gpus: tuple[SeenGpu, ...] = ()
    causes: tuple[Outcome, ...] = ()


def exit_status(proof: Proof, fail_on: str = ERROR) -> int:
    """1: a check failed (with `fail_on` "warning" also a slow one); 3: nothing of what was asked for was proven."""
    failed = [result for result in proof.results if result.failed]
    if any(result.severity == ERROR or fail_on == WARNING for result in failed):
        return EXIT_FINDINGS
    proven = [result for result in proof.results if result.status == PASS or result.failed]
    return EXIT_FINE if any(result.check in proof.checks for result in proven) else EXIT_UNDECIDED


def worst(results: Sequence[Result]) -> Optional[Result]:
    """The first failure: errors before warnings, in the order in which things rest on each other."""
    for severity in (ERROR, WARNING):
        for result in results:
            if result.failed and result.severity == severity:
                return result
    return None
