"""What the tests of printed plans share: a doctor on hand-made facts, an index with what the real ones have."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from bench.index import SIMPLE, WheelIndex
from bench.parts import clean_environ
from bench.venvs import Venv

from cudadoctor.model import Facts
from cudadoctor.plan.shell import quote
from cudadoctor.testing import GONE, Machine

Doctor = list[str]

TORCH = ("torch", "torchvision", "torchaudio")


def stock(index: WheelIndex, python: str = "3.12") -> WheelIndex:
    """Fills an index with a handful of releases. PyPI has what they require, as the real one does."""
    pythons = [python]
    index.add_torch("2.6.0", "cpu", torchvision="0.21.0", torchaudio="2.6.0", pythons=pythons)
    index.add_torch("2.6.0", "cu124", torchvision="0.21.0", torchaudio="2.6.0", pythons=pythons, default=True)
    index.add_torch("2.6.0", "cu126", torchvision="0.21.0", torchaudio="2.6.0", pythons=pythons)
    index.add_torch("2.14.1", "cpu", torchvision="0.29.1", torchaudio="2.11.0", pythons=pythons)
    index.add_torch("2.14.1", "cu126", torchvision="0.29.1", torchaudio="2.11.0", pythons=pythons)
    index.add_torch("2.14.1", "cu130", torchvision="0.29.1", pythons=pythons, default=True)
    index.add_torch("2.15.0", "cu132", torchvision="0.29.2", pythons=pythons, default=True)
    on_pypi_too(index)
    return index


def on_pypi_too(index: WheelIndex) -> None:
    """Puts everything but torch and its companions on the default index as well."""
    for page, projects in list(index.pages().items()):
        for name, wheels in projects.items():
            if page != SIMPLE and name not in TORCH:
                index.add(SIMPLE, *wheels)


def facts_of(venv: Venv, machine: Machine) -> Facts:
    """The hand-made machine with this environment's interpreter and packages."""
    own: dict[str, Any] = {
        "python.executable": venv.python,
        "python.prefix": str(venv.root),
        "python.version": "3.12.1",
        "python.environment": "venv",
        "python.site_packages": [str(venv.site_packages)],
        "python.pip": True,
        "python.pip_on_path": GONE,
        "python.python_on_path": venv.python,
        "python.others_with_torch": GONE,
    }
    build = venv.torch_build()
    machine = machine.no_torch() if build is None else machine.torch(build[0], build[1])
    installed = venv.installed()
    for name in [*machine.facts.under("package"), *(f"{name}.version" for name in installed)]:
        package, _, key = name.rpartition(".")
        if key == "version" and package != "torch":
            own[f"package.{package}.version"] = installed.get(package, GONE)
    return machine.set(own).facts


def run_doctor(doctor: Doctor, *options: str, env: Mapping[str, str] | None = None) -> str:
    """What `cudadoctor fix --print` prints."""
    command = [*doctor, "fix", "--print", *options]
    ended = subprocess.run(command, env=clean_environ(env or {}), capture_output=True, text=True, timeout=60)
    assert ended.returncode in (0, 1), ended.stderr
    return ended.stdout


def plan(doctor: Doctor, facts: Facts, folder: Path, *options: str) -> dict[str, Any]:
    """`cudadoctor fix --format json` on these facts."""
    file = folder / "facts.json"
    file.write_text(json.dumps(facts.to_json()), "utf-8")
    document: dict[str, Any] = json.loads(run_doctor(doctor, "--format", "json", "--facts", str(file), *options))
    return document


def paste(document: Mapping[str, Any], environment: Mapping[str, str]) -> list[str]:
    """Runs the commands of a plan as a person would: pasted into sh. Gives them back."""
    lines = [quote(step["argv"]) for step in document["steps"] if step["argv"]]
    paste_lines(lines, environment)
    return lines


def paste_lines(lines: Iterable[str], environment: Mapping[str, str]) -> None:
    for line in lines:
        ended = subprocess.run(
            ["sh", "-ec", line], env=clean_environ(environment), capture_output=True, text=True, timeout=300
        )
        assert ended.returncode == 0, f"{line}\n{ended.stdout}\n{ended.stderr}"
