"""Commands with a person's settings in mind, as vectors; tests/cli/test_fix_settings.py runs them."""

from __future__ import annotations

from typing import Any

import pytest

from cudadoctor.matrix import load_matrix
from cudadoctor.model import known
from cudadoctor.plan import Options
from cudadoctor.plan.context import Context
from cudadoctor.plan.index import Index
from cudadoctor.plan.remedies.installer import Install, install
from cudadoctor.testing import Machine, linux, windows

MATRIX = load_matrix()
CU126 = Index("https://download.pytorch.org/whl/cu126")
TAGGED = ["torch==2.14.1+cu126"]


def told(machine: Machine, source: str, **settings: Any) -> Machine:
    facts: dict[str, Any] = {f"pip.{name}": known(value, source) for name, value in settings.items()}
    return machine.set({**facts, "pip.configured_by": known([source], source)})


def command(machine: Machine, requirements: list[str] = TAGGED, installer: str | None = None) -> Install:
    return install(Context(machine.facts, MATRIX, Options(installer)), requirements, CU126)


def test_without_settings_nothing_is_set_aside() -> None:
    found = command(linux())
    assert found.argv[1:] == ("-m", "pip", "install", *TAGGED, "--index-url", CU126.url)
    assert (found.first, found.notes, found.is_careful) == ((), (), False)


# A traceback tells the folder of an environment and not its interpreter.
PREFIXES = [
    (linux(), "venv", "~/ml/.venv", "~/ml/.venv/bin/python"),
    (linux(), "conda", "/opt/conda/envs/ml/", "/opt/conda/envs/ml/bin/python"),
    (windows(), "venv", "~\\ml\\.venv", "~\\ml\\.venv\\Scripts\\python.exe"),
    (windows(), "conda", "C:\\conda\\envs\\ml", "C:\\conda\\envs\\ml\\python.exe"),
    (linux(), "system", "/usr", "python"),
]


@pytest.mark.parametrize(("machine", "kind", "prefix", "python"), PREFIXES)
def test_the_interpreter_of_an_environment_of_which_the_folder_is_known(
    machine: Machine, kind: str, prefix: str, python: str
) -> None:
    told_of = machine.set({"python.environment": kind, "python.prefix": prefix}).unknown("python.executable")
    assert Context(told_of.facts, MATRIX, Options()).target.python == python


# The setting, where it stands, and how the command begins.
BEGINNINGS = [
    ({"no_index": True}, "/etc/pip.conf", ("env", "PIP_NO_INDEX=0")),
    ({"target": "/opt/x"}, "$PIP_TARGET", ("env", "-u", "PIP_TARGET")),
    ({"target": "/opt/x"}, "/etc/pip.conf", ("env", "-u", "PIP_TARGET", "PIP_CONFIG_FILE=/dev/null")),
    ({"constraints": ["/c"], "constraint_pins": ["torch<2.9"]}, "$PIP_CONSTRAINT", ("env", "PIP_CONSTRAINT=/dev/null")),
]


@pytest.mark.parametrize(("settings", "source", "beginning"), BEGINNINGS)
def test_what_is_set_aside_for_one_command(settings: dict[str, Any], source: str, beginning: tuple[str, ...]) -> None:
    argv = command(told(linux(), source, **settings)).argv
    assert argv[: len(beginning)] == beginning


LEFT_IN_FORCE = [
    {"constraints": ["/c"], "constraint_pins": ["torch==2.14.1", "nvidia-cudnn-cu12==9.1.0.70"]},
    {"constraints": ["/c"], "constraint_pins": []},
    {"extra_index_urls": ["https://download.pytorch.org/whl/cpu"]},
    {"find_links": ["/opt/wheels"]},
    {"index_url": "https://mirror.example/simple"},
    {"require_virtualenv": True},
]


@pytest.mark.parametrize("settings", LEFT_IN_FORCE)
def test_what_does_no_harm_stays_in_force(settings: dict[str, Any]) -> None:
    assert command(told(linux(), "/etc/pip.conf", **settings)).argv[0] != "env"


def test_constraints_that_nobody_could_read_are_spoken_of() -> None:
    machine = told(linux(), "$PIP_CONSTRAINT", constraints=["https://one.example/c.txt"])
    machine = machine.unknown("pip.constraint_pins", reason="a constraint file lies on a server")
    found = command(machine)
    assert found.argv[0] != "env"
    assert "could not be read" in found.notes[0]


def test_conda_environments_are_no_virtual_environments_to_pip() -> None:
    machine = linux().python("3.12.3", "conda")
    assert command(told(machine, "$PIP_REQUIRE_VIRTUALENV", require_virtualenv=True)).argv[:2] == (
        "env",
        "PIP_REQUIRE_VIRTUALENV=0",
    )


def test_powershell_has_no_env() -> None:
    found = command(told(windows(), "$PIP_NO_INDEX", no_index=True))
    assert found.argv[0].endswith("python.exe")
    (step,) = found.first
    assert "    $env:PIP_NO_INDEX = '0'" in step.step.instructions.splitlines()
    found = command(told(windows(), "C:\\ProgramData\\pip\\pip.ini", target="D:\\x"))
    (step,) = found.first
    assert "    $env:PIP_TARGET = $null" in step.step.instructions.splitlines()
    assert "    $env:PIP_CONFIG_FILE = 'nul'" in step.step.instructions.splitlines()


def test_uv_is_told_nothing_of_pips_settings() -> None:
    machine = told(linux(), "/etc/pip.conf", no_index=True, target="/opt/x")
    argv = command(machine, installer="uv").argv
    assert argv == (
        "uv",
        "pip",
        "install",
        "--python",
        "/home/user/proj/.venv/bin/python",
        *TAGGED,
        "--index",
        CU126.url,
    )


def test_a_backend_of_uvs_is_named_or_taken_away() -> None:
    machine = linux().set({"uv.torch_backend": known("cpu", "$UV_TORCH_BACKEND")})
    assert command(machine, installer="uv").argv[-2:] == ("--torch-backend", "cu126")
    flat = install(Context(machine.facts, MATRIX, Options("uv")), TAGGED, Index("https://m.example/all/", True))
    assert flat.argv[:3] == ("env", "-u", "UV_TORCH_BACKEND")
