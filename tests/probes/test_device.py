from __future__ import annotations

from typing import Optional

import pytest

from cudadoctor.probes.device import PROBE

from .tables import DENIED, Unknown, check, machine


def node(path: str, device: Optional[str], usable: bool = True, **more: object) -> dict[str, object]:
    owner = {"mode": "666", "uid": 0, "gid": 0, "group": "root"}
    return {"path": path, "usable": usable, "device": device, **owner, **more}


CASES = [
    (
        "a healthy workstation with two cards",
        {
            "status": {
                "/dev/null": {"device": "1:3"},
                "/dev/nvidia0": {"device": "195:0"},
                "/dev/nvidia1": {"device": "195:1"},
                "/dev/nvidiactl": {"device": "195:255"},
                "/dev/nvidia-uvm": {"device": "511:0"},
            }
        },
        [
            node("/dev/nvidia0", "195:0"),
            node("/dev/nvidia1", "195:1"),
            node("/dev/nvidia-uvm", "511:0"),
            node("/dev/nvidiactl", "195:255"),
        ],
    ),
    ("no driver", {"status": {"/dev/null": {"device": "1:3"}}}, []),
    (
        "only what a library left behind as root",
        {"status": {"/dev/nvidiactl": {"device": "195:255"}}},
        [node("/dev/nvidiactl", "195:255")],
    ),
    (
        "the nodes are the group video's, and the user is not in it",
        {
            "status": {
                "/dev/nvidia0": {"device": "195:0", "mode": "0660", "gid": 44, "readable": False, "writable": False}
            },
            "group_names": {"44": "video"},
        },
        [node("/dev/nvidia0", "195:0", usable=False, mode="660", gid=44, group="video")],
    ),
    (
        "a group without a name, as in a container",
        {"status": {"/dev/nvidia0": {"device": "195:0", "gid": 109}}, "group_names": {"109": {"absent": True}}},
        [node("/dev/nvidia0", "195:0", gid=109, group=None)],
    ),
    (
        "read but not written",
        {"status": {"/dev/nvidia0": {"device": "195:0", "mode": "0644", "writable": False}}},
        [node("/dev/nvidia0", "195:0", usable=False, mode="644")],
    ),
    (
        "a plain file where a mount failed",
        {"files": {"/dev/nvidia0": ""}},
        [node("/dev/nvidia0", None, usable=False, mode="644")],
    ),
    (
        "MIG capabilities in a folder",
        {
            "status": {
                "/dev/nvidia0": {"device": "195:0"},
                "/dev/nvidia-caps/nvidia-cap1": {"device": "237:1", "mode": "0400", "writable": False},
                "/dev/nvidia-caps/nvidia-cap2": {"device": "237:2", "mode": "0444", "writable": False},
            }
        },
        [
            node("/dev/nvidia0", "195:0"),
            node("/dev/nvidia-caps/nvidia-cap1", "237:1", usable=False, mode="400"),
            node("/dev/nvidia-caps/nvidia-cap2", "237:2", usable=False, mode="444"),
        ],
    ),
    ("WSL", {"status": {"/dev/dxg": {"device": "10:125"}}}, [node("/dev/dxg", "10:125")]),
    (
        "a Jetson",
        {"status": {"/dev/nvmap": {"device": "10:60"}, "/dev/nvgpu/igpu0/ctrl": {"device": "501:1"}}},
        [node("/dev/nvgpu/igpu0/ctrl", "501:1"), node("/dev/nvmap", "10:60")],
    ),
    ("a folder /dev that cannot be read", {"folders": {"/dev": DENIED}}, Unknown("permission denied")),
    (
        "a node that cannot be looked at",
        {"folders": {"/dev": ["nvidia0"]}, "status": {"/dev/nvidia0": DENIED}},
        Unknown("permission denied"),
    ),
    (
        "a link that leads nowhere is no node",
        {"folders": {"/dev": ["nvidia0"]}, "links": {"/dev/nvidia0": "/dev/gone"}},
        [],
    ),
]


@pytest.mark.parametrize(("title", "sections", "expected"), CASES, ids=[case[0] for case in CASES])
def test_device_nodes(title: str, sections: dict[str, object], expected: object) -> None:
    names = {"0": "root", **sections.get("group_names", {})}  # type: ignore[dict-item]
    check(PROBE, machine(**{**sections, "group_names": names}), {"device.nodes": expected})


def test_the_eleventh_card_comes_after_the_third() -> None:
    status = {f"/dev/nvidia{number}": {"device": f"195:{number}"} for number in (10, 2)}
    facts = check(PROBE, machine(status=status, group_names={"0": "root"}), {})
    assert [entry["path"] for entry in facts["device.nodes"].get()] == ["/dev/nvidia2", "/dev/nvidia10"]
