"""Options that several commands share."""

from __future__ import annotations

from typing import Any, Callable, Optional, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def a_number(ctx: click.Context, option: click.Parameter, value: Optional[float]) -> Optional[float]:
    """A callback of options: nan is within every range."""
    if value is not None and value != value:
        raise click.BadParameter("nan is no number of seconds", ctx, option)
    return value


def machine_options(function: F) -> F:
    """Which machine is meant. The command takes the fields of `_input.Machine`."""
    for option in reversed(
        (
            click.option(
                "--from",
                "from_files",
                multiple=True,
                metavar="FILE",
                help="Judge the machine of a pasted text (-: standard input).",
            ),
            click.option(
                "--log",
                multiple=True,
                metavar="FILE",
                help="Weigh the errors that a run has left in FILE with what the machine shows.",
            ),
            click.option("--facts", "facts_file", metavar="FILE", help="Judge the facts of FILE (-: standard input)."),
            click.option("--replay", metavar="DIR", help="Judge a machine that `cudadoctor facts --record` kept."),
            click.option("--python", metavar="PATH|VERSION", help="Look at this interpreter's environment."),
            click.option(
                "--assume",
                multiple=True,
                metavar="FACT=VALUE",
                help="Judge as if FACT were VALUE (or absent, unknown).",
            ),
            click.option("--node", metavar="NAME", help="Name the machine in the report."),
            click.option(
                "--timeout",
                # A day is longer than anybody waits.
                type=click.FloatRange(min=0, min_open=True, max=86400.0),
                callback=a_number,
                metavar="SECONDS",
                help="Deadline of the whole examination [20].",
            ),
        )
    ):
        function = option(function)
    return function


def output_option(function: F) -> F:
    """`-o FILE` as `output`."""
    return click.option("-o", "--output", metavar="FILE", help="Write to FILE, all at once.")(function)


def text_options(function: F) -> F:
    """`--verbose` and `--color`."""
    for option in (
        click.option(
            "--color",
            type=click.Choice(["auto", "always", "never"]),
            default="auto",
            help="Colour the text [auto: on a terminal].",
        ),
        click.option("-v", "--verbose", is_flag=True, help="Show every check and all evidence."),
    ):
        function = option(function)
    return function
