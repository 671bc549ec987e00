"""You may not open the GPU's device nodes

What it checks
    Whether the user may read and write /dev/nvidia*, and whether NVML refuses for want of permission.

Why it matters
    The nodes are open to everybody unless the administrator has restricted them, usually to the group video or render.
    Without access CUDA finds no device, though root sees it.

How to fix
    Become a member of the group that owns the nodes, and log in again. Where the restriction is not meant, the
    administrator lifts it (the module options NVreg_DeviceFileMode, _GID and _UID, or a udev rule). Give a container
    the group: docker run --group-add, podman run --group-add keep-groups.

References
    https://docs.nvidia.com/deploy/nvml-api/
    https://download.nvidia.com/XFree86/Linux-x86_64/latest/README/
"""

from __future__ import annotations

from typing import Any, Optional

from cudadoctor.derive.driver import YES, answer
from cudadoctor.derive.gpus import NONE, presence
from cudadoctor.derive.surroundings import in_container, in_wsl, nvidia_nodes
from cudadoctor.rules.api import CERTAIN, ERROR, LIKELY, MACHINE, Case, Fix, Outcome, Remedy, Rule

RULE = Rule(
    id="CD111",
    name="device-permission",
    title="You may not open the GPU's device nodes",
    severity=ERROR,
    blame=MACHINE,
    chain=True,
    blocked_by=("CD501",),
    follows_from=("CD705", "CD701"),
    precedence=15,
)

_SAID = "symptom.nvml_no_permission"
_NVML_NO_PERMISSION = 4  # NVML_ERROR_NO_PERMISSION
_SHARED = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/dxg")
_UVM = "/dev/nvidia-uvm"  # of all nodes, NVML opens every one but this


def judge(case: Case) -> Outcome:
    if case.value("system.os") in ("windows", "darwin"):
        return case.skipped("this system has no device nodes")
    if case.derived(presence).state == NONE:
        return case.skipped("no NVIDIA GPU is here")
    reply = case.derived(answer)
    works = reply.state == YES and case.value("gpu.count", 0) > 0
    closed = _closed(case)
    refused = tuple(
        name
        for name, hit in (
            ("driver.nvml_error", case.value("driver.nvml_error") == _NVML_NO_PERMISSION),
            ("driver.smi_failure", case.value("driver.smi_failure") == "permission"),
            (_SAID, case.fact(_SAID).is_known),
        )
        if hit
    )
    if works:
        closed = [node for node in closed if node.get("path") == _UVM]
    if closed:
        return _failed(case, closed[0], ("device.nodes", "system.groups", *refused))
    if refused and reply.state != YES:
        return case.failed(
            "the NVIDIA driver refuses this user: insufficient permissions",
            (*refused, "device.nodes"),
            certainty=LIKELY,
            fixes=_fixes(case, None),
        )
    nodes = case.fact("device.nodes")
    if reply.state == YES:
        return case.passed("the driver answers this user", reply.evidence)
    if nodes.is_unknown:
        return case.undecided(f"cannot look at the device nodes: {nodes.reason}", ("device.nodes",))
    if not _watched(case):
        return case.skipped("there are no device nodes")
    return case.passed("the device nodes are open to this user", ("device.nodes",))


def _watched(case: Case) -> list[dict[str, Any]]:
    cards = case.derived(nvidia_nodes)
    return [n for n in case.value("device.nodes", []) if str(n.get("path")) in _SHARED or n in cards]


def _closed(case: Case) -> list[dict[str, Any]]:
    """The nodes that keep CUDA out: a shared one, or those of all cards. A job may be given one card of several."""
    closed = [node for node in _watched(case) if node.get("usable") is False]
    shared = [node for node in closed if str(node.get("path")) in _SHARED]
    cards = case.derived(nvidia_nodes)
    return closed if shared or (cards and all(card.get("usable") is False for card in cards)) else []


def _failed(case: Case, node: dict[str, Any], evidence: tuple[str, ...]) -> Outcome:
    group = None if in_wsl(case) else node.get("group")
    return case.failed(
        f"this user may not open {node.get('path')} (mode {node.get('mode')}, group {group or 'unknown'})",
        evidence,
        certainty=CERTAIN,
        data={"path": node.get("path"), "mode": node.get("mode"), "group": group},
        fixes=_fixes(case, node),
        not_helping=("another torch build: it opens the same nodes",),
    )


def _fixes(case: Case, node: Optional[dict[str, Any]]) -> tuple[Fix, ...]:
    mode = str(node.get("mode") or "") if node else ""
    group = str(node.get("group") or "") if node else ""
    may = len(mode) >= 2 and mode[-2] in "67" and group not in ("", "root", "nobody", "nogroup")
    # Who is a member already gains nothing from joining.
    if may and not in_container(case) and group not in case.value("system.groups", []):
        return (Remedy("join-group", {"group": group}),)
    text = (
        "The nodes /dev/nvidia* are closed to this user. The module options NVreg_DeviceFileMode, NVreg_DeviceFileGID "
        "and NVreg_DeviceFileUID in /etc/modprobe.d, or a udev rule, set who may."
    )
    if in_container(case):
        text = (
            "The nodes /dev/nvidia* are closed to the container's user. Give it their group: docker run --group-add "
            "with the number of the group on the host, podman run --group-add keep-groups. Or open the nodes on the "
            "host (NVreg_DeviceFileMode in /etc/modprobe.d)."
        )
    nodes = [dict(entry, usable=True) for entry in case.value("device.nodes", [])]
    return (
        Remedy(
            "manual",
            {
                "title": "Get access to the GPU's device nodes",
                "text": text,
                "kind": "setting",
                "needs": ["root"],
                "effect": {"device.nodes": nodes, **dict.fromkeys(("driver.nvml_error", "driver.smi_failure", _SAID))},
            },
        ),
    )
