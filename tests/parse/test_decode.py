"""Bytes of a program's output, as they come from Linux, PowerShell, wsl.exe and old consoles."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cudadoctor.parse.decode import decode, decode_pasted, plain_lines, program_text, strip_ansi

PLAN = "GUID des Energieschemas: 381b4222-f694-41f0-9685-ff5bb260df2e  (Höchstleistung)\n"


@pytest.mark.parametrize(
    "data",
    [
        PLAN.encode(),
        b"\xef\xbb\xbf" + PLAN.encode(),
        b"\xff\xfe" + PLAN.encode("utf-16-le"),
        b"\xfe\xff" + PLAN.encode("utf-16-be"),
        PLAN.encode("utf-16-le"),
        PLAN.encode("utf-16-be"),
    ],
    ids=["UTF-8", "UTF-8 with a mark", "UTF-16 LE with a mark", "BE with a mark", "LE without", "BE without"],
)
def test_unicode(data: bytes) -> None:
    assert decode(data) == PLAN


def test_a_code_page_when_it_is_named() -> None:
    assert decode(PLAN.encode("cp850"), "cp850") == PLAN
    assert decode("电源方案 GUID".encode("gbk"), "gbk") == "电源方案 GUID"


@pytest.mark.parametrize("fallback", [None, "ascii", "no-such-encoding"])
def test_a_code_page_when_it_is_not_named_keeps_the_ascii(fallback: str | None) -> None:
    assert "381b4222-f694-41f0-9685-ff5bb260df2e" in decode(PLAN.encode("cp850"), fallback)


def test_utf16_cut_in_the_middle_of_a_letter() -> None:
    assert decode(PLAN.encode("utf-16-le")[:-1]) == PLAN[:-1]
    assert decode(b"\xff\xfe" + PLAN.encode("utf-16-le")[:-1]) == PLAN[:-1]


def test_a_few_nuls_do_not_make_utf16() -> None:
    assert decode(b"container=podman\x00HOME=/root\x00") == "container=podman\x00HOME=/root\x00"


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("\x1b[4m\tGPU0\x1b[0m\tCPU", "\tGPU0\tCPU"),
        ("\x1b[1;31mFAIL\x1b[m", "FAIL"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b(Bplain", "plain"),
        ("\x1b[?25lhidden\x1b[?25h", "hidden"),
        ("no codes [0m", "no codes [0m"),
        ("at the end \x1b", "at the end "),
    ],
)
def test_terminal_codes(text: str, plain: str) -> None:
    assert strip_ansi(text) == plain


@pytest.mark.parametrize(
    ("text", "plain"),
    [("a\r\nb\r\n", "a\nb\n"), ("a\r\r\nb", "a\nb"), ("10%\r20%\n", "10%\n20%\n"), ("W\x00S\x00L\x00", "WSL")],
)
def test_line_ends(text: str, plain: str) -> None:
    assert plain_lines(text) == plain


@given(st.binary(max_size=300), st.sampled_from([None, "cp850", "gbk", "utf-8", "no-such-encoding", "\x00"]))
def test_any_bytes_are_text(data: bytes, fallback: str | None) -> None:
    text = program_text(data, fallback)
    assert "\x00" not in text and "\r" not in text and "\x1b" not in text


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\x00\x1b\x9b\r\ufeff"), max_size=200))
def test_utf8_text_is_unchanged(text: str) -> None:
    assert program_text(text.encode()) == text


CONSOLES = [
    ("'nvidia-smi' 不是内部或外部命令，也不是可运行的程序\n", "gb18030"),
    ("'nvidia-smi' 不是內部或外部命令、可執行的程式或批次檔。系統錯誤\n", "big5"),
    ("'nvidia-smi' は、内部コマンドまたは外部コマンド、システムエラー\n", "shift_jis"),
    ("'nvidia-smi' 은(는) 내부 또는 외부 명령, 시스템 오류\n", "euc_kr"),
    ('"nvidia-smi" не является внутренней или внешней командой, ошибка\n', "cp1251"),
    ('"nvidia-smi" не является внутренней или внешней командой, ошибка\n', "cp866"),
    ("Verfügbarer physischer Speicher für alle: größer\n", "cp1252"),
    ("Verfügbarer physischer Speicher für alle: größer\n", "cp850"),
    ("mémoire du système: 16 Go\n", "utf-8"),
    ("WSL 版本: 2.1.5.0\n", "utf-16"),
]


@pytest.mark.parametrize(("text", "code_page"), CONSOLES, ids=[name for _, name in CONSOLES])
def test_a_pasted_text_of_a_console_is_read_in_its_code_page(text: str, code_page: str) -> None:
    assert decode_pasted(text.encode(code_page)) == text
