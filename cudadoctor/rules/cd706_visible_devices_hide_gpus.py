"""CUDA_VISIBLE_DEVICES hides GPUs

What it checks
    Whether the variable CUDA_VISIBLE_DEVICES leaves a process no GPU, or names one that does not exist; and whether a
    program reported that the GPU which it asks for is not there.

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

from typing import Optional

from cudadoctor.derive.driver import NO, answer
from cudadoctor.derive.surroundings import in_report
from cudadoctor.rules.api import CERTAIN, ENVIRONMENT, ERROR, LIKELY, WARNING, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD706",
    name="visible-devices-hide-gpus",
    title="CUDA_VISIBLE_DEVICES hides GPUs",
    severity=ERROR,
    blame=ENVIRONMENT,
    blocked_by=("CD501",),
    follows_from=("CD705", "CD701", "CD206"),
    precedence=4,
)

_VARIABLE = "CUDA_VISIBLE_DEVICES"
_FACT = f"env.{_VARIABLE}"
# What is shown of a value: a list of UUIDs is longer than a line.
_WORDS = 24


_NOTHING = ("symptom.no_cuda_gpus", "symptom.no_cuda_device")
_ORDINAL, _TWICE, _CHECKPOINT = (
    "symptom.invalid_device_ordinal",
    "symptom.nccl_duplicate_gpu",
    "symptom.checkpoint_needs_cuda",
)


def judge(case: Case) -> Outcome:
    found = _by_variable(case)
    if found.failed and found.severity == ERROR:
        return found
    return _by_words(case) or found


def _by_words(case: Case) -> Optional[Outcome]:
    """What programs said of a GPU that is not there; None where they said nothing."""
    value = case.value(_FACT)
    count = _count(case)
    first = _number(str(value).split(",")[0].strip()) if value is not None else None
    nothing = [name for name in _NOTHING if case.fact(name).is_known]
    if nothing and first and count is None:
        # Not 0: that one there would be wherever there is any.
        return case.failed(
            f"{_VARIABLE}={str(value)[:_WORDS]}: there is probably no GPU {first}, so every GPU is hidden",
            (*nothing, _FACT),
            certainty=LIKELY,
            data={"value": value},
            fixes=(Remedy("unset-variable", {"name": _VARIABLE}),),
            not_helping=("another driver or torch build: CUDA heeds the variable with any",),
        )
    if case.fact(_ORDINAL).is_known and "cudaGetDeviceCount" in str(case.value(_ORDINAL).get("text", "")):
        # Nobody asked for a number: CUDA itself fails on one of the GPUs.
        return None
    if case.fact(_ORDINAL).is_known:
        seen = f" (it sees {count})" if count is not None else ""
        named = (
            f"; {_VARIABLE}={str(value)[:_WORDS]}, and what it leaves is counted from 0" if value is not None else ""
        )
        return case.failed(
            f"the program asks for a GPU number that it does not see{seen}{named}",
            [name for name in (_ORDINAL, _FACT, "gpu.count", "smi.gpus") if case.fact(name).is_known],
            certainty=LIKELY,
            fixes=(_other_number(_ORDINAL),),
            not_helping=("another driver or torch build: the number is the program's",),
        )
    if case.fact(_TWICE).is_known:
        told = case.value(_TWICE)
        ranks = f" (ranks {told['rank']} and {told['other']})" if "rank" in told and "other" in told else ""
        return case.failed(
            f"two processes of one job use the same GPU{ranks}",
            (_TWICE,),
            certainty=CERTAIN,
            fixes=(_other_number(_TWICE),),
        )
    told = case.value(_CHECKPOINT, {})
    asked, there = _number(str(told.get("asked", ""))), _number(str(told.get("count", "")))
    if asked is not None and there and asked >= there:
        return case.failed(
            f"the file was saved from GPU {asked}, and this process sees {there}",
            (_CHECKPOINT,),
            certainty=CERTAIN,
            fixes=(
                Remedy(
                    "manual",
                    {
                        "title": "Load the file onto a GPU that is there",
                        "text": "torch.load(path, map_location='cuda:0'), or map_location='cpu'.",
                        "kind": "setting",
                        "id": "map-location",
                        "effect": {_CHECKPOINT: None},
                    },
                ),
            ),
        )
    return None


def _other_number(symptom: str) -> Remedy:
    return Remedy(
        "manual",
        {
            "title": "Use GPU numbers that the process sees",
            "text": f"The numbers run from 0 over what {_VARIABLE} leaves: with {_VARIABLE}=2 the card is cuda:0. With "
            "torchrun each process takes torch.cuda.set_device(int(os.environ['LOCAL_RANK'])), and --nproc-per-node is "
            "no more than the GPUs.",
            "kind": "setting",
            "id": "gpu-numbers",
            "effect": {symptom: None},
        },
    )


def _by_variable(case: Case) -> Outcome:
    fact = case.fact(_FACT)
    if fact.is_unknown:
        return case.undecided(f"cannot tell whether {_VARIABLE} is set: {fact.reason}", (_FACT,))
    if fact.is_absent:
        return case.passed(f"{_VARIABLE} is not set", (_FACT,))
    value: str = fact.get()
    if in_report(case) and value.strip() == "NoDevFiles":
        return case.skipped("Slurm set the variable so: the job was given no GPU")
    entries = [entry.strip() for entry in value.split(",")]
    count = _count(case)
    if count == 0:
        return case.skipped("the driver lists no GPU that the variable could hide")
    valid = _valid(entries, count)
    shown = value if len(value) <= _WORDS else value[: _WORDS - 3] + "..."
    if not valid:
        return case.failed(
            _hides_all(entries, shown, count),
            (_FACT, "gpu.count"),
            data={"value": value},
            fixes=(Remedy("unset-variable", {"name": _VARIABLE}),),
            not_helping=("another driver or torch build: CUDA heeds the variable with any",),
        )
    if len(valid) < len(entries):
        return case.failed(
            f"{_VARIABLE}={shown}: there is no GPU {entries[len(valid)][:_WORDS]!r}, so CUDA shows {len(valid)} only",
            (_FACT, "gpu.count"),
            severity=WARNING,
            data={"value": value, "visible": len(valid)},
            fixes=(Remedy("unset-variable", {"name": _VARIABLE}),),
        )
    if count is None and any(_number(entry) for entry in entries):
        if case.derived(answer).state == NO:
            return case.skipped("the driver does not answer, so there is nothing to hold the variable against")
        return case.undecided(f"{_VARIABLE}={shown}: cannot tell how many GPUs there are", (_FACT, "gpu.count"))
    return case.passed(f"{_VARIABLE}={shown} shows {len(valid)} GPU(s)", (_FACT,))


def _count(case: Case) -> Optional[int]:
    listed = case.fact("smi.gpus")
    # torch's warnings name the GPUs that the variable leaves, and a person names one of several.
    is_whole = listed.is_known and not any(word in listed.source for word in ("warning", "description"))
    count: Optional[int] = case.value("gpu.count", len(listed.get()) if is_whole else None)
    return count


def _hides_all(entries: list[str], shown: str, count: Optional[int]) -> str:
    if not "".join(entries):
        return f"{_VARIABLE} is set and empty, which hides every GPU"
    first = _number(entries[0])
    if first is not None and count is not None and first >= count:
        have = "there is only GPU 0" if count == 1 else f"there are only GPUs 0 to {count - 1}"
        return f"{_VARIABLE}={shown} hides every GPU: {have}"
    if len(set(entries)) < len(entries) and all(_number(entry) is not None for entry in entries):
        return f"{_VARIABLE}={shown} names a GPU twice, which hides every GPU"
    return f"{_VARIABLE}={shown} hides every GPU"


def _valid(entries: list[str], count: Optional[int]) -> list[str]:
    """The entries up to the first that CUDA cannot find. UUIDs are taken as found: facts hold none to compare with."""
    valid: list[str] = []
    for entry in entries:
        if entry.startswith(("GPU-", "MIG-")):
            valid.append(entry)
            continue
        number = _number(entry)
        if number is None or (count is not None and number >= count):
            return valid
        if entry in valid:
            return []  # a GPU that is named twice makes CUDA show none at all
        valid.append(entry)
    return valid


def _number(entry: str) -> Optional[int]:
    return int(entry[:9]) if entry.isascii() and entry.isdigit() else None
