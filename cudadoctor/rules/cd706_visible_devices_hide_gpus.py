"""CUDA_VISIBLE_DEVICES hides GPUs

What it checks
    Whether the variable CUDA_VISIBLE_DEVICES leaves a process no GPU, or names one that does not exist.

Why it matters
    CUDA shows only the devices that the variable lists, and stops at the first entry that it cannot find. An empty
    value or -1 hides all of them: torch.cuda.is_available() is False on a healthy machine.

How to fix
    Unset the variable, or list numbers that nvidia-smi -L shows. CUDA counts the fastest card first unless
    CUDA_DEVICE_ORDER=PCI_BUS_ID is set. Set it before the program starts: changing it later has no effect.

References
    https://docs.nvidia.com/cuda/cuda-c-programming-guide/#cuda-environment-variables
"""

from __future__ import annotations

from cudadoctor.rules.api import ENVIRONMENT, ERROR, WARNING, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD706",
    name="visible-devices-hide-gpus",
    title="CUDA_VISIBLE_DEVICES hides GPUs",
    severity=ERROR,
    blame=ENVIRONMENT,
    blocked_by=("CD501",),
    follows_from=("CD705",),
    precedence=4,
)

_VARIABLE = "CUDA_VISIBLE_DEVICES"
_FACT = f"env.{_VARIABLE}"


def judge(case: Case) -> Outcome:
    fact = case.fact(_FACT)
    if fact.is_unknown:
        return case.undecided(f"cannot tell whether {_VARIABLE} is set: {fact.reason}", (_FACT,))
    if fact.is_absent:
        return case.passed(f"{_VARIABLE} is not set", (_FACT,))
    value: str = fact.get()
    entries = [entry.strip() for entry in value.split(",")]
    count = case.value("gpu.count")
    valid = _valid(entries, count)
    remedy = Remedy("unset-variable", {"name": _VARIABLE})
    if not valid:
        shown = f"is set to {value!r}" if value.strip() else "is set and empty"
        return case.failed(
            f"{_VARIABLE} {shown}, which hides every GPU",
            (_FACT, "gpu.count"),
            data={"value": value},
            fixes=(remedy,),
            not_helping=("another driver or torch build: they are not asked",),
        )
    if len(valid) < len(entries):
        return case.failed(
            f"{_VARIABLE}={value}: there is no GPU {entries[len(valid)]!r}, and CUDA stops there: {len(valid)} visible",
            (_FACT, "gpu.count"),
            severity=WARNING,
            data={"value": value, "visible": len(valid)},
            fixes=(remedy,),
        )
    return case.passed(f"{_VARIABLE}={value} shows {len(valid)} GPU(s)", (_FACT,))


def _valid(entries: list[str], count: int | None) -> list[str]:
    """The entries up to the first that CUDA cannot find. UUIDs are taken as found: facts hold none to compare with."""
    valid: list[str] = []
    for entry in entries:
        digits = entry.lstrip("+")
        if digits.isdigit():
            if (count is not None and int(digits) >= count) or entry in valid:
                # An entry that is named twice makes CUDA show nothing at all.
                return [] if entry in valid else valid
            valid.append(entry)
        elif entry.startswith(("GPU-", "MIG-")):
            valid.append(entry)
        else:
            return valid
    return valid
