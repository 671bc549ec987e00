"""Facts and matrix -> report: runs the rules, isolates their crashes, folds what follows from what, finds the roots."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Callable, Optional

from cudadoctor.derive.case import Case
from cudadoctor.derive.driver import YES, answer
from cudadoctor.matrix import Matrix
from cudadoctor.model import CRASH, ERROR, FAIL, INFO, POSSIBLE, SKIP, TOOL, UNDECIDED, WARNING, Facts, Outcome, Rule
from cudadoctor.model.report import Report, blamed, rank
from cudadoctor.rules import judges_requirements, rule_files, rule_module, rule_name

# What makes the rules that judge requirements look: facts of a policy, and what was proved for one.
_REQUIREMENTS = ("policy.", "verify.")


def diagnose(
    facts: Facts,
    matrix: Matrix,
    *,
    select: Optional[Iterable[str]] = None,
    ignore: Optional[Mapping[str, str]] = None,
    blames: Collection[str] = (),
    severities: Optional[Mapping[str, str]] = None,
    required: Collection[str] = (),
    judge: Optional[Callable[[str, Case], tuple[Rule, Outcome]]] = None,
) -> Report:
    """Judges `facts` by all rules (or those of `select`, ids) less those of `ignore` (ids with reasons).

    Ignoring a rule silences it only; the rules that would fold into it are judged without it. `blames`: only what
    these can mend counts (model.outcome.BLAMES); empty: everything. `severities`: how grave a failure of these
    rules is; `required`: rules that have to be decided. `judge` takes the place of `judge_rule`, for who has judged the
    like before. The rules that judge the requirements of a policy are run where one asks for something, or if selected.
    """
    ignored = dict(ignore or {})
    chosen = None if select is None else set(select)
    asks = any(name.startswith(_REQUIREMENTS) and facts[name].is_known for name in facts)
    wanted = [
        rule_id
        for rule_id in rule_files()
        if (rule_id in chosen if chosen is not None else asks or not judges_requirements(rule_id))
    ]
    shared: dict[Any, Any] = {}
    base = Case(facts, matrix, shared)
    rules: dict[str, Rule] = {}
    outcomes: dict[str, Outcome] = {}
    for rule_id in wanted:
        if rule_id in ignored:
            continue
        rule, outcome = (judge or judge_rule)(rule_id, base)
        if severities and rule_id in severities and not _is_remark(rule, outcome):
            outcome = outcome._replace(severity=severities[rule_id])
        if rule_id in required:
            outcome = _required(outcome, base)
        elif outcome.status == SKIP and outcome.evidence:
            outcome = outcome._replace(evidence=())  # what nobody missed
        rules[rule_id] = rule
        outcomes[rule_id] = outcome
    folded = _fold(rules, outcomes)
    if blames:
        folded = _of(folded, blames)
    return Report(
        facts=facts,
        outcomes=tuple(folded.values()),
        root_causes=_root_causes(rules, folded),
        matrix_revision=matrix.revision,
        ignored={rule_id: reason for rule_id, reason in ignored.items() if rule_id in wanted},
    )


def judge_rule(rule_id: str, base: Case) -> tuple[Rule, Outcome]:
    """What a rule says of the machine of `base`."""
    # A crash in one rule is that rule's result: the others still have their say.
    rule = Rule(rule_id, rule_name(rule_id), "", ERROR, TOOL)
    try:
        module = rule_module(rule_id)
        rule = module.RULE
        outcome: Outcome = module.judge(base.for_rule(rule))
        return rule, outcome
    except Exception as error:
        message = f"cudadoctor's own rule {rule_id} failed: {type(error).__name__}: {error}"
        return rule, Outcome(rule_id, rule.name, CRASH, rule.severity, POSSIBLE, TOOL, message, chain=rule.chain)


def _required(outcome: Outcome, base: Case) -> Outcome:
    """The outcome of a rule that has to be decided: it is a link of the chain, and that there was nothing to judge
    decides nothing where no driver answers, or where what would have told was not read."""
    if outcome.status == SKIP and _was_not_seen(outcome, base):
        return outcome._replace(status=UNDECIDED, message=f"{outcome.message}; the policy wants it decided", chain=True)
    return outcome._replace(chain=True)


def _was_not_seen(outcome: Outcome, base: Case) -> bool:
    if any(base.fact(read.fact).is_unknown for read in outcome.evidence):
        return True
    counted = base.fact("gpu.count").is_known or base.fact("smi.gpus").is_known
    return outcome.rule[:3] in _OF_THE_GPUS and (base.derived(answer).state != YES or not counted)


def _is_remark(rule: Rule, outcome: Outcome) -> bool:
    """Whether a severity of a policy leaves an outcome as it is: a crash is no finding, and of what a rule itself takes
    for no fault of the machine (an Xid that programs cause) a policy makes none."""
    return outcome.status == CRASH or (outcome.failed and outcome.severity == INFO and rule.severity != INFO)


# Beginnings of rules that judge what a driver tells.
_OF_THE_GPUS = ("CD1", "CD5")


def _fold(rules: Mapping[str, Rule], outcomes: Mapping[str, Outcome]) -> dict[str, Outcome]:
    """One root, one failure: what another failure leaves nothing to judge is skipped because of it, and a failure that
    another one explains names it.

    Only an error leaves nothing to judge, and nothing is explained by what is less grave than itself.
    """
    folded = dict(outcomes)
    blockers = _blockers(rules, outcomes)
    for rule_id, blocker in blockers.items():
        folded[rule_id] = outcomes[rule_id]._replace(
            status=SKIP,
            message=f"cannot be judged while {blocker} stands",
            because_of=blocker,
            fixes=(),
            not_helping=(),
        )
    failed = {rule_id for rule_id, outcome in folded.items() if outcome.status == FAIL and outcome.severity != INFO}
    for rule_id, outcome in folded.items():
        if outcome.status == FAIL:
            graver = {other for other in failed if rank(outcomes[other])[0] <= rank(outcome)[0]}
            cause = _first(rules[rule_id].follows_from, graver)
            if cause is not None:
                folded[rule_id] = outcome._replace(because_of=cause)
    return folded


def _of(outcomes: Mapping[str, Outcome], blames: Collection[str]) -> dict[str, Outcome]:
    """What others have to mend is left out, with all that follows from it: a driver that a job without a GPU does not
    see is no fault of the machine."""
    kept = dict(outcomes)
    for rule_id, outcome in outcomes.items():
        if outcome.status in (FAIL, UNDECIDED) and (blame := blamed(outcome, outcomes)) not in blames:
            kept[rule_id] = outcome._replace(
                status=SKIP,
                message=f"left out: not asked for, as it is about the {blame}",
                fixes=(),
                not_helping=(),
            )
    return kept


def _blockers(rules: Mapping[str, Rule], outcomes: Mapping[str, Outcome]) -> dict[str, str]:
    """By rule, the failing error that leaves it nothing to judge. What is blocked itself blocks nothing."""
    errors = {rule_id for rule_id, outcome in outcomes.items() if outcome.status == FAIL and outcome.severity == ERROR}
    blockers: dict[str, str] = {}
    # Each round settles the rules whose blockers are settled; rules that blocked each other would never be.
    for _ in rules:
        standing = errors - set(blockers)
        found = {
            rule_id: blocker
            for rule_id, outcome in outcomes.items()
            if outcome.status not in (SKIP, CRASH)
            and (blocker := _first(rules[rule_id].blocked_by, standing - {rule_id})) is not None
        }
        if found == blockers:
            break
        blockers = found
    return blockers


def _first(candidates: Iterable[str], failed: set[str]) -> Optional[str]:
    for candidate in candidates:
        if candidate in failed:
            return candidate
    return None


def _root_causes(rules: Mapping[str, Rule], outcomes: Mapping[str, Outcome]) -> tuple[str, ...]:
    """Failing errors that follow from nothing else, the likeliest first; where there are none, warnings that are at
    least likely."""
    roots = [o for o in outcomes.values() if o.status == FAIL and o.because_of is None]
    chosen = [o for o in roots if o.severity == ERROR]
    if not chosen:
        chosen = [o for o in roots if o.severity == WARNING and o.certainty != POSSIBLE]
    # The rule's own precedence decides between causes of the same weight, and its id where even that is equal.
    chosen.sort(key=lambda o: (*rank(o), rules[o.rule].precedence, o.rule))
    return tuple(o.rule for o in chosen)
