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
    them at boot. For a container, make them on the host and start the container again with its GPU.

References
    https://docs.nvidia.com/cuda/cuda-installation-guide-linux/
    https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/
"""

from __future__ import annotations

from cudadoctor.derive.driver import YES, answer
from cudadoctor.derive.gpus import NONE, presence
from cudadoctor.derive.surroundings import in_container, in_wsl, nvidia_nodes
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


def judge(case: Case) -> Outcome:
    if case.value("system.os") != "linux" or in_wsl(case) or case.fact("system.jetson").is_known:
        return case.skipped("this system has no /dev/nvidia nodes")
    if case.derived(presence).state == NONE:
        return case.skipped("no NVIDIA GPU is here")
    nodes = case.fact("device.nodes")
    if case.fact("driver.module_loaded").value is False:
        return case.skipped("no module is loaded, so there is nothing to have nodes")
    if nodes.is_unknown:
        if case.derived(answer).state == YES and case.value("gpu.count", 0) > 0:
            return case.passed("NVML opens the cards", ("gpu.count",))
        return case.undecided(f"cannot tell which device nodes there are: {nodes.reason}", ("device.nodes",))
    paths = {str(node.get("path")) for node in case.value("device.nodes", [])}
    contained = in_container(case)
    if nvidia_nodes(case):
        if contained and "/dev/nvidia-uvm" not in paths:
            return _failed(
                case,
                "/dev/nvidia-uvm is not in this container: nvidia-smi works without it, CUDA does not",
                CERTAIN,
                ALLOCATION,
            )
        return case.passed("the device nodes are there", ("device.nodes",))
    if case.derived(answer).state == YES:
        return case.passed("the driver's library makes the device nodes when it needs them", ("device.nodes",))
    if case.fact("driver.module_loaded").is_unknown:
        return case.undecided("cannot tell whether the module is loaded", ("driver.module_loaded", "device.nodes"))
    return _failed(case, "the module is loaded and /dev/nvidia0 does not exist", LIKELY, MACHINE)


def _failed(case: Case, message: str, certainty: str, blame: str) -> Outcome:
    return case.failed(
        message,
        ("device.nodes", "driver.module_loaded"),
        certainty=certainty,
        blame=blame,
        fixes=(Remedy("create-device-nodes", {}),),
    )
