"""Pages about concepts that no single check owns: one module a concept, whose docstring is the page.

A module's name with hyphens is the concept's name (`driver_and_cuda` is `driver-and-cuda`).
"""

from __future__ import annotations

import pkgutil
from importlib import import_module


def concept_names() -> list[str]:
    """The names of all concepts, without importing any."""
    return sorted(module.name.replace("_", "-") for module in pkgutil.iter_modules(__path__))


def concept_page(name: str) -> str:
    """The page of a concept that exists; hyphens and underscores, capitals or not, are the same."""
    return import_module(f"{__name__}.{name.lower().replace('-', '_')}").__doc__ or ""
