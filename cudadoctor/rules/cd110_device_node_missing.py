"""A device node of the GPU is missing

What it checks
    Whether the nodes under /dev that CUDA opens are there: /dev/nvidia0 ..., /dev/nvidiactl, /dev/nvidia-uvm. They
    are looked at before any NVIDIA library runs, since these create nodes themselves when root loads them.

Why it matters
    Without its node a card cannot be opened. Without /dev/nvidia-uvm, nvidia-smi works and CUDA does not. On a machine
    of its own /dev/nvidia-uvm is made at the first use of CUDA, and its absence says nothing; in a container nobody
    makes it.

How to fix
    On the machine: nvidia-modprobe -c 0 -u, or nvidia-smi as root, makes them; the nvidia-persistenced service makes
    them at boot. Pass all of them into a container: --gpus all does, single --device options often forget
    /dev/nvidia-uvm. Apptainer shows the host's own /dev: make them on the host.

References
    https://docs.nvidia.com/cuda/cuda-installation-guide-linux/
    https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/
"""

from __future__ import annotations

from cudadoctor.derive.driver import IN_VAIN, YES, answer, cuda_works
from cudadoctor.derive.gpus import NONE, presence
from cudadoctor.derive.surroundings import in_container, in_report, in_wsl, nvidia_nodes, on_jetson
from cudadoctor.rules.api import ALLOCATION, CERTAIN, ERROR, LIKELY, MACHINE, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD110",
    name="device-node-missing",
    title="A device node of the GPU is missing",
    severity=ERROR,
    blame=MACHINE,
    chain=True,
    blocked_by=("CD705", "CD701", "CD501"),
    precedence=18,
)

# These share the host's /dev: what is missing in them is missing on the host.
_WITH_THE_HOSTS_NODES = ("apptainer", "charliecloud")


def judge(case: Case) -> Outcome:
    if case.value("system.os") in ("windows", "darwin") or in_wsl(case) or on_jetson(case):
        return case.skipped("this system has no /dev/nvidia nodes")
    if case.derived(presence).state == NONE:
        return case.skipped("no NVIDIA GPU is here")
    nodes = case.fact("device.nodes")
    answers = case.derived(answer).state == YES
    if case.fact("driver.module_loaded").value is False and not answers:
        return case.skipped("no module is loaded, so there is nothing to have nodes")
    if nodes.is_unknown:
        if answers and case.value("gpu.count", 0) > 0:
            return case.passed("NVML opens the cards", ("gpu.count",))
        if case.derived(cuda_works):
            return case.passed("torch finds a GPU: the nodes are there", ("torch.cuda_available",))
        if in_report(case) and answers and case.value("smi.gpus") and not _failing(case):
            return case.passed("nvidia-smi opens the cards", ("smi.gpus",))
        return case.undecided(f"cannot tell which device nodes there are: {nodes.reason}", ("device.nodes",))
    if in_report(case):
        return _reported(case)
    if in_container(case):
        return _in_container(case)
    if case.derived(nvidia_nodes):
        return case.passed("the device nodes are there", ("device.nodes",))
    if answers:
        return case.passed("the driver's library makes the device nodes when it needs them", ("device.nodes",))
    if case.fact("driver.module_loaded").is_unknown:
        return case.undecided("cannot tell whether the module is loaded", ("driver.module_loaded", "device.nodes"))
    return _failed(case, "the NVIDIA module is loaded and /dev/nvidia0 does not exist", LIKELY, MACHINE)


def _failing(case: Case) -> list[str]:
    """What programs say that cannot open the node of CUDA's memory."""
    said = [name for name in IN_VAIN if name != "symptom.driver_too_old" and case.fact(name).is_known]
    return [*said, *(["torch.cuda_available"] if case.value("torch.cuda_available") is False else [])]


def _reported(case: Case) -> Outcome:
    """A listing of /dev counts where it shows the card's node and its control node, so that it is whole."""
    paths = {str(node.get("path")) for node in case.value("device.nodes", [])}
    if not case.derived(nvidia_nodes) or "/dev/nvidiactl" not in paths:
        if in_container(case) and case.derived(nvidia_nodes):
            return _in_container(case)
        return case.undecided("which device nodes there are is not told in full", ("device.nodes",))
    if "/dev/nvidia-uvm" in paths:
        return case.passed("the device nodes are there", ("device.nodes",))
    failing = _failing(case)
    if not failing and not in_container(case):
        return case.passed("the card's nodes are there; nvidia-uvm is made at the first use of CUDA", ("device.nodes",))
    message = "/dev/nvidia-uvm is not there: nvidia-smi works without it, CUDA does not"
    blame = ALLOCATION if in_container(case) or case.fact("system.container").is_unknown else MACHINE
    return _failed(case, message, CERTAIN if in_container(case) and failing else LIKELY, blame)


def _in_container(case: Case) -> Outcome:
    """Nobody makes nodes inside a container: all that CUDA opens must have been passed in."""
    paths = {str(node.get("path")) for node in case.value("device.nodes", [])}
    if not case.derived(nvidia_nodes):
        return case.skipped("the container was given no GPU")
    for path, use in (
        ("/dev/nvidiactl", "every NVIDIA library opens it first"),
        ("/dev/nvidia-uvm", "nvidia-smi works without it, CUDA does not"),
    ):
        if path not in paths:
            from_host = case.value("system.container") in _WITH_THE_HOSTS_NODES
            message = f"{path} is not in this container: {use}"
            return _failed(case, message, CERTAIN, MACHINE if from_host else ALLOCATION)
    return case.passed("the device nodes are there", ("device.nodes",))


def _failed(case: Case, message: str, certainty: str, blame: str) -> Outcome:
    fix = Remedy("create-device-nodes", {})
    if in_report(case):
        text = (
            "Start the container with --gpus all, or name this node, too:\n"
            "    --device /dev/nvidia-uvm --device /dev/nvidia-uvm-tools\n"
            "Where the node is missing on the host itself:\n"
            "    sudo nvidia-modprobe -c 0 -u"
        )
        effect = {"device.nodes": [*case.value("device.nodes", []), *_missing(case)]}
        fix = Remedy(
            "manual", {"title": "Pass /dev/nvidia-uvm in", "text": text, "kind": "container", "effect": effect}
        )
    elif in_container(case) and blame == MACHINE:
        fix = Remedy(
            "manual",
            {
                "title": "Make the device nodes on the host",
                "text": "On the host: sudo nvidia-modprobe -c 0 -u. Then start the container again.",
                "kind": "container",
                "needs": ["root"],
                "effect": {"device.nodes": [*case.value("device.nodes", []), *_missing(case)]},
            },
        )
    return case.failed(
        message,
        ("device.nodes", "driver.module_loaded"),
        certainty=certainty,
        blame=blame,
        fixes=(fix,),
        not_helping=("another torch build: it cannot open what is not there",),
    )


def _missing(case: Case) -> list[dict[str, object]]:
    have = {node.get("path") for node in case.value("device.nodes", [])}
    return [
        {"path": path, "mode": "666", "uid": 0, "gid": 0, "group": "root", "usable": True, "device": device}
        for path, device in (("/dev/nvidiactl", "195:255"), ("/dev/nvidia-uvm", "511:0"))
        if path not in have
    ]
