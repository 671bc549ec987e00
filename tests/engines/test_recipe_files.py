"""Every recipe, whoever wrote it: what reads it can read it, and it asks the doctor only for what the doctor knows."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import click
import pytest
import yaml
from bench.parts import program

from cudadoctor.cli import group
from cudadoctor.recipes import Recipe, recipes

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

pytestmark = pytest.mark.once

ALL = list(recipes().values())


@pytest.mark.parametrize("recipe", ALL, ids=lambda recipe: recipe.name)
def test_it_reads_well_anywhere(recipe: Recipe) -> None:
    assert recipe.text.isascii() and recipe.text.endswith("\n") and "\r" not in recipe.text
    assert "\t" not in recipe.text and not re.search(r" +$", recipe.text, re.MULTILINE)
    assert 10 < len(recipe.title) < 140


def parsed(recipe: Recipe) -> Any:
    """What the recipe's own reader makes of it; it raises where it cannot."""
    ending = recipe.file.rpartition(".")[2]
    if ending == "sh":
        shell = recipe.text.splitlines()[0].rpartition("/")[2].rpartition(" ")[2]
        assert shell in ("sh", "bash"), recipe.text.splitlines()[0]
        # Debian's sh is dash, which knows no more than POSIX asks for.
        done = subprocess.run([program(shell, "a shell"), "-n"], input=recipe.text, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
    elif ending == "py":
        compile(recipe.text, recipe.file, "exec")
    elif ending == "yaml":
        return list(yaml.safe_load_all(recipe.text))
    elif ending == "toml":
        return tomllib.loads(recipe.text)
    else:
        pytest.fail(f"nobody knows how to read {recipe.file}")
    return None


@pytest.mark.parametrize("recipe", ALL, ids=lambda recipe: recipe.name)
def test_it_can_be_read(recipe: Recipe) -> None:
    parsed(recipe)


# -- the doctor's own options ---------------------------------------------------------------------------------------

# `cudadoctor check`, `$CUDADOCTOR check`, `$doctor fleet`, `*DOCTOR, "check"`.
CALL = re.compile(
    r"(?:\bcudadoctor(?:\.pyz)?|\$\{?[Cc]?[A-Za-z]*(?:DOCTOR|doctor)\b[^ ]*|DOCTOR) +([a-z][a-z-]*)\b(.*)"
)
SUBCOMMANDS = ("check", "explain", "facts", "fix", "fleet", "matrix", "recipes", "rules", "verify")


def spoken(recipe: Recipe) -> Iterator[str]:
    """Its lines, with what is continued on the next one; words of lists are words of a line."""
    text = recipe.text
    if recipe.file.endswith(".yaml"):
        yield from commands_in(parsed(recipe))
    text = re.sub(r"^ *#", "", text, flags=re.MULTILINE) if recipe.file.endswith(".yaml") else text
    text = re.sub(r"\\\n *#? *", " ", text)
    for line in text.splitlines():
        yield re.sub(r"[\"'`,\[\]]+ *", " ", line)


def commands_in(value: Any) -> Iterator[str]:
    """The commands of a manifest, each as one line."""
    if isinstance(value, dict):
        for key, entry in value.items():
            if key in ("command", "args") and isinstance(entry, list):
                yield from re.sub(r"\\\n *", " ", " ".join(map(str, entry))).splitlines()
            else:
                yield from commands_in(entry)
    elif isinstance(value, list):
        for entry in value:
            yield from commands_in(entry)


def calls(recipe: Recipe) -> Iterator[tuple[str, list[str]]]:
    """Each call of the doctor that the recipe makes or speaks of: its command, and the options."""
    for line in spoken(recipe):
        for found in CALL.finditer(line):
            if found.group(1) in SUBCOMMANDS:
                rest = re.split(r"[|;&)]", found.group(2))[0]
                yield found.group(1), re.findall(r"(?<![\w-])--[a-z][a-z-]*", rest)


def known_options(name: str) -> set[str]:
    command = group.get_command(click.Context(group), name)
    assert command is not None, f"there is no command {name}"
    return {option for param in command.params for option in (*param.opts, *param.secondary_opts)} | {"--help"}


@pytest.mark.parametrize("recipe", ALL, ids=lambda recipe: recipe.name)
def test_it_asks_for_nothing_that_the_doctor_does_not_know(recipe: Recipe) -> None:
    for command, options in calls(recipe):
        assert set(options) <= known_options(command), f"cudadoctor {command}"


def test_the_calls_are_seen() -> None:
    """In each form that they are written in."""
    found = {recipe.name: list(calls(recipe)) for recipe in ALL}
    check = ("check", ["--timeout", "--format"])
    assert check in found["ssh/pdsh"] and ("fleet", ["--expect"]) in found["ssh/pdsh"]
    assert ("check", ["--timeout", "--node", "--format"]) in found["mpi/fan-out"]
    assert ("check", ["--timeout", "--format", "--node"]) in found["ray/check"]
    assert ("fleet", ["--expect"]) in found["ray/check"]
    assert ("check", ["--timeout", "--retry-code", "--also"]) in found["kubernetes/init-container"]
    assert ("check", ["--blame", "--timeout", "--retry-code", "--format", "--also"]) in found["kubernetes/daemonset"]
    assert ("check", ["--timeout", "--retry-code", "--format", "--also"]) in found["kubernetes/job"]
    for name, entries in found.items():
        if not name.startswith(("policy/", "kubernetes/policy")):
            assert any(command == "check" for command, _ in entries), name
