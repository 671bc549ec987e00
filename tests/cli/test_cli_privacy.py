"""A report of this machine names nobody, and its commands still work."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from cli_runner import Run

from cudadoctor.cli import _private
from cudadoctor.model import Evidence, Facts, FixStep, Outcome, known
from cudadoctor.model.report import Report
from cudadoctor.render.formats import FORMATS, render
from cudadoctor.render.view import View


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> View:
    """What Carla's machine would tell about her."""
    monkeypatch.setenv("HOME", "/data/home/carlax")
    monkeypatch.setenv("USER", "carlax")
    monkeypatch.setenv("LOGNAME", "carlax")
    monkeypatch.setenv("HOSTNAME", "carlas-desktop")
    python = "/data/home/carlax/proj/.venv/bin/python"
    failed = Outcome(
        "CD302",
        "cpu-only-torch",
        "fail",
        "error",
        "certain",
        "environment",
        f"torch in {python} is built without CUDA",
        {"python": python},
        (Evidence("python.executable", python, "/data/home/carlax/proj/.venv/pyvenv.cfg"),),
        not_helping=(f"another pip than that of {python}",),
        chain=True,
    )
    step = FixStep(
        "torch", "Install", "install", (python, "-m", "pip", "install", "torch"), instructions=f"See {python}"
    )
    facts = Facts({"python.executable": known(python, python), "system.os": known("linux", "x")})
    return View(Report(facts, (failed,), ("CD302",), ""), 1, (step,), (step,))


@pytest.mark.parametrize("form", FORMATS)
def test_no_name_of_a_person_or_host_is_told(shown: View, form: str) -> None:
    text = render(form, _private.private(shown))
    assert "carla" not in text


def test_the_command_is_still_the_right_one(shown: View) -> None:
    private = _private.private(shown)
    assert private.steps[0].argv == ("~/proj/.venv/bin/python", "-m", "pip", "install", "torch")
    assert "\n      ~/proj/.venv/bin/python -m pip install torch\n" in render("text", private)


def test_a_home_that_names_nobody_stays_as_it_is(shown: View, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/root")
    monkeypatch.setenv("USER", "root")
    monkeypatch.setenv("LOGNAME", "root")
    step = FixStep("torch", "Install", "install", ("/root/proj/bin/python", "-m", "pip"))
    private = _private.private(View(shown.report, 1, (step,)))
    assert private.steps[0].argv == ("/root/proj/bin/python", "-m", "pip")


def test_facts_of_this_machine_are_private_too(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = Facts({"python.executable": known("/home/carlax/bin/python", "/home/carlax/pyvenv.cfg")})
    monkeypatch.setenv("USER", "carlax")
    examined = SimpleNamespace(facts=lambda: facts, close=lambda: None, advance=lambda: False)
    monkeypatch.setattr("cudadoctor.probes.examine.begin", lambda system, beside: examined)
    written = run("facts")
    assert written.exit == 0 and "carlax" not in written.out
    assert json.loads(written.out)["facts"]["python.executable"]["value"] == "/home/user/bin/python"
