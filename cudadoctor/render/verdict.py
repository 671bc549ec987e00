"""The verdict for formats that schedulers and monitors read: the screen's own, in one line, and the rest in few.

Nothing is judged here. What the state, the words and the root causes are, the screen says (`text.Screen`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Optional

from cudadoctor.model import CRASH, FixStep, Outcome
from cudadoctor.model.record import NamedTuple
from cudadoctor.model.report import EXIT_UNDECIDED, rank
from cudadoctor.render.sentences import hedged, told_too_little, undecided_links
from cudadoctor.render.steps import step_lines
from cudadoctor.render.style import Style, clean
from cudadoctor.render.text import Screen, unique, word_of
from cudadoctor.render.view import View

OK = "ok"
FAILED = "failed"
UNDECIDED = "undecided"
BUG = "bug"
STATES = (OK, FAILED, UNDECIDED, BUG)

# Nobody looks at these on a terminal: no colour, and room enough that few lines are broken.
_STYLE = Style(width=100)

# A sentence or a piece of evidence that is longer is no summary. Commands are never cut.
LONGEST_LINE = 500

# Words of the screen's first column, spelt out.
_WORDS = {"FAIL": "error", "warn": "warning", "info": "hint", "????": "undecided", "BUG": "bug"}


class Verdict(NamedTuple):
    """`state` is one of STATES: a link of the chain that could not be judged leaves the state undecided, also where
    that was accepted (--unknown-ok). `text` is the screen's first line without its word, `outcome` what it states
    (None: nothing in particular). `roots` are the root causes, the likeliest first."""

    state: str
    text: str
    outcome: Optional[Outcome]
    roots: tuple[Outcome, ...]

    @property
    def line(self) -> str:
        """All that there is room for in one line: `CD113 gpu-lost: GPU 1 has fallen off the bus (and 1 more)`."""
        if self.state == BUG or self.outcome is None:
            return f"{self.state}: {self.text}"
        named = f"{titled(self.outcome)}: {self.text.removeprefix('undecided: ')}"
        if self.state == FAILED:
            return named + self.beside
        return f"{self.state}: {named}"

    @property
    def beside(self) -> str:
        """How many root causes there are beside the one that the line states."""
        others = sum(outcome is not self.outcome for outcome in self.roots)
        return f" (and {others} more)" if self.state == FAILED and others else ""


def screen_of(view: View) -> Screen:
    """The screen whose parts these formats take."""
    return Screen(view._replace(style=_STYLE))


def verdict_of(screen: Screen) -> Verdict:
    view = screen.view
    roots = tuple(screen.by_id[rule] for rule in screen.report.root_causes if rule in screen.by_id)
    word, text = screen.headline
    outcome = screen.verdict
    state = {"FAIL": FAILED, "BUG": BUG, "????": UNDECIDED}.get(word, OK)
    if state == OK and view.exit == EXIT_UNDECIDED:
        # The screen begins with the warning that a pasted text shows; it decides nothing.
        state, text, outcome = UNDECIDED, told_too_little(view), None
    # There is no "below" in one line.
    return Verdict(state, clean(screen.homely(text)).replace(" below)", ")"), outcome, roots)


def titled(outcome: Outcome) -> str:
    """A rule by its id and name: `CD113 gpu-lost`."""
    return f"{outcome.rule} {outcome.name}"


def listed(outcome: Outcome, screen: Screen) -> str:
    """An outcome in one line: `warning CD601 swap-too-small: ...`."""
    word = word_of(outcome)
    said = clean(screen.homely(hedged(outcome)))
    follows = f" (from {outcome.because_of})" if outcome.failed and outcome.because_of else ""
    return f"{_WORDS.get(word, word)} {titled(outcome)}: {said}{follows}"


def failures(screen: Screen) -> list[Outcome]:
    """Every failing outcome: the verdict's, the root causes in their order, then the gravest first."""
    order = {outcome.rule: place for place, outcome in enumerate(screen.roots())}
    failed = [outcome for outcome in screen.report.outcomes if outcome.failed]
    return sorted(failed, key=lambda o: (order.get(o.rule, len(order)), rank(o), o.rule))


