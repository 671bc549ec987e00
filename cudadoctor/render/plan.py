"""`fix`: a plan as text to read and paste, as JSON, and in the forms that installers and builders read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Optional, cast

from cudadoctor.model import FixStep, ParseError
from cudadoctor.plan.plan import Plan
from cudadoctor.plan.shell import quote
from cudadoctor.render.documents import ChoiceEntry, PlanDocument
from cudadoctor.render.json_report import dump, step_entry
from cudadoctor.render.steps import is_command, needs_text
from cudadoctor.render.style import Style, clean, wrap
from cudadoctor.resolve import Choice, Resolution

FORMATS = ("shell", "json", "requirements", "uv", "conda", "dockerfile")

TODO = "TODO"
OK = "OK"
UNDECIDED = "????"
FAIL = "FAIL"


class FixView(NamedTuple):
    """What `fix` shows. `word` and `verdict` are the first line; `not_helping` what people try in vain; `may_act`:
    the machine is this one, so that steps may be taken; `program` calls cudadoctor again."""

    word: str
    verdict: str
    plan: Plan
    resolution: Optional[Resolution]
    exit: int
    not_helping: Sequence[str] = ()
    notes: Sequence[str] = ()
    explain: Sequence[str] = ()
    mirror: Optional[str] = None
    may_act: bool = False
    style: Style = Style()
    program: str = "cudadoctor"


def render(form: str, view: FixView) -> str:
    """The plan in one of `FORMATS`, ending with a newline."""
    if form == "json":
        return dump(document(view))
    if form == "shell":
        return "".join(line.rstrip() + "\n" for line in _text(view))
    return "".join(line.rstrip() + "\n" for line in _form(form, view))


# -- text -----------------------------------------------------------------------------------------------------------


def _text(view: FixView) -> Iterator[str]:
    style = view.style
    role = {TODO: "FAIL", OK: "ok"}.get(view.word, view.word)
    for number, line in enumerate(wrap(clean(view.verdict), style.width - 6)):
        yield f"{style.paint(role, view.word.ljust(4)) if number == 0 else '    '}  {line}"
    for number, step in enumerate(view.plan.steps, start=1):
        yield ""
        yield from step_text(step, f"{number}", view.plan.shell, style)
    yield from _who_acts(view)
    yield from _torch_lines(view)
    if view.plan.advice:
        yield ""
        yield "Advice (nothing is broken without it):"
    for step in view.plan.advice:
        yield ""
        yield from step_text(step, "-", view.plan.shell, style)
    if view.explain:
        yield ""
        yield f"more  {view.program} explain {' '.join(view.explain[:1])}"


def _who_acts(view: FixView) -> Iterator[str]:
    """Which steps cudadoctor takes when it is told to, and which it never does."""
    if not view.may_act or not view.plan.steps:
        return
    ours = [f"{n}" for n, step in enumerate(view.plan.steps, 1) if step.safety == "safe" and step.argv is not None]
    yield ""
    if not ours:
        text = "cudadoctor runs none of these steps: they are yours to take."
    else:
        word = "step" if len(ours) == 1 else "steps"
        text = f"cudadoctor runs {word} {', '.join(ours)} when you say so"
        text += "; the rest is yours:" if len(ours) < len(view.plan.steps) else ":"
    yield from wrap(text, view.style.width)
    if ours:
        yield f"   {view.program} fix           # on a terminal: asks before each step"
        yield f"   {view.program} fix --apply   # does not ask"


def step_text(step: FixStep, label: str, shell: str, style: Style) -> Iterator[str]:
    """One step: its title, its command on one line, then what it changes, what it needs and how to take it back."""
    head = f"{label}  "
    indent = " " * len(head)
    for place, line in enumerate(wrap(clean(step.title), style.width - len(head))):
        yield (head if place == 0 else indent) + line
    command = command_text(step, shell)
    if command:
        yield indent + style.paint("command", command)
    needs = needs_text(step).replace("as root", "root").replace("as administrator", "an administrator")
    rows = [("changes", step.changes), ("needs", needs), ("undo", step.undo)]
    notes = [line for line in step.instructions.split("\n") if line.strip()]
    if not command:
        for line in notes:
            yield from _hanging(line, indent, indent, style)
    for name, text in rows:
        if text:
            yield from _hanging(text, f"{indent}{name:<9}", indent + " " * 9, style)
    if command:
        for place, line in enumerate(notes):
            name = ("why" if step.kind == "install" else "note") if place == 0 else ""
            yield from _hanging(line, f"{indent}{name:<9}", indent + " " * 9, style)


def command_text(step: FixStep, shell: str) -> str:
    if step.argv is None:
        return ""
    try:
        return clean(quote(step.argv, shell, home=True))
    except ParseError:
        return ""


def _hanging(text: str, first: str, rest: str, style: Style) -> Iterator[str]:
    """Wrapped, with a label before it; a command is never broken."""
    plain = clean(text.rstrip())
    if is_command(plain):
        yield first + ("    " if plain.startswith("    ") else "") + plain.strip()
        return
    for place, line in enumerate(wrap(plain, style.width - len(first))):
        yield (first if place == 0 else rest) + line


def _torch_lines(view: FixView) -> Iterator[str]:
    """What else would run, what would open something better, and what helps nothing."""
    style = view.style
    lines: list[tuple[str, str]] = [("note", text) for text in view.notes]
    lines += [("not", text) for text in view.not_helping]
    found = view.resolution
    installs = any(step.id.startswith(("install-torch", "no-torch-build")) for step in view.plan.steps)
    if found is not None and found.split and not any(step.id == "one-environment-each" for step in view.plan.steps):
        for part in found.split:
            names = " and ".join(dict.fromkeys(gpu.label for gpu in part.gpus))
            lines.append(("each", f"{names}: torch {part.choice.version}, in an environment of its own"))
    if found is not None and installs:
        for blocker in found.blocked_by[:2]:
            change = blocker.change[0].upper() + blocker.change[1:]
            lines.append(("better", f"{change} opens torch {blocker.opens.version}"))
        sure = [choice.version for choice in found.alternatives if choice.seen]
        maybe = [choice.version for choice in found.alternatives if not choice.seen]
        if sure and found.choice is not None:
            lines.append(("also", f"runs here: torch {', '.join(sure)}"))
        if maybe and found.choice is not None:
            lines.append(("maybe", f"announced, but not seen on an index: torch {', '.join(maybe)}"))
    if lines:
        yield ""
    for name, text in lines:
        yield from _hanging(text, f"{name:<8}", " " * 8, style)


# -- JSON -----------------------------------------------------------------------------------------------------------


def document(view: FixView) -> PlanDocument:
    found = view.resolution
    choice = found.choice if found is not None else None
    entry = {
        "schema": "cudadoctor.plan/1",
        "exit": view.exit,
        "verdict": view.verdict,
        "choice": None if choice is None else _choice(choice, view),
        "alternatives": [_choice(other, view) for other in (found.alternatives if found else ())],
        "blocked_by": [
            {
                "by": blocker.by,
                "needed": blocker.needed,
                "change": blocker.change,
                "opens": _choice(blocker.opens, view),
            }
            for blocker in (found.blocked_by if found else ())
        ],
        "reasons": list(found.reasons) if found else [],
        "split": [
            {"gpus": [gpu.label for gpu in part.gpus], "choice": _choice(part.choice, view)}
            for part in (found.split if found else ())
        ],
        "nothing_to_do": not view.plan.steps,
        "driver_first": found.driver_first if found else None,
        "undecided": found.undecided if found else None,
        "steps": [step_entry(step) for step in view.plan.steps],
        "advice": [step_entry(step) for step in view.plan.advice],
    }
    return cast(PlanDocument, entry)


def _choice(choice: Choice, view: FixView) -> ChoiceEntry:
    return {
        "torch": choice.torch,
        "variant": choice.variant,
        "version": choice.version,
        "index_url": _index(choice, view),
        "companions": dict(choice.companions),
        "python": choice.python,
        "pythons": list(choice.pythons),
        "requirements": list(choice.requirements),
        "reasons": list(choice.reasons),
        "certainty": "possible" if not choice.seen else "likely" if choice.certainty == "likely" else "certain",
        "assumes": list(choice.assumes),
        "breaks": list(choice.breaks),
    }


def _index(choice: Choice, view: FixView) -> str:
    return f"{view.mirror.rstrip('/')}/{choice.variant}" if view.mirror else choice.index_url


# -- forms that other programs read ---------------------------------------------------------------------------------


def _form(form: str, view: FixView) -> list[str]:
    head = [f"# {line}" for line in wrap(clean(view.verdict), 78)]
    choice = view.resolution.choice if view.resolution is not None else None
    if choice is None:
        return head
    index = _index(choice, view)
    partners = [f"{name}=={version}" for name, version in choice.partners]
    if form == "requirements":
        # The pin names its build, so that it comes from PyTorch's index even where PyPI is asked as well.
        option = "--extra-index-url" if partners else "--index-url"
        return [*head, f"{option} {index}", *choice.requirements, *partners]
    if form == "uv":
        return [*head, *_uv(choice, index, partners)]
    if form == "conda":
        return [*head, *_conda(choice, index, partners)]
    python = (choice.python or _middle(choice.pythons)).rstrip("t")
    argv: tuple[Any, ...] = (
        "python",
        "-m",
        "pip",
        "install",
        "--no-cache-dir",
        *choice.requirements,
        "--index-url",
        index,
    )
    return [
        *head,
        f"FROM python:{python}-slim",
        f"RUN {quote(argv)}",
        *(f"RUN python -m pip install {p}" for p in partners),
    ]


def _middle(pythons: Sequence[str]) -> str:
    plain = [python for python in pythons if not python.endswith("t")]
    return plain[len(plain) // 2]


def _uv(choice: Choice, index: str, partners: Sequence[str]) -> list[str]:
    name = f"pytorch-{choice.variant}"
    names = [requirement.partition("==")[0] for requirement in choice.requirements]
    return [
        "[project]",
        "dependencies = [",
        *(f'  "{requirement}",' for requirement in (*choice.requirements, *partners)),
        "]",
        "",
        "[tool.uv.sources]",
        *(f'{package} = {{ index = "{name}" }}' for package in names),
        "",
        "[[tool.uv.index]]",
        f'name = "{name}"',
        f'url = "{index}"',
        "explicit = true",
    ]


def _conda(choice: Choice, index: str, partners: Sequence[str]) -> list[str]:
    python = (choice.python or _middle(choice.pythons)).rstrip("t")
    return [
        "name: torch",
        "channels:",
        "  - conda-forge",
        "dependencies:",
        f"  - python={python}",
        "  - pip",
        "  - pip:",
        f"      - {'--extra-index-url' if partners else '--index-url'} {index}",
        *(f"      - {requirement}" for requirement in (*choice.requirements, *partners)),
    ]
