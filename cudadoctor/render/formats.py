"""The formats of `check`, by name. Adding one is one entry here and one module with `render(view) -> str`."""

from __future__ import annotations

from importlib import import_module

from cudadoctor.render.view import View

FORMATS: dict[str, str] = {
    "text": "cudadoctor.render.text",
    "json": "cudadoctor.render.json_report",
    "markdown": "cudadoctor.render.markdown",
}


def load(name: str) -> None:
    """Imports what the format `name` needs, ahead of its use."""
    import_module(FORMATS[name])


def render(name: str, view: View) -> str:
    """The report in the format `name`, ending with a newline."""
    text: str = import_module(FORMATS[name]).render(view)
    return text
