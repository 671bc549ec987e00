"""A step on its way into a plan: the step itself, and where it belongs among the others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cudadoctor.model import FixStep
from cudadoctor.model.record import NamedTuple

# Phases, in the order in which a person takes them: what the job or container lacks decides everything after it; what
# needs a reboot comes before the one reboot; packages come after it, since they are chosen for the driver that is then.
JOB = 0
ROOM = 5
KERNEL = 10
DRIVER = 20
SIGNING = 26
INITRAMFS = 28
REBOOT = 30
SYSTEM = 40
PYTHON = 50
PIP = 52
REMOVE = 55
PACKAGES = 60
MEMORY = 66
SETTING = 70
BY_HAND = 80

SAFE = "safe"
CAREFUL = "careful"
MANUAL = "manual"


class Draft(NamedTuple):
    """`covers`: the requirements that the step's command installs, so that a smaller one beside it can go."""

    step: FixStep
    phase: int
    covers: frozenset[str] = frozenset()

    def with_effect(self, effect: Mapping[str, Any]) -> Draft:
        return self._replace(step=self.step._replace(effect={**self.step.effect, **effect}))

    def with_why(self, why: str) -> Draft:
        """The same step, with a sentence before its instructions."""
        sentence = why if why.endswith((".", ":", "!", "?")) else why + "."
        text = f"{sentence[0].upper()}{sentence[1:]} {self.step.instructions}".strip()
        return self._replace(step=self.step._replace(instructions=text))

    def with_note(self, note: str) -> Draft:
        """The same step, with a sentence after its instructions."""
        return self._replace(step=self.step._replace(instructions=f"{self.step.instructions} {note}".strip()))


def draft(
    phase: int,
    id: str,
    title: str,
    kind: str,
    argv: Sequence[str] | None = None,
    *,
    needs: Sequence[str] = (),
    safety: str = CAREFUL,
    effect: Mapping[str, Any] | None = None,
    changes: str = "",
    undo: str = "",
    instructions: str = "",
    covers: Sequence[str] = (),
) -> Draft:
    """One step. Without `argv` it is a step by hand, which `instructions` spells out."""
    return Draft(
        FixStep(
            id=id,
            title=title,
            kind=kind,
            argv=tuple(argv) if argv is not None else None,
            needs=tuple(needs),
            safety=safety if argv is not None else MANUAL,
            effect=dict(effect or {}),
            changes=changes,
            undo=undo,
            instructions=instructions,
        ),
        phase,
        frozenset(covers),
    )


def listed(words: Iterable[str]) -> str:
    """`a, b and c`."""
    *before, last = words
    return f"{', '.join(before)} and {last}" if before else last
