"""Reports made by hand, for looking at how they are shown; no rule takes part."""

from __future__ import annotations

from typing import Any, Optional

from cudadoctor.model import Evidence, FixStep, Outcome
from cudadoctor.model.report import Report, exit_status
from cudadoctor.render.style import Style
from cudadoctor.render.view import MatrixInfo, View
from cudadoctor.testing import Machine, linux

NAMES = {
    "CD101": "no-nvidia-driver",
    "CD106": "driver-unreachable",
    "CD201": "nvcc-missing",
    "CD207": "libcuda-missing-or-stub",
    "CD301": "torch-missing",
    "CD302": "cpu-only-torch",
    "CD303": "torch-needs-newer-driver",
    "CD304": "gpu-newer-than-wheel",
    "CD305": "gpu-dropped-from-wheel",
    "CD306": "companion-version-mismatch",
    "CD401": "no-wheel-for-python",
    "CD501": "no-nvidia-gpu",
    "CD601": "swap-too-small",
    "CD902": "probe-failed",
}
CHAIN = {"CD101", "CD106", "CD302", "CD303", "CD304", "CD305", "CD501"}


def outcome(
    rule: str,
    status: str,
    message: str = "",
    *,
    severity: str = "error",
    certainty: str = "certain",
    blame: str = "environment",
    evidence: tuple[Evidence, ...] = (),
    because_of: Optional[str] = None,
    not_helping: tuple[str, ...] = (),
    data: Optional[dict[str, Any]] = None,
) -> Outcome:
    return Outcome(
        rule,
        NAMES[rule],
        status,
        severity,
        certainty,
        blame,
        message or f"{NAMES[rule]}: {status}",
        data or {},
        evidence,
        because_of,
        (),
        not_helping,
        rule in CHAIN,
    )


def view(
    *outcomes: Outcome,
    machine: Optional[Machine] = None,
    roots: tuple[str, ...] = (),
    steps: tuple[FixStep, ...] = (),
    ignored: Optional[dict[str, str]] = None,
    fail_on: str = "error",
    unknown_ok: bool = False,
    style: Optional[Style] = None,
) -> View:
    facts = (machine or linux()).facts
    report = Report(facts, tuple(outcomes), roots, "2026.11.0", ignored or {})
    return View(
        report,
        exit_status(report.outcomes, fail_on, unknown_ok),
        steps,
        (),
        MatrixInfo("2026.11.0", "2026-11-20"),
        fail_on,
        "1.2.3",
        style or Style(),
    )


def healthy() -> tuple[Outcome, ...]:
    """Everything of the chain passed."""
    return (
        outcome("CD101", "pass"),
        outcome("CD106", "pass", "the driver answers"),
        outcome("CD301", "pass", "torch is installed"),
        outcome("CD302", "pass", "torch is built with CUDA"),
        outcome("CD303", "pass", "driver 580.95.05 serves every CUDA 13.x build"),
        outcome("CD304", "pass", "the wheel has code for every GPU"),
        outcome("CD305", "pass"),
        outcome("CD501", "pass"),
    )


def replaced(*changed: Outcome) -> tuple[Outcome, ...]:
    """The healthy outcomes with those of `changed` in their place or added."""
    merged = {o.rule: o for o in healthy()}
    merged.update({o.rule: o for o in changed})
    return tuple(merged[rule] for rule in sorted(merged))
