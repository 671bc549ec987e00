"""`check` from its options to its exit status."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any, Optional

from cudadoctor.cli._input import Machine, begin_reading
from cudadoctor.cli._words import InputError

if TYPE_CHECKING:
    from cudadoctor.policy import Policy

# The administrator's policy; CUDADOCTOR_POLICY names another one. A check without either pays a stat for it.
SITE_FILE = "/etc/cudadoctor/policy.toml"
SITE_VARIABLE = "CUDADOCTOR_POLICY"

# So much is left to the examination where reading the policy has taken all the time.
_LEAST_SECONDS = 0.1


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
    others = [_also(text) for text in also]
    files = [path for _, path in others] + ([output] if output else [])
    twice = next((path for place, path in enumerate(files) if path in files[:place]), None)
    if twice is not None:
        raise InputError(f"--also and -o name {twice!r} more than once")
    held: Optional[Policy] = None
    if policy or require or explain_policy or (chosen.is_live and _site_asks()):
        from cudadoctor.cli import _policy

        begun = time.monotonic()
        given = _policy.options_of(fail_on, unknown_ok, retry_code, blame, chosen.timeout, ignore)
        held = _policy.policy_of(policy, require, given, chosen.is_live, chosen.timeout)
        if explain_policy:
            _policy.explained(held, form, output, color)
            return 0
        if select:  # what this run was told to ask for is judged in any case
            select = (*select, *held.judging((*policy, "--require")))
        fail_on, unknown_ok = held.value("check.fail_on"), held.value("check.unknown_ok", False)
        retry_code, blame = held.value("check.retry_code"), tuple(held.value("check.blame", ()))
        timeout = held.value("check.timeout")
        if timeout is not None:
            chosen = chosen._replace(timeout=max(timeout - (time.monotonic() - begun), _LEAST_SECONDS))
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
    view = _diagnosis.view_of(
        chosen, select, ignore, fail_on or "error", unknown_ok, retry_code, blame, style, reading, held
    )
    view = view._replace(program=reading.program())
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
