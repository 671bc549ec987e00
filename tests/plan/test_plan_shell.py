"""Argument vectors as text: what a shell makes of the printed line is exactly the vector again."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cudadoctor.model import ParseError
from cudadoctor.plan.shell import CMD, POSIX, POWERSHELL, SHELLS, quote, shell_of

HOSTILE = [
    "; rm -rf ~",
    "$(reboot)",
    "`reboot`",
    "a b",
    "",
    "it's",
    'say "hi"',
    "*",
    "~",
    "~/proj",
    "!!",
    "a\\b",
    "a\\",
    "$HOME",
    "a && b",
    "#comment",
    "x|y",
    "<x",
    "\N{GREEK SMALL LETTER ALPHA}",
]

TABLE = [
    (POSIX, ("pip", "install", "torch==2.14.1+cu126"), 'pip install "torch==2.14.1+cu126"'),
    (POSIX, ("/home/me/my env/bin/python", "-m", "pip"), '"/home/me/my env/bin/python" -m pip'),
    (POSIX, ("echo", "it's"), 'echo "it\'s"'),
    (POSIX, ("echo", "$HOME"), "echo '$HOME'"),
    (POSIX, ("echo", ""), "echo ''"),
    (POWERSHELL, ("pip", "install", "torch==2.14.1+cu126"), 'pip install "torch==2.14.1+cu126"'),
    (POWERSHELL, ("C:\\my env\\python.exe", "-m", "pip"), '& "C:\\my env\\python.exe" -m pip'),
    (POWERSHELL, ("echo", "$env:USERNAME"), "echo '$env:USERNAME'"),
    (POWERSHELL, ("echo", "it's"), "echo 'it''s'"),
    (POWERSHELL, ("echo", "a,b"), 'echo "a,b"'),
    (POWERSHELL, ("echo", "C:\\my env\\"), "echo 'C:\\my env\\'"),
    (CMD, ("pip", "install", "torch==2.14.1+cu126"), 'pip install "torch==2.14.1+cu126"'),
    (CMD, ("C:\\my env\\",), '"C:\\my env\\\\"'),
    (CMD, ("a&b",), '"a&b"'),
]


@pytest.mark.parametrize(("shell", "argv", "line"), TABLE)
def test_quoting(shell: str, argv: tuple[str, ...], line: str) -> None:
    assert quote(argv, shell) == line


HOME = [
    (POSIX, ("~/proj/.venv/bin/python", "-m"), "~/proj/.venv/bin/python -m"),
    (POSIX, ("~/my proj/python", "-m"), '~/"my proj/python" -m'),
    (POSIX, ("~root/python",), '"~root/python"'),
    (POWERSHELL, ("~\\proj\\python.exe", "-m"), "& ($HOME + '\\proj\\python.exe') -m"),
    (POWERSHELL, ("pip", "~\\it's"), "pip ($HOME + '\\it''s')"),
]


@pytest.mark.parametrize(("shell", "argv", "line"), HOME)
def test_the_users_home_where_a_report_does_not_name_it(shell: str, argv: tuple[str, ...], line: str) -> None:
    assert quote(argv, shell, home=True) == line


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("word", ["a\nb", "a\0b", "a\rb"])
def test_what_would_break_a_line_is_refused(shell: str, word: str) -> None:
    with pytest.raises(ParseError):
        quote(("echo", word), shell)


@pytest.mark.parametrize("word", ['a"b', "%PATH%"])
def test_cmd_refuses_what_it_cannot_carry(word: str) -> None:
    with pytest.raises(ParseError):
        quote(("echo", word), CMD)


def through_sh(words: list[str]) -> list[str]:
    """What a program gets to see when the line is pasted."""
    show = (sys.executable, "-c", "import sys; sys.stdout.write('\\0'.join(sys.argv[1:]))")
    ended = subprocess.run(["sh", "-c", quote((*show, *words))], capture_output=True, timeout=30, check=True)
    return ended.stdout.decode("utf-8", "surrogateescape").split("\0")


def test_hostile_words_pass_through_sh_unharmed() -> None:
    assert through_sh(HOSTILE) == HOSTILE


@settings(max_examples=15, deadline=None)
@given(st.lists(st.text(st.characters(exclude_characters="\0\n\r", exclude_categories=["Cs"]), max_size=8), min_size=1))
def test_any_words_pass_through_sh_unharmed(words: list[str]) -> None:
    assert through_sh(words) == words


@given(st.text(st.characters(exclude_characters="\0\n\r", exclude_categories=["Cs"]), max_size=12))
def test_powershell_gives_nothing_a_meaning(word: str) -> None:
    """Inside single quotes only the single quote itself counts; what stands outside, or in double quotes, is in the
    harmless set."""
    line = quote(("echo", word), POWERSHELL)[len("echo ") :]
    if line.startswith('"'):
        assert line.endswith('"') and not line.endswith('\\"')
        assert not set(line[1:-1]) & set("\"'`$%!^&|\t()") and line.isascii()
    elif line.startswith("'"):
        assert line.endswith("'") and "'" not in line[1:-1].replace("''", "")
    else:
        assert set(line) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+:./\\-")


def test_the_shell_of_a_system() -> None:
    assert [shell_of(name) for name in ("linux", "darwin", "windows")] == [POSIX, POSIX, POWERSHELL]
