"""Other processes hold the GPU's memory

What it checks
    Where a program ran out of GPU memory, or could not start for want of it: whether other processes hold so much that
    it would have fitted without them. torch and vLLM name the numbers; nvidia-smi shows who it is.

Why it matters
    A smaller batch does not help against a forgotten notebook, a crashed run that still holds its memory, or a
    colleague's job on a shared machine.

How to fix
    See who holds it (nvidia-smi), end what is yours, or take another GPU with CUDA_VISIBLE_DEVICES. Memory that no
    process owns is held by one in another container or by a dead one: restarting that container, or the machine, frees
    it.

References
    https://docs.nvidia.com/deploy/nvidia-smi/index.html
"""

from __future__ import annotations

from typing import Optional

from cudadoctor.derive.surroundings import in_report
from cudadoctor.model.catalogue import gpu_numbers
from cudadoctor.parse.sizes import show_size
from cudadoctor.rules.api import (
    CERTAIN,
    ENVIRONMENT,
    ERROR,
    INFO,
    LIKELY,
    POSSIBLE,
    WARNING,
    Case,
    Outcome,
    Remedy,
    Rule,
)

RULE = Rule(
    id="CD505",
    name="memory-held-by-others",
    title="Other processes hold the GPU's memory",
    severity=ERROR,
    blame=ENVIRONMENT,
    follows_from=("CD118", "CD614"),
    precedence=54,
)

_GIB = 1 << 30
_OOM = "symptom.cuda_out_of_memory"
_ENGINE = "symptom.engine_memory_share"
_KEPT = "symptom.memory_not_released"
_BUSY = "symptom.device_busy"
# Of the card. Below it the others are a desktop and small tools; from the second on little is left for anybody.
_MUCH = 0.25
_FULL = 0.9
# Free memory below this share serves nobody: the driver hands it out in blocks.
_LEFT_OVER = 0.03
# What CUDA's context and its libraries take in a process, beside torch's own memory, at most.
_CONTEXT = 3 << 28
# What a desktop and the driver hold before an engine starts, at most.
_DESKTOP = 0.12


def judge(case: Case) -> Outcome:
    found = _by_torch(case) or _by_engine(case)
    if found is not None:
        return found
    kept = case.fact(_KEPT).is_known
    wanted = next((name for name in (_OOM, _BUSY) if case.fact(name).is_known), None)
    readable = False
    for index in gpu_numbers(case.facts):
        prefix = f"gpu.{index}."
        total, used = case.value(prefix + "memory_total"), case.value(prefix + "memory_used")
        if not total or used is None:
            continue
        readable = True
        listed = case.value(prefix + "processes", [])
        share = used / total
        name = case.value(prefix + "name", f"GPU {index}")
        evidence = (prefix + "memory_used", prefix + "memory_total", prefix + "processes")
        if wanted is not None and share >= _MUCH and _device(case) in (None, index):
            return _with_complaint(case, index, name, wanted, evidence, listed)
        if wanted is None and share >= _FULL and listed and not in_report(case):
            return case.failed(
                f"the {name} is nearly full: {show_size(used)} of {show_size(total)}, held by {_who(listed)}",
                evidence,
                severity=INFO,
            )
    if kept and (wanted is not None or not readable):
        return _kept(case, wanted)
    if not readable:
        if wanted is not None:
            return case.undecided("a program lacked GPU memory; who holds it is not shown (nvidia-smi)", (wanted,))
        return case.skipped("nothing tells of GPU memory")
    return case.passed("nobody else holds much of a GPU's memory", ("gpu.0.memory_used",))


def _by_torch(case: Case) -> Optional[Outcome]:
    """torch names what others hold: of the GPU's memory, much, and it would have sufficed."""
    total, free, others = (case.value(f"oom.{name}") for name in ("total", "free", "others"))
    tried, process = case.value("oom.tried"), case.value("oom.process")
    reserved, fact = case.value("oom.reserved"), "oom.others"
    if others is None and None not in (total, free, process):
        others, fact = total - free - process, "oom.process"
    if others is None and process is None and None not in (total, free, reserved):
        # torch before 2.1 does not say what its process holds beside torch's own memory.
        others, fact = total - free - reserved, "oom.reserved"
    if not total or others is None or others + (free or 0) < (tried or 0) or _was_free(total, free, tried):
        return None
    if others < _MUCH * total + (_CONTEXT if fact == "oom.reserved" else 0):
        return None
    about = "about " if fact == "oom.reserved" else ""
    return _failed(
        case,
        f"other processes hold {about}{show_size(others)} of the GPU's {show_size(total)}",
        tuple(name for name in (fact, "oom.total", "oom.free", _OOM) if case.fact(name).is_known),
        CERTAIN if fact == "oom.others" else LIKELY,
        case.value("oom.device"),
    )


