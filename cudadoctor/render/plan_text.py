"""`fix` as text: the verdict, then the command, then what a person wants to know before pasting it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cudadoctor.model import FixStep, ParseError
from cudadoctor.plan.draft import listed
from cudadoctor.plan.shell import quote
from cudadoctor.render.plan import OK, TODO, FixView
from cudadoctor.render.steps import is_command, needs_text
from cudadoctor.render.style import Style, clean, hanging, wrap
from cudadoctor.resolve import Resolution
from cudadoctor.resolve.need import BY_DRIVER, BY_REQUEST

# More builds that run as well than anybody compares.
_MOST_ALSO = 4


def lines(view: FixView) -> Iterator[str]:
    style = view.style
    role = {TODO: "FAIL", OK: "ok"}.get(view.word, view.word)
    for number, line in enumerate(wrap(clean(view.verdict), style.width - 6)):
        yield f"{style.paint(role, view.word.ljust(4)) if number == 0 else '    '}  {line}"
    steps = view.plan.steps
    if [step.id for step in steps] == ["no-torch-build"]:
        steps = ()  # the verdict has said it
    for number, step in enumerate(steps, start=1):
        yield ""
        if len(steps) == 1 and step.argv is not None:
            yield from _only_step(step, view)
        else:
            yield from step_text(_without_echo(step, view), f"{number}", view.plan.shell, style)
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
    elif len(view.plan.steps) == 1:
        text = "cudadoctor runs it when you say so:"
    else:
        word = "step" if len(ours) == 1 else "steps"
        text = f"cudadoctor runs {word} {', '.join(ours)} when you say so"
        text += "; the rest is yours:" if len(ours) < len(view.plan.steps) else ":"
    yield from wrap(text, view.style.width)
    if ours:
        yield f"   {view.program} fix           # on a terminal: asks before each step"
        yield f"   {view.program} fix --apply   # does not ask"


def _only_step(step: FixStep, view: FixView) -> Iterator[str]:
    """A plan of one command: the verdict has said what it is for."""
    indent = "   "
    yield indent + view.style.paint("command", command_text(step, view.plan.shell))
    yield ""
    yield from _rows(_without_echo(step, view), indent, view.style)


def _without_echo(step: FixStep, view: FixView) -> FixStep:
    """Why it is not the newest torch is told with what people try in vain, and once is enough."""
    told = any(line.startswith("`pip install -U torch`") for line in view.not_helping)
    kept = [
        line
        for line in step.instructions.split("\n")
        if not (line.startswith("not torch ") and (told or line.endswith("that was asked for")))
    ]
    return step._replace(instructions="\n".join(kept))


def step_text(step: FixStep, label: str, shell: str, style: Style) -> Iterator[str]:
    """One step: its title, its command on one line, then what it changes, what it needs and how to take it back."""
    head = f"{label}  "
    indent = " " * len(head)
    for place, line in enumerate(wrap(clean(step.title), style.width - len(head))):
        yield (head if place == 0 else indent) + line
    command = command_text(step, shell)
    if command:
        yield indent + style.paint("command", command)
    else:
        for line in _paragraphs(step):
            yield from _labelled(indent, line, style)
    yield from _rows(step, indent, style)


def _rows(step: FixStep, indent: str, style: Style) -> Iterator[str]:
    needs = needs_text(step).replace("as root", "root").replace("as administrator", "an administrator")
    rows = [("changes", step.changes), ("needs", needs)]
    if step.argv is not None:
        name = "why" if step.kind == "install" else "note"
        rows += [(name if place == 0 else "", line) for place, line in enumerate(_paragraphs(step))]
    # Last, as it may be a long line.
    rows.append(("undo", step.undo))
    for name, text in rows:
        if text:
            yield from _labelled(f"{indent}{name:<9}", text, style)


def _paragraphs(step: FixStep) -> list[str]:
    return [line for line in step.instructions.split("\n") if line.strip()]


def command_text(step: FixStep, shell: str) -> str:
    if step.argv is None:
        return ""
    try:
        return clean(quote(step.argv, shell, home=True))
    except ParseError:
        return ""


def _labelled(label: str, text: str, style: Style) -> Iterator[str]:
    """Wrapped, with a label before it; a command is never broken."""
    plain = clean(text.rstrip())
    if is_command(plain):
        yield label + ("    " if plain.startswith("    ") else "") + plain.strip()
        return
    yield from hanging(label, plain, style.width)


def _torch_lines(view: FixView) -> Iterator[str]:
    """What else would run, what would open something better, and what helps nothing."""
    rows: list[tuple[str, str]] = []
    if view.asked is not None:
        rows.append(("online", view.asked.words))
    rows += [("note", text) for text in view.notes]
    rows += [("why", text) for text in _why_no_single_one(view)]
    rows += [("not", text) for text in view.not_helping]
    if view.resolution is not None:
        rows += _about_choice(view.resolution, view.plan.steps)
    rows += [("driver" if place == 0 else "", text) for place, text in enumerate(view.plan.driver_words)]
    if rows:
        yield ""
    for name, text in rows:
        yield from _labelled(f"{name:<8}", text, view.style)


def _why_no_single_one(view: FixView) -> list[str]:
    """What the verdict leaves out where unlike GPUs share a machine: that one system may not even drive them all."""
    found = view.resolution
    if found is None or found.choice is not None or not (found.split or found.clash):
        return []
    reasons = [text for text in found.reasons[1:] if text != found.clash]
    return [text for text in reasons if not any(text in line for line in view.not_helping)]


def _about_choice(found: Resolution, steps: Sequence[FixStep]) -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = []
    installs = any(step.id.startswith(("install-torch", "no-torch-build")) for step in steps)
    if found.split and not any(step.id.startswith("run-on-") for step in steps):
        for part in found.split:
            if found.choice is not None and part.choice.version == found.choice.version:
                continue
            names = listed(dict.fromkeys(gpu.label for gpu in part.gpus))
            own = "" if found.undecided is not None else ", in an environment of its own"
            rows.append(("each", f"{names}: torch {part.choice.version}{own}"))
    if not installs:
        return rows
    # Who asks for a version knows that there are newer ones, and what the plan changes need not be advised.
    known = [BY_REQUEST] if found.choice is not None else []
    known += [BY_DRIVER] if any(step.kind == "driver" for step in steps) else []
    blockers = [blocker for blocker in found.blocked_by if blocker.by not in known]
    for blocker in blockers[:2]:
        rows.append(("better", f"{_sentence(blocker.change)} opens torch {blocker.opens.version}"))
    for way in found.other_ways[:2]:
        rows.append(("or", f"{way.change} opens torch {way.opens.version}: {way.reason}"))
    for move in found.moves:
        to = f" to {move.to}" if move.to is not None else ""
        what = {
            "up": f"{move.package} {move.have} has to go up{to}",
            "down": f"{move.package} {move.have} has to go down{to}",
            "rebuild": f"{move.package} {move.have} has to be built anew{to and f' as {move.to}'}",
            "away": f"{move.package} {move.have} has to go",
        }[move.direction]
        rows.append(("moves", f"{what}: {move.reason}"))
    for item in found.frameworks:
        if item.requirement is None:
            rows.append(("without", f"{item.name}: {'; '.join(item.reasons)}"))
        rows += [("better", text) for text in item.better[:1]]
    if found.choice is not None:
        sure = [choice.version for choice in found.alternatives if choice.seen]
        maybe = [choice.version for choice in found.alternatives if not choice.seen]
        if sure:
            more = f" and {len(sure) - _MOST_ALSO} older" if len(sure) > _MOST_ALSO else ""
            rows.append(("also", f"runs here: torch {', '.join(sure[:_MOST_ALSO])}{more}"))
        if maybe:
            rows.append(("maybe", f"announced, but not seen on an index (--online asks): torch {', '.join(maybe)}"))
    return rows


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
