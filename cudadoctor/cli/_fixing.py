"""`fix` from its options to what is shown and what is done."""

from __future__ import annotations

import sys
from typing import Callable, Optional

from cudadoctor.cli import _output
from cudadoctor.cli._input import Machine, read_facts
from cudadoctor.cli._planning import Wish, options_of, planned_machine
from cudadoctor.cli._program import program
from cudadoctor.cli._words import InputError
from cudadoctor.diagnose import diagnose
from cudadoctor.matrix import Matrix, load_matrix
from cudadoctor.model import CRASH, ERROR, INFO, POSSIBLE, WARNING
from cudadoctor.model.report import Report
from cudadoctor.plan import Options, Plan, make_plan, plan_for, recipe_for, torch_for
from cudadoctor.plan.in_vain import in_vain
from cudadoctor.render.plan import FAIL, MISSING, NOT_CONFIRMED, OK, TODO, Asked, FixView, render
from cudadoctor.render.plan import UNDECIDED as NOT_DECIDED
from cudadoctor.render.sentences import hedged, ok_sentence, undecided_links
from cudadoctor.render.style import Style
from cudadoctor.render.view import View
from cudadoctor.resolve import Need, Resolution
from cudadoctor.resolve.need import NONE
from cudadoctor.resolve.without_gpu import ARM, are_on_arm

EXIT_DONE = 0
EXIT_TODO = 1
EXIT_UNUSABLE = 2
EXIT_UNDECIDED = 3


def planned(wish: Wish, style: Style) -> FixView:
    """The plan for a machine that the options describe. Its exit status says whether a build was found."""
    matrix = load_matrix()
    options = options_of(wish, matrix)
    need, facts = planned_machine(wish, matrix)
    if not wish.gpus and wish.driver is None:
        raise InputError("which GPU is the plan for? Name it with --gpu, for example --gpu 'RTX 4090' (or --gpu none)")
    plan, options, asked = _settled(lambda options: plan_for(need, facts, matrix, options), options, matrix, wish)
    found = plan.resolution
    assert found is not None
    word, verdict, status = _as_asked(_verdict_on(plan, found, need), asked)
    return FixView(
        word,
        verdict,
        plan,
        found,
        status,
        not_helping=in_vain(plan.need or need, found, matrix),
        notes=(*_taken_as_arm(wish, need, matrix), *_too_short(need, matrix), *_own_python(need, found)),
        mirror=options.mirror,
        style=style,
        recipe=recipe_for(plan, facts, matrix, options),
        asked=asked,
    )


def _settled(
    make: Callable[[Options], Plan], options: Options, matrix: Matrix, wish: Wish
) -> tuple[Plan, Options, Optional[Asked]]:
    """The plan; with --online as the index has it."""
    plan = make(options)
    if not wish.online:
        return plan, options, None
    from cudadoctor.cli._online import settle

    return settle(plan, make, options, matrix)


def _as_asked(verdict: tuple[str, str, int], asked: Optional[Asked]) -> tuple[str, str, int]:
    """The verdict in the light of what the index said: a build that it does not have is no answer."""
    word, text, status = verdict
    if asked is None or word not in (OK, TODO):
        return verdict
    if asked.state == MISSING:
        return NOT_DECIDED, f"undecided: {asked.words} (a wrong or a filtered mirror?)", EXIT_UNDECIDED
    if asked.state == NOT_CONFIRMED:
        return word, f"not confirmed: {text}", status
    return verdict


def _taken_as_arm(wish: Wish, need: Need, matrix: Matrix) -> tuple[str, ...]:
    if wish.arch is not None or not need.platform.endswith(ARM) or not are_on_arm(need.gpus, matrix):
        return ()
    return (f"{need.gpus[0].label} has an ARM processor beside it: this is for --arch {ARM}",)


def _too_short(need: Need, matrix: Matrix) -> tuple[str, ...]:
    """A driver number of which the part that was named does not say on which side of a CUDA's floor it is."""
    if need.driver is None or "." not in need.driver:
        return ()
    for row in matrix.floors():
        verdict = matrix.driver_serves(need.driver, need.numbering, str(row.cuda))
        if verdict.answer == "unknown" and verdict.needed is not None and verdict.needed.startswith(f"{need.driver}."):
            line = (
                f"{need.driver} is too short: name the whole number; {verdict.needed} or newer serves CUDA {row.cuda}"
            )
            return (line,)
    return ()


def _own_python(need: Need, found: Resolution) -> tuple[str, ...]:
    """Who plans on the machine itself seldom thinks of its Python."""
    own = f"{sys.version_info[0]}.{sys.version_info[1]}"
    if need.python is not None or found.choice is None or own in found.choice.pythons:
        return ()
    return (f"there is no such wheel for Python {own}, which runs cudadoctor: add --python {own} to plan for it",)


