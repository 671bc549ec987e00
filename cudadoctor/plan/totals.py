"""What the steps of a plan come to together: how all of them are taken back, and what they download."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional

from cudadoctor.model import FixStep
from cudadoctor.plan.shell import POSIX

# Steps that make way for torch: what puts the former torch back takes them back as well.
_MADE_WAY = ("remove-conda-torch", "uninstall-torch", "uninstall-torchvision", "uninstall-torchaudio")
_WORDS = "install "


def whole_undo(steps: Sequence[FixStep], shell: str) -> str:
    """One line that takes back every change of packages; empty where there is none, or where one of them has none."""
    has_torch = any(step.id == "install-torch" for step in steps)
    lines: list[str] = []
    for step in reversed(steps):
        if step.kind != "install" or step.argv is None or "root" in step.needs:
            continue
        if has_torch and step.id.startswith(_MADE_WAY):
            continue
        if not step.undo or step.undo.startswith(_WORDS):
            return ""
        if step.undo not in lines:
            lines.append(step.undo)
    return (" && " if shell == POSIX else "; ").join(lines)


def whole_download(steps: Sequence[FixStep]) -> Optional[int]:
    """Bytes, as far as they are known; None: nothing is known."""
    amounts = [need.partition(":")[2] for step in steps for need in step.needs if need.startswith("download:")]
    return sum(map(int, amounts)) if amounts else None
