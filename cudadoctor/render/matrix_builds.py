"""torch builds as tables: the newest of each variant, all of one release, and what a plain pip install gives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from cudadoctor.matrix import Build, numbers
from cudadoctor.matrix.views import LIKELY, NO, UNKNOWN, YES, Answer, CudaView, Line
from cudadoctor.render.matrix_lines import row, table
from cudadoctor.render.matrix_words import PLATFORMS, places, version
from cudadoctor.render.style import Style

_MOST_ROWS = 8  # older builds than these are counted, unless all is asked for

_WORDS = {YES: "yes", LIKELY: "likely", NO: "no", UNKNOWN: "????"}


def newest_builds(answer: Answer, style: Style) -> Iterator[str]:
    """The newest build of each variant that runs, and why the others do not."""
    lines = [line for line in answer.lines if line.answer == YES] or list(answer.lines)
    shown = lines if style.verbose or len(lines) <= _MOST_ROWS + 1 else lines[:_MOST_ROWS]
    if shown:
        what = "that runs" if answer.driver is not None else "with code for it"
        yield from row("builds", f"the newest of each CUDA {what}, on {places(answer.question.platforms)}:", style)
        headers = ["build", "torch", "code that runs" if answer.gpus else "has code for", "Python"]
        if answer.driver is None:
            headers.insert(3, "driver")
        yield from table(headers, [_newest_cells(line, answer) for line in shown], style)
    older = lines[len(shown) :]
    if older:
        names = ", ".join(line.build.variant for line in older)
        yield from row("", f"and older ones (-v shows them): {names}", style)
    yield from _inferred_row(shown, style)
    yield from _glibc_row(shown, style)
    likely = [(line.reason, line.build.variant) for line in answer.lines if line.answer == LIKELY]
    refused = [(item.line.reason, item.variant) for item in answer.refused]
    unsure = [(line.reason, version(line.build)) for line in answer.unsure]
    for label, reasons in (("likely", likely), ("not", refused), ("????", unsure)):
        yield from _by_reason(label, reasons, style)
    if answer.announced:
        names = ", ".join(version(line.build) for line in answer.announced)
        yield from row("perhaps", f"announced, but not seen on an index: {names}", style)


def _by_reason(label: str, reasons: Iterable[tuple[str, str]], style: Style) -> Iterator[str]:
    found: dict[str, list[str]] = {}
    for reason, name in reasons:
        found.setdefault(reason, []).append(name)
    for reason, names in found.items():
        yield from row(label, f"{', '.join(dict.fromkeys(names))}: {reason}", style)


def _newest_cells(line: Line, answer: Answer) -> list[str]:
    build = line.build
    via = dict.fromkeys(verdict.via for verdict in line.gpus if verdict.via)
    code = ", ".join(via) if answer.gpus else code_text(build)
    cells = [build.variant, build.torch, code, pythons_text(build)]
    if answer.driver is None:
        cells.insert(3, _floor(line))
    return cells


def release_builds(answer: Answer, style: Style) -> Iterator[str]:
    """All builds of one release, platform by platform."""
    judged = bool(answer.gpus or answer.driver or answer.question.python)
    for platform in answer.question.platforms:
        lines = [line for line in answer.lines if line.build.platform == platform and line.build.seen]
        if not lines:
            continue
        glibc = sorted({line.build.glibc or "" for line in lines})
        needs = f", glibc {glibc[0]} or newer" if len(glibc) == 1 and glibc[0] else ""
        yield from row("builds", f"{PLATFORMS.get(platform, platform)}{needs}:", style)
        headers = ["build", "driver", "has code for", "Python"]
        if len(glibc) > 1:
            headers.insert(3, "glibc")
        if judged:
            headers.insert(1, "runs")
        if any(line.build.download_mib for line in lines):
            headers.insert(-1, "MiB")
        rows = [_release_cells(line, headers) for line in sorted(lines, key=lambda line: line.key, reverse=True)]
        yield from table(headers, rows, style)
    seen = [line for line in answer.lines if line.build.seen]
    yield from _inferred_row(seen, style)
    yield from _glibc_row(seen, style)
    why = [(line.reason, line.build.variant) for line in answer.lines if line.reason and line.build.seen]
    yield from _by_reason("why", why, style)
    announced: dict[str, list[str]] = {}
    for line in answer.lines:
        if not line.build.seen:
            announced.setdefault(line.build.variant, []).append(line.build.platform)
    if announced:
        names = "; ".join(f"{variant} on {places(platforms)}" for variant, platforms in announced.items())
        yield from row("perhaps", f"announced, but not seen on an index: {names}", style)


def _release_cells(line: Line, headers: Sequence[str]) -> list[str]:
    build = line.build
    code = "no GPU" if build.cuda is None else code_text(build) + (" (a guess)" if build.archs_guessed else "")
    cells = {
        "build": build.variant,
        "runs": _WORDS[line.answer],
        "driver": _floor(line),
        "has code for": code,
        "glibc": build.glibc or "",
        "MiB": f"{build.download_mib or ''}",
        "Python": pythons_text(build),
    }
    return [cells[header] for header in headers]


def pip_rows(answer: Answer, style: Style) -> Iterator[str]:
    """What a plain install gives, and whether that runs: many a wrong build comes from there."""
    judged = bool(answer.gpus or answer.driver)
    if not answer.default or (answer.torch is None and answer.cuda is not None):
        return
    if answer.torch is not None and not answer.lines:
        return
    command = "pip install torch" + (f"=={answer.torch.release.version}" if answer.torch is not None else "")
    given: dict[str, list[str]] = {}
    for line in answer.default:
        build = line.build
        said = f"torch {build.torch} " if answer.torch is None else "the build "
        said += f"for CUDA {build.cuda} ({build.variant})" if build.cuda else "for the CPU alone"
        given.setdefault(said, []).append(build.platform)
    said = "; ".join(f"{what} on {places(platforms)}" for what, platforms in given.items())
    explained = {item.variant for item in answer.refused} | {line.build.variant for line in answer.lines}
    if judged and len(answer.default) == 1:
        said += _runs(answer.default[0], explained)
    yield from row("pip", f'a plain "{command}" gives {said}', style)


def _runs(line: Line, explained: set[str]) -> str:
    """`explained`: variants whose reason was given before."""
    if line.build.cuda is None:
        return ", which uses no GPU"
    if line.passes:
        return ", which runs"
    why = "" if line.build.variant in explained else f": {line.reason}"
    return f", which does not run{why}" if line.answer == NO else "; whether that runs is not known"


def built_with(cuda: CudaView) -> str:
    """Which torch releases have builds for it, platform by platform."""
    releases: dict[tuple[str, str], list[str]] = {}
    for line in cuda.builds:
        releases.setdefault((line.build.variant, line.build.platform), []).append(line.build.torch)
    spans: dict[tuple[str, str, str], list[str]] = {}
    for (variant, platform), versions in releases.items():
        spans.setdefault((variant, versions[-1], versions[0]), []).append(platform)
    by_variant: dict[str, list[str]] = {}
    for (variant, first, last), platforms in spans.items():
        span = first if first == last else f"{first} to {last}"
        by_variant.setdefault(variant, []).append(f"{span} on {places(platforms)}")
    said = [f"{variant}: torch {', '.join(parts)}" for variant, parts in by_variant.items()]
    return "; ".join(said) or "no build that is known was made with it"


def code_text(build: Build) -> str:
    """ "sm_75 80 86", and the PTX that the build has."""
    said = "sm_" + " ".join(build.sass) if build.sass else "no GPU list is known"
    return said + (f" + PTX {' '.join(build.ptx)}" if build.ptx else "")


def pythons_text(build: Build) -> str:
    """ "3.10-3.14 3.13t 3.9?": free-threaded ones behind, and those with a question mark that were seen for the release
    only."""
    sure = [python for python in build.pythons if python not in build.pythons_inferred]
    plain = sorted(numbers(python) or () for python in sure if not python.endswith("t"))
    spans: list[list[tuple[int, ...]]] = []
    for python in plain:
        if spans and (*spans[-1][-1][:-1], spans[-1][-1][-1] + 1) == python:
            spans[-1].append(python)
        else:
            spans.append([python])
    said = ["-".join(dict.fromkeys(".".join(map(str, end)) for end in (span[0], span[-1]))) for span in spans]
    said += [python for python in sure if python.endswith("t")]
    return " ".join([*said, *(f"{python}?" for python in build.pythons_inferred)])


def _inferred_row(lines: Iterable[Line], style: Style) -> Iterator[str]:
    if any(line.build.pythons_inferred for line in lines):
        yield from row("", "a Python with ?: wheels of the release were seen for it, not of that very build", style)


def _glibc_row(lines: Iterable[Line], style: Style) -> Iterator[str]:
    """Builds that a newer glibc refuses to load."""
    found = [
        (f"not with glibc {line.build.glibc_below} or newer, which refuses its executable stack", line.build.variant)
        for line in lines
        if line.build.glibc_below
    ]
    yield from _by_reason("glibc", found, style)


def _floor(line: Line) -> str:
    if line.build.cuda is None:
        return ""
    floor = line.branch or line.floor
    return f"{floor}+" if floor is not None else "not known"
