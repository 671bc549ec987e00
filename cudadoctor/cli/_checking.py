"""`check` from its options to its exit status."""

from __future__ import annotations

from typing import Any, Optional

from cudadoctor.cli._input import Machine, begin_reading
from cudadoctor.cli._words import InputError


def check(
    form: str,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    fail_on: str,
    unknown_ok: bool,
    retry_code: Optional[int],
    blame: tuple[str, ...],
    also: tuple[str, ...],
    output: Optional[str],
    color: str,
    verbose: bool,
    **machine: Any,
) -> int:
    """Examines the machine that the options mean (see `_input.Machine`), writes the report, gives the exit status."""
    chosen = Machine(**machine)
    others = [_also(text) for text in also]
    reading = begin_reading(chosen)
    # Whatever judges and prints is loaded while the machine is being looked at.
    from cudadoctor.cli import _diagnosis

    reading.advance()
    from cudadoctor.cli import _output, _private
    from cudadoctor.cli._program import program
    from cudadoctor.render.formats import exit_status, load, render

    reading.advance()
    if chosen.is_live:
        _private.load()
    load(form)
    style = _output.style(color, verbose, to_file=output not in (None, "-"))
    view = _diagnosis.view_of(chosen, select, ignore, fail_on, unknown_ok, retry_code, blame, style, reading)
    view = view._replace(program=program())
    if chosen.is_live:
        view = _private.private(view)
    plain = view._replace(style=_output.style("never", verbose, to_file=True))
    for name, path in others:
        _output.write(render(name, plain), path)
    _output.write(render(form, view), output)
    return exit_status(form, view)


def _also(text: str) -> tuple[str, str]:
    """Format and file of an `--also`."""
    from cudadoctor.cli._words import no_such, pair
    from cudadoctor.render.formats import FORMATS

    name, path = pair("--also", text, "FORMAT=FILE")
    if name not in FORMATS:
        raise InputError(f"--also: {no_such('format', name, list(FORMATS))}")
    if path == "-":
        raise InputError("--also writes a file; what goes to standard output is --format")
    return name, path
