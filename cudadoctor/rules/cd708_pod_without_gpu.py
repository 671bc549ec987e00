"""The pod gets no GPU from Kubernetes

What it checks
    Whether Kubernetes says that no node has a free GPU ("Insufficient nvidia.com/gpu"), that the node's container
    runtime does not know the runtime nvidia, or that NVIDIA's device plugin finds no GPU on the node; and whether this
    process runs in a pod that was given none.

Why it matters
    A node offers GPUs only where three things are in order: the driver, the NVIDIA Container Toolkit as (default)
    runtime, and NVIDIA's device plugin. A pod gets one only where it asks for one. docker run --gpus all on the node
    may work all the while.

How to fix
    Ask for a GPU in the pod (resources, limits, nvidia.com/gpu: 1), and where nvidia is not the default runtime set
    runtimeClassName: nvidia. On the node: nvidia-ctk runtime configure --runtime=containerd --set-as-default (or
    docker, crio), restart it, and see kubectl describe node for nvidia.com/gpu under Allocatable. The GPU operator
    does all of this.

References
    https://github.com/NVIDIA/k8s-device-plugin
    https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/
    https://kubernetes.io/docs/tasks/manage-gpus/scheduling-gpus/
"""

from __future__ import annotations

from typing import Optional

from cudadoctor.derive.driver import YES, answer
from cudadoctor.derive.surroundings import in_report
from cudadoctor.rules.api import ALLOCATION, ERROR, LIKELY, MACHINE, POSSIBLE, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD708",
    name="pod-without-gpu",
    title="The pod gets no GPU from Kubernetes",
    severity=ERROR,
    blame=ALLOCATION,
    precedence=2,
)

_RUNTIME = "symptom.pod_runtime_missing"
_PLUGIN = "symptom.device_plugin_failed"
_NONE_FREE = "symptom.pod_gpu_unavailable"
# What a program says that finds no driver or GPU.
_IN_VAIN = (
    "symptom.no_driver_found",
    "symptom.no_cuda_gpus",
    "symptom.no_cuda_device",
    "symptom.container_driver_not_detected",
    "symptom.smi_not_found",
    "symptom.libcuda_missing",
    "symptom.nvml_library_missing",
)
_NAMED = "symptom.kubernetes_named"
_NOT_HELPING = ("another image or torch build: the pod is given no GPU",)


def judge(case: Case) -> Outcome:
    if case.fact(_RUNTIME).is_known:
        why = "the node's container runtime does not know nvidia, so pods get no GPU"
        return _failed(case, why, (_RUNTIME,), MACHINE, LIKELY, node=True)
    if case.fact(_PLUGIN).is_known:
        why = "NVIDIA's device plugin finds no GPU on the node: nvidia is not its default runtime, or it has no driver"
        return _failed(case, why, (_PLUGIN,), MACHINE, LIKELY, node=True)
    if case.fact(_NONE_FREE).is_known:
        why = "no node has a free GPU for the pod: all are taken, or the nodes offer none (device plugin, runtime)"
        return _failed(case, why, (_NONE_FREE,), ALLOCATION, LIKELY, node=True)
    kubernetes = case.value("scheduler.kind") == "kubernetes" or case.value("system.container") == "kubernetes"
    if not kubernetes:
        return _by_words(case) or case.skipped("not under Kubernetes")
    if not in_report(case):
        # CD705 and CD701 see what this very pod was given.
        if case.derived(answer).state == YES:
            return case.passed("the pod has its GPU", case.derived(answer).evidence)
        return case.skipped("what this pod was given is judged by CD705 and CD701")
    failing = next((name for name in _IN_VAIN if case.fact(name).is_known), None)
    shown = "scheduler.kind" if case.fact("scheduler.kind").is_known else "system.container"
    if failing is not None and case.derived(answer).state != YES:
        why = "the pod was given no GPU: it did not ask for one, or the node's default runtime is not nvidia"
        return _failed(case, why, (failing, shown), ALLOCATION, LIKELY, node=False)
    if failing is not None:
        why = "the node has a GPU, and the pod gets none: its default runtime is not nvidia, or the pod asked for none"
        return _failed(case, why, (failing, shown, "driver.smi_version"), ALLOCATION, POSSIBLE, node=False)
    if case.derived(answer).state == YES:
        return case.passed("the driver answers", case.derived(answer).evidence)
    return case.undecided("what the pod was given is not told", (shown, "scheduler.gpus_allocated"))


def _by_words(case: Case) -> Optional[Outcome]:
    """Somebody speaks of Kubernetes beside a program that finds no driver."""
    failing = next((name for name in _IN_VAIN if case.fact(name).is_known), None)
    if failing is None or not case.fact(_NAMED).is_known or not in_report(case):
        return None
    why = "the pod was probably given no GPU: it did not ask for one, or the node's default runtime is not nvidia"
    return _failed(case, why, (failing, _NAMED), ALLOCATION, POSSIBLE, node=False)


def _failed(case: Case, message: str, evidence: tuple[str, ...], blame: str, certainty: str, *, node: bool) -> Outcome:
    effect: dict[str, object] = {name: None for name in evidence if name.startswith("symptom.")}
    ask = Remedy("request-gpu", {"scheduler": "kubernetes", **({} if node else {"effect": effect})})
    prepare = Remedy("prepare-kubernetes-node", {"effect": effect})
    return case.failed(
        message,
        evidence,
        certainty=certainty,
        blame=blame,
        fixes=(prepare, ask) if node else (ask, prepare),
        not_helping=_NOT_HELPING,
    )
