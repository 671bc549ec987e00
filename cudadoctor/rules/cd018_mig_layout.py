"""A GPU is split, or not split, otherwise than the job needs

What it checks
    Whether MIG mode is on and how many MIG devices each GPU has, against gpu.mig and gpu.mig_devices of the policy. A
    card that has no MIG mode counts as one with MIG off.

Why it matters
    A job that wants whole cards sees one part of a card with a part of its memory, or none at all. After a reboot MIG
    devices are gone unless something makes them anew.

How to fix
    As root, on an idle GPU: nvidia-smi -i 0 -mig 0 (or 1), then nvidia-smi mig -cgi PROFILES -C. A service such as
    nvidia-mig-manager makes the layout at each start. A job asks for the kind that it wants (--gres=gpu:1g.10gb:1).

References
    https://docs.nvidia.com/datacenter/tesla/mig-user-guide/
"""

from __future__ import annotations

from typing import Optional

from cudadoctor.derive.policy import NOT_ASKED, each_gpu, gpu_name, in_range, plainly
from cudadoctor.rules.api import ERROR, MACHINE, Case, Outcome, Remedy, Rule
from cudadoctor.rules.causes import NO_ANSWERING_DRIVER

RULE = Rule(
    id="CD018",
    name="mig-layout",
    title="A GPU is split, or not split, otherwise than the job needs",
    severity=ERROR,
    blame=MACHINE,
    chain=True,
    blocked_by=NO_ANSWERING_DRIVER,
    follows_from=("CD119",),
    precedence=24,
)

_MODE, _DEVICES = "policy.gpu.mig", "policy.gpu.mig_devices"


def judge(case: Case) -> Outcome:
    asked = [name for name in (_MODE, _DEVICES) if case.fact(name).is_known]
    if not asked:
        return case.skipped(NOT_ASKED)
    if _MODE in asked:
        wanted_mode: bool = case.value(_MODE)
        mode = each_gpu(case, "mig_mode", lambda value: bool(value) is wanted_mode)
        if mode.ok is None:
            return case.undecided(f"cannot tell whether MIG is on: {mode.reason}", (_MODE, *mode.facts))
        if not mode.ok:
            is_on, wanted = ("off", "on") if wanted_mode else ("on", "off")
            return case.failed(
                f"MIG is {is_on} on {gpu_name(case, mode.worst)}, and asked to be {wanted}",
                (_MODE, *mode.facts),
                data={"gpu": mode.worst, "wanted": wanted_mode},
                fixes=(_switch(mode.worst, wanted_mode),),
            )
    if _DEVICES in asked:
        count = str(case.value(_DEVICES))
        devices = each_gpu(case, "mig_devices", lambda value: _fits(value, count))
        if devices.ok is None:
            return case.undecided(
                f"cannot tell the number of MIG devices: {devices.reason}", (_DEVICES, *devices.facts)
            )
        if not devices.ok:
            return case.failed(
                f"{gpu_name(case, devices.worst)} has {devices.value or 0} MIG devices, {plainly(count)} asked for",
                (_DEVICES, *devices.facts),
                data={"gpu": devices.worst, "value": devices.value or 0, "wanted": count},
                fixes=(
                    Remedy(
                        "manual",
                        {
                            "title": "Make the MIG devices that are asked for",
                            "text": f"With nothing running on the GPU: nvidia-smi mig -i {devices.worst} -lgip lists "
                            f"the profiles, nvidia-smi mig -i {devices.worst} -cgi PROFILE,PROFILE,... -C makes "
                            "devices. A job takes another node meanwhile.",
                            "needs": ["root"],
                        },
                    ),
                ),
            )
    return case.passed("MIG is set up as asked for", tuple(asked))


def _switch(gpu: Optional[int], on: bool) -> Remedy:
    can = " A card that has no MIG is the wrong card." if on else ""
    return Remedy(
        "manual",
        {
            "title": f"Switch MIG {'on' if on else 'off'}",
            "text": f"With nothing running on the GPU: nvidia-smi -i {gpu} -mig {int(on)}. Where it stays pending, "
            f"reboot. A job takes another node meanwhile.{can}",
            "needs": ["root"],
        },
    )


def _fits(value: Optional[int], wanted: str) -> Optional[bool]:
    """A card without MIG has no MIG devices."""
    return in_range(value or 0, wanted)
