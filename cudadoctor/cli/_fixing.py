"""`fix` from its options to what is shown and what is done."""

from __future__ import annotations

import sys
from typing import Optional

import click

from cudadoctor.actions.apply import DECLINED, DONE, FAILED, WAITING, YOURS, Applied, apply
from cudadoctor.cli import EXIT_INTERRUPTED, _output
from cudadoctor.cli._input import Machine, read_facts
from cudadoctor.cli._planning import Wish, options_of, planned_machine
from cudadoctor.cli._program import program
from cudadoctor.cli._words import InputError
from cudadoctor.diagnose import diagnose
from cudadoctor.matrix import load_matrix
from cudadoctor.model import CRASH, ERROR, INFO, POSSIBLE, WARNING, FixStep
from cudadoctor.model.report import Report
from cudadoctor.plan import Options, Plan, make_plan, plan_for, torch_for
from cudadoctor.render.plan import FAIL, OK, TODO, FixView, render
from cudadoctor.render.plan import UNDECIDED as NOT_DECIDED
from cudadoctor.render.sentences import hedged, ok_sentence, undecided_links
from cudadoctor.render.style import Style
from cudadoctor.render.view import View
from cudadoctor.resolve import Need, Resolution

EXIT_DONE = 0
EXIT_TODO = 1
EXIT_UNUSABLE = 2
EXIT_UNDECIDED = 3


def planned(wish: Wish, style: Style) -> FixView:
    """The plan for a machine that the options describe. Its exit status says whether a build was found."""
    matrix = load_matrix()
    options = options_of(wish, matrix)
    need, facts = planned_machine(wish, matrix)
    if not wish.gpus:
        raise InputError("which GPU is the plan for? Name it with --gpu, for example --gpu 'RTX 4090' (or --gpu none)")
    plan = plan_for(need, facts, matrix, options)
    found = plan.resolution
    assert found is not None
    word, verdict, status = _verdict_on(found, need)
    notes = _own_python(need, found)
    return FixView(word, verdict, plan, found, status, notes=notes, mirror=options.mirror, style=style)


def _own_python(need: Need, found: Resolution) -> tuple[str, ...]:
    """Who plans on the machine itself seldom thinks of its Python."""
    own = f"{sys.version_info[0]}.{sys.version_info[1]}"
    if need.python is not None or found.choice is None or own in found.choice.pythons:
        return ()
    return (f"there is no such wheel for Python {own}, which runs cudadoctor: add --python {own} to plan for it",)


def _verdict_on(found: Resolution, need: Need) -> tuple[str, str, int]:
    cards = " + ".join(dict.fromkeys(gpu.label for gpu in need.gpus)) or "a machine without an NVIDIA GPU"
    on = cards
    if need.driver is not None and need.gpus:
        on += f" with driver {need.driver}"
    if need.python is not None:
        on += f", Python {need.python_tag}"
    if found.undecided is not None:
        return NOT_DECIDED, f"undecided: {found.undecided}", EXIT_UNDECIDED
    if found.choice is None:
        if found.split:
            return FAIL, f"no single torch build serves {on}: one environment for each", EXIT_TODO
        return FAIL, f"no torch build that is known serves {on}: {'; '.join(found.reasons)}", EXIT_TODO
    if found.driver_first is not None:
        return TODO, f"the driver first: {found.driver_first}; then torch {found.choice.version}", EXIT_DONE
    return OK, f"torch {found.choice.version} for {on}", EXIT_DONE


def examined(machine: Machine, wish: Wish, style: Style) -> FixView:
    """The plan for the machine that the options name: this one, a recorded one, or the facts of a file."""
    matrix = load_matrix()
    options = options_of(wish, matrix)
    facts = read_facts(machine)
    report = diagnose(facts, matrix)
    plan = make_plan(report, matrix, options)
    found = plan.resolution or torch_for(facts, matrix, options)
    word, verdict, status = _verdict(report, plan, options, found)
    wrong = [o for o in report.outcomes if o.failed and o.because_of is None and o.severity != INFO]
    helpless = [text for outcome in wrong for text in outcome.not_helping]
    return FixView(
        word,
        verdict,
        plan,
        found,
        status,
        not_helping=tuple(dict.fromkeys(helpless)),
        explain=report.root_causes if plan.steps else (),
        mirror=options.mirror,
        may_act=machine.is_this_one,
        style=style,
    )


def _verdict(report: Report, plan: Plan, options: Options, found: Resolution) -> tuple[str, str, int]:
    number = len(plan.steps)
    if number:
        steps = "1 step" if number == 1 else f"{number} steps"
        mends = {rule for step in plan.steps for rule in step.mends}
        roots = [o for o in map(report.outcome, report.root_causes) if o is not None]
        mended = next((o for o in roots if o.rule in mends), None) or next(
            (o for o in report.outcomes if o.failed and o.rule in mends), None
        )
        text = f"{steps}: {hedged(mended) if mended is not None else plan.steps[-1].title}"
        if roots and roots[0].rule not in mends and roots[0].severity == ERROR:
            # The plan is for lesser things: what it does not mend must not look mended.
            return FAIL, f"no step mends this: {hedged(roots[0])} ({steps} for the rest)", EXIT_TODO
        return TODO, text, EXIT_TODO
    unmended = [o for o in report.outcomes if o.failed and o.severity == ERROR and o.because_of is None]
    if unmended:
        return FAIL, f"nothing that cudadoctor knows mends this: {hedged(unmended[0])}", EXIT_TODO
    crashed = [o for o in report.outcomes if o.status == CRASH]
    if crashed:
        return "BUG", crashed[0].message, EXIT_UNUSABLE
    undecided = undecided_links(report)
    if undecided:
        return NOT_DECIDED, f"undecided: {undecided[0].message}", EXIT_UNDECIDED
    if found.choice is None and (options.torch or options.companions or options.partners):
        return FAIL, f"no torch build that is known serves this wish: {'; '.join(found.reasons)}", EXIT_TODO
    warned = [o for o in report.outcomes if o.failed and o.severity == WARNING and o.because_of is None]
    noted = [o for o in warned if o.certainty != POSSIBLE]
    if noted:
        return OK, f"nothing that a step mends: {noted[0].message}", EXIT_DONE
    return OK, f"nothing to do: {ok_sentence(View(report=report, exit=0))}", EXIT_DONE


# -- doing ----------------------------------------------------------------------------------------------------------


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
    _output.write(_account(done))
    if stopped:
        return EXIT_INTERRUPTED
    if not done.steps(DONE, FAILED):
        return EXIT_TODO
    again, report_text = _check_again(machine)
    _output.write(report_text)
    return EXIT_TODO if done.failed is not None else again


def _account(done: Applied) -> str:
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
    return "\n".join(lines) + "\n"


def _check_again(machine: Machine) -> tuple[int, str]:
    from cudadoctor.cli._diagnosis import view_of
    from cudadoctor.render.formats import render as render_report

    view = view_of(machine, style=_output.style())._replace(program=program())
    return view.exit, "\nChecked again:\n\n" + render_report("text", view)


def show(form: str, view: FixView, output: Optional[str]) -> None:
    _output.write(render(form, view._replace(program=program())), output)
