"""`check` from its options to its exit status."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Optional

from cudadoctor.cli._input import Machine, Wish, begin_reading
from cudadoctor.cli._words import InputError

# The administrator's policy; CUDADOCTOR_POLICY names another one. A check without either pays a stat for it.
SITE_FILE = "/etc/cudadoctor/policy.toml"
SITE_VARIABLE = "CUDADOCTOR_POLICY"


def check(
    form: str,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    fail_on: Optional[str],
    unknown_ok: bool,
    retry_code: Optional[int],
    blame: tuple[str, ...],
    also: tuple[str, ...],
    policy: tuple[str, ...],
    require: tuple[str, ...],
    explain_policy: bool,
    output: Optional[str],
    color: str,
    verbose: bool,
    **machine: Any,
) -> int:
    """Examines the machine that the options mean (see `_input.Machine`), writes the report, gives the exit status."""
    chosen = Machine(**machine)
    wish = Wish(select, ignore, fail_on or "error", unknown_ok, retry_code, blame)
    others = _others(also, output)
    if policy or require or explain_policy or (chosen.is_live and _site_asks()):
        from cudadoctor.cli import _policy

        given = _policy.options_of(fail_on, unknown_ok, retry_code, blame, chosen.timeout, ignore)
        if explain_policy:
            held = _policy.policy_of(policy, require, given, chosen.is_live, chosen.timeout)
            _policy.explained(held, form, output, color)
            return 0
        wish, chosen = _policy.with_policy(wish, chosen, policy, require, given)
    reading = begin_reading(chosen)
    # Whatever judges and prints is loaded while the machine is being looked at.
    from cudadoctor.cli import _diagnosis

    reading.advance()
    from cudadoctor.cli import _output, _private
    from cudadoctor.render.formats import exit_status, load, render

    reading.advance()
    if chosen.is_live:
        _private.load()
    load(form)
    style = _output.style(color, verbose, to_file=output not in (None, "-"))
    view = _diagnosis.view_of(chosen, wish, style, reading)._replace(program=reading.program())
    if chosen.is_live:
        view = _private.private(view)
    plain = view._replace(style=_output.style("never", verbose, to_file=True))
    unwritten: Optional[InputError] = None
    for name, path in others:
        try:
            _output.write(render(name, plain), path, reading.until)
        except InputError as error:
            unwritten = unwritten or error
    # A verdict is not lost because a copy of it is. (A plugin's first line and its exit status have to agree.)
    if unwritten is None or form != "nagios":
        _output.write(render(form, view), output, reading.until)
    if unwritten is not None:
        raise unwritten
    return exit_status(form, view)


def _site_asks() -> bool:
    """Whether there is a policy of the site. /etc is no network path, or nothing on the machine works."""
    return bool(os.environ.get(SITE_VARIABLE)) or os.path.exists(SITE_FILE)


def _others(also: Sequence[str], output: Optional[str]) -> list[tuple[str, str]]:
    """Formats and files of `--also`, none of them twice."""
    others = [_also(text) for text in also]
    files = [path for _, path in others] + ([output] if output else [])
    twice = next((path for place, path in enumerate(files) if path in files[:place]), None)
    if twice is not None:
        raise InputError(f"--also and -o name {twice!r} more than once")
    return others


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
