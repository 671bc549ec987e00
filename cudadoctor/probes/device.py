"""Device nodes of GPUs, before any NVIDIA library runs.

As root these libraries create /dev/nvidiactl even without a driver, so this probe is the first of all, and a lone
/dev/nvidiactl is no more than a left-over.
"""

from __future__ import annotations

from typing import Any, Optional

from cudadoctor.model.fact import Fact, known, unknown
from cudadoctor.probes.api import LINUX, Probe
from cudadoctor.system.port import System

# Beside nvidia0, nvidiactl, nvidia-uvm, ...: dxg is WSL's; nvgpu, nvmap and nvhost-*gpu are a Jetson's.
_OTHER_NODES = ("dxg", "nvgpu", "nvmap")


def look(system: System) -> dict[str, Fact[Any]]:
    listing = system.list_folder("/dev")
    if listing.is_unknown:
        return {"device.nodes": unknown(listing.reason, listing.source)}
    nodes: list[dict[str, Any]] = []
    for name in listing.value or ():
        if _is_node(name):
            problem = _add(system, f"/dev/{name}", nodes, may_be_folder=True)
            if problem is not None:
                return {"device.nodes": problem}
    nodes.sort(key=lambda node: _natural(node["path"]))
    return {"device.nodes": known(nodes, "/dev")}


def _is_node(name: str) -> bool:
    if name.startswith("nvidia") or name in _OTHER_NODES:
        return True
    return name.startswith("nvhost-") and name.endswith("gpu")


def _add(system: System, path: str, nodes: list[dict[str, Any]], may_be_folder: bool) -> Optional[Fact[Any]]:
    """Appends the node, or those in the folder. Returns an unknown fact where one could not be looked at."""
    status = system.status(path)
    if status.is_unknown:
        return unknown(status.reason, path)
    if status.is_absent:
        return None  # a link that leads nowhere
    found = status.get()
    if found.kind == "directory":
        # /dev/nvidia-caps, /dev/nvidia-caps-imex-channels, and /dev/nvgpu/igpu0 of a Jetson.
        for name in system.list_folder(path).value or () if may_be_folder else ():
            problem = _add(system, f"{path}/{name}", nodes, may_be_folder=path.count("/") < 3)
            if problem is not None:
                return problem
        return None
    group = system.group_name(found.gid)
    nodes.append(
        {
            "path": path,
            "mode": f"{found.mode:o}",
            "uid": found.uid,
            "gid": found.gid,
            "group": group.value if group.is_known else None,
            # A plain file in the place of a node (a failed bind mount leaves one) is of no use to anybody.
            "usable": found.readable and found.writable and found.kind == "character-device",
            "device": found.device,
        }
    )
    return None


def _natural(path: str) -> tuple[str, int]:
    """/dev/nvidia2 before /dev/nvidia10."""
    stem = path.rstrip("0123456789")
    return stem, int(path[len(stem) :] or -1)


PROBE = Probe("device", (LINUX,), ("device.nodes",), look)
