"""`check` from its options to its exit status."""

from __future__ import annotations

from typing import Any, Optional

from cudadoctor.cli._input import Machine, begin_reading


def check(
    form: str,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    fail_on: str,
    unknown_ok: bool,
    retry_code: Optional[int],
    output: Optional[str],
    color: str,
    verbose: bool,
    **machine: Any,
) -> int:
    """Examines the machine that the options mean (see `_input.Machine`), writes the report, gives the exit status."""
    chosen = Machine(**machine)
    reading = begin_reading(chosen)
    # Whatever judges and prints is loaded while the machine is being looked at.
    from cudadoctor.cli import _diagnosis

    reading.advance()
    from cudadoctor.cli import _output, _private
    from cudadoctor.cli._program import program
    from cudadoctor.render.formats import load, render

    reading.advance()
    if chosen.is_live:
        _private.load()
    load(form)
    style = _output.style(color, verbose, to_file=output not in (None, "-"))
    view = _diagnosis.view_of(chosen, select, ignore, fail_on, unknown_ok, retry_code, style, reading)
    view = view._replace(program=program())
    if chosen.is_live:
        view = _private.private(view)
    _output.write(render(form, view), output)
    return view.exit
