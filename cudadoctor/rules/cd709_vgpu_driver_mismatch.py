"""Guest and host of a virtual GPU do not fit each other

What it checks
    Whether the vGPU manager or a guest reported that their drivers do not fit, whether the numbers of both are of one
    branch, and whether a vGPU whose kind has no CUDA (A and B profiles) is used for it.

Why it matters
    A virtual GPU needs two drivers of one vGPU release: the manager on the host and the GRID driver in the guest. The
    plain driver does not work in a guest, and a guest that is newer than its host is refused. CUDA is offered by Q and
    C profiles only.

How to fix
    Install in the guest the GRID driver out of the same vGPU release as the host's manager (its package holds both).
    Ask for a C or Q profile where CUDA is wanted.

References
    https://docs.nvidia.com/vgpu/latest/
"""

from __future__ import annotations

from typing import Optional

from cudadoctor.derive.gpus import gpus
from cudadoctor.model.pattern import pattern
from cudadoctor.rules.api import CERTAIN, ERROR, LIKELY, MACHINE, POSSIBLE, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD709",
    name="vgpu-driver-mismatch",
    title="Guest and host of a virtual GPU do not fit each other",
    severity=ERROR,
    blame=MACHINE,
    precedence=7,
)

_DIFFER, _PLUGIN, _HOST, _GUEST = (
    "symptom.vgpu_versions_differ",
    "symptom.vgpu_plugin_failed",
    "symptom.vgpu_host_driver",
    "symptom.vgpu_guest_driver",
)
# What a guest reports whose vGPU does not work.
_UNSUPPORTED, _NAMED = "symptom.operation_not_supported", "symptom.vgpu_named"
_NO_CUDA = ("symptom.operation_not_supported", "symptom.no_devices_found", "symptom.no_cuda_device")
# A profile's name ends in its size and kind: A16-2Q, GRID V100D-8C.
_PROFILE = pattern(r"-\d{1,3}(?P<kind>[ABCQ])\Z")
_WITHOUT_CUDA = "AB"


def judge(case: Case) -> Outcome:
    host, guest = case.value(_HOST, {}).get("host"), case.value(_GUEST, {}).get("guest")
    shown = [name for name in (_HOST, _GUEST) if case.fact(name).is_known]
    numbers = f" (guest {guest}, host {host})" if host and guest else ""
    if case.fact(_DIFFER).is_known:
        return _failed(
            case, f"guest and host of the virtual GPU do not fit each other{numbers}", [_DIFFER, *shown], CERTAIN
        )
    if host and guest:
        theirs, ours = _branch(case, host), _branch(case, guest)
        if theirs is None or ours is None:
            return case.undecided(f"cannot tell which branches these drivers are of{numbers}", shown)
        if theirs == ours:
            return case.passed(f"guest and host are of one branch{numbers}", shown)
        # A host may serve guests of the release before it.
        certainty = LIKELY if ours > theirs or case.fact(_PLUGIN).is_known else POSSIBLE
        which = "a newer" if ours > theirs else "an older"
        return _failed(case, f"the guest's driver is of {which} branch than the host's{numbers}", shown, certainty)
    profile = next((gpu.label for gpu in case.derived(gpus) if _PROFILE.search(gpu.label)), None)
    trouble = [name for name in _NO_CUDA if case.fact(name).is_known]
    if profile is not None and trouble:
        kind = _PROFILE.search(profile)
        if kind is not None and kind.group("kind") in _WITHOUT_CUDA:
            message = f"{profile} is a profile without CUDA: only Q and C profiles have it"
            return _failed(case, message, [*trouble, "smi.gpus"], LIKELY)
        if case.fact(_UNSUPPORTED).is_known:
            message = f"{profile} does not know the call: unified memory is off for most virtual GPUs"
            return _failed(case, message, [*trouble, "smi.gpus"], POSSIBLE, _allow_unified_memory())
        message = f"CUDA does not work on the virtual GPU {profile}: guest and host may be of different vGPU releases"
        return _failed(case, message, [*trouble, "smi.gpus"], POSSIBLE)
    unsupported = case.fact(_UNSUPPORTED).is_known
    if unsupported and case.fact(_NAMED).is_known:
        message = (
            "a virtual GPU does not know the call: unified memory is off for most of them, unless the host allows it"
        )
        return _failed(case, message, [_UNSUPPORTED, _NAMED], POSSIBLE, _allow_unified_memory())
    if case.fact(_PLUGIN).is_known:
        return _failed(
            case, "the virtual GPU does not start: guest and host may not fit each other", [_PLUGIN], POSSIBLE
        )
    if host:
        return case.undecided(f"the host's vGPU manager is {host}; the guest's driver is not told", shown)
    if profile is not None:
        return case.passed(f"{profile} is a virtual GPU, and nothing is reported against it", ["smi.gpus"])
    return case.skipped("no virtual GPU is seen")


def _branch(case: Case, version: str) -> Optional[int]:
    """The branch's number: Windows guests have numbers of their own."""
    number = version if "." in version else f"{version}.00"
    for system in ("linux", "windows"):
        row = case.matrix.branch_of(number, system)
        if row is not None:
            return row.linux
    return None


def _allow_unified_memory() -> Remedy:
    return Remedy(
        "manual",
        {
            "title": "Let the virtual GPU have unified memory",
            "text": "On the host, for this virtual machine: the vGPU plugin's parameter enable_uvm=1 (vSphere: "
            "pciPassthru0.cfg.enable_uvm = 1), with a C or Q profile, and start the machine anew. Where the profile "
            "does not allow it, the program must do without cudaMallocManaged and virtual memory management.",
            "kind": "setting",
            "id": "vgpu-unified-memory",
            "needs": ["root"],
            "effect": {_UNSUPPORTED: None},
        },
    )


def _failed(case: Case, message: str, evidence: list[str], certainty: str, *first: Remedy) -> Outcome:
    return case.failed(
        message,
        evidence,
        certainty=certainty,
        fixes=first
        or (
            Remedy(
                "manual",
                {
                    "title": "Install guest and host drivers of one vGPU release",
                    "text": "The release notes of the host's vGPU manager name the guest drivers that fit; both are in "
                    "the same package of NVIDIA's licensing portal. In the guest, remove the plain driver first.",
                    "kind": "driver",
                    "id": "matching-vgpu-driver",
                    "needs": ["root"],
                    "effect": {_DIFFER: None, _PLUGIN: None},
                },
            ),
        ),
        not_helping=("the newest plain driver in the guest: only the GRID driver of the host's release works",),
    )
