"""The rules, one file each: `cdNNN_kebab_name_with_underscores.py`. They are found by their file names."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from functools import lru_cache
from types import ModuleType

from cudadoctor import bundle
from cudadoctor.model import Rule


@lru_cache(maxsize=1)
def rule_files() -> dict[str, str]:
    """Module names by rule id, in the order of the ids, without importing any of them."""
    found = {}
    for name in bundle.modules_of(__name__, __path__[0]):
        if name.startswith("cd") and name[2:5].isdigit() and name[5:6] == "_":
            found["CD" + name[2:5]] = name
    return dict(sorted(found.items()))


def rule_name(rule_id: str) -> str:
    """The kebab-case name of a rule, by its file."""
    return rule_files()[rule_id][len("cdNNN_") :].replace("_", "-")


# Beginnings of the ids of rules that only judge what a policy asks for: CD001 to CD099, and whether a model fits.
REQUIREMENTS = ("CD0", "CD801")


def judges_requirements(rule_id: str) -> bool:
    """Whether a rule only judges what a policy asks for."""
    return rule_id.startswith(REQUIREMENTS)


def rule_module(rule_id: str) -> ModuleType:
    """The module of a rule that exists."""
    return bundle.module(f"{__name__}.{rule_files()[rule_id]}")


def load_rules(only: Iterable[str] | None = None, meanwhile: Callable[[], object] | None = None) -> None:
    """Imports the rules (or `only` these ids) ahead of their use, and calls `meanwhile` now and then. A rule that does
    not import is left for `diagnose`, where that is its own result; so are those that a policy calls for."""
    all_but_those = (rule_id for rule_id in rule_files() if not judges_requirements(rule_id))
    for number, rule_id in enumerate(all_but_those if only is None else only):
        with contextlib.suppress(Exception):
            rule_module(rule_id)
        if meanwhile is not None and number % 8 == 7:
            meanwhile()


def rule_of(rule_id: str) -> Rule:
    rule: Rule = rule_module(rule_id).RULE
    return rule


def find_rule(word: str) -> str | None:
    """The id that `word` means: an id in any case (`CD303`, `cd303`, `303`) or a name; None when there is none."""
    import re

    wanted = word.strip()
    if re.fullmatch(r"(?i)(cd)?\d{3}", wanted):
        candidate = "CD" + wanted[-3:]
        return candidate if candidate in rule_files() else None
    for rule_id in rule_files():
        if rule_name(rule_id) == wanted.lower():
            return rule_id
    return None
