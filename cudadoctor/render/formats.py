"""The formats of `check`, by name. Adding one is one entry here and one module with `render(view) -> str`; one whose
reader has exit statuses of its own has an `exit_status(view) -> int`, too."""

from __future__ import annotations

from importlib import import_module

from cudadoctor.render.view import View

FORMATS: dict[str, str] = {
    "text": "cudadoctor.render.text",
    "json": "cudadoctor.render.json_report",
    "json-line": "cudadoctor.render.json_line",
    "markdown": "cudadoctor.render.markdown",
    "junit": "cudadoctor.render.junit",
    "github": "cudadoctor.render.github",
    "nagios": "cudadoctor.render.nagios",
    "prometheus": "cudadoctor.render.prometheus",
    "termination-log": "cudadoctor.render.termination_log",
}


def load(name: str) -> None:
    """Imports what the format `name` needs, ahead of its use."""
    import_module(FORMATS[name])


def render(name: str, view: View) -> str:
    """The report in the format `name`, ending with a newline."""
    text: str = import_module(FORMATS[name]).render(view)
    return text


def exit_status(name: str, view: View) -> int:
    """The status with which a run ends whose report is in the format `name`."""
    own = getattr(import_module(FORMATS[name]), "exit_status", None)
    return view.exit if own is None else int(own(view))
