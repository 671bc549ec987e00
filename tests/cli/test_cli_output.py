"""Writing: files change all at once, streams take what they can, colour and width follow the terminal."""

from __future__ import annotations

import io
import os
import stat
import sys
from pathlib import Path

import pytest

from cudadoctor.cli import _output
from cudadoctor.cli._words import InputError


def test_a_new_file_has_the_usual_permissions(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    plain = tmp_path / "plain"
    plain.write_text("")
    _output.write_file(str(path), "text \u5e73 \udc80\n")
    assert path.read_text("utf-8") == "text \u5e73 \\udc80\n"
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)


def test_a_file_keeps_its_mode_and_a_link_stays_a_link(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text("old")
    path.chmod(0o600)
    link = tmp_path / "link"
    link.symlink_to(path)
    _output.write_file(str(link), "new")
    assert link.is_symlink() and path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_failure_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "report.json"
    path.write_text("old")

    def full(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(KeyboardInterrupt):
        _output.write_file(str(path), "new")
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.json"]


def test_a_file_that_cannot_be_replaced_is_written_in_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a termination log that is mounted on its own."""
    path = tmp_path / "termination-log"
    path.write_text("")

    def busy(*arguments: object) -> None:
        raise OSError(16, "Device or resource busy")

    monkeypatch.setattr(os, "replace", busy)
    _output.write_file(str(path), "text")
    assert path.read_text() == "text"
    assert [entry.name for entry in tmp_path.iterdir()] == ["termination-log"]


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot write"):
        _output.write_file(str(tmp_path), "text")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_is_said_in_words() -> None:
    with pytest.raises(InputError, match="cannot write '/dev/full': No space left on device"):
        _output.write_file("/dev/full", "text")


def test_a_stream_gets_what_it_can_say() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="cp1252", newline="\n")
    _output.write_stream(stream, "caf\u00e9 \u5e73\n")
    assert raw.getvalue() == b"caf\xe9 \\u5e73\n"


def test_no_stream_at_all() -> None:
    _output.write_stream(None, "text")


class Terminal(io.StringIO):
    encoding = "utf-8"  # type: ignore[assignment]

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    "variables, color, palette",
    [
        ({"TERM": "xterm-256color"}, "auto", "256"),
        ({"TERM": "xterm", "COLORTERM": "truecolor"}, "auto", "256"),
        ({"TERM": "linux"}, "auto", "16"),
        ({"TERM": "dumb"}, "auto", ""),
        ({"TERM": "xterm-256color", "NO_COLOR": "1"}, "auto", ""),
        ({"TERM": "xterm-256color", "NO_COLOR": ""}, "auto", "256"),
        ({"TERM": "xterm-256color", "NO_COLOR": "1"}, "always", "256"),
        ({"TERM": "xterm-256color"}, "never", ""),
    ],
)
@pytest.mark.skipif(os.name == "nt", reason="consoles of Windows know 16 colours")
def test_colour_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], color: str, palette: str
) -> None:
    for name in ("TERM", "COLORTERM", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stdout", Terminal())
    assert _output.style(color).palette == palette


def test_no_colour_and_80_columns_where_nobody_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    style = _output.style()
    assert (style.palette, style.width) == ("", 80)


@pytest.mark.parametrize("columns, width", [(0, 80), (20, 40), (80, 80), (100, 100), (400, 120)])
def test_the_width_follows_the_terminal(monkeypatch: pytest.MonkeyPatch, columns: int, width: int) -> None:
    class Sized(Terminal):
        def fileno(self) -> int:
            return 1

    monkeypatch.setattr(sys, "stdout", Sized())
    monkeypatch.setattr(os, "get_terminal_size", lambda descriptor: os.terminal_size((columns, 24)))
    assert _output.style().width == width


@pytest.mark.parametrize("encoding, unicode", [("utf-8", True), ("UTF8", True), ("cp1252", False), ("ascii", False)])
def test_only_utf8_shows_more_than_ascii(monkeypatch: pytest.MonkeyPatch, encoding: str, unicode: bool) -> None:
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding=encoding))
    assert _output.style().unicode is unicode
