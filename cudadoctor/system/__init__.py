"""The one port to the machine: live, replay and record. Nothing else reads files, runs programs or asks NVML."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cudadoctor.system.live import LiveSystem
    from cudadoctor.system.port import System
    from cudadoctor.system.record import RecordingSystem
    from cudadoctor.system.recording import RecordingError
    from cudadoctor.system.redact import Redactor
    from cudadoctor.system.replay import ReplaySystem

__all__ = ["LiveSystem", "RecordingError", "RecordingSystem", "Redactor", "ReplaySystem", "System"]

_HOMES = {
    "LiveSystem": "live",
    "RecordingError": "recording",
    "RecordingSystem": "record",
    "Redactor": "redact",
    "ReplaySystem": "replay",
    "System": "port",
}


def __getattr__(name: str) -> Any:
    """Imports what is asked for, since a run needs only one of them."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
