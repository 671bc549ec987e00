r"""Which Linux, and which Jetson.

/etc/os-release (values may be quoted for the shell):

    NAME="Ubuntu"
    VERSION_ID="24.04"
    ID=ubuntu
    ID_LIKE=debian

/etc/nv_tegra_release (R36 REVISION 4.3 is Jetson Linux 36.4.3):

    # R36 (release), REVISION: 4.3, GCID: 00000000, BOARD: generic, EABI: aarch64, DATE: ...

/proc/device-tree/model, ended by a NUL:

    NVIDIA Jetson Orin Nano Engineering Reference Developer Kit\0
"""

from __future__ import annotations

import re

from cudadoctor.model.record import NamedTuple

from .errors import unlike


def parse_os_release(text: str) -> dict[str, str]:
    """The assignments of os-release, unquoted. Lines that are none are passed over. Never fails."""
    values: dict[str, str] = {}
    for line in text.splitlines():
        name, sign, value = line.strip().partition("=")
        if sign and name.isidentifier() and name.isascii():
            values[name] = _unquote(value.strip())
    return values


def _unquote(text: str) -> str:
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'":
        inner = text[1:-1]
        return re.sub(r'\\([\\"$`])', r"\1", inner) if text[0] == '"' and "\\" in inner else inner
    return text


class TegraRelease(NamedTuple):
    """A Jetson's system software: `l4t` "36.4.3", `board` as written."""

    l4t: str
    board: str | None


def parse_tegra_release(text: str) -> TegraRelease:
    """/etc/nv_tegra_release. ParseError when it is none."""
    found = re.search(r"R([0-9]{1,3}) \(release\), REVISION: ([0-9]{1,3}(?:\.[0-9]{1,3}){0,2})", text, re.ASCII)
    if found is None:
        raise unlike("/etc/nv_tegra_release", text.strip())
    board = re.search(r"BOARD: ([\w.-]{1,60})", text, re.ASCII)
    return TegraRelease(f"{found.group(1)}.{found.group(2)}", board.group(1) if board else None)


def parse_device_tree_string(data: bytes) -> str:
    """A property of /proc/device-tree such as `model`: the text before its first NUL. Never fails."""
    return data.split(b"\x00", 1)[0].decode("utf-8", "replace").strip()
