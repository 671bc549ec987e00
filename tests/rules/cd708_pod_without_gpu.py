"""CD708: Kubernetes gives a pod no GPU."""

from __future__ import annotations

from cudadoctor.testing import container, fails, linux, passes, skips, unknown_when

RULE = "CD708"

REPORT = linux().only("system.os").set({"examination.kind": "report"})
KUBERNETES = REPORT.set({"scheduler.kind": "kubernetes"})
NO_DRIVER = {"symptom.no_driver_found": {"text": "Found no NVIDIA driver on your system"}}

CASES = [
    skips("no Kubernetes", linux()),
    passes("a pod with its GPU", container("kubernetes")),
    skips("a pod without one, looked at from inside: CD705", container("kubernetes").driver_fails(9, "no-driver", 9)),
    fails(
        "no node has one free",
        REPORT.set({"symptom.pod_gpu_unavailable": {"text": "2 Insufficient nvidia.com/gpu", "nodes": "2"}}),
        says="no node has a free GPU",
        severity="error",
        certainty="likely",
        blame="allocation",
        fix=("prepare-kubernetes-node", "request-gpu"),
    ),
    fails(
        "the runtime is not known",
        REPORT.set({"symptom.pod_runtime_missing": {"text": 'no runtime for "nvidia" is configured'}}),
        blame="machine",
        fix="prepare-kubernetes-node",
    ),
    fails(
        "the device plugin finds none",
        REPORT.set(
            {"symptom.device_plugin_failed": {"text": "If this is a GPU node, did you set the default runtime"}}
        ),
        says="device plugin",
        blame="machine",
    ),
    fails("a program in a pod finds no driver", KUBERNETES.set(NO_DRIVER), says="did not ask", certainty="likely"),
    fails(
        "the node's own nvidia-smi is fine",
        KUBERNETES.set({"driver.smi_version": "550.54.15", **NO_DRIVER}),
        certainty="possible",
    ),
    passes("its nvidia-smi is fine", KUBERNETES.set({"driver.smi_version": "550.54.15"})),
    skips("no driver, and no Kubernetes", REPORT.set(NO_DRIVER)),
    unknown_when("a report about pods, and no more", KUBERNETES),
    fails(
        "somebody speaks of Kubernetes, and no libcuda is found",
        REPORT.set(
            {"symptom.kubernetes_named": {"text": "in k8s"}, "symptom.libcuda_missing": {"text": "libcuda.so.1"}}
        ),
        says="probably given no GPU",
        certainty="possible",
        fix="request-gpu",
    ),
    skips("somebody speaks of Kubernetes", REPORT.set({"symptom.kubernetes_named": {"text": "in k8s"}})),
]
