"""Making plans. Pure: the same report always gives the same plan.

The making itself is left to `cure`, which is loaded only where there is something to mend: a healthy machine waits for
none of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional

from cudadoctor.model import Facts
from cudadoctor.model.report import Report
from cudadoctor.plan.plan import Options, Plan, wished
from cudadoctor.plan.shell import shell_of

if TYPE_CHECKING:
    from cudadoctor.matrix import Matrix
    from cudadoctor.plan.recipe import Recipe
    from cudadoctor.resolve import Need, Resolution


def make_plan(report: Report, matrix: Matrix, options: Optional[Options] = None, *, strict: bool = False) -> Plan:
    """What mends the findings of `report` on its machine, and does what `options` ask for. With `strict`, a remedy that
    a rule names wrongly raises instead of becoming a step by hand (for tests)."""
    options = options or Options()
    if not wished(options) and not any(o.failed and o.because_of is None for o in report.outcomes):
        return Plan((), shell=shell_of(str(report.facts.value("system.os", "linux"))))
    from cudadoctor.plan.cure import cure

    return cure(report, matrix, options, strict)


def torch_for(facts: Facts, matrix: Matrix, options: Optional[Options] = None) -> Resolution:
    """The torch that suits a machine, whether or not anything is to be mended there."""
    from cudadoctor.plan.context import Context

    return Context(facts, matrix, options or Options()).resolved()


def recipe_for(plan: Plan, facts: Facts, matrix: Matrix, options: Optional[Options] = None) -> Optional[Recipe]:
    """What the forms for other programs are made of: the plan's torch, or the one that suits the machine of `facts`
    where the plan installs none."""
    from cudadoctor.plan.context import Context
    from cudadoctor.plan.recipe import recipe

    options = options or Options()
    if plan.resolution is not None and plan.need is not None:
        return recipe(plan.resolution, plan.need, matrix, options)
    context = Context(facts, matrix, options)
    return recipe(context.resolved(), context.need(), matrix, options)


def plan_for(wanted: Need, facts: Facts, matrix: Matrix, options: Optional[Options] = None) -> Plan:
    """What puts torch on a machine that nobody has looked at: `wanted` is all that is known of it but its system and
    interpreter, which `facts` may name."""
    from cudadoctor.plan.cure import cure_planned

    return cure_planned(wanted, facts, matrix, options or Options())
