"""One file for each kind of output. Found by file name, like rules.

A reader holds `TRIGGERS`, lower-case texts one of which stands in the first line of each of its blocks (or a function
`triggers(matrix)` where they are data), and `read(text, hits, matrix)`, which yields `Block`s; `hits` are the lines
with a trigger, in order. A reader takes what it knows for sure and leaves the rest: it never fails, never goes beyond
its block, and does not read a line twice for two hits of the same block.
"""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType

_found: list[ModuleType] = []


def readers() -> tuple[ModuleType, ...]:
    """Every reader, in the order of their names."""
    if not _found:
        names = sorted(info.name for info in pkgutil.iter_modules(__path__) if not info.name.startswith("_"))
        _found.extend(importlib.import_module(f"{__name__}.{name}") for name in names)
    return tuple(_found)
