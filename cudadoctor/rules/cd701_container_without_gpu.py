"""The container was started without its GPU

What it checks
    Whether this process runs in a container into which neither the card's device nodes nor the driver's libraries were
    mounted, on a host that has a card or a loaded driver.

Why it matters
    A container sees a GPU only where the runtime is told to pass it in. torch then reports that no driver is found, or
    that the driver is too old, and both are misleading.

How to fix
    Start it again with its GPU: docker run --gpus all, podman run --device nvidia.com/gpu=all, apptainer exec --nv, or
    in Kubernetes a limit of nvidia.com/gpu: 1. On the host, the NVIDIA Container Toolkit must be installed.

References
    https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/
    https://apptainer.org/docs/user/main/gpu.html
"""

from __future__ import annotations

from cudadoctor.derive.driver import NO, YES, answer
from cudadoctor.derive.gpus import LENT_TO_GUESTS
from cudadoctor.derive.surroundings import in_container, in_wsl, jetson_nodes, nvidia_nodes, on_jetson
from cudadoctor.rules.api import ALLOCATION, CERTAIN, ERROR, LIKELY, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD701",
    name="container-without-gpu",
    title="The container was started without its GPU",
    severity=ERROR,
    blame=ALLOCATION,
    precedence=2,
)


def judge(case: Case) -> Outcome:
    if not in_container(case):
        if case.fact("system.container").is_unknown:
            return case.undecided("cannot tell whether this is a container", ("system.container",))
        return case.skipped("not in a container")
    reply = case.derived(answer)
    nodes = case.fact("device.nodes")
    if nodes.is_unknown and reply.state != YES:
        return case.undecided(f"cannot tell which devices the container was given: {nodes.reason}", ("device.nodes",))
    if _given(case):
        if reply.state == NO and case.fact("driver.nvml_library").is_absent and not in_wsl(case):
            return _failed(
                case,
                "the GPU's device nodes are in this container, and none of the driver's libraries",
                ("device.nodes", "driver.nvml_library", "env.NVIDIA_DRIVER_CAPABILITIES"),
                LIKELY,
            )
        return case.passed("the container was given device nodes of a GPU", ("device.nodes",))
    if reply.state == YES and case.value("gpu.count") != 0:
        return case.passed("the container has its GPU", reply.evidence)
    return _without_nodes(case)


def _given(case: Case) -> bool:
    paths = {str(node.get("path")) for node in case.value("device.nodes", [])}
    return bool(nvidia_nodes(case) or jetson_nodes(case) or "/dev/dxg" in paths)


def _without_nodes(case: Case) -> Outcome:
    evidence = ["device.nodes", "driver.nvml_library", "system.container_evidence"]
    evidence += [name for name in ("env.NVIDIA_VISIBLE_DEVICES",) if case.fact(name).is_known]
    if in_wsl(case):
        message = "this container was started without a GPU: /dev/dxg, by which WSL lends one, is not here"
        return _failed(case, message, (*evidence, "system.wsl"), LIKELY)
    if on_jetson(case):
        message = "this container was started without the Jetson's GPU: none of its device nodes is here"
        return _failed(case, message, (*evidence, "system.kernel_release"), LIKELY)
    bus, loaded = case.fact("pci.gpus"), case.fact("driver.module_loaded")
    cards = [entry for entry in bus.value or () if entry.get("driver") not in LENT_TO_GUESTS]
    if bus.is_known and not cards and not loaded.value:
        return case.skipped("the host has no NVIDIA GPU to pass in")
    if loaded.is_known and not loaded.value:
        return case.skipped("the host has no driver loaded")
    if not cards and not loaded.value:
        return case.undecided("cannot tell whether the host has a GPU", ("pci.gpus", "driver.module_loaded"))
    evidence += [name for name, seen in (("pci.gpus", cards), ("driver.module_loaded", loaded.value)) if seen]
    message = "this container was started without a GPU: the host has one, and no device node was passed in"
    return _failed(case, message, tuple(evidence), CERTAIN if cards and loaded.value else LIKELY)


def _failed(case: Case, message: str, evidence: tuple[str, ...], certainty: str) -> Outcome:
    return case.failed(
        message,
        evidence,
        certainty=certainty,
        fixes=(Remedy("run-container-with-gpu", {"effect": _effect(case)}),),
        not_helping=(
            "installing a driver inside the container: it uses the host's",
            "another torch build: what torch says of the driver is misleading here",
        ),
    )


def _effect(case: Case) -> dict[str, object]:
    """What is seen from inside a container that has its GPU."""
    nodes = {"/dev/nvidia0": "195:0", "/dev/nvidiactl": "195:255", "/dev/nvidia-uvm": "511:0"}
    if in_wsl(case):
        nodes = {"/dev/dxg": "10:125"}
    elif on_jetson(case):
        nodes = {"/dev/nvgpu/igpu0/ctrl": "506:4", "/dev/nvmap": "10:120"}
    effect: dict[str, object] = {
        "device.nodes": [
            {"path": path, "mode": "666", "uid": 0, "gid": 0, "group": "root", "usable": True, "device": device}
            for path, device in nodes.items()
        ],
        "driver.nvml_library": "libnvidia-ml.so.1",
        "driver.nvml_error": None,
        "driver.smi_failure": None,
    }
    driver = case.value("driver.module_version") or case.value("driver.procfs_version")
    if driver:
        effect["driver.nvml_version"] = driver
    return effect
