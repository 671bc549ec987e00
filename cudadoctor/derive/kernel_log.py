"""What the kernel log says about GPUs, by kind of event."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cudadoctor.derive.case import Case


def events(case: Case, *kinds: str) -> list[dict[str, Any]]:
    """The events of these kinds (`parse.kernel_log`), in their order; empty where the log could not be read, so that
    their absence proves nothing."""
    return [event for event in case.value("kernel.log_events", []) if event.get("kind") in kinds]
