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

from cudadoctor.derive.driver import YES, answer
from cudadoctor.derive.surroundings import in_container, in_wsl, nvidia_nodes
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
    if reply.state == YES and case.value("gpu.count") != 0:
        return case.passed("the container has its GPU", reply.evidence)
    nodes = case.fact("device.nodes")
    if nodes.is_unknown:
        return case.undecided(f"cannot tell which devices the container was given: {nodes.reason}", ("device.nodes",))
    if nvidia_nodes(case):
        if case.fact("driver.nvml_library").is_absent:
            return _failed(
                case,
                "the container has the GPU's device nodes and none of the driver's libraries",
                ("device.nodes", "driver.nvml_library", "env.NVIDIA_DRIVER_CAPABILITIES"),
                LIKELY,
            )
        return case.passed("the container was given device nodes of a GPU", ("device.nodes",))
    if in_wsl(case):
        return case.skipped("inside WSL the GPU comes by /dev/dxg")
    host = []
    if case.value("pci.gpus"):
        host.append("pci.gpus")
    if case.value("driver.module_loaded", False):
        host.append("driver.module_loaded")
    if not host and case.fact("pci.gpus").is_known:
        return case.skipped("the host has no NVIDIA GPU to pass in")
    if not host and case.fact("driver.module_loaded").is_unknown:
        return case.undecided("cannot tell whether the host has a GPU", ("pci.gpus", "driver.module_loaded"))
    if not case.value("driver.module_loaded", False) and case.fact("driver.module_loaded").is_known:
        return case.skipped("the host has no driver loaded")
    evidence = ["device.nodes", "driver.nvml_library", "system.container_evidence", *host]
    if case.fact("env.NVIDIA_VISIBLE_DEVICES").is_known:
        evidence.append("env.NVIDIA_VISIBLE_DEVICES")
    return _failed(
        case,
        "this container was started without a GPU: the host has one, and no device node was passed in",
        tuple(evidence),
        CERTAIN,
    )


def _failed(case: Case, message: str, evidence: tuple[str, ...], certainty: str) -> Outcome:
    driver = case.value("driver.module_version") or case.value("driver.procfs_version")
    effect: dict[str, object] = {
        "device.nodes": [
            {
                "path": path,
                "mode": "666",
                "uid": 0,
                "gid": 0,
                "group": "root",
                "usable": True,
                "device": device,
            }
            for path, device in (("/dev/nvidia0", "195:0"), ("/dev/nvidiactl", "195:255"), ("/dev/nvidia-uvm", "511:0"))
        ],
        "driver.nvml_library": "libnvidia-ml.so.1",
        "driver.nvml_error": None,
        "driver.smi_failure": None,
    }
    if driver:
        effect["driver.nvml_version"] = driver
    return case.failed(
        message,
        evidence,
        certainty=certainty,
        fixes=(Remedy("run-container-with-gpu", {"effect": effect}),),
        not_helping=(
            "installing a driver inside the container: it uses the host's",
            "another torch build: what torch says of the driver is misleading here",
        ),
    )
