"""The policy of a check: the files of the site, those of `--policy`, `--require`, and the options beside them."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Optional

from cudadoctor.cli import _checking
from cudadoctor.cli._input import Machine, Wish
from cudadoctor.cli._words import InputError, ignored_rules
from cudadoctor.policy import Document, Entry, Policy, PolicyError, merged, read_policy, read_requirement
from cudadoctor.policy.read import MOST_BYTES
from cudadoctor.rules import rule_files, rule_name

if TYPE_CHECKING:
    from cudadoctor.model import Fact, Facts

# A file of some lines: what takes longer lies on a dead path.
_SECONDS = 5.0
# So much is left to the examination where reading the policy has taken all the time.
_LEAST_LEFT = 0.1
# Even from a fast disk torch takes longer to load.
_LEAST_SECONDS = 0.5


def with_policy(
    wish: Wish, machine: Machine, files: Sequence[str], requirements: Sequence[str], options: Sequence[Entry]
) -> tuple[Wish, Machine]:
    """How the machine is judged, and by when, as the policy has it (see `policy_of`)."""
    begun = time.monotonic()
    held = policy_of(files, requirements, options, machine.is_live, machine.timeout)
    wish = wish._replace(
        # What this run was told to ask for is judged in any case.
        select=(*wish.select, *held.judging((*files, "--require"))) if wish.select else (),
        fail_on=held.value("check.fail_on", wish.fail_on),
        unknown_ok=held.value("check.unknown_ok", False),
        retry_code=held.value("check.retry_code"),
        blame=held.value("check.blame", ()),
        policy=held,
    )
    timeout = held.value("check.timeout")
    if timeout is not None:
        machine = machine._replace(timeout=max(timeout - (time.monotonic() - begun), _LEAST_LEFT))
    return wish, machine


def policy_of(
    files: Sequence[str], requirements: Sequence[str], options: Sequence[Entry], live: bool, timeout: Optional[float]
) -> Policy:
    """What holds, or InputError: the site's file, the one that the variable names (both only for a `live` machine),
    `--policy` in order, `--require`, and the `options` of the command line that a policy can set as well."""
    until = time.monotonic() + min(_SECONDS, timeout or _SECONDS)
    named = os.environ.get(_checking.SITE_VARIABLE)
    site = [_checking.SITE_FILE] if live and os.path.exists(_checking.SITE_FILE) else []
    paths = [*site, *([named] if live and named else [])]
    rules = {rule: rule_name(rule) for rule in rule_files()}
    try:
        documents = [
            read_policy(_text(path, until, path == named and path not in files), path, rules)
            for path in (*paths, *files)
        ]
        required = tuple(read_requirement(text, rules) for text in requirements)
    except PolicyError as error:
        raise InputError(str(error)) from None
    for name, entries in (("--require", required), ("other options", tuple(options))):
        documents += [Document(name, entries)] if entries else []
    return merged(documents)


def _text(path: str, until: float, by_variable: bool = False) -> str:
    from cudadoctor.system.bounded import is_ours, read_file, read_stream

    try:
        if is_ours(path):  # a shell's <(...)
            descriptor = os.open(path, os.O_RDONLY)
            try:
                data = read_stream(descriptor, MOST_BYTES + 1, until)
            finally:
                os.close(descriptor)
        else:
            data = read_file(path, MOST_BYTES + 1, until)
    except OSError as error:
        whose = f", which {_checking.SITE_VARIABLE} names" if by_variable else ""
        raise InputError(f"cannot read the policy {path!r}{whose}: {error.strerror or error}") from None
    if len(data) > MOST_BYTES:
        raise InputError(f"{path!r} is larger than {MOST_BYTES >> 20} MiB, which no policy is")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise InputError(f"{path}:{line}: not text; expected TOML in UTF-8") from None


def options_of(
    fail_on: Optional[str],
    unknown_ok: bool,
    retry_code: Optional[int],
    blame: Sequence[str],
    timeout: Optional[float],
    ignore: Sequence[str],
) -> list[Entry]:
    """The options that were given, as settings: they win over every file."""
    who = [part.strip() for word in blame for part in word.split(",")]
    given: list[tuple[str, Any, str]] = [
        ("check.fail_on", fail_on, "--fail-on"),
        ("check.timeout", timeout, "--timeout"),
        ("check.unknown_ok", unknown_ok or None, "--unknown-ok"),
        ("check.retry_code", retry_code, "--retry-code"),
        ("check.blame", who or None, "--blame"),
    ]
    entries = [Entry(name, value, option) for name, value, option in given if value is not None]
    entries += [Entry(f"ignore.{rule}", reason, "--ignore") for rule, reason in ignored_rules(ignore).items()]
    return entries


def explained(policy: Policy, form: str, output: Optional[str], color: str) -> None:
    """Writes what holds."""
    from cudadoctor.cli import _output
    from cudadoctor.render.policy import policy_json, policy_text

    if form not in ("text", "json"):
        raise InputError(f"--explain-policy prints text or json, not {form}")
    style = _output.style(color, to_file=output not in (None, "-"))
    _output.write(policy_json(policy) if form == "json" else policy_text(policy, style), output)


def proved(policy: Policy, facts: Facts, seconds: Optional[float]) -> dict[str, Fact[Any]]:
    """What `cudadoctor verify` finds of the checks that a policy asks for, as facts; empty where it asks for none.

    `seconds`: what is left of the whole run; None where nobody set a deadline for it.
    """
    from cudadoctor.model import ParseError, known, unknown
    from cudadoctor.verify.plan import SECONDS

    checks = policy.value("verify.checks")
    if not checks:
        return {}
    limit = policy.value("verify.timeout", SECONDS)
    # One process for all GPUs and one for each, one after the other: together they keep within what is left.
    left = limit if seconds is None else min(limit, seconds / (1 + max(facts.value("gpu.count", 1), 1)))
    source = "cudadoctor verify"
    python = facts.value("python.executable")
    if left < _LEAST_SECONDS:
        return {"verify.results": unknown("there was no time left", source)}
    if not python:
        return {"verify.results": unknown("no Python was found", source)}
    from cudadoctor.actions.verify import run

    try:
        return {"verify.results": known(run(str(python), checks, (), left, facts), source)}
    except (ParseError, OSError) as error:
        return {"verify.results": unknown(str(error), source)}
