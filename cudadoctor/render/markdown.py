"""`check --format markdown`: a report to be posted, as an answer in an issue or as a job's summary."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cudadoctor.model import FixStep
from cudadoctor.plan.shell import POSIX, shell_of
from cudadoctor.render.sentences import read_sentence
from cudadoctor.render.steps import command_line, is_command, needs_text
from cudadoctor.render.style import clean
from cudadoctor.render.text import Line, Screen, unique
from cudadoctor.render.view import Pasted, View
from cudadoctor.rules import rule_files, rule_name

# Words of the first column as people read them in a table.
_WORDS = {"FAIL": "**FAIL**", "warn": "**warn**", "????": "unknown", "BUG": "**BUG**"}

# More findings of one line make a table that nobody reads.
_MOST_NOTES = 6


def render(view: View) -> str:
    return "\n".join(line.rstrip() for line in _lines(view)) + "\n"


def escaped(text: str) -> str:
    """Text that Markdown shows as it is: no emphasis, no link, no mention of anybody, no HTML, one line."""
    text = re.sub(r"([\\`*_\[\]|~#])", r"\\\1", clean(text).strip())
    return text.replace("<", "&lt;").replace(">", "&gt;").replace("@", "@\u200b")


def _lines(view: View) -> Iterator[str]:
    screen = Screen(view)
    word, verdict = screen.headline
    yield f"**{'undecided' if word == '????' else word}:** {escaped(screen.homely(verdict))}"
    yield ""
    checked = screen.checked()
    if checked:
        yield "| | | |"
        yield "|---|---|---|"
        for line in checked:
            yield from _row(line, screen)
        yield ""
    roots = screen.roots()
    if view.hand_over is not None:
        yield f"**You:** {escaped(view.hand_over.yours)}"
        yield ""
        yield f"**To your admins:** {escaped(view.hand_over.message)}"
        yield ""
    cures = screen.cures(roots)
    if cures:
        yield "### What mends it"
        yield ""
        for number, step in enumerate(cures, 1):
            yield from _step(number, step, view)
    vain = unique(text for outcome in roots for text in outcome.not_helping)
    if vain:
        yield "### What does not help"
        yield ""
        yield from (f"- {escaped(screen.homely(text))}" for text in vain)
        yield ""
    if view.pasted is not None:
        yield from _texts(view.pasted)
    rules = ", ".join(f"{outcome.rule} {outcome.name}" for outcome in roots)
    data = f", compatibility data {view.matrix.revision}" if view.matrix.revision else ""
    yield f"<sub>cudadoctor {escaped(view.tool_version)}{data}{'; ' + rules if rules else ''}</sub>"


def _row(line: Line, screen: Screen) -> Iterator[str]:
    texts = []
    for note in line.notes[:_MOST_NOTES]:
        right = f" ({escaped(screen.homely(note.right))})" if note.right else ""
        texts.append(escaped(screen.homely(note.text)) + right)
    if len(line.notes) > _MOST_NOTES:
        texts.append(f"and {len(line.notes) - _MOST_NOTES} more")
    yield f"| {_WORDS.get(line.word, line.word)} | {escaped(line.label)} | {'<br>'.join(texts)} |"


def _step(number: int, step: FixStep, view: View) -> Iterator[str]:
    facts = view.report.facts
    needs = needs_text(step)
    yield f"{number}. {escaped(step.title)}" + (f" ({escaped(needs)})" if needs else "")
    yield ""
    language = "sh" if shell_of(str(facts.value("system.os", "linux"))) == POSIX else "powershell"
    command = command_line(step, facts)
    if command:
        if step.kind == "driver" and step.instructions:
            yield f"   {escaped(step.instructions)}"
            yield ""
        yield from _block([command], language)
    for paragraph in [] if command else step.instructions.splitlines():
        if is_command(paragraph):
            yield from _block([clean(paragraph.strip())], language)
        elif paragraph.strip():
            yield f"   {escaped(paragraph)}"
            yield ""


def _block(lines: list[str], language: str, indent: str = "   ") -> Iterator[str]:
    # A fence longer than any within it.
    inside = [len(run) for line in lines for run in re.findall("`+", line)]
    fence = "`" * max([3, *(length + 1 for length in inside)])
    yield f"{indent}{fence}{language}"
    yield from (indent + line for line in lines)
    yield indent + fence
    yield ""


def _texts(pasted: Pasted) -> Iterator[str]:
    if pasted.unexplained:
        yield "### Error messages that nothing here explains"
        yield ""
        for item in pasted.unexplained:
            causes = ", ".join(f"{rule} {rule_name(rule)}" for rule in item.causes if rule in rule_files())
            can_be = f"; it can be {causes}" if causes else ""
            yield f"- {escaped(item.text)} ({escaped(item.source)}): {escaped(item.meaning)}{can_be}"
        yield ""
    if pasted.questions:
        yield "### To be sure, please paste what these print there"
        yield ""
        yield from _block([question.command for question in pasted.questions], "sh", "")
    yield f"Read: {escaped(read_sentence(pasted))}."
    yield from (f"<br>Note: {escaped(note)}" for note in pasted.notes)
    yield ""