def evidence_lines(outcome: Outcome, screen: Screen) -> Iterator[str]:
    """What an outcome rests on, each fact with its source: `driver.nvml_error: 18 (nvml)`."""
    for note in screen.evidence(outcome):
        source = f" ({clean(screen.homely(note.right))})" if note.right else ""
        yield clean(screen.homely(note.text)) + source


def cure_lines(steps: Iterable[FixStep], screen: Screen) -> Iterator[str]:
    """Each step as a comment that says what it is, then its command."""
    for step in steps:
        yield from step_lines(step, screen.report.facts, _STYLE)


def summary(screen: Screen, verdict: Verdict) -> Iterator[str]:
    """What belongs below the verdict's line, the most useful first: what else is broken, what mends it, what it rests
    on, what is advice."""
    stated = verdict.outcome
    left = [outcome for outcome in failures(screen) if outcome is not stated]
    crashes = [outcome for outcome in screen.report.outcomes if outcome.status == CRASH]
    links = [outcome for outcome in undecided_links(screen.report) if outcome is not stated]
    is_open = verdict.state == UNDECIDED
    yield from _list([outcome for outcome in left if outcome in verdict.roots] + crashes, screen)
    yield from _list(links if is_open else [], screen)
    roots = screen.roots()
    cures = list(cure_lines(screen.cures(roots), screen))
    if cures:
        yield "what mends it:"
        yield from ("  " + line for line in cures)
    if screen.view.hand_over is not None:
        yield f"what you can do: {_cut(screen.homely(screen.view.hand_over.yours))}"
    for sentence in unique(text for outcome in roots for text in outcome.not_helping):
        yield f"what does not: {_cut(screen.homely(sentence))}"
    for outcome in roots:
        facts = list(evidence_lines(outcome, screen))
        if facts:
            yield f"what {outcome.rule} rests on:"
            yield from ("  " + _cut(line) for line in facts)
    yield from _list([] if is_open else links, screen)
    yield from _list([outcome for outcome in left if outcome not in verdict.roots], screen)


def _list(outcomes: Iterable[Outcome], screen: Screen) -> Iterator[str]:
    return (_cut(listed(outcome, screen)) for outcome in outcomes)


def _cut(text: str) -> str:
    return shortened(clean(text), LONGEST_LINE)


def shortened(text: str, most: int) -> str:
    """At most `most` characters, cut between words where that does not lose much."""
    if len(text) <= most:
        return text
    head = text[: most - 3]
    words = head.rpartition(" ")[0]
    return (words if len(words) > most // 2 else head).rstrip(" ,;:(") + "..."


# What stands for lines that were left out.
LEFT_OUT = "(more: cudadoctor check)"


def size_of(line: str) -> int:
    """The bytes of a line with its end."""
    return len(line.encode("utf-8", "backslashreplace")) + 1


def within(lines: Iterable[str], most_bytes: int, most_lines: int) -> list[str]:
    """Whole lines, as many as there is room for, with a note where some were left out."""
    taken = [line.rstrip() for line in lines]
    room = most_bytes - size_of(LEFT_OUT)
    for number, line in enumerate(taken):
        room -= size_of(line)
        if room < 0 or number == most_lines - 1:
            return [*taken[:number], LEFT_OUT]
    return taken


def in_ascii(text: str) -> str:
    """Text of ASCII alone: letters without their accents, and `?` for what has none."""
    if text.isascii():
        return text
    from unicodedata import normalize

    plain = (normalize("NFKD", letter).encode("ascii", "ignore").decode() for letter in text)
    return "".join(shown or ("?" if letter.isprintable() else "") for shown, letter in zip(plain, text))


def is_number(value: object) -> bool:
    """Whether monitors can be given this value of a fact: what it measures, and no truth value."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1 << 63
