"""Regular expressions that are compiled when they are first used.

Compiling one takes a tenth of a millisecond and more, which is as long as importing the module that it stands in; and
of the expressions at the head of modules a run uses few.
"""

from __future__ import annotations

import re
from typing import Any, cast


def pattern(expression: str, flags: int = 0) -> re.Pattern[str]:
    """As `re.compile`, for the methods and attributes of what it gives."""
    return cast("re.Pattern[str]", _Pattern(expression, flags))


class _Pattern:
    def __init__(self, expression: str, flags: int) -> None:
        self._made_of = expression, flags

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        found = getattr(re.compile(*self._made_of), name)  # re keeps what it has compiled
        self.__dict__[name] = found
        return found
