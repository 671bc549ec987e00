"""`check --format github`: a log for GitHub Actions, whose findings stand beside the run as annotations.

Only what makes the run fail is an error, and of it only the root causes; other warnings are warnings, hints are
notices. The whole report follows, folded. `--also markdown=$GITHUB_STEP_SUMMARY` writes the job's summary.
"""

from __future__ import annotations

from collections.abc import Iterator

from cudadoctor.model import CRASH, ERROR, INFO, WARNING, Outcome
from cudadoctor.render.sentences import hedged, undecided_links
from cudadoctor.render.style import clean
from cudadoctor.render.text import Screen
from cudadoctor.render.verdict import (
    UNDECIDED,
    cure_lines,
    evidence_lines,
    failures,
    listed,
    screen_of,
    shortened,
    titled,
    verdict_of,
)
from cudadoctor.render.view import View

# GitHub shows as many of each kind a step.
_MOST_OF_A_KIND = 10
_LONGEST_LINE = 1000
_KINDS = ("error", "warning", "notice")


def render(view: View) -> str:
    return "".join(line + "\n" for line in _lines(view))


def _lines(view: View) -> Iterator[str]:
    screen = screen_of(view)
    verdict = verdict_of(screen)
    yield _plain(verdict.line)
    annotations = list(_annotations(screen, verdict.state))
    for kind in _KINDS:
        of_kind = [annotation for annotation in annotations if annotation[0] == kind]
        for _, title, lines in of_kind[:_MOST_OF_A_KIND]:
            yield command(kind, title, "\n".join(lines))
        if len(of_kind) > _MOST_OF_A_KIND:
            yield f"and {len(of_kind) - _MOST_OF_A_KIND} more of kind {kind}, in the report below"
    yield f"::group::cudadoctor {_plain(view.tool_version)}: the whole report"
    yield from (_plain(line) for line in Screen(view).lines())
    yield "::endgroup::"


def command(kind: str, title: str, message: str) -> str:
    """A workflow command: an annotation with a title and a message, whatever characters are in them."""
    escaped_title = _escaped(title).replace(":", "%3A").replace(",", "%2C")
    # The runner also reads the commands of its predecessor, wherever in a line they begin.
    return f"::{kind} title={escaped_title}::{_escaped(message)}".replace("##[", "# #[")


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _plain(line: str) -> str:
    """A line of the log in which a runner finds no command: a report may quote any text."""
    line = line.replace("##[", "# #[")
    stripped = line.lstrip()
    if stripped.startswith("::"):
        line = line[: len(line) - len(stripped)] + ": :" + stripped[2:]
    return line


def _annotations(screen: Screen, state: str) -> Iterator[tuple[str, str, list[str]]]:
    """Kind, title and lines of each annotation: first what the verdict is about."""
    if state == UNDECIDED:
        yield from _undecided(screen)
    stops = {outcome.rule for outcome in screen.at_threshold()} & {outcome.rule for outcome in screen.roots()}
    for outcome in failures(screen):
        if outcome.because_of is None:
            kind = "error" if outcome.rule in stops else _KIND_OF[outcome.severity]
            yield kind, titled(outcome), list(_told(outcome, screen))
    for outcome in screen.report.outcomes:
        if outcome.status == CRASH:
            yield "error", f"bug in cudadoctor: {titled(outcome)}", list(_told(outcome, screen))
    if state != UNDECIDED:
        yield from _undecided(screen)


_KIND_OF = {ERROR: "error", WARNING: "warning", INFO: "notice"}


def _undecided(screen: Screen) -> Iterator[tuple[str, str, list[str]]]:
    """One annotation for all links of the chain that could not be judged; none where there is none."""
    links = undecided_links(screen.report)
    if links:
        more = f" and {len(links) - 1} more" if len(links) > 1 else ""
        lines = [shortened(listed(outcome, screen), _LONGEST_LINE) for outcome in links]
        yield "notice" if screen.view.exit == 0 else "warning", f"undecided: {titled(links[0])}{more}", lines


def _told(outcome: Outcome, screen: Screen) -> Iterator[str]:
    """What an annotation says: the sentence, what it rests on, what mends it."""
    lines = [screen.homely(hedged(outcome)), *evidence_lines(outcome, screen)]
    if outcome.failed:
        lines += cure_lines((step for step in screen.view.steps if outcome.rule in step.mends), screen)
        lines.append(f"{screen.view.program} explain {outcome.rule}")
    yield from (shortened(clean(line), _LONGEST_LINE) for line in lines)
