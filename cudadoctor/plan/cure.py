"""How a plan is made: every finding's remedies spelled out, merged, and put in order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Optional

from cudadoctor.matrix import Matrix
from cudadoctor.model import INFO, POSSIBLE, WARNING, Facts, FixStep, Outcome, ParseError, Remedy
from cudadoctor.model.report import Report
from cudadoctor.parse.versions import split_local
from cudadoctor.plan.context import Context
from cudadoctor.plan.draft import BY_HAND, CAREFUL, DRIVER, JOB, KERNEL, PACKAGES, REBOOT, SAFE, SETTING, Draft, draft
from cudadoctor.plan.plan import Options, Plan, wished
from cudadoctor.plan.remedies import spell_out
from cudadoctor.plan.remedies.driver import in_words, update_driver
from cudadoctor.plan.remedies.torch import install_torch, install_wished
from cudadoctor.plan.remedies.undo import before
from cudadoctor.plan.totals import whole_download, whole_undo
from cudadoctor.resolve import Need, Resolution

_PHASE_OF_KIND = {
    "install": PACKAGES,
    "driver": DRIVER,
    "kernel": KERNEL,
    "reboot": REBOOT,
    "setting": SETTING,
    "container": JOB,
    "job": JOB,
    "manual": BY_HAND,
}


def cure(report: Report, matrix: Matrix, options: Options, strict: bool) -> Plan:
    """See `make_plan`."""
    findings = _findings(report)
    kinds = [fix.kind for outcome in findings for fix in outcome.fixes if isinstance(fix, Remedy)]
    context = Context(report.facts, matrix, options, kinds)
    steps: list[Draft] = []
    advice: list[Draft] = []
    # Which Python it will be decides which torch: what makes the environment is spelled out first.
    for outcome in sorted(findings, key=lambda o: not any(_is(fix, "use-python") for fix in o.fixes)):
        drafts = [step for fix in outcome.fixes for step in _spelled_out(fix, outcome, context, strict)]
        (advice if _is_advice(outcome) else steps).extend(drafts)
    if wished(options) and not any(step.step.id == "install-torch" for step in steps) and not _has(context):
        steps.extend(install_wished(context))
    ordered = arrange(steps, findings)
    doing = {(step.argv, step.title) for step in ordered}
    tips = tuple(tip for tip in arrange(advice, findings) if (tip.argv, tip.title) not in doing)
    installs = wished(options) or any(_is(fix, "install-torch") for outcome in findings for fix in outcome.fixes)
    return _plan(context, ordered, tips, context.resolved() if installs else None)


def _plan(
    context: Context, steps: tuple[FixStep, ...], advice: tuple[FixStep, ...], resolution: Optional[Resolution]
) -> Plan:
    choice = resolution.choice if resolution is not None else None
    installs = any(step.id == "install-torch" for step in steps)
    return Plan(
        steps,
        advice,
        resolution,
        context.shell,
        context.need(),
        before(context, choice) if choice is not None and installs else {},
        whole_undo(steps, context.shell),
        whole_download(steps),
        _driver_words(context, steps, resolution),
    )


def _driver_words(context: Context, steps: Sequence[FixStep], resolution: Optional[Resolution]) -> tuple[str, ...]:
    """Where a newer driver would open something, or none is known yet; not where a step installs one."""
    if resolution is None or resolution.drivers is None or any(step.kind == "driver" for step in steps):
        return ()
    is_asked = context.present.driver is None or any("driver" in blocker.by for blocker in resolution.blocked_by)
    return in_words(context, resolution.drivers) if is_asked else ()


def _has(context: Context) -> bool:
    """Whether the environment holds all that the person asks for."""
    found = context.resolved()
    if not found.nothing_to_do or found.choice is None or found.choice.partners or found.frameworks:
        return False
    here = {name: context.facts.value(f"package.{name}.version") for name, _ in found.choice.companions}
    return all(
        isinstance(have := here[name], str) and split_local(have).public == split_local(version).public
        for name, version in found.choice.companions
    )


def cure_planned(wanted: Need, facts: Facts, matrix: Matrix, options: Options) -> Plan:
    """See `plan_for`."""
    context = Context(facts, matrix, options, planned=wanted)
    resolution = context.resolved()
    steps = list(install_torch(context))
    if resolution.driver_first is not None and resolution.choice is not None and resolution.choice.cuda is not None:
        major = int(resolution.choice.cuda.partition(".")[0])
        steps.extend(update_driver(context, minimum_cuda_major=major))
    return _plan(context, arrange(steps), (), resolution)


def _is_advice(outcome: Outcome) -> bool:
    """A hint, or a warning that may be none: nothing is broken without it."""
    return outcome.severity == INFO or (outcome.severity == WARNING and outcome.certainty == POSSIBLE)


def _is(fix: object, kind: str) -> bool:
    return isinstance(fix, Remedy) and fix.kind == kind


def _findings(report: Report) -> list[Outcome]:
    """Failing outcomes that follow from nothing else, the root causes first."""
    failing = [outcome for outcome in report.outcomes if outcome.failed and outcome.because_of is None]
    place = {rule: number for number, rule in enumerate(report.root_causes)}
    return sorted(failing, key=lambda outcome: place.get(outcome.rule, len(place)))


def _spelled_out(fix: object, outcome: Outcome, context: Context, strict: bool) -> list[Draft]:
    if isinstance(fix, FixStep):
        drafts = [Draft(fix, _PHASE_OF_KIND.get(fix.kind, BY_HAND))]
    else:
        assert isinstance(fix, Remedy)
        try:
            drafts = spell_out(fix.kind, context, fix.parameters)
        except ParseError as error:
            text = f"{error}. Do by hand what {outcome.rule} asks for: {outcome.message}."
            drafts = [
                draft(
                    BY_HAND,
                    f"by-hand-{outcome.rule.lower()}",
                    f"Mend {outcome.rule} by hand",
                    "manual",
                    instructions=text,
                )
            ]
        except (KeyError, TypeError):
            if strict:
                raise
            text = f"{outcome.message}. `cudadoctor explain {outcome.rule}` says what mends it."
            drafts = [
                draft(
                    BY_HAND,
                    f"by-hand-{outcome.rule.lower()}",
                    f"Mend {outcome.rule} by hand",
                    "manual",
                    instructions=text,
                )
            ]
    return [_owned(step, outcome) for step in drafts]


def _owned(step: Draft, outcome: Outcome) -> Draft:
    inner = step.step
    # What is only possible is not acted on by itself.
    safety = CAREFUL if outcome.certainty == POSSIBLE and inner.safety == SAFE else inner.safety
    return step._replace(step=inner._replace(safety=safety, mends=tuple(dict.fromkeys((*inner.mends, outcome.rule)))))


def arrange(drafts: Sequence[Draft], findings: Iterable[Outcome] = ()) -> tuple[FixStep, ...]:
    """The steps in the order in which a person takes them, each once: equal ones merged, one reboot, a smaller install
    beside a larger one left out."""
    merged: list[Draft] = []
    for step in drafts:
        for place, other in enumerate(merged):
            if _same(step, other):
                merged[place] = _merged(other, step)
                break
        else:
            merged.append(step)
    kept: list[Draft] = []
    for step in merged:
        larger = next((o for o in merged if o is not step and step.covers and step.covers < o.covers), None)
        if larger is None:
            kept.append(step)
    for step in merged:
        if step not in kept:
            for place, other in enumerate(kept):
                if step.covers and step.covers < other.covers:
                    kept[place] = _merged(other, step)
    kept.sort(key=lambda step: step.phase)
    return _unique(step.step for step in kept)


def _same(one: Draft, other: Draft) -> bool:
    if one.step.kind == other.step.kind == "reboot":
        return True
    if one.step.argv is not None or other.step.argv is not None:
        return one.step.argv == other.step.argv
    return (one.step.title, one.step.instructions) == (other.step.title, other.step.instructions)


def _merged(first: Draft, second: Draft) -> Draft:
    """`first`, which also does what `second` does."""
    one, two = first.step, second.step
    sentences = [one.instructions]
    if one.kind == "reboot" and two.instructions not in one.instructions:
        sentences.append(two.instructions)
    step = one._replace(
        needs=tuple(dict.fromkeys((*one.needs, *two.needs))),
        effect={**one.effect, **two.effect} if one.argv == two.argv else {**two.effect, **one.effect},
        mends=tuple(dict.fromkeys((*one.mends, *two.mends))),
        instructions=" ".join(sentence for sentence in sentences if sentence),
        safety=one.safety if one.safety == two.safety else CAREFUL if one.argv is not None else one.safety,
    )
    return first._replace(step=step, phase=max(first.phase, second.phase), covers=first.covers | second.covers)


def _unique(steps: Iterable[FixStep]) -> tuple[FixStep, ...]:
    """The same steps, no two with one id."""
    seen: dict[str, int] = {}
    result = []
    for step in steps:
        count = seen.get(step.id, 0) + 1
        seen[step.id] = count
        result.append(step if count == 1 else step._replace(id=f"{step.id}-{count}"))
    return tuple(result)
