"""A GPU's NVLinks are not up

What it checks
    Whether NVLink is there and up on each GPU that the job sees, where gpu.nvlink of the policy asks for it: NVML's
    word on each link, the registration with the NVLink fabric (cards behind NVSwitches), or a topology table of
    nvidia-smi (topo -m). Some boards leave links unused; a card with more links down than the others has lost one.

Why it matters
    Without NVLink the GPUs exchange gradients over PCIe, at a tenth of the speed and less: the job runs, slowly.

How to fix
    nvidia-smi nvlink -s shows the links, and the kernel log their faults (Xid 74). A link that stays down is the
    machine's: reset the GPUs as root, or take another node. On machines with NVSwitches the fabric manager sets them
    up. Cards without NVLink: ask for other ones.

References
    https://docs.nvidia.com/deploy/nvidia-smi/index.html
    https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/index.html
"""

from __future__ import annotations

from typing import Optional

from cudadoctor.derive.policy import NOT_ASKED, each_gpu, gpu_name, seen
from cudadoctor.rules.api import ERROR, MACHINE, Case, Outcome, Remedy, Rule
from cudadoctor.rules.causes import NO_ANSWERING_DRIVER

RULE = Rule(
    id="CD016",
    name="gpu-nvlink",
    title="A GPU's NVLinks are not up",
    severity=ERROR,
    blame=MACHINE,
    chain=True,
    blocked_by=NO_ANSWERING_DRIVER,
    follows_from=("CD122", "CD116"),
    precedence=46,
)

_ASKED = "policy.gpu.nvlink"
_LINKS = "smi.links"
_REGISTERED = "completed"
_PENDING = ("not-started", "in-progress")


def judge(case: Case) -> Outcome:
    if not case.value(_ASKED, False):
        return case.skipped(NOT_ASKED)
    here = case.derived(seen)
    if here.how_many.is_known and here.how_many.get() == 1:
        return case.passed("a single GPU needs no link", (_ASKED, *here.facts))
    links = case.fact(_LINKS)
    if links.is_known and links.get():
        return _by_table(case, links.get())
    fabric = each_gpu(case, "fabric_state", lambda state: _registered(state))
    facts = (_ASKED, *fabric.facts)
    if fabric.ok is not False:
        told = _by_link(case)
        if told is not None:
            return told
    if fabric.ok:
        return case.passed("each GPU is registered with the NVLink fabric", facts)
    if fabric.ok is False:
        return case.failed(
            f"{gpu_name(case, fabric.worst)} is not registered with the NVLink fabric ({fabric.value})",
            facts,
            data={"gpu": fabric.worst, "value": fabric.value},
            fixes=(_look("systemctl status nvidia-fabricmanager and its log tell why it does not register the GPU."),),
        )
    return case.undecided("cannot tell whether NVLink joins the GPUs: nothing that was read shows it", facts)


def _registered(state: object) -> Optional[bool]:
    return True if state == _REGISTERED else False if state in _PENDING else None


def _by_link(case: Case) -> Optional[Outcome]:
    """What NVML says of the links; None where it says nothing of some GPU."""
    numbers = case.derived(seen).numbers
    told = [case.fact(f"gpu.{number}.nvlinks_down") for number in numbers]
    # One that is not told is no measure for the others.
    least = min((fact.get() for fact in told if fact.is_known), default=0)
    up = each_gpu(case, "nvlinks_up", lambda count: bool(count))
    if up.ok is None:
        return None
    if not up.ok:
        what = "no NVLink" if up.value is None else "no NVLink that is up"
        return case.failed(
            f"{gpu_name(case, up.worst)} has {what}",
            (_ASKED, *up.facts),
            data={"gpu": up.worst, "up": up.value or 0},
            fixes=(_look(_STATUS),),
        )
    down = each_gpu(case, "nvlinks_down", lambda count: None if count is None else count <= least)
    if down.ok is False:
        return case.failed(
            f"{gpu_name(case, down.worst)} has {down.value} of its NVLinks down, other GPUs have {least}",
            (_ASKED, *down.facts),
            data={"gpu": down.worst, "down": down.value},
            fixes=(_look(_STATUS),),
        )
    return case.passed("each GPU's NVLinks are up", (_ASKED, *up.facts)) if down.ok else None


def _by_table(case: Case, links: list[dict[str, object]]) -> Outcome:
    here = case.derived(seen)
    numbers = set(here.numbers) if here.how_many.is_known else None
    meant = [pair for pair in links if numbers is None or {pair.get("first"), pair.get("second")} <= numbers]
    for pair in meant:
        if not str(pair.get("link")).startswith("NV"):
            first, second = pair.get("first"), pair.get("second")
            words = f"GPU {first} and GPU {second} are joined by {pair.get('link')}, not by NVLink"
            if here.how_many.is_known and not here.sure:
                why = "it cannot be told whether CUDA_VISIBLE_DEVICES leaves both"
                return case.undecided(f"{words}, and {why}", (_ASKED, _LINKS, *here.facts))
            return case.failed(
                words,
                (_ASKED, _LINKS),
                data={"first": first, "second": second, "link": pair.get("link")},
                fixes=(_look("nvidia-smi topo -m shows how each pair is joined."),),
            )
    if not meant:
        return case.undecided("cannot tell whether NVLink joins the GPUs: the table has none of them", (_ASKED, _LINKS))
    return case.passed("NVLink joins all GPUs, as asked for", (_ASKED, _LINKS))


_STATUS = "nvidia-smi nvlink -s shows each link of each GPU, and the kernel log their errors."


def _look(first: str) -> Remedy:
    text = f"{first} Take another node meanwhile. GPUs that were built without NVLink are a matter of the policy."
    return Remedy("manual", {"title": "Find out why NVLink is not up", "text": text})