def _verdict_on(plan: Plan, found: Resolution, need: Need) -> tuple[str, str, int]:
    on = _cards(need) or "a machine without an NVIDIA GPU"
    if not need.gpus and need.driver is not None and need.gpu_state != NONE:
        on = f"any GPU on driver {need.driver}"
    elif need.driver is not None and need.gpus:
        on += f" with driver {need.driver}"
    if need.python is not None:
        on += f", Python {need.python_tag}"
    if found.undecided is not None:
        return NOT_DECIDED, f"undecided: {found.undecided}", EXIT_UNDECIDED
    first = f"; the driver first: {found.driver_first}" if found.driver_first is not None else ""
    if found.clash is not None:
        none = f"no single torch build serves {on}, and " if found.choice is None and found.split else ""
        return FAIL, f"{none}{found.clash}{first}", EXIT_TODO
    if found.choice is None:
        if found.split:
            return FAIL, f"no single torch build serves {on}: one environment for each{first}", EXIT_TODO
        opened = next((step for step in plan.steps if step.id == "install-torch"), None)
        if opened is not None and found.blocked_by:
            version = opened.effect["torch.version"]
            change = next((b.change for b in found.blocked_by if b.opens.version == version), "the steps below")
            return TODO, f"torch {version} for {on}, with {change}: {'; '.join(found.reasons)}", EXIT_TODO
        return FAIL, f"no torch build that is known serves {on}: {'; '.join(found.reasons)}", EXIT_TODO
    torch = f"torch {found.choice.version}"
    installs = next((step for step in plan.steps if step.id == "install-torch"), None)
    if installs is not None and "conda-forge" in (installs.argv or ()):
        torch = f"conda-forge's torch {installs.effect['torch.version']}"
    if found.driver_first is not None:
        return TODO, f"the driver first: {found.driver_first}; then {torch}", EXIT_TODO
    return OK, f"{torch} for {on}", EXIT_DONE


def _cards(need: Need) -> str:
    """ "8x A100", "RTX 5090 + GTX 1080 Ti"."""
    labels = [gpu.label for gpu in need.gpus]
    counts = {label: labels.count(label) for label in labels}
    return " + ".join(f"{count}x {label}" if count > 1 else label for label, count in counts.items())


def examined(machine: Machine, wish: Wish, style: Style) -> FixView:
    """The plan for the machine that the options name: this one, a recorded one, or the facts of a file."""
    matrix = load_matrix()
    options = options_of(wish, matrix)
    facts = read_facts(machine)
    report = diagnose(facts, matrix)
    plan, options, asked = _settled(lambda options: make_plan(report, matrix, options), options, matrix, wish)
    found = plan.resolution or torch_for(facts, matrix, options)
    word, verdict, status = _as_asked(_verdict(report, plan, options, found), asked)
    return FixView(
        word,
        verdict,
        plan,
        found,
        status,
        not_helping=_not_helping(report, plan, matrix),
        explain=report.root_causes if plan.steps else (),
        mirror=options.mirror,
        may_act=machine.is_this_one,
        style=style,
        recipe=recipe_for(plan, facts, matrix, options),
        asked=asked,
    )


def _not_helping(report: Report, plan: Plan, matrix: Matrix) -> tuple[str, ...]:
    """What people would try against the findings, and what they would try to get another torch; each thing once."""
    wrong = [o for o in report.outcomes if o.failed and o.because_of is None and o.severity != INFO]
    lines = [text for outcome in wrong for text in outcome.not_helping]
    if plan.resolution is not None and plan.need is not None:
        said = {line.partition(":")[0] for line in lines}
        lines += [line for line in in_vain(plan.need, plan.resolution, matrix) if line.partition(":")[0] not in said]
    return tuple(dict.fromkeys(lines))


def _verdict(report: Report, plan: Plan, options: Options, found: Resolution) -> tuple[str, str, int]:
    number = len(plan.steps)
    if number and plan.steps[0].id == "make-room":
        return TODO, f"{number} steps: {plan.steps[0].title[:1].lower()}{plan.steps[0].title[1:]}", EXIT_TODO
    if number:
        steps = "1 step" if number == 1 else f"{number} steps"
        mends = {rule for step in plan.steps for rule in step.mends}
        roots = [o for o in map(report.outcome, report.root_causes) if o is not None]
        mended = next((o for o in roots if o.rule in mends), None) or next(
            (o for o in report.outcomes if o.failed and o.rule in mends), None
        )
        first = plan.steps[0].title
        text = f"{steps}: {hedged(mended) if mended is not None else first[:1].lower() + first[1:]}"
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


def show(form: str, view: FixView, output: Optional[str]) -> None:
    _output.write(render(form, view._replace(program=program())), output)
