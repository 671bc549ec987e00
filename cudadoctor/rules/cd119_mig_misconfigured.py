"""MIG is switched on, and CUDA sees no whole GPU

What it checks
    Whether MIG mode is on and no instances have been made, so that the GPU offers CUDA nothing; whether MIG was
    switched on for some of several GPUs while a program fails to find or to start its GPU; and whether
    CUDA_VISIBLE_DEVICES names a MIG device where there is none.

Why it matters
    With MIG on, CUDA sees instances in place of the GPU: without instances, none at all. Where only some GPUs are
    split, a process sees at most one MIG device, and programs that count on whole GPUs fail.

How to fix
    Make instances (nvidia-smi mig -cgi 9,9 -C; nvidia-smi mig -lgip lists the profiles), or switch MIG off as root:
    nvidia-smi -i 0 -mig 0. To use the whole GPUs beside a split one, name them by UUID in CUDA_VISIBLE_DEVICES.

References
    https://docs.nvidia.com/datacenter/tesla/mig-user-guide/
"""

from __future__ import annotations

from typing import Optional

from cudadoctor.derive.gpus import gpus
from cudadoctor.derive.surroundings import in_container, in_report
from cudadoctor.model.catalogue import gpu_numbers
from cudadoctor.rules.api import CERTAIN, ERROR, LIKELY, MACHINE, POSSIBLE, WARNING, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD119",
    name="mig-misconfigured",
    title="MIG is switched on, and CUDA sees no whole GPU",
    severity=ERROR,
    blame=MACHINE,
    follows_from=("CD113", "CD705"),
    precedence=26,
)

_SWITCHED_ON = "symptom.mig_enabled"
_NONE_MADE = "symptom.mig_device_missing"
# What a program says that finds no GPU or cannot start it.
_IN_VAIN = (
    "symptom.no_cuda_gpus",
    "symptom.no_cuda_device",
    "symptom.invalid_device_ordinal",
    "symptom.device_busy",
    "symptom.cuda_init_failed",
    "symptom.cuda_not_initialized",
    "symptom.cuda_unknown_error",
)
_NOT_HELPING = ("another torch build or driver: the GPU is split, or offers nothing",)


def judge(case: Case) -> Outcome:
    numbers = _numbers(case)
    modes = {n: _mode(case, n) for n in numbers}
    split = [n for n, mode in modes.items() if mode]
    bare = [n for n in split if _devices(case, n) == 0]
    failed = next((name for name in _IN_VAIN if case.fact(name).is_known), None)
    said = [name for name in (_NONE_MADE, _SWITCHED_ON) if case.fact(name).is_known]
    if bare:
        return _bare(case, bare, len(bare) == len(numbers), failed)
    if case.fact(_NONE_MADE).is_known and not split:
        return _failed(case, "MIG is on, and no MIG devices have been made", (_NONE_MADE,), LIKELY, None)
    whole = [n for n, mode in modes.items() if mode is False]
    if failed and split and whole:
        what = f"MIG is on for GPU {split[0]} and off for GPU {whole[0]}, and a program does not get its GPU"
        facts = (failed, *_evidence(case, split[0]), *_evidence(case, whole[0]))
        return _failed(case, what, facts, LIKELY, split)
    if said and not split:
        place = (case.value(said[0]) or {}).get("gpu")
        what = f"MIG was switched on for {'GPU ' + str(place) if place else 'a GPU'}: CUDA sees its instances only"
        severity = ERROR if failed or not modes else WARNING
        return _failed(case, what, (*said, *((failed,) if failed else ())), LIKELY, None, severity)
    visible = str(case.value("env.CUDA_VISIBLE_DEVICES", ""))
    if visible.startswith("MIG-") and modes and not split and all(mode is False for mode in modes.values()):
        what = "CUDA_VISIBLE_DEVICES names a MIG device, and MIG is off on every GPU"
        facts = ("env.CUDA_VISIBLE_DEVICES", *_evidence(case, numbers[0]))
        return case.failed(
            what,
            facts,
            certainty=LIKELY,
            fixes=(Remedy("unset-variable", {"name": "CUDA_VISIBLE_DEVICES"}),),
            not_helping=_NOT_HELPING,
        )
    if visible.startswith("MIG-") and in_report(case) and case.value("torch.cuda_available") is False:
        return _failed(
            case,
            "torch counts no GPU, and CUDA_VISIBLE_DEVICES names a MIG device: it is gone, or torch cannot count it",
            ("env.CUDA_VISIBLE_DEVICES", "torch.cuda_available"),
            POSSIBLE,
            None,
        )
    return _well(case, modes, split)


