"""The container was started without its GPU

What it checks
    Whether this process runs in a container into which neither the card's device nodes nor the driver's libraries were
    mounted, on a host that has a card or a loaded driver.

    In a report: what the container engine and the toolkit said, and whether the command that started the container
    asks for GPUs.

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

from typing import Optional

from cudadoctor.derive.driver import NO, YES, answer
from cudadoctor.derive.gpus import LENT_TO_GUESTS
from cudadoctor.derive.surroundings import in_container, in_report, in_wsl, jetson_nodes, nvidia_nodes, on_jetson
from cudadoctor.rules.api import ALLOCATION, CERTAIN, ERROR, LIKELY, MACHINE, POSSIBLE, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD701",
    name="container-without-gpu",
    title="The container was started without its GPU",
    severity=ERROR,
    blame=ALLOCATION,
    precedence=2,
)


# What a program says in a container that was given no GPU; each has other causes, too.
_NO_GPU = (
    "symptom.no_driver_found",
    "symptom.driver_insufficient",
    "symptom.no_cuda_device",
    "symptom.no_cuda_gpus",
    "symptom.cuda_init_failed",
    "symptom.libcuda_missing",
    "symptom.nvml_library_missing",
    "symptom.smi_not_found",
)
# Of these a driver is not even there.
_NO_DRIVER = ("symptom.no_driver_found", "symptom.smi_not_found", "symptom.libcuda_missing")
_TOOLKIT, _HOOK, _CGROUP, _BANNER, _NV, _ASKED = (
    "symptom.container_toolkit_missing",
    "symptom.container_hook_failed",
    "symptom.container_cgroup_denied",
    "symptom.container_driver_not_detected",
    "symptom.apptainer_no_nv",
    "container.gpus_requested",
)
_NO_SMI = "symptom.container_without_smi"
# Texts by which Docker says that it knows no way to pass a GPU in.
_ENGINE = ("could not select device driver", "runtime specified", "runtime name", "unknown flag: --gpus", "not found")
# What the toolkit's hook says that is the matter of another rule.
_OF_OTHERS = ("requirement error", "version mismatch", "no adapters were found", "driver not loaded")


def judge(case: Case) -> Outcome:
    told = _told(case)
    if told is not None:
        return told
    if not in_container(case):
        if in_report(case):
            return case.skipped("the text speaks of no container without a GPU")
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


def _told(case: Case) -> Optional[Outcome]:
    """What engine, toolkit and programs said of it; None where they said nothing."""
    engine = str(case.value(_TOOLKIT, {}).get("text", "")).lower()
    if any(words in engine for words in _ENGINE):
        message = (
            "Docker knows no way to pass a GPU in: the NVIDIA Container Toolkit is missing, or Docker was not told"
        )
        return _host(case, message, _TOOLKIT, LIKELY)
    if case.fact(_CGROUP).is_known:
        message = "the NVIDIA Container Toolkit is too old for this system's control groups, or may not change them"
        return _host(case, message, _CGROUP, LIKELY)
    reason = str(case.value(_HOOK, {}).get("reason", "")).lower()
    whole = reason + str(case.value(_HOOK, {}).get("stage", "")).lower()
    if reason and not any(words in whole for words in _OF_OTHERS):
        hook = _by_hook(case, reason)
        if hook is not None:
            return hook
    if case.fact(_BANNER).is_known:
        message = "the container was started without a GPU: its image says that it finds no driver"
        return _failed(case, message, (_BANNER,), LIKELY)
    trouble = tuple(name for name in _NO_GPU if case.fact(name).is_known)
    if case.value("torch.cuda_available") is False:
        trouble = (*trouble, "torch.cuda_available")
    if case.fact(_NV).is_known:
        message = "apptainer finds nothing of a driver on this host that it could bring into the container"
        if case.value(_ASKED):
            return case.failed(
                message,
                (_NV, _ASKED, *trouble),
                certainty=POSSIBLE,
                fixes=(_show_driver(case),),
                not_helping=("--nv: it was given",),
            )
        return _failed(case, message, (_NV, *trouble), POSSIBLE)
    if not trouble or not in_report(case):
        return None
    if case.fact(_NO_SMI).is_known:
        message = "the container was given no GPU: nvidia-smi, which the engine brings with it, is not there"
        return _failed(case, message, (_NO_SMI,), LIKELY)
    if case.value(_ASKED) is False:
        shown = ("container.image",) if case.fact("container.image").is_known else ()
        message = "the container was started without a GPU: the command does not ask for one"
        return _failed(case, message, (*trouble, _ASKED, *shown), LIKELY)
    if not case.fact(_ASKED).is_unknown or not any(name in trouble for name in _NO_DRIVER):
        return None
    spoken = tuple(name for name in ("container.image", "container.engine") if case.fact(name).is_known)
    if spoken and not in_container(case):
        message = "no driver is seen, and a container is spoken of: it was probably started without a GPU"
        return _failed(case, message, (*trouble, *spoken), POSSIBLE)
    if in_container(case):
        message = "no driver is seen in this container: it was probably started without a GPU"
        return _failed(case, message, (*trouble, "system.container"), LIKELY)
    return None


def _by_hook(case: Case, reason: str) -> Optional[Outcome]:
    works = case.fact("driver.smi_version").is_known
    evidence = (_HOOK, *(("driver.smi_version",) if works else ()))
    if "cgroup" in reason or "device rules" in reason:
        message = "the NVIDIA Container Toolkit is too old for this system's control groups, or may not change them"
        return _host(case, message, _HOOK, LIKELY)
    if "unknown device" in reason:
        message = "the container asks for a GPU that the host does not have"
        return case.failed(message, evidence, certainty=LIKELY, fixes=(Remedy("run-container-with-gpu"),))
    if "file exists" in reason:
        message = "the image holds driver files of its own, over which the toolkit cannot put the host's"
        return case.failed(message, evidence, certainty=LIKELY, fixes=(_without_driver_files(),))
    if "ldcache" in reason or "ldconfig" in reason:
        message = "the toolkit's ldconfig failed: its config.toml names another program than this system's"
        return _host(case, message, _HOOK, LIKELY)
    if "load library failed" in reason and works:
        message = "the toolkit finds no driver though the host has one: Docker runs apart (Docker Desktop, a snap)"
        return _host(case, message, _HOOK, LIKELY)
    if "load library failed" in reason and not in_wsl(case):
        message = (
            "the toolkit finds no driver: the host has none, or Docker runs apart from it (Docker Desktop, a snap)"
        )
        return _host(case, message, _HOOK, POSSIBLE)
    return None


def _host(case: Case, message: str, symptom: str, certainty: str) -> Outcome:
    """What has to be mended on the host."""
    return case.failed(
        message,
        (symptom,),
        certainty=certainty,
        blame=MACHINE,
        fixes=(Remedy("set-up-container-toolkit", {"effect": {symptom: None}}),),
        not_helping=(
            "installing a driver inside the container: it uses the host's",
            "another image or torch build: the container does not even start",
        ),
    )


def _without_driver_files() -> Remedy:
    return Remedy(
        "manual",
        {
            "title": "Take the driver's files out of the image",
            "text": "A Dockerfile that installs a driver (nvidia-driver-..., libnvidia-compute-..., cuda-drivers) puts "
            "files where the toolkit mounts the host's: install CUDA without its driver (cuda-toolkit-...).",
            "kind": "container",
            "id": "no-driver-in-image",
            "effect": {_HOOK: None},
        },
    )


def _show_driver(case: Case) -> Remedy:
    text = (
        "On the host nvidia-smi must work, and ldconfig -p | grep -E 'libcuda|libnvidia-ml' must list the driver's "
        "libraries; apptainer takes those that nvliblist.conf names. With the NVIDIA Container Toolkit on the host, "
        "--nvccli brings them in as well."
    )
    if on_jetson(case):
        text = (
            "A Jetson's driver has libraries of other names and in another folder: add them to apptainer's "
            "nvliblist.conf, or bring the folder in:\n    apptainer exec --nv -B /usr/lib/aarch64-linux-gnu/tegra "
            "IMAGE PROGRAM\nThe image must be one for this L4T."
        )
    return Remedy(
        "manual",
        {
            "title": "Let apptainer find the driver's libraries",
            "text": text,
            "kind": "container",
            "id": "apptainer-libraries",
            "effect": {_NV: None},
        },
    )


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
        fixes=(Remedy("run-container-with-gpu", {"runtime": _runtime(case), "effect": _effect(case)}),),
        not_helping=(
            "installing a driver inside the container: it uses the host's",
            "another torch build: what torch says of the driver is misleading here",
        ),
    )


def _runtime(case: Case) -> str:
    """The engine, where a report names one; empty: that of this container."""
    if case.fact(_NV).is_known:
        return "apptainer"
    return str(case.value("container.engine", ""))


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
