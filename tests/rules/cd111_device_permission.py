"""CD111: the nodes are there, and this user may not open them."""

from __future__ import annotations

from cudadoctor.testing import (
    container,
    device_nodes,
    fails,
    jetson,
    linux,
    passes,
    report,
    skips,
    unknown_when,
    windows,
    wsl,
)

RULE = "CD111"

ALL = ("/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm")
FOR_VIDEO = {"device.nodes": device_nodes(*ALL, mode="660", group="video", usable=False), "system.groups": ["user"]}
REFUSED = linux().driver_fails(4, "permission", 4, "Insufficient Permissions")
ONE_OF_TWO = [*device_nodes("/dev/nvidia0", *ALL[1:]), *device_nodes("/dev/nvidia1", mode="600", usable=False)]

CASES = [
    passes("everybody may", linux()),
    passes("the driver answers, though /dev could not be listed", linux().unknown("device.nodes")),
    fails(
        "the nodes are the group video's, and the user is no member",
        REFUSED.set(FOR_VIDEO),
        says=["/dev/nvidia0", "mode 660, group video"],
        certainty="certain",
        severity="error",
        blame="machine",
        fix="join-group",
    ),
    fails(
        "only nvidiactl is closed",
        REFUSED.set({"device.nodes": [*device_nodes(ALL[0], ALL[2]), *device_nodes(ALL[1], mode="600", usable=False)]}),
        says="/dev/nvidiactl",
        fix="manual",
    ),
    fails(
        "nvidia-uvm is closed: nvidia-smi works and CUDA does not",
        linux().set({"device.nodes": [*device_nodes(*ALL[:2]), *device_nodes(ALL[2], mode="660", usable=False)]}),
        says="/dev/nvidia-uvm",
    ),
    fails(
        "a member since the last login, and closed all the same: joining is no cure",
        REFUSED.set(FOR_VIDEO).set({"system.groups": ["user", "video"]}),
        fix="manual",
    ),
    fails("root's own", REFUSED.set({"device.nodes": device_nodes(*ALL, mode="600", usable=False)}), fix="manual"),
    fails(
        "a container that runs as another user than its host's nodes admit",
        container().driver_fails(4, "permission", 4).set(FOR_VIDEO),
        fix="manual",
    ),
    fails(
        "rootless podman: the group has no name inside",
        container("podman")
        .driver_fails(4, "permission", 4)
        .set({"device.nodes": device_nodes(*ALL, mode="660", group="nogroup", usable=False)}),
        fix="manual",
    ),
    fails(
        "a failed mount left a plain file in the place of the node",
        container()
        .driver_fails(999, "unknown-error", 255)
        .set({"device.nodes": [*device_nodes(*ALL[1:]), *device_nodes(ALL[0], mode="644", usable=False)]}),
        says="/dev/nvidia0",
    ),
    fails(
        "NVML refuses, and the nodes look open",
        REFUSED,
        says="insufficient permissions",
        certainty="likely",
        fix="manual",
    ),
    fails("NVML refuses, and /dev could not be listed", REFUSED.unknown("device.nodes"), certainty="likely"),
    fails(
        "WSL: /dev/dxg is closed",
        wsl()
        .driver_fails(4, "permission", 4)
        .set({"device.nodes": device_nodes("/dev/dxg", mode="600", usable=False)}),
        says="/dev/dxg",
        fix="manual",
    ),
    passes("a job was given one card of two", linux().job(gpus=1).set({"device.nodes": ONE_OF_TWO})),
    passes(
        "one card of two is somebody else's, and the driver is asleep",
        REFUSED.driver_fails(9, "no-driver", 9).set({"device.nodes": ONE_OF_TWO}),
    ),
    passes(
        "the mode looks closed, and the driver lists the card",
        linux()
        .set(FOR_VIDEO)
        .set({"device.nodes": [*device_nodes(*ALL[:2], mode="660", usable=False), *device_nodes(ALL[2])]}),
    ),
    passes("a Jetson", jetson()),
    skips("there are no nodes", linux().not_loaded()),
    skips("no card", linux().no_gpu()),
    skips("Windows", windows()),
    unknown_when("/dev could not be listed", linux().driver_fails(9, "no-driver", 9).unknown("device.nodes")),
    fails(
        "a report: NVML's words", report().says("nvml_no_permission", "Insufficient Permissions"), certainty="likely"
    ),
    unknown_when("a report about torch", report("linux")),
]
