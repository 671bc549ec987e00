"""`cudadoctor fit --format text`: the verdict, of what the need is made up, and the cheapest changes that help."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cudadoctor.fit.answer import DOES_NOT_FIT, FITS, TIGHT, Alternative, Answer, Change
from cudadoctor.fit.architecture import ENCODER_DECODER
from cudadoctor.fit.need import Interval
from cudadoctor.fit.workload import INFER, WEIGHTS
from cudadoctor.render import fit_bar
from cudadoctor.render.fit_sizes import GB, GIB, both, fixed, seconds, span
from cudadoctor.render.fit_view import FitView, card_text, doing, headline, model_text, place_of
from cudadoctor.render.style import Style, clean, hanging, wrap

# More changes and alternatives than anybody weighs against each other; --verbose shows all.
_MOST_CHANGES = 6
_MOST_ALTERNATIVES = 3

_LABEL = 12

# Where a model is read from; what a virtual disk lies on, nobody tells.
_DISKS = {"nvme": "an NVMe drive", "ssd": "a SATA SSD", "hdd": "a hard disk", "network": "a network drive"}


def render(view: FitView) -> str:
    return "".join(line.rstrip() + "\n" for line in lines(view))


def render_all(views: Sequence[FitView]) -> str:
    """Several answers, in the order in which they were asked for."""
    return "\n".join(render(view) for view in views)


def lines(view: FitView) -> Iterator[str]:
    style = view.style
    word, text = headline(view)
    for place, line in enumerate(wrap(clean(text), style.width - 6)):
        yield f"{style.paint(word, word.ljust(4)) if place == 0 else '    '}  {line}"
    yield ""
    yield from fit_bar.lines(view.answer.need, view.answer.available, style, view.answer.workload)
    yield ""
    yield from _levels(view)
    yield ""
    yield from _rows(view)
    yield from _changes(view)
    yield from _alternatives(view)
    yield from _warnings(view)
    yield from _measured(view)
    yield from _assumed(view)
    if view.explain:
        from cudadoctor.render.fit_explain import lines as explained

        yield ""
        yield from explained(view)
    else:
        yield ""
        commands = [f"{view.program} fit {view.again} --explain"] if view.again else []
        commands.append(f"{view.program} explain vram-fit")
        for place, command in enumerate(commands):
            yield f"{'more' if place == 0 else '':<4}  {style.paint('command', clean(command))}"


def _levels(view: FitView) -> Iterator[str]:
    """The three numbers that people confuse."""
    need = view.answer.need
    rows = [("torch allocates", need.allocated), ("torch reserves", need.reserved), ("nvidia-smi shows", need.device)]
    if view.answer.workload.engine != "transformers" and view.answer.workload.method in (INFER, WEIGHTS):
        rows = [("the engine uses", need.allocated), ("nvidia-smi shows", need.device)]
    tables = [_level_table([(name, _numbers(amount, unit)) for name, amount in rows], unit) for unit in (GIB, GB)]
    beside = [f"  {name:<16}  {left}   {right}" for name, left, right in zip(["", *dict(rows)], *tables)]
    if max(map(len, beside)) <= view.style.width:
        yield from beside
        return
    for table in tables:  # below each other
        yield from (f"  {name:<16}  {cells}" for name, cells in zip(["", *dict(rows)], table))


def _level_table(rows: Sequence[tuple[str, tuple[str, str]]], unit: int) -> list[str]:
    """The head and a line for each row, without its name."""
    texts = [("GiB" if unit == GIB else "GB", "9 of 10 times"), *(numbers for _, numbers in rows)]
    first, second = (max(len(text[place]) for text in texts) for place in (0, 1))
    return [f"{expected:>{first}}  {between:<{second}}" for expected, between in texts]


def _numbers(amount: Interval, unit: int) -> tuple[str, str]:
    """15.60, and 15.20 to 16.20."""
    return fixed(amount.expected, unit), f"{fixed(amount.low, unit)} to {fixed(amount.high, unit)}"


def _each(answer: Answer, verb: str) -> str:
    """A sequence's tokens; an image's nobody asked for."""
    shape = answer.model.architecture
    if shape.tokens_per_item and shape.kind != ENCODER_DECODER:
        return f" {verb}" if verb == "fits" else f" at once {verb}"
    return f" of {answer.workload.context:,} tokens {verb}"


def _rows(view: FitView) -> Iterator[str]:
    answer = view.answer
    workload, speed = answer.workload, answer.speed
    found = [("model", model_text(answer.model)), ("run", doing(workload, answer.model.architecture))]
    fits = answer.verdict in (FITS, TIGHT)
    if answer.available is not None and workload.method != WEIGHTS:
        if answer.largest_batch is not None:
            found.append(("batch", f"at most {answer.largest_batch:,}{_each(answer, 'fit')}"))
        elif not fits:
            found.append(("batch", f"not even one{_each(answer, 'fits')}"))
        if answer.longest_context is not None:
            limit = answer.model.architecture.max_context
            note = f" (the model is made for {limit:,})" if limit and answer.longest_context >= limit else ""
            found.append(
                ("context", f"at most {answer.longest_context:,} tokens fit at batch {workload.batch:,}{note}")
            )
    if answer.need.kv_bytes_per_token and workload.method == INFER:
        found.append(("cache", f"{both(answer.need.kv_bytes_per_token * 1024)} for every 1,024 tokens of a sequence"))
    if speed.tokens is not None:
        shown = f"{speed.tokens:,.0f}" if speed.tokens >= 10 else f"{speed.tokens:.1f}"
        found.append(("speed", f"at most {shown} tokens/s for one sequence: the memory's bandwidth allows no more"))
    if speed.load_seconds is not None:
        disk = answer.target.machine.disk
        found.append(("loading", f"{seconds(*speed.load_seconds)} from {_DISKS.get(disk, 'the disk')}"))
    if answer.need.host.expected:
        purpose = "to load it" if workload.offload == "none" else "for loading and what is offloaded"
        low, high = answer.need.host.low, answer.need.host.high
        found.append(("RAM", f"{span(low, high) if low else 'up to ' + both(high)} {purpose}"))
    if answer.need.peak:
        found.append(("peak", answer.need.peak))
    for name, text in found:
        yield from hanging(f"  {name:<{_LABEL}}", text, view.style.width)


def _changes(view: FitView) -> Iterator[str]:
    answer, style = view.answer, view.style
    if answer.cure is not None and answer.cure.changes:
        cure = answer.cure
        then = f"then it takes {span(cure.need.low, cure.need.high)}"
        if cure.available is not None:
            then += f" of {both(cure.available)}"
        count = len(cure.changes)
        what = "the cheapest change that helps" if count == 1 else f"the {count} cheapest changes that help, together"
        yield ""
        yield from hanging("fix   ", f"{what}: {then}", style.width)
        for place, change in enumerate(cure.changes, start=1):
            yield from _change(change, f"{place}" if count > 1 else "", style, style.verbose)
        others = [change for change in answer.changes if change.id not in {done.id for done in cure.changes}]
        if others and style.verbose:
            yield ""
            yield from hanging("also  ", "what else would lower the need, each alone:", style.width)
            for change in others:
                yield from _change(change, "", style, True)
        return
    if answer.verdict not in (TIGHT, DOES_NOT_FIT) and not style.verbose:
        return
    if answer.changes:
        yield ""
        head = "what would lower the need, the cheapest first, each alone:"
        if answer.verdict == DOES_NOT_FIT:
            head = f"no changes that are known make it fit {place_of(answer)}; each of these alone saves:"
        yield from hanging("fix   " if answer.verdict in (TIGHT, DOES_NOT_FIT) else "note  ", head, style.width)
        shown = answer.changes if style.verbose else answer.changes[:_MOST_CHANGES]
        for change in shown:
            yield from _change(change, "", style, style.verbose)
        if len(shown) < len(answer.changes):
            yield f"      {style.ellipsis} {len(answer.changes) - len(shown)} more (--verbose)"


def _change(change: Change, label: str, style: Style, verbose: bool) -> Iterator[str]:
    """A change: what it saves and costs, then the line to write, which is never broken."""
    start = f"      {label}  " if label else "      "
    costs = [f"{cost} {name}" for name, cost in (("quality", change.quality), ("speed", change.speed))]
    paid = [text for text in costs if not text.startswith(("none ", " "))]
    price = f"costs {' and '.join(paid)}" if paid else "costs nothing"
    saves = f"saves {both(change.saves)}, " if change.saves > 0 else ""
    yield from hanging(start, f"{change.title}: {saves}{price}", style.width)
    for line in change.lines:
        yield " " * len(start) + "  " + style.paint("command", clean(line))
    if verbose:
        for text in (change.why, change.source):
            if text:
                yield from hanging(" " * len(start) + "  ", text, style.width)


def _alternatives(view: FitView) -> Iterator[str]:
    answer, style = view.answer, view.style
    if not answer.alternatives or (answer.verdict == FITS and not style.verbose):
        return
    words = {"model": "or a model", "gpu": "or a card", "rented": "or rent"}
    if answer.verdict not in (TIGHT, DOES_NOT_FIT):
        words = {kind: text.removeprefix("or ") for kind, text in words.items()}
    yield ""
    for kind, label in words.items():
        found = [item for item in answer.alternatives if item.kind == kind]
        for place, item in enumerate(found if style.verbose else found[:_MOST_ALTERNATIVES]):
            yield from hanging(f"{label if place == 0 else '':<10}  ", _alternative(item), style.width)


def _alternative(item: Alternative) -> str:
    name = item.name
    if item.gpus > 1 and item.kind != "model":
        # What is known of a GPU by its memory alone is called "a GPU with 24 GiB".
        name = f"{item.gpus} GPUs{name[5:]}" if name.startswith("a GPU") else f"{item.gpus}x {name}"
    each = " on each GPU" if item.gpus > 1 else ""
    about = card_text(item.card) if item.card is not None and not item.name.startswith("a GPU") else ""
    text = f"{name}: {about}; " if about else f"{name}: "
    text += f"takes {span(item.need.low, item.need.high)}{each}"
    return f"{text}, with {'; '.join(change.title for change in item.changes)}" if item.changes else text


def _warnings(view: FitView) -> Iterator[str]:
    answer, style = view.answer, view.style
    warnings = [*answer.warnings]
    if warnings:
        yield ""
    for text in warnings:
        label = style.paint("warn", "warn") + "  "
        for place, line in enumerate(wrap(clean(text), style.width - 6)):
            yield (label if place == 0 else " " * 6) + line


def _measured(view: FitView) -> Iterator[str]:
    """The second opinion, where one was asked for."""
    if view.measured is None:
        return
    from cudadoctor.render.fit_measured import lines as measured

    yield ""
    yield "Measured here:"
    for line in measured(view.measured, view.answer.need, view.quantised):
        if not line.startswith(" "):
            yield from hanging("  - ", line, view.style.width)
        elif len(line) + 2 <= view.style.width:
            yield "  " + clean(line)  # a row of a table
        elif view.style.width >= 70 and line[42:44] == "  ":
            yield from hanging("  " + line[:44], line[44:], view.style.width)
        else:
            yield from hanging(" " * 6, line, view.style.width)


def _assumed(view: FitView) -> Iterator[str]:
    """What was taken for granted, as nobody said it, and what else belongs to the answer."""
    answer, style = view.answer, view.style
    groups = (
        ("Taken for granted:", (*answer.model.notes, *answer.need.assumed)),
        ("To know:", (*answer.target.notes, *answer.notes)),
    )
    for head, texts in groups:
        if not texts:
            continue
        yield ""
        yield head
        for text in dict.fromkeys(texts):
            yield from hanging("  - ", text, style.width)
