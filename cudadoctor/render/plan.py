"""`fix`: what is shown, and in which of its forms."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, Optional

from cudadoctor.model.record import NamedTuple
from cudadoctor.plan.index import Mirror
from cudadoctor.plan.plan import Plan
from cudadoctor.plan.recipe import Recipe
from cudadoctor.render.style import Style
from cudadoctor.resolve import Resolution

# Each form is one module with `lines(view)` or, for JSON, `text(view)`.
FORMS = {
    "shell": "cudadoctor.render.plan_text",
    "json": "cudadoctor.render.plan_document",
    "requirements": "cudadoctor.render.forms.requirements",
    "uv": "cudadoctor.render.forms.uv",
    "conda": "cudadoctor.render.forms.conda",
    "dockerfile": "cudadoctor.render.forms.dockerfile",
    "poetry": "cudadoctor.render.forms.poetry",
    "pixi": "cudadoctor.render.forms.pixi",
}

TODO = "TODO"
OK = "OK"
UNDECIDED = "????"
FAIL = "FAIL"


MISSING = "missing"
NOT_CONFIRMED = "not-confirmed"


class Asked(NamedTuple):
    """What became of `--online`: `state` is confirmed, replaced, missing or not-confirmed; `words` say it."""

    state: str
    words: str


class FixView(NamedTuple):
    """What `fix` shows. `word` and `verdict` are the first line; `not_helping` what people try in vain; `may_act`:
    the machine is this one, so that steps may be taken; `program` calls cudadoctor again; `recipe` is what the forms
    for other programs are made of (None: nothing to install); `asked` what an index said."""

    word: str
    verdict: str
    plan: Plan
    resolution: Optional[Resolution]
    exit: int
    not_helping: Sequence[str] = ()
    notes: Sequence[str] = ()
    explain: Sequence[str] = ()
    mirror: Optional[Mirror] = None
    may_act: bool = False
    style: Style = Style()
    program: str = "cudadoctor"
    recipe: Optional[Recipe] = None
    asked: Optional[Asked] = None


def render(form: str, view: FixView) -> str:
    """The plan in one of `FORMS`, ending with a newline."""
    module: Any = import_module(FORMS[form])
    if form == "json":
        return str(module.text(view))
    return "".join(f"{line.rstrip()}\n" for line in module.lines(view))
