"""Inside the planner imports run in no circle, so that each file can be read, tested and changed by itself."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import cudadoctor

ROOT = Path(cudadoctor.__file__).parent


def modules(package: str) -> dict[str, Path]:
    """Every module of the package by its dotted name."""
    found = {}
    for path in sorted((ROOT / package).rglob("*.py")):
        name = ".".join(("cudadoctor", *path.relative_to(ROOT).with_suffix("").parts))
        found[name.removesuffix(".__init__")] = path
    return found


def imports(path: Path, known: dict[str, Path]) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found.add(inner if inner in known else node.module)
    return found & set(known)


def circle(edges: dict[str, set[str]]) -> list[str]:
    """Modules that import each other in a circle, in its order; empty: there is none."""
    done: set[str] = set()

    def walk(name: str, trail: tuple[str, ...]) -> list[str]:
        if name in trail:
            return [*trail[trail.index(name) :], name]
        if name in done:
            return []
        for other in sorted(edges[name]):
            found = walk(other, (*trail, name))
            if found:
                return found
        done.add(name)
        return []

    for name in sorted(edges):
        found = walk(name, ())
        if found:
            return found
    return []


@pytest.mark.parametrize("package", ["plan", "render", "resolve", "actions"])
def test_no_circle(package: str) -> None:
    known = modules(package)
    assert circle({name: imports(path, known) for name, path in known.items()}) == []


def test_a_circle_would_be_found() -> None:
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"a"}}) == ["a", "b", "c", "a"]
    assert circle({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []
