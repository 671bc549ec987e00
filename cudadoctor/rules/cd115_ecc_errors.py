"""The memory of a GPU has errors

What it checks
    Whether a row of the card's memory could not be replaced, whether a replacement waits for a reset, whether ECC
    counted errors that it could not correct, and what the kernel log (Xid 48, 63, 64, 94, 95 and kin) and programs
    ("uncorrectable ECC error encountered") say of it. Errors that ECC corrected are no fault.

Why it matters
    An error that cannot be corrected ends the program that it struck, or all on the GPU. Cards repair themselves by
    replacing rows or pages; that takes effect with the next reset. A card that has no spare ones left must be replaced.

How to fix
    Let the work end and reset the GPU (nvidia-smi --gpu-reset as root) or reboot. Look at nvidia-smi -q -d
    ECC,ROW_REMAPPER,PAGE_RETIREMENT. A remapping failure, or errors that come back after a reset, mean that the card
    has to be replaced: of a rented one, ask for another machine. A GeForce card can report this with ECC shown as N/A.

References
    https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/
    https://docs.nvidia.com/deploy/dynamic-page-retirement/
    https://docs.nvidia.com/deploy/xid-errors/
"""

from __future__ import annotations

from typing import Optional

from cudadoctor.derive.driver import YES, answer
from cudadoctor.derive.surroundings import in_report
from cudadoctor.derive.xids import worst_xid
from cudadoctor.model.catalogue import gpu_numbers
from cudadoctor.rules.api import CERTAIN, ERROR, LIKELY, MACHINE, WARNING, Case, Fix, Outcome, Remedy, Rule

RULE = Rule(
    id="CD115",
    name="ecc-errors",
    title="The memory of a GPU has errors",
    severity=ERROR,
    blame=MACHINE,
    follows_from=("CD113",),
    precedence=22,
)

_SEVERITY = {"critical": ERROR, "error": WARNING, "warning": WARNING, "info": WARNING}
_REPLACE = ("reset-then-replace", "replace")
_NOT_HELPING = ("another driver or torch build: it is the card's memory",)


def judge(case: Case) -> Outcome:
    for check in (_remap_failed, _reported, _logged, _pending, _counted):
        outcome = check(case)
        if outcome is not None:
            return outcome
    numbers = gpu_numbers(case.facts)
    told = [n for n in numbers if not case.fact(f"gpu.{n}.ecc_mode").is_unknown]
    if told:
        return case.passed("no errors of a GPU's memory are known", (f"gpu.{told[0]}.ecc_uncorrected",))
    if not numbers and case.fact("gpu.count").is_known:
        return case.skipped("NVML shows no GPU")
    if not numbers and not in_report(case) and case.derived(answer).state != YES:
        return case.skipped("no driver answers that could be asked")
    return case.undecided("what ECC counted could not be read", ("gpu.0.ecc_mode", "gpu.0.ecc_uncorrected"))


def _name(case: Case, number: int) -> str:
    return f"GPU {number} ({case.value(f'gpu.{number}.name')})" if case.value(f"gpu.{number}.name") else f"GPU {number}"


def _remap_failed(case: Case) -> Optional[Outcome]:
    for number in gpu_numbers(case.facts):
        fact = f"gpu.{number}.remap_failure"
        if case.value(fact, False):
            return case.failed(
                f"a faulty row in the memory of {_name(case, number)} could not be replaced: the card is worn out",
                (fact,),
                data={"gpu": number},
                fixes=(_replace({fact: False}),),
                not_helping=("a reset: the card has no spare rows left there", *_NOT_HELPING),
            )
    return None


def _reported(case: Case) -> Optional[Outcome]:
    if case.fact("symptom.row_remap_failed").is_known:
        return case.failed(
            "a faulty part of a GPU's memory could not be replaced, says a message",
            ("symptom.row_remap_failed",),
            certainty=LIKELY,
            fixes=(_replace({"symptom.row_remap_failed": None}),),
            not_helping=_NOT_HELPING,
        )
    if case.fact("symptom.ecc_uncorrectable").is_known:
        counted = [f"gpu.{n}.ecc_uncorrected" for n in gpu_numbers(case.facts)]
        proof = [name for name in counted if case.value(name, 0)]
        return case.failed(
            "a program met an error in the GPU's memory that could not be corrected",
            ("symptom.ecc_uncorrectable", *proof),
            certainty=CERTAIN if proof else LIKELY,
            fixes=_reset(case, None, {"symptom.ecc_uncorrectable": None, **dict.fromkeys(proof, 0)}),
            not_helping=_NOT_HELPING,
        )
    return None


def _logged(case: Case) -> Optional[Outcome]:
    worst = worst_xid(case, "memory")
    if worst is None or worst.row is None:
        return None
    effect: dict[str, object] = {worst.fact: None}
    if worst.fact == "kernel.log_events":
        effect = {worst.fact: [e for e in case.value(worst.fact, []) if e.get("kind") != "xid"]}
    where = f" on GPU {worst.bus_id}" if worst.bus_id else ""
    advice = worst.row.advice
    by_hand = Remedy(
        "manual",
        {"title": f"Act on Xid {worst.number}", "text": advice[0].upper() + advice[1:] + ".", "effect": effect},
    )
    return case.failed(
        f"{worst.words}{where}",
        (worst.fact,),
        certainty=LIKELY,
        severity=_SEVERITY[worst.row.severity],
        data={"xid": worst.number, "bus_id": worst.bus_id},
        fixes=(by_hand,) if worst.row.action in _REPLACE else _reset(case, None, effect),
        not_helping=_NOT_HELPING,
    )


def _pending(case: Case) -> Optional[Outcome]:
    for number in gpu_numbers(case.facts):
        for fact, part in (("remap_pending", "row"), ("retired_pending", "page")):
            name = f"gpu.{number}.{fact}"
            if case.value(name, False):
                return case.failed(
                    f"a faulty {part} in the memory of {_name(case, number)} is replaced with the next reset",
                    (name, f"gpu.{number}.ecc_uncorrected"),
                    severity=WARNING,
                    data={"gpu": number},
                    fixes=_reset(case, number, {name: False}),
                    not_helping=_NOT_HELPING,
                )
    return None


def _counted(case: Case) -> Optional[Outcome]:
    for number in gpu_numbers(case.facts):
        name = f"gpu.{number}.ecc_uncorrected"
        count = case.value(name, 0)
        if count > 0:
            errors = "1 error" if count == 1 else f"{count} errors"
            return case.failed(
                f"ECC could not correct {errors} in the memory of {_name(case, number)} since the driver was loaded",
                (name,),
                severity=WARNING,
                data={"gpu": number, "count": count},
                fixes=_reset(case, number, {name: 0}),
                not_helping=_NOT_HELPING,
            )
    return None


def _reset(case: Case, number: Optional[int], effect: dict[str, object]) -> tuple[Fix, ...]:
    numbers = gpu_numbers(case.facts)
    one = number if number is not None else numbers[0] if len(numbers) == 1 else None
    return (Remedy("reset-gpu", {"effect": effect, **({} if one is None else {"index": one})}),)


def _replace(effect: dict[str, object]) -> Remedy:
    return Remedy(
        "manual",
        {
            "title": "Have the card replaced",
            "text": "Take the GPU out of use and report it to its maker or to whoever runs the machine, with the "
            "output of nvidia-smi -q -d ECC,ROW_REMAPPER,PAGE_RETIREMENT. Of a rented machine, take another.",
            "effect": effect,
        },
    )