def _kept(case: Case, wanted: Optional[str]) -> Outcome:
    """Somebody tells that memory stayed taken when its program had ended."""
    return case.failed(
        "a program has ended, and its GPU memory is still held: by a child process, another container, or a dead one",
        (_KEPT, *((wanted,) if wanted else ())),
        certainty=LIKELY if wanted else POSSIBLE,
        fixes=(
            Remedy(
                "manual",
                {
                    "title": "Find what still holds the GPU",
                    "text": "nvidia-smi shows only what it can see. On Linux ask the device files, and end what is "
                    "yours:\n    sudo fuser -v /dev/nvidia*\nWhat no process owns goes with the container that "
                    "it ran in, or with a restart of the machine.",
                    "kind": "manual",
                    "id": "find-holders",
                    "effect": dict.fromkeys((_KEPT, *((wanted,) if wanted else ()))),
                },
            ),
        ),
        not_helping=("torch.cuda.empty_cache(): it gives back its own process's memory only",),
    )


def _was_free(total: int, free: Optional[int], tried: Optional[int]) -> bool:
    """Whether what was asked for was there: then others did not keep it. A card's last percents are no room."""
    return bool(tried) and free is not None and free >= max(tried or 0, _LEFT_OVER * total)


def _by_engine(case: Case) -> Optional[Outcome]:
    """vLLM at its start: before it has taken anything."""
    said = case.value(_ENGINE, {})
    try:
        free, total = float(said["free"]), float(said["total"])
    except (KeyError, ValueError, TypeError):
        return None
    if total <= 0 or total - free < _DESKTOP * total:
        return None
    return _failed(
        case,
        f"before the engine started, other processes held {total - free:.1f} of the GPU's {total:.1f} GiB",
        (_ENGINE,),
        LIKELY,
        None,
    )


def _device(case: Case) -> Optional[int]:
    number: Optional[int] = case.value("oom.device")
    return number


def _with_complaint(
    case: Case, index: int, name: str, wanted: str, evidence: tuple[str, ...], listed: list[dict[str, object]]
) -> Outcome:
    """A program complained, and the GPU holds much now. On a live machine the program has ended by then; in a report it
    may be the very one that is listed."""
    used, total = case.value(f"gpu.{index}.memory_used"), case.value(f"gpu.{index}.memory_total")
    if in_report(case):
        certainty, severity = POSSIBLE, WARNING
        many = len(listed) > 1
        message = f"the {name} holds {show_size(used)} of {show_size(total)}" + (
            f", by {len(listed)} processes: other ones may hold what the program lacked" if many else ""
        )
        if not listed and case.fact(f"gpu.{index}.processes").is_known:
            message += ", and no process of it is listed: one in another container, or a dead one"
            certainty = LIKELY if wanted == _OOM else POSSIBLE
    else:
        certainty, severity = LIKELY, ERROR
        message = (
            f"{_who(listed)} hold{'s' if len(listed) < 2 else ''} {show_size(used)} of the {name}'s {show_size(total)}"
        )
    return _failed(case, message, (wanted, *evidence), certainty, index, severity)


def _who(listed: list[dict[str, object]]) -> str:
    if not listed:
        return "a process that is not listed"
    pids = [f"{row.get('name') or 'process'} {row.get('pid')}" for row in listed[:3]]
    return ", ".join(pids) + (f" and {len(listed) - 3} more" if len(listed) > 3 else "")


def _failed(
    case: Case,
    message: str,
    evidence: tuple[str, ...],
    certainty: str,
    index: Optional[int],
    severity: Optional[str] = None,
) -> Outcome:
    windows = case.value("system.os") == "windows"
    end = "Stop-Process -Id PID" if windows else "kill PID"
    other = _free_gpu(case, index)
    instead = ""
    if other is not None:
        setting = f"$env:CUDA_VISIBLE_DEVICES = '{other}'" if windows else f"export CUDA_VISIBLE_DEVICES={other}"
        instead = f"\nOr take GPU {other}, which has room: {setting}"
    gone = (_OOM, _ENGINE, _BUSY, "oom.others", "oom.process", "oom.reserved")
    effect: dict[str, object] = dict.fromkeys(gone)
    if index is not None:
        effect.update({f"gpu.{index}.memory_used": 0, f"gpu.{index}.processes": []})
    return case.failed(
        message,
        evidence,
        certainty=certainty,
        severity=severity,
        data={"gpu": index},
        fixes=(
            Remedy(
                "manual",
                {
                    "title": "End the processes that hold the memory",
                    "text": "See who holds it:\n    nvidia-smi "
                    "--query-compute-apps=pid,process_name,used_memory --format=csv\nthen end what is yours (a "
                    f"notebook kernel, a run that hangs):\n    {end}{instead}",
                    "kind": "manual",
                    "effect": effect,
                },
            ),
        ),
        not_helping=("a smaller batch, or PYTORCH_CUDA_ALLOC_CONF: the memory is not this program's",),
    )


def _free_gpu(case: Case, taken: Optional[int]) -> Optional[int]:
    """Another GPU that is nearly empty, by nvidia-smi's number."""
    for index in gpu_numbers(case.facts):
        total, used = case.value(f"gpu.{index}.memory_total"), case.value(f"gpu.{index}.memory_used")
        if index != taken and taken is not None and total and used is not None and used < _DESKTOP * total:
            return index
    return None
