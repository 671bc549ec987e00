"""Imports go one way, and nothing below the port and the probes touches the machine. Read from the files' syntax."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import cudadoctor

ROOT = Path(cudadoctor.__file__).parent

# Each layer may import itself and those to its left.
ORDER = ("model", "parse", "matrix", "derive", "resolve", "rules", "diagnose", "plan", "render")
MAY_IMPORT: dict[str, set[str]] = {layer: set(ORDER[: place + 1]) for place, layer in enumerate(ORDER)}
MAY_IMPORT["fit"] = {"model", "parse", "matrix", "derive", "fit"}
MAY_IMPORT["rules"].add("fit")
MAY_IMPORT["render"].add("fit")
MAY_IMPORT["policy"] = {"model", "parse", "matrix", "policy", "verify"}
MAY_IMPORT["render"].add("policy")
MAY_IMPORT["reports"] = {"model", "parse", "matrix", "reports"}
MAY_IMPORT["rules"].add("bundle")  # how they are found
MAY_IMPORT["fleet"] = {*ORDER[: ORDER.index("diagnose") + 1], "fleet"}
MAY_IMPORT["render"].add("fleet")  # how a fleet's report is shown
MAY_IMPORT["system"] = {"bundle", "model", "parse", "system"}
MAY_IMPORT["probes"] = {"model", "parse", "system", "probes"}
MAY_IMPORT["actions"] = {*ORDER[:-1], "system", "probes", "actions"}
MAY_IMPORT["verify"] = {"model", "parse", "matrix", "verify"}
MAY_IMPORT["actions"] |= {"verify", "fit"}
MAY_IMPORT["render"].add("verify")
MAY_IMPORT["explain"] = {"explain"}
MAY_IMPORT["recipes"] = {"recipes"}
MAY_IMPORT["cli"] = {*MAY_IMPORT, "bundle", "cli"}
MAY_IMPORT["testing"] = {*ORDER, "system", "probes", "testing"}
MAY_IMPORT["__main__"] = {"cli"}
MAY_IMPORT["api"] = {*MAY_IMPORT["cli"], "api"}
MAY_IMPORT["__init__"] = {"bundle", "api"}
MAY_IMPORT["bundle"] = set()

PURE = (*ORDER, "fit", "fleet", "policy", "reports", "verify")
THE_WORLD = {
    "os", "io", "subprocess", "socket", "pathlib", "platform", "shutil", "ctypes", "tempfile", "urllib", "requests",
    "glob", "multiprocessing", "threading", "signal", "winreg", "getpass", "pwd", "http", "pynvml", "distro",
}  # fmt: skip
THE_WORLD_BY_NAME = {"open", "print", "input", "exec", "eval"}
# The compatibility data and the rules are parts of the program: these read them from where they are installed or lie in
# a checkout.
READS_ITS_OWN_DATA = {"matrix/load.py", "matrix/compile.py", "bundle.py"}
# This is no part of the program: the patient's Python runs it, in a process of its own.
RUNS_IN_THE_PATIENT = {"verify/child.py", "fit/dry_run.py", "fit/context.py"}


class Import(NamedTuple):
    file: str
    line: int
    module: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line} imports {self.module}"


def files() -> list[Path]:
    return sorted(ROOT.rglob("*.py"))


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def layer_of(file: str) -> str:
    return file.partition("/")[0].removesuffix(".py") if "/" not in file else file.partition("/")[0]


def imports(path: Path) -> Iterator[Import]:
    """Every import of a file, also inside functions; `from package import module` counts as both."""
    file = relative(path)
    package = ["cudadoctor", *file.split("/")[:-1]]
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (Import(file, node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield Import(file, node.lineno, module)
            if module.startswith("cudadoctor"):
                yield from (Import(file, node.lineno, f"{module}.{alias.name}") for alias in node.names)


def touches_the_world(path: Path) -> list[str]:
    """The places where a file reaches for the machine by itself."""
    found = [str(one) for one in imports(path) if one.module.partition(".")[0] in THE_WORLD]
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in THE_WORLD_BY_NAME:
            found.append(f"{relative(path)}:{node.lineno} calls {node.func.id}()")
    return found


def own(module: str) -> str:
    """The layer that a module of ours belongs to; empty for the package itself and for other people's modules."""
    parts = module.split(".")
    known = len(parts) > 1 and parts[0] == "cudadoctor" and parts[1] in MAY_IMPORT
    return parts[1] if known else ""


