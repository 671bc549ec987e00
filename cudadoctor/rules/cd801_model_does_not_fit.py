"""The model that the policy asks for does not fit into the GPUs' memory

What it checks
    Whether what [fit] of the policy describes (a model, how it is run or trained, batch, context and so on) fits into
    the memory that each GPU has free now, by the same estimate as cudadoctor fit. An estimate has an interval: where
    the free memory lies within it, the finding is a warning and says so.

Why it matters
    A job that runs out of memory does so after it has waited in the queue, loaded its weights and often trained its
    first step: the optimizer's states come with the first update, the longest sequence some time later.

How to fix
    cudadoctor fit MODEL with the same options shows what the memory goes to and the changes that help, the cheapest
    first: expandable segments, a fused loss, a smaller batch with accumulation, checkpointing, an 8-bit optimizer,
    LoRA, quantised weights or cache, more GPUs, a smaller model. Where others hold the memory, the GPU has to be freed.

References
    https://huggingface.co/docs/transformers/main/en/perf_train_gpu_one
    https://docs.vllm.ai/en/latest/configuration/conserving_memory.html
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

from cudadoctor.derive.policy import NOT_ASKED, Seen, is_split, seen
from cudadoctor.model import ParseError
from cudadoctor.parse.errors import clause
from cudadoctor.parse.sizes import show_size
from cudadoctor.rules.api import ALLOCATION, ENVIRONMENT, ERROR, MACHINE, WARNING, Case, Outcome, Remedy, Rule
from cudadoctor.rules.causes import NO_ANSWERING_DRIVER

# What estimates is imported where a policy asks for it: a check without one never pays for it.
if TYPE_CHECKING:
    from cudadoctor.fit.answer import Answer, Change
    from cudadoctor.fit.spec import Question

RULE = Rule(
    id="CD801",
    name="model-does-not-fit",
    title="The model that the policy asks for does not fit into the GPUs' memory",
    severity=ERROR,
    blame=ENVIRONMENT,
    chain=True,
    blocked_by=NO_ANSWERING_DRIVER,
    follows_from=("CD001", "CD005"),
    precedence=16,
)

_MODEL = "policy.fit.model"
# Key of the policy -> key of a question to the estimator.
_KEYS = {
    "model": "model",
    "train": "method",
    "quant": "quant",
    "precision": "precision",
    "batch": "batch",
    "context": "seq",
    "kv": "kv_dtype",
    "engine": "framework",
    "attention": "attn",
    "checkpointing": "ckpt",
    "optimizer": "optimizer",
    "loss": "ce",
    "lora_rank": "lora_r",
    "gpus": "n_gpus",
    "sharding": "parallel",
    "offload": "cpu_offload",
}
# Of the changes that help, so many are named: the others are what `cudadoctor fit` is for.
_MOST_CHANGES = 3


def judge(case: Case) -> Outcome:
    asked = {key: case.value(f"policy.fit.{key}") for key in _KEYS if case.fact(f"policy.fit.{key}").is_known}
    if not asked:
        return case.skipped(NOT_ASKED)
    facts = tuple(f"policy.fit.{key}" for key in asked)
    if "model" not in asked:
        return case.undecided("the policy asks that a model fits and names none: fit.model is missing", facts)
    try:
        question = _question(case, asked)
    except ParseError as error:
        return case.undecided(f"the policy's [fit] cannot be judged: {clause(error)}", facts)
    return _held_against(case, question, facts)


def _question(case: Case, asked: dict[str, Any]) -> Question:
    from cudadoctor.fit.complete import completed
    from cudadoctor.fit.spec import read_row
    from cudadoctor.fit.sums import capability_of
    from cudadoctor.fit.targets import target_of_facts

    row = {_KEYS[key]: value for key, value in asked.items()}
    question = read_row(case.matrix, row, lambda name: _find(case, name))
    capability = capability_of(target_of_facts(case.matrix, case.facts), question.workload)
    return completed(case.matrix, question, str(asked["model"]), capability)


def _find(case: Case, name: str) -> Any:
    """A typical model of a size, else one of the catalogue. Raises ParseError with the nearest names."""
    from cudadoctor.fit.catalogue import find
    from cudadoctor.fit.typical import model_of_size, size_of

    return model_of_size(case.matrix, name) if size_of(name) is not None else find(case.matrix, name)


def _held_against(case: Case, question: Question, facts: tuple[str, ...]) -> Outcome:
    from cudadoctor.fit.answer import DOES_NOT_FIT, FITS, TIGHT
    from cudadoctor.fit.targets import target_of_facts
    from cudadoctor.fit.verdict import answer

    here = case.derived(seen)
    open_why = _cannot_be_told(case, here)
    wanted = question.workload.sharding.degree
    if not open_why and wanted > len(here.numbers):
        count = len(here.numbers)
        open_why = f"{wanted} GPUs are to share the work, and {count} {'is' if count == 1 else 'are'} seen here"
    if open_why:
        return case.undecided(f"cannot tell whether the model fits: {open_why}", (*facts, *here.facts))
    try:
        found = answer(case.matrix, question.model, question.workload, target_of_facts(case.matrix, case.facts))
    except ParseError as error:  # nobody runs or trains such a model like this
        return case.undecided(f"the policy's [fit] cannot be judged: {clause(error)}", facts)
    free = tuple(f"gpu.{number}.memory_free" for number in here.numbers[:2])
    facts = (*facts, *free)
    need, name = found.need.device, question.model.architecture.name
    data = {
        "verdict": found.verdict,
        "need": {"low": need.low, "expected": need.expected, "high": need.high},
        "available": found.available,
        "changes": [change.id for change in found.cure.changes] if found.cure else [],
    }
    if found.available is None or found.verdict not in (FITS, TIGHT, DOES_NOT_FIT):
        return case.undecided(f"cannot tell whether {name} fits: what the GPUs have free is not known", facts)
    each = " of each GPU" if wanted > 1 else ""
    message = (
        f"{name} needs {show_size(need.expected)}{each} ({show_size(need.low)} to {show_size(need.high)}), "
        f"{show_size(found.available)} is free"
    )
    if found.verdict == FITS:
        return case.passed(message, facts)
    if found.verdict == TIGHT:
        changes = () if found.cure is None else (_changes(found),)
        return case.failed(f"{message}: tight", facts, severity=WARNING, data=data, fixes=changes)
    held = _held_by_others(case, here.numbers, need.high)
    if held is not None:
        total = case.value(f"gpu.{held}.memory_total")
        return case.failed(
            f"{message}: others hold the rest of GPU {held}'s {show_size(total)}",
            (*facts, f"gpu.{held}.memory_total"),
            blame=MACHINE,
            data={**data, "gpu": held},
            fixes=(_free_it(), _changes(found)),
        )
    blame = ENVIRONMENT if found.cure is not None else ALLOCATION
    return case.failed(message, facts, blame=blame, data=data, fixes=(_changes(found),))


def _cannot_be_told(case: Case, here: Seen) -> str:
    """Why what the GPUs have free is not known; empty where it is."""
    if not here.how_many.is_known:
        return here.how_many.reason
    if not here.numbers:
        return "no GPU is seen that it could run on"
    for number in here.numbers:
        if is_split(case, number):
            return f"MIG splits GPU {number}, and what its parts have is not told"
        fact = case.fact(f"gpu.{number}.memory_free")
        if not fact.is_known:
            return fact.reason or f"GPU {number} does not tell what is free"
    return ""


def _held_by_others(case: Case, numbers: tuple[int, ...], need: int) -> Optional[int]:
    """The GPU with the least free memory, where each would do if nobody else were on it."""
    totals = {number: case.value(f"gpu.{number}.memory_total") for number in numbers}
    free = {number: case.value(f"gpu.{number}.memory_free") for number in numbers}
    if any(value is None for value in (*totals.values(), *free.values())):
        return None
    if any(total < need for total in totals.values()):
        return None
    return min(numbers, key=lambda number: free[number])


def _changes(found: Answer) -> Remedy:
    """What would make it fit, cheapest first; else what else there is."""
    if found.cure is not None and found.cure.changes:
        steps = "; ".join(_step(change) for change in found.cure.changes[:_MOST_CHANGES])
        more = len(found.cure.changes) - _MOST_CHANGES
        steps += f"; and {more} more" if more > 0 else ""
        text = f"In this order: {steps}. It then needs {show_size(found.cure.need.expected)}. "
        title = "Make it need less"
    else:
        others = ", ".join(_words(one.name, one.gpus) for one in found.alternatives[:_MOST_CHANGES])
        text = f"No change of the settings makes it fit{f'; what does: {others}' if others else ''}. "
        title = "Take a larger GPU, more of them, or a smaller model"
    text += "`cudadoctor fit` with the same options shows where the memory goes."
    return Remedy("manual", {"title": title, "text": text, "kind": "setting", "id": "need-less-memory"})


def _step(change: Change) -> str:
    lines = f" ({change.lines[0]})" if change.lines else ""
    return f"{change.title[:1].lower()}{change.title[1:]}{lines}, {show_size(change.saves)} less"


def _words(name: str, gpus: int) -> str:
    return name if gpus == 1 else f"{gpus} x {name}"


def _free_it() -> Remedy:
    text = "nvidia-smi lists who holds its memory: end what is left over of former runs, or take another GPU."
    return Remedy(
        "manual",
        {"title": "Free the GPU of other processes", "text": text, "kind": "setting", "id": "free-the-gpu"},
    )
