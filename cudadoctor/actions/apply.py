"""Taking the steps of a plan, one after the other, as far as a person allows.

A step runs only where it is safe and was agreed to. The first that fails ends it: nothing is undone by itself, and what
was done and what was not is told.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from typing import Callable, Optional

from cudadoctor.model import FixStep
from cudadoctor.model.record import NamedTuple
from cudadoctor.plan.draft import SAFE

# What became of a step.
DONE = "done"
FAILED = "failed"
DECLINED = "declined"
YOURS = "yours"  # not for cudadoctor to run
WAITING = "waiting"  # for an earlier step that was not done, or for one that failed


class Taken(NamedTuple):
    """One step and what became of it; `reason` in words where it was not done."""

    step: FixStep
    state: str
    reason: str = ""


class Applied(NamedTuple):
    """All steps of a plan and what became of each, in the order of the plan."""

    taken: tuple[Taken, ...]

    @property
    def failed(self) -> Optional[Taken]:
        return next((item for item in self.taken if item.state == FAILED), None)

    def steps(self, *states: str) -> tuple[FixStep, ...]:
        return tuple(item.step for item in self.taken if item.state in states)


# Runs a step and gives None, or the reason why it failed.
Runner = Callable[[FixStep], Optional[str]]
# Asks the person about a step.
Asker = Callable[[FixStep], bool]


def apply(steps: Sequence[FixStep], ask: Asker, run: Optional[Runner] = None) -> Applied:
    """Takes the safe steps that `ask` agrees to. Whatever installs waits for every step before it that prepares the
    environment: a package goes into no environment that was not made."""
    run = run or run_step
    taken: list[Taken] = []
    failed = False
    missing: Optional[FixStep] = None
    for step in steps:
        if failed:
            taken.append(Taken(step, WAITING, "an earlier step failed"))
        elif step.argv is None or step.safety != SAFE:
            taken.append(Taken(step, YOURS, "not one that cudadoctor runs"))
            missing = missing or (step if _prepares(step) else None)
        elif missing is not None and step.kind == "install":
            taken.append(Taken(step, WAITING, f"first: {missing.title}"))
        elif not ask(step):
            taken.append(Taken(step, DECLINED))
            missing = missing or (step if _prepares(step) else None)
        else:
            reason = run(step)
            taken.append(Taken(step, DONE if reason is None else FAILED, reason or ""))
            failed = reason is not None
    return Applied(tuple(taken))


def _prepares(step: FixStep) -> bool:
    """Whether installs rest on this step: an environment to be made, a package to go first."""
    return step.kind == "install" and not step.id.startswith(("install-torch", "install-companions", "reinstall-"))


def run_step(step: FixStep) -> Optional[str]:
    """Runs the step's command here, its output going where ours goes. Gives the reason why it failed, or None."""
    assert step.argv is not None
    argv = list(step.argv)
    if os.sep in argv[0] or "/" in argv[0]:
        argv[0] = os.path.abspath(argv[0])
    try:
        # No input: a program that asks something would wait for ever behind our own question.
        status = subprocess.run(argv, stdin=subprocess.DEVNULL, check=False).returncode
    except KeyboardInterrupt:
        return "it was interrupted"
    except FileNotFoundError:
        return f"there is no program {step.argv[0]}"
    except OSError as error:
        return f"{step.argv[0]} cannot be started: {error.strerror or error}"
    return None if status == 0 else f"it ended with exit status {status}"
