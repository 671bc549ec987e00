"""`cudadoctor verify --format text`: the verdict, a line a check, and what a failure means."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Optional

from cudadoctor.model import CERTAIN, ERROR, PASS, SKIP
from cudadoctor.render.chain import size, sm
from cudadoctor.render.style import clean, columns, wrap
from cudadoctor.render.verify_view import VerifyView, headline
from cudadoctor.rules import rule_name
from cudadoctor.verify.results import Result, SeenGpu

_MOST_EXPLAINED = 3
_MOST_ERROR_LINES = 12


def render(view: VerifyView) -> str:
    return "".join(line.rstrip() + "\n" for line in _lines(view))


def _lines(view: VerifyView) -> Iterator[str]:
    style = view.style
    word, text = headline(view)
    for place, line in enumerate(wrap(clean(text), style.width - 6)):
        yield (style.paint(word, f"{word:<4}") if place == 0 else "    ") + "  " + line
    proof = view.proof
    width = max((columns(result.name) for result in proof.results), default=0)
    if proof.results:
        yield ""
    numbers: list[Optional[int]] = [None]
    numbers += sorted({result.gpu for result in proof.results if result.gpu is not None})
    for number in numbers:
        gpu = next((gpu for gpu in proof.gpus if gpu.number == number), None)
        if gpu is not None:
            yield from _gpu(view, gpu)
        elif number is not None:
            yield f"  GPU {number}"
        yield from _results(view, [result for result in proof.results if result.gpu == number], width)
    yield from _more(view)


def _results(view: VerifyView, results: Sequence[Result], width: int) -> Iterator[str]:
    """A line a check; what was not run for one and the same reason takes one together."""
    idle = [result for result in results if result.status == SKIP and result.message.startswith("not run")]
    together = len(idle) > 2 and len({result.message for result in idle}) == 1 and not view.style.verbose
    for result in results:
        if not together or result not in idle:
            yield from _result(view, result, width)
    if together:
        yield from _result(view, idle[0]._replace(check=f"{len(idle)} more", variant=""), width)


def _gpu(view: VerifyView, gpu: SeenGpu) -> Iterator[str]:
    parts = [gpu.name, sm(gpu.capability) if gpu.capability else ""]
    if gpu.total is not None:
        parts.append(size(gpu.total) + (f" ({size(gpu.free)} free)" if gpu.free is not None else ""))
    texts = [f"GPU {gpu.number}: " + ", ".join(part for part in parts if part)]
    if gpu.allocated is not None and gpu.reserved is not None:
        texts.append(f"torch: {size(gpu.allocated)} allocated, {size(gpu.reserved)} reserved")
    lines = [line for text in texts for line in wrap(clean(text), view.style.width - 9)]
    for number, line in enumerate(lines):
        yield ("  " if number == 0 else " " * 9) + line


def word_of(result: Result) -> str:
    """The word of the first column."""
    if result.failed:
        return "FAIL" if result.severity == ERROR else "warn"
    return "ok" if result.status == PASS else "skip"


def _result(view: VerifyView, result: Result, width: int) -> Iterator[str]:
    style = view.style
    word = word_of(result)
    start = "  " + style.paint(word, f"{word:<4}") + "  " + f"{result.name:<{width}}" + "  "
    indent = width + 10
    texts = wrap(clean(result.message), style.width - indent)
    meaning = _meaning(result)
    texts += wrap(clean(meaning), style.width - indent) if meaning else []
    if style.verbose:
        texts += _details(result, style.width - indent)
    for text in texts:
        yield start + text
        start = " " * indent


def _meaning(result: Result) -> str:
    if result.status == SKIP and result.rule is not None:
        return f"{result.rule} {rule_name(result.rule)}"
    if not result.failed or result.rule is None:
        return ""
    if result.because or result.certainty == CERTAIN:
        hedge = "" if result.certainty == CERTAIN else f"{result.certainty}: "
        return f"{hedge}{result.rule} {rule_name(result.rule)}" + (f": {result.because}" if result.because else "")
    named = [f"{rule} {rule_name(rule)}" for rule in result.suspects]
    return "possible: " + ", ".join(named)


def _details(result: Result, width: int) -> list[str]:
    found: list[str] = []
    if result.expected is not None:
        found += wrap(clean(f"expected: {result.expected.source}"), width)
    if result.seconds is not None and result.status != SKIP:
        found.append(f"{result.seconds:.1f} s")
    if result.failed:
        lines = [line for line in result.error.splitlines() if line.strip()]
        for line in lines[-_MOST_ERROR_LINES:]:
            found += wrap(clean(line), width)
    return found


def _more(view: VerifyView) -> Iterator[str]:
    proof = view.proof
    failed = [result for result in proof.results if result.failed]
    rules = list(dict.fromkeys(result.rule for result in failed if result.rule is not None))
    if not failed:
        return
    yield ""
    commands = [f"{view.program} explain {rule}" for rule in rules[:_MOST_EXPLAINED]]
    again = f" {view.again}" if view.again else ""
    commands.append(f"{view.program} check{again}")
    for number, command in enumerate(commands):
        yield f"{'more' if number == 0 else '':<4}  {view.style.paint('command', clean(command))}"
