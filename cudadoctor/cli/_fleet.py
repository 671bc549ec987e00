"""`fleet` from its options to its exit status."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional

from cudadoctor import __version__
from cudadoctor.cli import _output
from cudadoctor.cli._fleet_input import ENDINGS, read_snapshots
from cudadoctor.cli._program import program
from cudadoctor.cli._words import InputError
from cudadoctor.fleet.hostlist import NoLibrary, expand, is_name
from cudadoctor.fleet.judging import Judge
from cudadoctor.fleet.merge import Asked, merge
from cudadoctor.fleet.model import FleetReport, Unreadable
from cudadoctor.fleet.snapshot import Reader
from cudadoctor.matrix import MatrixError, load_matrix
from cudadoctor.model import ParseError
from cudadoctor.render.fleet_view import FleetView, render


def fleet(
    paths: Sequence[str],
    form: str,
    expect: Sequence[str],
    fail_on: str,
    unknown_ok: bool,
    retry_code: Optional[int],
    output: Optional[str],
    color: str,
    verbose: bool,
) -> int:
    """Reads the snapshots, writes the report, gives the exit status."""
    if not paths:
        raise InputError("which snapshots? Name files or folders, or - for standard input")
    asked = Asked(_expected(expect), fail_on, retry_code)
    try:
        matrix = load_matrix()
        reader = Reader(Judge(matrix, fail_on, unknown_ok), __version__)
        report = merge(read_snapshots(paths, reader), matrix, asked)
    except MatrixError as error:
        raise InputError(str(error)) from None
    if not report.nodes:
        _nothing_read(report, paths)
    strange = [name for name in report.bad if not is_name(name)]
    if form == "bad-nodes" and strange:
        _output.write_error(f"cudadoctor: left out, as no scheduler takes such names: {', '.join(strange)}")
    style = _output.style(color, verbose, to_file=output not in (None, "-"))
    _output.write(render(FleetView(report, form, style, __version__, program())), output)
    return report.exit


def _expected(lists: Sequence[str]) -> Optional[list[str]]:
    """The nodes of all `--expect`, None where there is none."""
    if not lists:
        return None
    names: list[str] = []
    for text in lists:
        try:
            names += expand(text)
        except NoLibrary as error:
            raise InputError(
                f"--expect: {error}: python -m pip install ClusterShell brings it; names without brackets, as "
                "`scontrol show hostnames` prints them, need nothing"
            ) from None
        except ParseError as error:
            raise InputError(f"--expect {text!r}: {error}") from None
    return list(dict.fromkeys(names))


def _nothing_read(report: FleetReport, paths: Sequence[str]) -> None:
    """Nothing to report on is a mistake of the call; where nodes are expected, it is that all of them are missing."""
    if report.unreadable:
        first: Unreadable = report.unreadable[0]
        more = f" (and {len(report.unreadable) - 1} more such)" if len(report.unreadable) > 1 else ""
        raise InputError(f"no snapshot can be read: {first.place}: {first.reason}{more}")
    if report.expected is None:
        raise InputError(
            f"there are no snapshots in {', '.join(map(repr, paths[:3]))}: expected files that end in "
            f"{', '.join(ENDINGS)}, as `{program()} check --format json-line -o NODE.json` writes them"
        )
