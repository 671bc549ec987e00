from __future__ import annotations

from typing import Any

import pytest

from cudadoctor.probes.container import PROBE

from .tables import ABSENT, DENIED, Unknown, check, machine

HOST = ["27 1 254:0 / / rw,relatime - ext4 /dev/nvme0n1p2 rw"]
LAYERED = "700 600 0:60 / / rw,relatime - overlay overlay rw,lowerdir=/l,upperdir=/u,workdir=/w"
DOCKER = [
    LAYERED,
    "710 700 254:0 /var/lib/docker/containers/0123/hosts /etc/hosts rw,relatime - ext4 /dev/nvme0n1p2 rw",
]
POD = [
    LAYERED,
    "710 700 254:0 /var/lib/kubelet/pods/0123/etc-hosts /etc/hosts rw,relatime - ext4 /dev/nvme0n1p2 rw",
]
PODMAN = [
    LAYERED,
    "710 700 0:25 /containers/overlay-containers/0123/userdata/hosts /etc/hosts rw,nosuid - tmpfs tmpfs rw",
]
OTHER_ENGINE = [LAYERED, "710 700 254:0 /var/engine/0123/hosts /etc/hosts rw,relatime - ext4 /dev/nvme0n1p2 rw"]

CASES: list[tuple[str, dict[str, Any], Any, list[str]]] = [
    ("a machine of its own", {"files": {"/proc/self/mountinfo": HOST}}, ABSENT, []),
    (
        "docker",
        {"files": {"/.dockerenv": "", "/proc/self/mountinfo": DOCKER}},
        "docker",
        ["/.dockerenv", "/etc/hosts is mounted by docker", "/ is overlay"],
    ),
    (
        "a virtual machine made of a docker image keeps /.dockerenv, and is none",
        {"files": {"/.dockerenv": "", "/proc/self/mountinfo": HOST}},
        ABSENT,
        ["/.dockerenv"],
    ),
    (
        "/.dockerenv, and the mounts cannot be read",
        {"files": {"/.dockerenv": "", "/proc/self/mountinfo": DENIED}},
        Unknown("no proof"),
        ["/.dockerenv"],
    ),
    (
        "docker by its control group (version 1)",
        {"files": {"/proc/self/mountinfo": HOST, "/proc/self/cgroup": "4:memory:/docker/0123\n"}},
        "docker",
        ["control group of docker"],
    ),
    (
        "the docker service itself runs on the host",
        {"files": {"/proc/self/mountinfo": HOST, "/proc/self/cgroup": "0::/system.slice/docker.service\n"}},
        ABSENT,
        [],
    ),
    (
        "podman without root",
        {"files": {"/run/.containerenv": "", "/proc/self/mountinfo": PODMAN}, "variables": {"container": "podman"}},
        "podman",
        ["/run/.containerenv", "/etc/hosts is mounted by podman", "$container is podman", "/ is overlay"],
    ),
    (
        "a pod is a pod, whatever engine runs it",
        {
            "files": {"/.dockerenv": "", "/proc/self/mountinfo": POD},
            "variables": {"KUBERNETES_SERVICE_HOST": "10.0.0.1"},
            "folders": {"/var/run/secrets/kubernetes.io/serviceaccount": ["token"]},
        },
        "kubernetes",
        [
            "/.dockerenv",
            "/var/run/secrets/kubernetes.io/serviceaccount",
            "$KUBERNETES_SERVICE_HOST",
            "/etc/hosts is mounted by kubernetes",
            "/ is overlay",
        ],
    ),
    (
        "apptainer",
        {
            "files": {"/proc/self/mountinfo": [LAYERED], "/.singularity.d/runscript": ""},
            "variables": {"APPTAINER_CONTAINER": "/scratch/image.sif"},
        },
        "apptainer",
        ["/.singularity.d", "$APPTAINER_CONTAINER", "/ is overlay"],
    ),
    (
        "a job that was submitted from within apptainer: the variable came along, the container did not",
        {"files": {"/proc/self/mountinfo": HOST}, "variables": {"APPTAINER_CONTAINER": "/scratch/image.sif"}},
        ABSENT,
        ["$APPTAINER_CONTAINER"],
    ),
    (
        "LXC, by systemd's note",
        {"files": {"/proc/self/mountinfo": HOST, "/run/systemd/container": "lxc\n"}},
        "lxc",
        ["/run/systemd/container is lxc"],
    ),
    (
        "LXC, by process 1",
        {"files": {"/proc/self/mountinfo": HOST, "/proc/1/environ": "container=lxc\0HOME=/root\0"}},
        "lxc",
        ["$container of process 1 is lxc"],
    ),
    (
        "an engine that we do not know",
        {
            "files": {"/proc/self/mountinfo": OTHER_ENGINE},
            "variables": {"container": "oci"},
        },
        "container",
        ["$container is oci", "/ is overlay"],
    ),
    (
        "a live system's root is layered, and that alone is no container",
        {"files": {"/proc/self/mountinfo": [LAYERED]}},
        ABSENT,
        ["/ is overlay"],
    ),
]


@pytest.mark.parametrize(("title", "sections", "kind", "evidence"), CASES, ids=[case[0] for case in CASES])
def test_container(title: str, sections: dict[str, Any], kind: Any, evidence: list[str]) -> None:
    check(PROBE, machine(**sections), {"system.container": kind, "system.container_evidence": evidence})
