"""Taking the steps of a plan on this machine, as far as the person agrees, and telling what became of them."""

from __future__ import annotations

import sys

import click

from cudadoctor.actions.apply import DECLINED, DONE, FAILED, WAITING, YOURS, Applied, apply
from cudadoctor.cli import EXIT_INTERRUPTED, _output
from cudadoctor.cli._fixing import EXIT_TODO
from cudadoctor.cli._input import Machine
from cudadoctor.cli._planning import Wish
from cudadoctor.cli._program import program
from cudadoctor.model import FixStep
from cudadoctor.render.plan import FixView


def may_act(machine: Machine, wish: Wish) -> bool:
    """Only this very machine is ever changed."""
    return machine.is_this_one and not wish.describes_a_machine


def is_terminal() -> bool:
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))


def act(view: FixView, machine: Machine, unasked: bool) -> int:
    """Takes the safe steps, each after a yes or `unasked`, checks the machine again, and gives the exit status."""
    if not any(step.safety == "safe" and step.argv is not None for step in view.plan.steps):
        return view.exit

    stopped = False

    def ask(step: FixStep) -> bool:
        nonlocal stopped
        if stopped:
            return False
        _output.write("\n")
        if unasked:
            _output.write(f"Taking the step: {step.title}\n")
            return True
        try:
            return click.confirm(f"{step.title}: run it now?", default=False)
        except click.Abort:  # Ctrl-C or the end of the input: what was done so far is still told
            stopped = True
            return False

    done = apply(view.plan.steps, ask)
    _output.write(_account(done, view.plan.undo))
    if stopped:
        return EXIT_INTERRUPTED
    if not done.steps(DONE, FAILED):
        return EXIT_TODO
    again, report_text = _check_again(machine)
    _output.write(report_text)
    return EXIT_TODO if done.failed is not None else again


def _account(done: Applied, undo: str) -> str:
    """What was done and what was not, in the order of the plan."""
    words = {
        DONE: "done",
        FAILED: "FAILED",
        DECLINED: "not done",
        YOURS: "yours",
        WAITING: "not done",
    }
    lines = ["", "What became of the steps:"]
    for item in done.taken:
        reason = f" ({item.reason})" if item.reason else ""
        lines.append(f"  {words[item.state]:<9} {item.step.title}{reason}")
    if done.failed is not None:
        lines.append("Nothing was undone. What was done can be taken back as each step says.")
    elif undo and done.steps(DONE):
        lines += ["To take it back:", f"   {undo}"]
    return "\n".join(lines) + "\n"


def _check_again(machine: Machine) -> tuple[int, str]:
    from cudadoctor.cli._diagnosis import view_of
    from cudadoctor.render.formats import render as render_report

    view = view_of(machine, style=_output.style())._replace(program=program())
    return view.exit, "\nChecked again:\n\n" + render_report("text", view)
