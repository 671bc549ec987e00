"""CD407: full disks and quotas where something is installed."""

from __future__ import annotations

from typing import Any

from cudadoctor.testing import GIB, MIB, fails, linux, passes, skips, unknown_when, windows

RULE = "CD407"

FRESH = linux().no_torch()
IN_REPORT = {"examination.kind": "report"}


def full(text: str, name: str = "no_space_left", **more: str) -> dict[str, Any]:
    return {f"symptom.{name}": {"text": text, **more}}


PIP = full(
    "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device", "no_room_for_install"
)
QUOTA = full("OSError: [Errno 122] Disk quota exceeded", "no_room_for_install")

CASES = [
    passes("torch is to be installed, and there is room", FRESH, says="free"),
    passes("Windows", windows().no_torch()),
    fails(
        "a small /tmp",
        FRESH.set({"disk.temporary_free": 900 * MIB}),
        says=["900 MiB are free for temporary files", "download of"],
        severity="warning",
        certainty="likely",
        fix="install-torch",
    ),
    fails("a full disk", FRESH.set({"disk.environment_free": 1 * GIB}), says="where the environment lies"),
    fails("pip stopped", linux().set(PIP), severity="error", certainty="certain", fix="free-disk"),
    fails("a quota", linux().only("torch.version").set({**IN_REPORT, **QUOTA}), says="a quota is full"),
    fails(
        "pip's own folder is full",
        linux().set(full("OSError: [Errno 28] No space left on device: '/tmp/pip-unpack-x'", path="/tmp/pip-unpack-x")),
        says="for temporary files",
        certainty="certain",
    ),
    fails("on Windows", windows().only("system.os").set({**IN_REPORT, **PIP}), fix="manual"),
    fails(
        "a disk is full, whatever filled it",
        linux().only("torch.version").set({**IN_REPORT, **full("[Errno 28] No space left on device")}),
        severity="warning",
        certainty="possible",
    ),
    skips("a model's file", linux().set(full("[Errno 28] No space left on device: '/data/checkpoint-100'"))),
    skips("torch is there", linux().set({"disk.environment_free": 1 * GIB})),
    unknown_when("the room could not be read", FRESH.unknown("disk.environment_free", "disk.temporary_free")),
]
