"""The chosen torch in the forms that other programs read, one file a form.

Each begins with the verdict as a comment, so that a file says what it was made for. Without a choice that is all of it.
"""

from __future__ import annotations

import re

from cudadoctor.render.plan import FixView
from cudadoctor.render.style import clean, wrap


def heading(view: FixView, *more: str) -> list[str]:
    """The verdict and further sentences as comments."""
    return [f"# {line}" for text in (view.verdict, *more) if text for line in wrap(clean(text), 78)]


def minors(first: str, last: str) -> str:
    """The specifier of the Pythons from `first` to `last`, both minors: ">=3.10,<3.15"."""
    major, _, minor = last.partition(".")
    return f">={first},<{major}.{int(minor) + 1}"


def table_entry(extra: str) -> str:
    """A requirement as pixi and Poetry write it: `jax = { version = "==0.12.0", extras = ["cuda12"] }`."""
    found = re.match(r"([^\[<>=!~]+)(?:\[([^\]]*)\])?(.*)", extra)
    assert found is not None
    inside = ", ".join(f'"{word}"' for word in (found.group(2) or "").split(",") if word)
    more = f", extras = [{inside}]" if inside else ""
    return f'{found.group(1)} = {{ version = "{found.group(3) or "*"}"{more} }}'
