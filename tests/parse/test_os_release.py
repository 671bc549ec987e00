"""os-release, and what a Jetson says about itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from cudadoctor.parse import os_release
from cudadoctor.parse.errors import ParseError


def test_os_release() -> None:
    text = """\
# a comment
NAME="Ubuntu"
VERSION_ID="24.04"
ID=ubuntu
ID_LIKE='debian'
PRETTY_NAME="A \\"quoted\\" \\$name"
EMPTY=
not an assignment
 INDENTED=yes
BAD KEY=1
"""
    assert os_release.parse_os_release(text) == {
        "NAME": "Ubuntu",
        "VERSION_ID": "24.04",
        "ID": "ubuntu",
        "ID_LIKE": "debian",
        "PRETTY_NAME": 'A "quoted" $name',
        "EMPTY": "",
        "INDENTED": "yes",
    }


def test_real_os_release() -> None:
    path = Path("/etc/os-release")
    if not path.exists():
        pytest.skip("no /etc/os-release here")
    assert os_release.parse_os_release(path.read_text(encoding="utf-8"))["ID"].islower()


@pytest.mark.parametrize(
    ("text", "l4t", "board"),
    [
        (
            "# R36 (release), REVISION: 4.3, GCID: 1, BOARD: generic, EABI: aarch64, DATE: x\n# KERNEL\n",
            "36.4.3",
            "generic",
        ),
        ("# R35 (release), REVISION: 4.1, GCID: 1, BOARD: t186ref, EABI: aarch64\n", "35.4.1", "t186ref"),
        ("# R32 (release), REVISION: 7, GCID: 1\n", "32.7", None),
    ],
)
def test_tegra_release(text: str, l4t: str, board: str | None) -> None:
    assert os_release.parse_tegra_release(text) == (l4t, board)


@pytest.mark.parametrize("text", ["", "R36", "# release 36"])
def test_no_tegra_release(text: str) -> None:
    with pytest.raises(ParseError):
        os_release.parse_tegra_release(text)


def test_device_tree() -> None:
    name = "NVIDIA Jetson Orin Nano Engineering Reference Developer Kit"
    assert os_release.parse_device_tree_string(name.encode() + b"\x00") == name
    assert os_release.parse_device_tree_string(b"") == ""
