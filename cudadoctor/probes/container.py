"""Does this process run in a container, and of which kind?

No sign is proof alone: an image that was turned into a virtual machine keeps its /.dockerenv, and a job that is
submitted from within a container takes its variables along to a bare node. So a kind is named where its own sign
stands beside a second one, as a rule the mounts: a container's root is layered, and its engine mounts /etc/hosts or
/etc/resolv.conf into it.
"""

from __future__ import annotations

from typing import Any, Optional

from cudadoctor.model.fact import Fact, absent, known, unknown
from cudadoctor.model.record import NamedTuple
from cudadoctor.parse.procfs import Mount, mount_of, parse_environ, parse_mountinfo
from cudadoctor.probes.api import LINUX, Probe
from cudadoctor.system.port import System

MOUNTS = "/proc/self/mountinfo"
CGROUP = "/proc/self/cgroup"

# The outermost answer first: a pod's containers are made by an engine that leaves signs of its own.
_ORDER = ("kubernetes", "apptainer", "podman", "docker", "lxc", "systemd-nspawn", "charliecloud", "container")

_ENGINE_FILES = ("/etc/hosts", "/etc/resolv.conf", "/etc/hostname")
_LAYERED = ("overlay", "fuse-overlayfs", "fuse.fuse-overlayfs", "aufs", "squashfs", "fuse.squashfuse_ll")

# Parts of paths that name whose a mount or a control group is.
_PATH_MARKS = (
    ("/kubelet/pods/", "kubernetes"),
    ("kubepods", "kubernetes"),
    ("/overlay-containers/", "podman"),
    ("libpod-", "podman"),
    ("/docker/containers/", "docker"),
    ("/docker/", "docker"),
    ("docker-", "docker"),
    ("/lxc/", "lxc"),
    ("lxc.payload", "lxc"),
    ("/machine.slice/systemd-nspawn@", "systemd-nspawn"),
)

# What engines write into $container, also into that of process 1 and into systemd's note of it.
_CONTAINER_WORDS = {
    "docker": "docker",
    "podman": "podman",
    "lxc": "lxc",
    "lxc-libvirt": "lxc",
    "systemd-nspawn": "systemd-nspawn",
    "oci": "container",
    "containerd": "container",
}


class _Sign(NamedTuple):
    kind: str
    what: str
    is_proof: bool = False


def look(system: System) -> dict[str, Fact[Any]]:
    mounts = system.read_text(MOUNTS).map(parse_mountinfo)
    layered = _layered_root(mounts.value or [])
    signs = [*_files(system), *_variables(system), *_paths(system, mounts.value or []), *_words(system)]
    evidence = list(dict.fromkeys([sign.what for sign in signs] + ([layered] if layered else [])))
    return {
        "system.container": _kind(signs, layered is not None or _engine_mounts(mounts.value or []), mounts),
        "system.container_evidence": known(evidence, "container signs"),
    }


def _kind(signs: list[_Sign], has_container_mounts: bool, mounts: Fact[Any]) -> Fact[str]:
    for kind in _ORDER:
        own = [sign for sign in signs if sign.kind == kind]
        if any(sign.is_proof for sign in own) or (own and has_container_mounts):
            return known(kind, own[0].what)
    if signs and mounts.is_unknown:
        return unknown(f"{signs[0].what} alone is no proof, and the mounts could not be read", mounts.source)
    return absent(MOUNTS)


def _layered_root(mounts: list[Mount]) -> Optional[str]:
    root = mount_of(mounts, "/")
    return f"/ is {root.filesystem}" if root is not None and root.filesystem in _LAYERED else None


def _engine_mounts(mounts: list[Mount]) -> bool:
    return any(mount.mount_point in _ENGINE_FILES for mount in mounts)


def _files(system: System) -> list[_Sign]:
    files = (
        ("/.dockerenv", "docker"),
        ("/run/.containerenv", "podman"),
        ("/.singularity.d", "apptainer"),
        ("/var/run/secrets/kubernetes.io/serviceaccount", "kubernetes"),
    )
    return [_Sign(kind, path) for path, kind in files if system.status(path).is_known]


def _variables(system: System) -> list[_Sign]:
    variables = (
        ("KUBERNETES_SERVICE_HOST", "kubernetes"),
        ("APPTAINER_CONTAINER", "apptainer"),
        ("SINGULARITY_CONTAINER", "apptainer"),
        ("CH_RUNNING", "charliecloud"),
    )
    return [_Sign(kind, f"${name}") for name, kind in variables if system.variable(name).is_known]


def _paths(system: System, mounts: list[Mount]) -> list[_Sign]:
    """Mounts and control groups that name their engine: they are the kernel's word about this very process."""
    signs: list[_Sign] = []
    for mount in mounts:
        if mount.mount_point in (*_ENGINE_FILES, "/dev/termination-log"):
            kind = _marked(mount.root)
            if kind is not None:
                signs.append(_Sign(kind, f"{mount.mount_point} is mounted by {kind}", is_proof=True))
    for line in (system.read_text(CGROUP).value or "").splitlines():
        path = line.rpartition(":")[2]
        kind = _marked(path)
        # The service of an engine is a group of the host: /system.slice/docker.service.
        if kind is not None and not path.endswith(".service"):
            signs.append(_Sign(kind, f"control group of {kind}", is_proof=True))
    return signs


def _marked(path: str) -> Optional[str]:
    for mark, kind in _PATH_MARKS:
        if mark in path:
            return kind
    return None


def _words(system: System) -> list[_Sign]:
    signs: list[_Sign] = []
    variable = system.variable("container").value
    # Process 1 is another user's on a host, and then this cannot be read; in most containers it can.
    first = parse_environ(system.read_bytes("/proc/1/environ").value or b"").get("container")
    systemd = (system.read_text("/run/systemd/container", 200).value or "").strip() or None
    for word, what, is_proof in (
        (variable, "$container", False),
        (first, "$container of process 1", True),
        (systemd, "/run/systemd/container", True),
    ):
        kind = _CONTAINER_WORDS.get(word or "")
        if kind is not None:
            signs.append(_Sign(kind, f"{what} is {word}", is_proof))
    return signs


PROBE = Probe("container", (LINUX,), ("system.container", "system.container_evidence"), look)
