"""What a failure means. A check that fails names suspects; what else is known of the machine convicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Optional

from cudadoctor.model import ERROR, FAIL, INFO, Outcome
from cudadoctor.model.report import Report
from cudadoctor.verify.plan import VERSIONS
from cudadoctor.verify.results import CRASHED, ENDED, HUNG, MISSING, NO_CUDA, REFUSED, SLOW, UNAVAILABLE, WRONG, Result

_HARDWARE = ("CD115", "CD114", "CD506")
_LIBRARIES = ("CD206", "CD309")
_LOST = ("CD113", "CD114", "CD106")

# Besides the driver's rules (CD1xx) and those of containers and clusters (CD7xx): what keeps torch from CUDA.
_WITHOUT_CUDA = (
    *("CD206", "CD207", "CD208", "CD210", "CD301", "CD302", "CD303", "CD309", "CD310", "CD313", "CD314", "CD402"),
    *("CD405", "CD409", "CD501", "CD608"),
)
# And what of those keeps nobody from it.
_BESIDE_CUDA = ("CD114", "CD115", "CD117", "CD120", "CD121", "CD122", "CD707", "CD710")

# By check and how it failed: what can be behind it, the likeliest first. None of it is more than possible.
SUSPECTS: Mapping[tuple[str, str], tuple[str, ...]] = {
    (VERSIONS, MISSING): ("CD301", "CD405"),
    (VERSIONS, NO_CUDA): ("CD302",),
    (VERSIONS, UNAVAILABLE): ("CD112", "CD106"),
    (VERSIONS, REFUSED): ("CD210", *_LIBRARIES),
    (VERSIONS, CRASHED): (*_LIBRARIES, "CD308"),
    (VERSIONS, HUNG): ("CD106", "CD113", "CD609"),
    ("allocation", REFUSED): ("CD505", "CD118", "CD112"),
    ("allocation", CRASHED): ("CD207", "CD208", "CD106"),
    ("allocation", HUNG): ("CD106", "CD113", "CD116"),
    ("allocation", WRONG): _HARDWARE,
    ("matmul", REFUSED): ("CD304", "CD305", "CD206", "CD114"),
    ("matmul", CRASHED): (*_LIBRARIES, "CD114"),
    ("matmul", HUNG): _LOST,
    ("matmul", WRONG): _HARDWARE,
    ("bandwidth", REFUSED): ("CD613", "CD114"),
    ("bandwidth", CRASHED): ("CD113", "CD114"),
    ("bandwidth", HUNG): _LOST,
    ("bandwidth", WRONG): ("CD504", "CD114", "CD115"),
    ("bandwidth", SLOW): ("CD504",),
    ("memory-bandwidth", REFUSED): ("CD114", "CD115"),
    ("memory-bandwidth", CRASHED): ("CD114",),
    ("memory-bandwidth", HUNG): _LOST,
    ("memory-bandwidth", WRONG): _HARDWARE,
    ("memory-bandwidth", SLOW): ("CD508", "CD503", "CD502"),
    ("peer", REFUSED): ("CD710", "CD122"),
    ("peer", CRASHED): ("CD710", "CD122"),
    ("peer", HUNG): ("CD710", "CD122", "CD113"),
    ("peer", WRONG): ("CD710", "CD122"),
    ("nccl", REFUSED): ("CD710", "CD604", "CD116", "CD206"),
    ("nccl", CRASHED): ("CD206", "CD710"),
    ("nccl", HUNG): ("CD710", "CD116", "CD122"),
    ("nccl", WRONG): ("CD710", "CD122"),
    ("cudnn", REFUSED): ("CD209", *_LIBRARIES),
    ("cudnn", CRASHED): ("CD209", *_LIBRARIES),
    ("cudnn", HUNG): _LOST,
    ("cudnn", WRONG): ("CD115", "CD209"),
    ("compile", REFUSED): ("CD320", "CD319", "CD306"),
    ("compile", CRASHED): ("CD319", "CD306"),
    ("compile", HUNG): ("CD319", "CD306"),
    ("compile", WRONG): ("CD306", "CD115"),
}

# An interpreter that does not come to its first line.
NOT_STARTED = ("CD609",)


def suspects(check: str, how: str) -> tuple[str, ...]:
    """Ids of rules. A process that ended by itself is like one that was ended."""
    return SUSPECTS.get((check, CRASHED if how == ENDED else how), ())


def explained(results: Sequence[Result], report: Report) -> tuple[Result, ...]:
    """The results with what `check` finds on the machine in the place of suspects, where it explains them."""
    return tuple(_explained(result, report) if result.failed else result for result in results)


def _explained(result: Result, report: Report) -> Result:
    cause = _cause(result, report)
    if cause is None:
        return result
    return result._replace(rule=cause.rule, certainty=cause.certainty, because=cause.message)


def _cause(result: Result, report: Report) -> Optional[Outcome]:
    found = {outcome.rule: outcome for outcome in report.outcomes if outcome.status == FAIL}
    roots = [found[rule] for rule in report.root_causes if rule in found]
    failing = [outcome for outcome in found.values() if outcome.severity != INFO]
    ranked = [*roots, *(outcome for outcome in failing if outcome not in roots)]
    if result.how in (MISSING, NO_CUDA, UNAVAILABLE):
        first = next((one for one in roots if one.severity == ERROR and _keeps_cuda_away(one.rule)), None)
        return first or next((outcome for outcome in ranked if outcome.rule in result.suspects), None)
    said = next((outcome for outcome in ranked if _rests_on(outcome, result.error)), None)
    return said or next((outcome for outcome in ranked if outcome.rule in result.suspects), None)


def _keeps_cuda_away(rule: str) -> bool:
    """Whether this is something for want of which torch.cuda.is_available() is False: not all that is wrong is."""
    return rule in _WITHOUT_CUDA or (rule.startswith(("CD1", "CD7")) and rule not in _BESIDE_CUDA)


def _rests_on(outcome: Outcome, error: str) -> bool:
    """Whether the outcome rests on an error text that this check has said."""
    for evidence in outcome.evidence:
        if evidence.fact.startswith("symptom.") and isinstance(evidence.value, Mapping):
            line = str(evidence.value.get("text", "")).strip()
            if line and any(line in part or part in line for part in _lines(error)):
                return True
    return False


def _lines(error: str) -> list[str]:
    return [line.strip() for line in error.splitlines() if len(line.strip()) > 12]


def log_of(results: Sequence[Result]) -> list[tuple[str, str]]:
    """(name, text) pairs of what failing checks have said, to be read as the log of a run."""
    found: dict[tuple[str, str], None] = {}
    for result in results:
        if result.failed and result.error:
            where = f"verify, GPU {result.gpu}" if result.gpu is not None else "verify"
            found[where, result.error] = None
    return list(found)
