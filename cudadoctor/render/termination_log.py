"""`check --format termination-log`: a short plain text, for Kubernetes' `/dev/termination-log`.

The first line is the verdict. It is fit to be the reason for which Slurm drains a node: short, one line, and without a
character that a shell or `scontrol` reads as more than itself. Below it stand the other causes, the cure and the
evidence, as far as there is room. A kubelet keeps 4096 bytes of the file, and 2048 of a container's log where it falls
back on that; the text is within the smaller.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from cudadoctor.model.pattern import pattern
from cudadoctor.render.style import clean
from cudadoctor.render.verdict import (
    LONGEST_LINE,
    Verdict,
    in_ascii,
    screen_of,
    shortened,
    summary,
    verdict_of,
    within,
)
from cudadoctor.render.view import View

MOST_BYTES = 2048
MOST_LINES = 80
REASON_LENGTH = 120

# What a reason says in other characters. The rest of what a shell, scontrol or a table takes for its own falls away.
_SAID_OTHERWISE = {
    "\\": "/",
    "|": "/",
    ";": ",",
    ">=": "at least ",
    "<=": "at most ",
    "->": "to",
    ">": "above ",
    "<": "below ",
    "&": " and ",
}
_OTHERWISE = pattern("|".join(map(re.escape, sorted(_SAID_OTHERWISE, key=len, reverse=True))))
_UNFIT = pattern(r"[^A-Za-z0-9 .,:()/+\-_=@~\[\]%?]")


def render(view: View) -> str:
    return "".join(line + "\n" for line in within(_lines(view), MOST_BYTES, MOST_LINES))


def reason(verdict: Verdict) -> str:
    """The verdict as a drain reason of at most REASON_LENGTH characters: `CD113 gpu-lost: GPU 1 has fallen off ...`."""
    whole = _fit(verdict.line)
    if len(whole) <= REASON_LENGTH:
        return whole
    beside = _fit(verdict.beside)
    end = f" {beside}" if beside else ""
    return shortened(whole[: len(whole) - len(end)], REASON_LENGTH - len(end)) + end


def _fit(text: str) -> str:
    text = _OTHERWISE.sub(lambda match: _SAID_OTHERWISE[match.group()], in_ascii(text))
    return " ".join(_UNFIT.sub("", text).split())


def _lines(view: View) -> Iterator[str]:
    screen = screen_of(view)
    verdict = verdict_of(screen)
    first = reason(verdict)
    yield first
    if first.endswith("...") or "... (and " in first:
        yield shortened(verdict.text, LONGEST_LINE)
    blame = f"to mend by: {verdict.outcome.blame}; " if verdict.outcome is not None and verdict.outcome.failed else ""
    yield f"{blame}exit status {view.exit}"
    yield from summary(screen, verdict)
    roots = [outcome.rule for outcome in screen.roots()]
    if roots:
        yield "more: " + "; ".join(clean(f"{view.program} explain {rule}") for rule in roots[:3])
