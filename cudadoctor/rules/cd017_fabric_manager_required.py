"""The fabric manager that the job needs does not run

What it checks
    Whether the service nvidia-fabricmanager runs, where system.fabric_manager of the policy asks for it. Inside of a
    container the host's services are not seen; there it counts that each GPU is registered with the fabric.

Why it matters
    On machines with NVSwitches, CUDA starts on no GPU before the fabric manager has set them up (error 802, "system not
    yet initialized").

How to fix
    As root: systemctl enable --now nvidia-fabricmanager. Its version has to be that of the driver.

References
    https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/index.html
"""

from __future__ import annotations

from typing import Optional

from cudadoctor.derive.policy import NOT_ASKED, each_gpu
from cudadoctor.derive.surroundings import in_container
from cudadoctor.rules.api import ERROR, MACHINE, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD017",
    name="fabric-manager-required",
    title="The fabric manager that the job needs does not run",
    severity=ERROR,
    blame=MACHINE,
    chain=True,
    follows_from=("CD116",),
    precedence=23,
)

_ASKED, _SERVICE = "policy.system.fabric_manager", "driver.fabric_manager"


def judge(case: Case) -> Outcome:
    if not case.value(_ASKED, False):
        return case.skipped(NOT_ASKED)
    service = case.fact(_SERVICE)
    if not in_container(case):
        if service.value == "running":
            return case.passed("the fabric manager runs, as asked for", (_ASKED, _SERVICE))
        if not service.is_unknown:
            what = "is not installed" if service.is_absent else "does not run"
            remedy = "install-fabric-manager" if service.is_absent else "restart-service"
            parameters = {} if service.is_absent else {"service": "nvidia-fabricmanager"}
            return case.failed(
                f"the fabric manager {what}, and it is asked for",
                (_ASKED, _SERVICE),
                fixes=(Remedy(remedy, parameters),),
            )
    fabric = each_gpu(case, "fabric_state", _registered)
    if fabric.ok:
        return case.passed("each GPU is registered with the fabric", (_ASKED, *fabric.facts))
    why = "the host's services are not seen from a container" if in_container(case) else service.reason
    return case.undecided(f"cannot tell whether the fabric manager runs: {why}", (_ASKED, _SERVICE))


def _registered(state: object) -> Optional[bool]:
    return True if state == "completed" else None