def _well(case: Case, modes: dict[int, Optional[bool]], split: list[int]) -> Outcome:
    if split:
        if any(_devices(case, n) for n in split):
            return case.passed("MIG is on, and there are instances", _evidence(case, split[0]))
        return case.undecided("MIG is on; whether there are instances is not known", _evidence(case, split[0]))
    if any(mode is False for mode in modes.values()):
        return case.passed("MIG is off", _evidence(case, min(modes)))
    return case.skipped("no GPU here is known to have MIG")


def _bare(case: Case, bare: list[int], all_of_them: bool, failed: Optional[str]) -> Outcome:
    which = f"GPU {bare[0]}" if len(bare) == 1 else f"{len(bare)} GPUs"
    facts = (*_evidence(case, bare[0]), *((failed,) if failed else ()))
    if all_of_them:
        what = f"MIG is on for {which} and no instances were made, so CUDA sees no GPU"
        return _failed(case, what, facts, CERTAIN, bare)
    what = f"MIG is on for {which} and no instances were made: CUDA sees the other GPUs only"
    return _failed(case, what, facts, LIKELY if failed else CERTAIN, bare, ERROR if failed else WARNING)


def _failed(
    case: Case,
    message: str,
    evidence: tuple[str, ...],
    certainty: str,
    numbers: Optional[list[int]],
    severity: str = ERROR,
) -> Outcome:
    effect: dict[str, object] = {}
    for n in numbers or ():
        if case.fact(f"gpu.{n}.mig_mode").is_known:
            effect.update({f"gpu.{n}.mig_mode": False, f"gpu.{n}.mig_devices": 0})
    if case.fact("smi.gpus").is_known:
        effect["smi.gpus"] = [
            dict(row, mig=False if row.get("mig") else row.get("mig")) for row in case.value("smi.gpus")
        ]
    effect.update({name: None for name in (_SWITCHED_ON, _NONE_MADE, *_IN_VAIN) if case.fact(name).is_known})
    if in_container(case):
        text = "Give the container MIG devices that exist (nvidia-smi -L on the host lists them), or whole GPUs."
        fix = Remedy(
            "manual", {"title": "Give the container a device", "text": text, "kind": "container", "effect": effect}
        )
    else:
        fix = Remedy("switch-mig-off", {"effect": effect, **({"indexes": numbers} if numbers else {})})
    return case.failed(
        message,
        evidence,
        certainty=certainty,
        severity=severity,
        data={"gpus": numbers or []},
        fixes=(fix,),
        not_helping=_NOT_HELPING,
    )


def _numbers(case: Case) -> list[int]:
    shown = [gpu.index for gpu in case.derived(gpus) if gpu.index is not None]
    return sorted({*gpu_numbers(case.facts), *shown})


def _row(case: Case, number: int) -> dict[str, object]:
    return next((row for row in case.value("smi.gpus", []) if row.get("index") == number), {})


def _mode(case: Case, number: int) -> Optional[bool]:
    mode: Optional[bool] = case.value(f"gpu.{number}.mig_mode")
    if mode is None and not case.fact(f"gpu.{number}.mig_mode").is_absent:
        shown = _row(case, number).get("mig")
        mode = shown if isinstance(shown, bool) else None
    return mode


def _devices(case: Case, number: int) -> Optional[int]:
    """How many MIG devices the GPU has; None: not known. A report whose table says that there are none means all."""
    count: Optional[int] = case.value(f"gpu.{number}.mig_devices")
    if count is None and case.fact(_NONE_MADE).is_known:
        return 0
    return count


def _evidence(case: Case, number: int) -> tuple[str, ...]:
    names = (f"gpu.{number}.mig_mode", f"gpu.{number}.mig_devices")
    return tuple(name for name in names if case.fact(name).is_known) or ("smi.gpus",)
