"""The chosen torch in the forms that other programs read, one file a form.

Each begins with the verdict as a comment, so that a file says what it was made for. Without a choice that is all of it.
"""

from __future__ import annotations

from cudadoctor.render.plan import FixView
from cudadoctor.render.style import clean, wrap


def heading(view: FixView, *more: str) -> list[str]:
    """The verdict and further sentences as comments."""
    return [f"# {line}" for text in (view.verdict, *more) if text for line in wrap(clean(text), 78)]
