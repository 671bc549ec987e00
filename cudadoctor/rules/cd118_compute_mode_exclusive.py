"""A GPU's compute mode keeps programs out

What it checks
    Whether a GPU's compute mode lets in only one process (exclusive) or none (prohibited), and whether somebody has
    met that: another process holds the GPU, or a program reported error 46, "all CUDA-capable devices are busy or
    unavailable". An exclusive GPU that nobody is kept out of is mentioned only.

Why it matters
    The second process on an exclusive GPU fails with error 46, though memory is free. A prohibited GPU serves no CUDA
    at all. Batch systems use exclusive mode on purpose.

How to fix
    Put it back as root: nvidia-smi -i 0 -c DEFAULT. Where the administrator wants exclusive mode, end the other
    process, use another GPU (CUDA_VISIBLE_DEVICES), or share the GPU through MPS.

References
    https://docs.nvidia.com/deploy/nvidia-smi/index.html
    https://docs.nvidia.com/deploy/mps/
"""

from __future__ import annotations

from cudadoctor.derive.surroundings import in_container, in_job
from cudadoctor.model.catalogue import gpu_numbers
from cudadoctor.rules.api import CERTAIN, ERROR, INFO, LIKELY, MACHINE, POSSIBLE, WARNING, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD118",
    name="compute-mode-exclusive",
    title="A GPU's compute mode keeps programs out",
    severity=ERROR,
    blame=MACHINE,
    follows_from=("CD113", "CD116", "CD119", "CD705", "CD706"),
    precedence=45,
)

_BUSY = "symptom.device_busy"
_PROHIBITED = "prohibited"
_EXCLUSIVE = ("exclusive-process", "exclusive-thread")


def judge(case: Case) -> Outcome:
    modes = {n: case.fact(f"gpu.{n}.compute_mode") for n in gpu_numbers(case.facts)}
    known = {n: str(fact.get()) for n, fact in modes.items() if fact.is_known}
    busy = case.fact(_BUSY).is_known
    shut = [n for n, mode in known.items() if mode == _PROHIBITED]
    single = [n for n, mode in known.items() if mode in _EXCLUSIVE]
    if shut:
        return _prohibited(case, shut, all_of_them=len(shut) == len(modes), busy=busy)
    if single:
        return _exclusive(case, single, busy)
    if busy and not known:
        return case.failed(
            "a program was told that the GPU is busy or unavailable (error 46): perhaps another process holds it "
            "in exclusive mode",
            (_BUSY,),
            certainty=POSSIBLE,
            fixes=_default(case, None, {_BUSY: None}),
            not_helping=("another torch build: the driver lets no second process in",),
        )
    if known:
        return case.passed("the compute mode lets every process in", (f"gpu.{min(known)}.compute_mode",))
    if modes:
        return case.undecided("the compute mode could not be read", ("gpu.0.compute_mode",))
    return case.skipped("NVML shows no GPU")


def _prohibited(case: Case, shut: list[int], all_of_them: bool, busy: bool) -> Outcome:
    facts = tuple(f"gpu.{n}.compute_mode" for n in shut)
    which = "every GPU" if all_of_them else f"GPU {shut[0]}"
    return case.failed(
        f"the compute mode of {which} is Prohibited: no CUDA program may use it",
        (*facts, *((_BUSY,) if busy else ())),
        certainty=CERTAIN,
        severity=ERROR if all_of_them or busy else WARNING,
        data={"gpus": shut},
        fixes=_default(case, shut, {**dict.fromkeys(facts, "default"), **({_BUSY: None} if busy else {})}),
        not_helping=("another torch build: the driver lets no program in",),
    )


def _exclusive(case: Case, single: list[int], busy: bool) -> Outcome:
    facts = tuple(f"gpu.{n}.compute_mode" for n in single)
    held = [n for n in single if case.value(f"gpu.{n}.processes")]
    fixes = _default(case, single, {**dict.fromkeys(facts, "default"), **({_BUSY: None} if busy else {})})
    if busy:
        return case.failed(
            f"GPU {single[0]} is in exclusive mode and another process holds it (error 46)",
            (_BUSY, *facts),
            certainty=CERTAIN if held else LIKELY,
            data={"gpus": single},
            fixes=fixes,
            not_helping=("another torch build: the driver lets no second process in",),
        )
    if held and not in_job(case):
        return case.failed(
            f"GPU {held[0]} is in exclusive mode and in use: a second program on it ends with error 46",
            (f"gpu.{held[0]}.compute_mode", f"gpu.{held[0]}.processes"),
            certainty=LIKELY,
            # One that is free beside it may be meant for the next program; batch systems do it this way.
            severity=WARNING if len(held) == len(gpu_numbers(case.facts)) else INFO,
            data={"gpus": held},
            fixes=fixes,
        )
    return case.failed(
        f"GPU {single[0]} is in exclusive mode: it lets one process in at a time",
        facts[:1],
        severity=INFO,
        data={"gpus": single},
    )


def _default(case: Case, numbers: list[int] | None, effect: dict[str, object]) -> tuple[Remedy, ...]:
    if in_container(case):
        text = "On the host, as root: nvidia-smi -c DEFAULT (or -i N for one GPU)."
        remedy = {"title": "Let more than one process use the GPU", "text": text, "kind": "driver", "effect": effect}
        return (Remedy("manual", remedy),)
    return (Remedy("set-compute-mode", {"effect": effect, **({"indexes": numbers} if numbers else {})}),)
