"""Taking the steps of a plan: which run, which wait, and where it stops."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cudadoctor.actions.apply import DECLINED, DONE, FAILED, WAITING, YOURS, apply, run_step
from cudadoctor.model import FixStep


def step(id: str, *argv: str, safety: str = "safe", kind: str = "install") -> FixStep:
    return FixStep(id, f"Step {id}", kind, argv or None, safety=safety if argv else "manual")


MAKE = step("make-venv", "venv")
INSTALL = step("install-torch", "pip")
DRIVER = step("install-driver", "apt", safety="careful", kind="driver")
REBOOT = step("reboot", "reboot", safety="careful", kind="reboot")
BY_HAND = step("unset", kind="setting")
POWER = step("set-power-plan", "powercfg", kind="setting")


def taken(steps: list[FixStep], yes: bool = True, fails: str = "") -> list[tuple[str, str]]:
    ran: list[str] = []

    def run(one: FixStep) -> str | None:
        ran.append(one.id)
        return "it ended with exit status 1" if one.id == fails else None

    done = apply(steps, lambda one: yes, run)
    assert ran == [item.step.id for item in done.taken if item.state in (DONE, FAILED)]
    return [(item.step.id, item.state) for item in done.taken]


TABLE = [
    ("safe steps run in order", [MAKE, INSTALL], True, "", [DONE, DONE]),
    ("a driver and a reboot are a person's", [DRIVER, REBOOT, INSTALL], True, "", [YOURS, YOURS, DONE]),
    ("so is a step by hand", [BY_HAND, POWER], True, "", [YOURS, DONE]),
    ("a no is a no", [POWER, INSTALL], False, "", [DECLINED, DECLINED]),
    ("no package goes into an environment that was not made", [MAKE, INSTALL], False, "", [DECLINED, WAITING]),
    ("a failure stops everything after it", [MAKE, INSTALL, POWER], True, "make-venv", [FAILED, WAITING, WAITING]),
    ("and only what is after it", [MAKE, INSTALL, POWER], True, "install-torch", [DONE, FAILED, WAITING]),
    (
        "what a person has to remove first holds the install back",
        [step("remove-conda-torch", "conda", safety="careful"), INSTALL],
        True,
        "",
        [YOURS, WAITING],
    ),
]


@pytest.mark.parametrize(("title", "steps", "yes", "fails", "states"), TABLE, ids=[row[0] for row in TABLE])
def test_apply(title: str, steps: list[FixStep], yes: bool, fails: str, states: list[str]) -> None:
    assert taken(steps, yes, fails) == [(one.id, state) for one, state in zip(steps, states)]


def test_the_failed_step_carries_its_reason() -> None:
    done = apply([INSTALL], lambda one: True, lambda one: "there is no program pip")
    assert done.failed is not None and done.failed.reason == "there is no program pip"
    assert done.steps(FAILED) == (INSTALL,)


class TestRunStep:
    def test_success(self, tmp_path: Path) -> None:
        code = f"open({str(tmp_path / 'made')!r}, 'w').close()"
        assert run_step(step("x", sys.executable, "-c", code)) is None
        assert (tmp_path / "made").exists()

    def test_failure(self) -> None:
        assert run_step(step("x", sys.executable, "-c", "raise SystemExit(7)")) == "it ended with exit status 7"

    def test_missing_program(self) -> None:
        assert run_step(step("x", "no-such-program-anywhere")) == "there is no program no-such-program-anywhere"

    def test_a_question_gets_no_answer_instead_of_waiting_for_one(self) -> None:
        code = "import sys; sys.exit(0 if sys.stdin.read() == '' else 1)"
        assert run_step(step("x", sys.executable, "-c", code)) is None

    def test_words_reach_the_program_as_they_are(self) -> None:
        code = "import sys; sys.exit(sys.argv[1] != '; touch owned')"
        assert run_step(step("x", sys.executable, "-c", code, "; touch owned")) is None
