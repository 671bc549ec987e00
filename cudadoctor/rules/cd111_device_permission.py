"""You may not open the GPU's device nodes

What it checks
    Whether the user may read and write /dev/nvidia*, and whether NVML refuses for want of permission.

Why it matters
    The nodes are open to everybody unless the administrator has restricted them, usually to the group video or render.
    Without access CUDA finds no device, though root sees it.

How to fix
    Become a member of the group that owns the nodes, and log in again. Where the restriction is not meant, the
    administrator lifts it (the module options NVreg_DeviceFileMode, _GID and _UID, or a udev rule).

References
    https://docs.nvidia.com/deploy/nvml-api/
    https://download.nvidia.com/XFree86/Linux-x86_64/latest/README/
"""

from __future__ import annotations

from cudadoctor.derive.driver import YES, answer
from cudadoctor.derive.gpus import NONE, presence
from cudadoctor.derive.surroundings import in_wsl, nvidia_nodes
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

_NVML_NO_PERMISSION = 4  # NVML_ERROR_NO_PERMISSION


def judge(case: Case) -> Outcome:
    if case.value("system.os") == "windows":
        return case.skipped("Windows has no device nodes")
    if case.derived(presence).state == NONE:
        return case.skipped("no NVIDIA GPU is here")
    if case.fact("device.nodes").is_unknown:
        if case.derived(answer).state == YES:
            return case.passed("the driver answers this user", case.derived(answer).evidence)
        return case.undecided(f"cannot look at the device nodes: {case.fact('device.nodes').reason}", ("device.nodes",))
    nodes = case.value("device.nodes", [])
    watched = [
        node
        for node in nodes
        if str(node.get("path")) in ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/dxg") or node in nvidia_nodes(case)
    ]
    closed = [node for node in watched if node.get("usable") is False]
    cards = nvidia_nodes(case)
    refused = [
        name
        for name, hit in (
            ("driver.nvml_error", case.value("driver.nvml_error") == _NVML_NO_PERMISSION),
            ("driver.smi_failure", case.value("driver.smi_failure") == "permission"),
        )
        if hit
    ]
    # A job may be given one card of several; a shared node (ctl, uvm) or all cards closed is what stops CUDA.
    shared_closed = [node for node in closed if node not in cards]
    if closed and (shared_closed or len(closed) >= len(cards)):
        return _failed(case, closed[0], ("device.nodes", "system.groups", *refused), CERTAIN)
    if refused:
        return case.failed(
            "the NVIDIA driver refuses this user: insufficient permissions",
            (*refused, "device.nodes"),
            certainty=LIKELY,
            fixes=_fixes(None),
        )
    if not watched and case.derived(answer).state != YES:
        return case.skipped("there are no device nodes")
    return case.passed("the device nodes are open to this user", ("device.nodes",))


def _failed(case: Case, node: dict[str, object], evidence: tuple[str, ...], certainty: str) -> Outcome:
    group = node.get("group")
    if in_wsl(case):
        group = None
    return case.failed(
        f"this user may not open {node.get('path')} (mode {node.get('mode')}, group {group or 'unknown'})",
        evidence,
        certainty=certainty,
        data={"path": node.get("path"), "mode": node.get("mode"), "group": group},
        fixes=_fixes(node),
        not_helping=("another torch build: root sees the card, this user does not",),
    )


def _fixes(node: dict[str, object] | None) -> tuple[Fix, ...]:
    mode = str(node.get("mode") or "") if node else ""
    group = node.get("group") if node else None
    group_may = len(mode) >= 2 and mode[-2] in "67"
    if group_may and group and group != "root":
        return (Remedy("join-group", {"group": str(group)}),)
    return (
        Remedy(
            "manual",
            {
                "title": "Ask the administrator for access to the GPU's device nodes",
                "text": "The nodes /dev/nvidia* are closed to this user. The module options NVreg_DeviceFileMode, "
                "NVreg_DeviceFileGID and NVreg_DeviceFileUID in /etc/modprobe.d, or a udev rule, set who may.",
                "kind": "setting",
                "needs": ["root"],
                "effect": {"device.nodes": [], "driver.nvml_error": None, "driver.smi_failure": None},
            },
        ),
    )
