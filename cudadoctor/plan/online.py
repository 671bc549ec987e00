"""What an answer of the index changes in a choice. Pure: the asking itself is `actions.online`."""

from __future__ import annotations

from cudadoctor.matrix import numbers
from cudadoctor.plan.plan import IndexAnswers
from cudadoctor.resolve import Choice, Need, Resolution


def candidates(found: Resolution, wanted: Need) -> tuple[Choice, ...]:
    """The builds worth asking for, the best first: announced ones that would be better, the choice, then what else
    runs."""
    if found.choice is None:
        return tuple(other for other in found.alternatives if not other.seen)
    better = [other for other in found.alternatives if not other.seen and _is_better(other, found.choice, wanted)]
    rest = [other for other in found.alternatives if other.seen]
    return (*better, found.choice, *rest)


def settled(found: Resolution, answers: IndexAnswers, wanted: Need) -> Resolution:
    """The resolution as the index has it: a build that is not there is no choice, an announced one that is there may
    be, and a companion that nobody asked for is left out where it is missing."""
    if found.nothing_to_do or not (answers.has or answers.lacks):
        return found
    order = candidates(found, wanted)
    chosen = next((choice for choice in order if _may_be_chosen(choice, answers)), None)
    if chosen is None:
        return found
    gone = [choice for choice in order[: order.index(chosen)] if key(choice) in answers.lacks]
    words = [f"torch {choice.version} is not on the index (asked just now)" for choice in gone]
    if not chosen.seen:
        words.append(f"torch {chosen.version} was only announced, and is on the index (asked just now)")
    missing = [pair for pair in chosen.companions if pair in answers.without]
    words += [f"no {name} {version}: it is not on the index (asked just now)" for name, version in missing]
    if not words:
        return found
    kept = found.choice
    others = [
        other
        for other in (*([kept] if kept is not None else []), *found.alternatives)
        if key(other) != key(chosen) and key(other) not in answers.lacks
    ]
    choice = chosen._replace(
        seen=True,
        reasons=(*chosen.reasons, *words),
        companions=tuple(pair for pair in chosen.companions if pair not in missing),
    )
    return found._replace(choice=choice, alternatives=tuple(others))


def key(choice: Choice) -> tuple[str, str]:
    """What answers name a build by."""
    return choice.torch, choice.variant


def _may_be_chosen(choice: Choice, answers: IndexAnswers) -> bool:
    if key(choice) in answers.lacks:
        return False
    return key(choice) in answers.has or choice.seen


def _is_better(other: Choice, choice: Choice, wanted: Need) -> bool:
    """Whether somebody would rather have the announced build: not where the present version is to be kept."""
    if wanted.keep and wanted.installed is not None:
        return False
    return _rank(other) > _rank(choice)


def _rank(choice: Choice) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return numbers(choice.torch) or (), numbers(choice.cuda or "0") or ()
