"""`fix --online`: the index is asked for the planned wheels, the best first, until one is there."""

from __future__ import annotations

from typing import Callable, Optional

from cudadoctor.actions.fetch import FetchError
from cudadoctor.actions.online import Asker, Wheels
from cudadoctor.matrix import Matrix
from cudadoctor.plan import Options, Plan
from cudadoctor.plan.context import index_of
from cudadoctor.plan.online import candidates, key
from cudadoctor.plan.plan import IndexAnswers
from cudadoctor.render.plan import MISSING, NOT_CONFIRMED, Asked
from cudadoctor.resolve import Choice

# More builds than these are never worth asking for.
_MOST = 8

Settled = tuple[Plan, Options, Optional[Asked]]


def settle(plan: Plan, make: Callable[[Options], Plan], options: Options, matrix: Matrix) -> Settled:
    """The plan as the index has it, and what it said. `make` makes the plan anew with what is known by then."""
    first = plan.resolution.choice if plan.resolution is not None else None
    # What stands where the index confirms nothing: never a lesser build that it was not asked for either.
    offline = plan, options
    with Asker() as asker:
        for _ in range(_MOST):
            choice = _next(plan, options.answers)
            if choice is None:
                asked = _words(plan, first, options.answers)
                if asked is not None and asked.state == MISSING:
                    return (*offline, asked)
                return plan, options, asked
            assert plan.need is not None
            try:
                wheels = asker.wheels(choice, index_of(choice.variant, matrix, options), plan.need)
            except FetchError as error:
                words = f"the index could not be asked, so nothing of this is confirmed: {error}"
                return (*offline, Asked(NOT_CONFIRMED, words))
            options = options._replace(answers=_with(options.answers, choice, wheels))
            plan = make(options)
    return (*offline, Asked(MISSING, "the index has none of the builds that were asked for"))


def _next(plan: Plan, answers: IndexAnswers) -> Optional[Choice]:
    """The best build that nobody has asked for; None once the best that is there is known."""
    found = plan.resolution
    if found is None or found.nothing_to_do or plan.need is None:
        return None
    for choice in candidates(found, plan.need):
        if key(choice) in answers.has:
            return None
        if key(choice) not in answers.lacks:
            return choice
    return None


def _with(answers: IndexAnswers, choice: Choice, wheels: Wheels) -> IndexAnswers:
    if not wheels.torch:
        return answers._replace(lacks=answers.lacks | {key(choice)})
    download = dict(answers.download)
    if wheels.download is not None:
        download[key(choice)] = wheels.download
    return answers._replace(
        has=answers.has | {key(choice)}, without=answers.without | set(wheels.lacking), download=download
    )


def _words(plan: Plan, first: Optional[Choice], answers: IndexAnswers) -> Optional[Asked]:
    choice = plan.resolution.choice if plan.resolution is not None else None
    if choice is None or (plan.resolution is not None and plan.resolution.nothing_to_do):
        return None
    if key(choice) in answers.lacks or key(choice) not in answers.has:
        return Asked(MISSING, f"torch {choice.version} is not on the index, nor anything else that runs here")
    missing = [f"{name} {version}" for name, version in sorted(answers.without)]
    without = f"; it has no {' and no '.join(missing)}" if missing else ""
    if first is not None and key(first) != key(choice):
        why = "is not there" if key(first) in answers.lacks else "is there as well"
        return Asked("replaced", f"the index has torch {choice.version}; torch {first.version} {why}{without}")
    return Asked("confirmed", f"the index has torch {choice.version} for this Python and system{without}")