def test_every_part_of_the_package_has_its_place_in_the_order() -> None:
    assert {layer_of(relative(path)) for path in files()} <= set(MAY_IMPORT)


@pytest.mark.parametrize("path", files(), ids=relative)
def test_imports_go_one_way(path: Path) -> None:
    allowed = MAY_IMPORT[layer_of(relative(path))]
    wrong = [str(found) for found in imports(path) if own(found.module) and own(found.module) not in allowed]
    assert not wrong, wrong


def test_no_rule_imports_another_rule() -> None:
    a_rule = re.compile(r"cudadoctor\.rules\.cd\d{3}_")
    wrong = [str(found) for path in files() for found in imports(path) if a_rule.match(found.module)]
    assert not wrong, "rules are found by their file names: " + "; ".join(wrong)


@pytest.mark.parametrize("path", [path for path in files() if layer_of(relative(path)) in PURE], ids=relative)
def test_the_core_is_pure(path: Path) -> None:
    if relative(path) not in READS_ITS_OWN_DATA | RUNS_IN_THE_PATIENT:
        assert not touches_the_world(path)


@pytest.mark.parametrize("path", [path for path in files() if layer_of(relative(path)) == "probes"], ids=relative)
def test_probes_see_the_machine_through_the_port_alone(path: Path) -> None:
    assert not touches_the_world(path)


def test_click_and_print_belong_to_the_command_line() -> None:
    wrong = []
    for path in files():
        if layer_of(relative(path)) == "cli":
            continue
        wrong += [str(found) for found in imports(path) if found.module.partition(".")[0] == "click"]
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
                wrong.append(f"{relative(path)}:{node.lineno} prints")
    assert not wrong, wrong


def test_the_patients_torch_is_never_imported() -> None:
    wrong = [str(found) for path in files() for found in imports(path) if found.module.partition(".")[0] == "torch"]
    assert not wrong, wrong


# What a check imports. Its expressions are compiled when they are first used: of hundreds a run uses a few.
OF_A_CHECK = ("model", "parse", "matrix", "derive", "resolve", "rules", "plan", "render", "system", "probes")
# What only `matrix update`, `matrix verify` and pasted texts import.
NOT_OF_A_CHECK = {
    "matrix/invariants.py", "matrix/merging.py", "matrix/schema.py", "matrix/toml_writer.py", "parse/collect_env.py",
    "parse/driver_redist.py", "parse/pip_output.py", "parse/release_archs.py", "parse/wheel_index.py",
    "parse/wheel_name.py",
}  # fmt: skip


def compiles_at_import(path: Path) -> list[str]:
    """The calls of re.compile() that run when the file is imported: all that stand in no function."""
    found = []
    waiting: list[ast.AST] = list(ast.parse(path.read_text("utf-8")).body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            continue
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("re.compile", "compile"):
            found.append(f"{relative(path)}:{node.lineno}")
        waiting.extend(ast.iter_child_nodes(node))
    return found


def test_no_expression_is_compiled_when_a_check_begins() -> None:
    chosen = [path for path in files() if layer_of(relative(path)) in OF_A_CHECK]
    found = [call for path in chosen if relative(path) not in NOT_OF_A_CHECK for call in compiles_at_import(path)]
    assert not found, f"cudadoctor.model.pattern.pattern compiles at first use: {found}"
