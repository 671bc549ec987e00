"""Listings of /dev/nvidia* in a text."""

from __future__ import annotations

import pytest

from cudadoctor.matrix import load_matrix
from cudadoctor.reports import read_report

LONG = (
    "crw-rw---- 1 root video 195,   0 Mar 10 09:15 /dev/nvidia0\n"
    "crw-rw-rw- 1 root root  195, 255 Mar 10 09:15 /dev/nvidiactl\n"
)


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("$ ls /dev/nvidia*\n/dev/nvidia0  /dev/nvidiactl\n", ["/dev/nvidia0", "/dev/nvidiactl"]),
        ("/dev/nvidia0\n/dev/nvidiactl\n/dev/nvidia-uvm\n", ["/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm"]),
        (LONG, ["/dev/nvidia0", "/dev/nvidiactl"]),
        ("ls: cannot access '/dev/nvidia*': No such file or directory\n", []),
    ],
)
def test_a_listing(text: str, paths: list[str]) -> None:
    nodes = read_report([("text", text)], load_matrix()).facts["device.nodes"]
    assert nodes.is_known and [node["path"] for node in nodes.get()] == paths


@pytest.mark.parametrize("text", ["I pass --device /dev/nvidia0 to docker", "open /dev/nvidia-uvm failed"])
def test_a_path_in_a_sentence_is_no_listing(text: str) -> None:
    assert read_report([("text", text)], load_matrix()).facts["device.nodes"].is_unknown


def test_rights_are_told_where_the_listing_tells_them() -> None:
    first, second = read_report([("text", LONG)], load_matrix()).facts["device.nodes"].get()
    assert (first["mode"], first["group"], first["usable"]) == ("660", "video", None)
    assert (second["mode"], second["usable"]) == ("666", True)
