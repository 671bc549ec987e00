r"""Bytes that a program wrote -> text that the other parsers read.

    b"\xff\xfeP\x00o\x00w\x00..."           UTF-16 with a mark: PowerShell 5 redirected into a file
    b"W\x00S\x00L\x00..."                   UTF-16 without a mark: wsl.exe into a pipe
    b"\xb5\xe7\xd4\xb4... GUID: 381b..."    a Chinese console's GBK: every fact in it is ASCII, the rest may be lost
    b"\x1b[4m\tGPU0\x1b[0m"                 colours

Nothing here fails: a letter that cannot be read becomes U+FFFD.
"""

from __future__ import annotations

import re


def decode(data: bytes, fallback: str | None = None) -> str:
    """The text of some bytes: a byte order mark decides, else many NULs mean UTF-16, else UTF-8.

    What is not UTF-8 is read as `fallback` (the console's or the locale's encoding) when that fits, else as UTF-8
    with its bad bytes replaced.
    """
    if data.startswith(b"\xef\xbb\xbf"):
        return data[3:].decode("utf-8", "replace")
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        order = "utf-16-le" if data[0] == 0xFF else "utf-16-be"
        return data[2 : len(data) & ~1].decode(order, "replace")
    guessed = _utf16_without_mark(data)
    if guessed is not None:
        return data[: len(data) & ~1].decode(guessed, "replace")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        pass
    if fallback:
        try:
            return data.decode(fallback)
        except (UnicodeDecodeError, LookupError, ValueError):
            pass
    return data.decode("utf-8", "replace")


# Code pages of consoles, and words that Windows says in their languages: read in the wrong one they are not there.
_CODE_PAGES = {
    "gb18030": ("版本", "不是", "系统", "错误", "内存", "无法", "拒绝", "电源", "驱动"),
    "big5": ("版本", "不是內部", "系統", "錯誤", "記憶體", "無法"),
    "shift_jis": ("コマンド", "システム", "エラー", "メモリ", "バージョン"),
    "euc_kr": ("명령", "시스템", "오류", "메모리", "버전"),
    "cp1251": ("является", "ошибка", "система", "память", "верси"),
    "cp866": ("является", "ошибка", "система", "память", "верси"),
    "cp1252": ("für", "über", "größe", "verfügbar", "speicher", "mémoire", "système", "réseau", "versión"),
    "cp850": ("für", "über", "größe", "verfügbar", "mémoire", "système", "réseau", "versión"),
}


def decode_pasted(data: bytes) -> str:
    """As `decode`, of a text whose console nobody knows: what is not UTF-8 is read in the code page in which most words
    of a console's language stand."""
    try:
        if _utf16_without_mark(data) is None:
            data.decode("utf-8")
        return decode(data)
    except UnicodeDecodeError:
        if data.startswith((b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf")):
            return decode(data)
    best, most = "", 0
    for name, words in _CODE_PAGES.items():
        text = data[:200_000].decode(name, "replace").lower()
        hits = sum(text.count(word) for word in words) - text.count("\ufffd")
        if hits > most:
            best, most = name, hits
    return data.decode(best, "replace") if best else decode(data)


def _utf16_without_mark(data: bytes) -> str | None:
    # ASCII written as UTF-16 has a NUL in every second byte; no other output that we read has many.
    head = data[:4000]
    if len(head) < 4 or b"\x00" not in head:
        return None
    half = len(head) // 2
    even, odd = head[0::2].count(0), head[1::2].count(0)
    if odd * 3 >= half and even * 10 <= half:
        return "utf-16-le"
    if even * 3 >= half and odd * 10 <= half:
        return "utf-16-be"
    return None


def strip_ansi(text: str) -> str:
    """The text without terminal codes: colours, cursor moves, window titles."""
    if "\x1b" not in text and "\x9b" not in text:
        return text
    text = re.sub(r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]", "", text)
    text = re.sub(r"\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?", "", text)
    return re.sub(r"\x1b(?:[ -/]+[0-~]|[0-~])?|\x9b", "", text)


def plain_lines(text: str) -> str:
    r"""One "\n" for each line end (CR LF, wmic's CR CR LF, a lone CR), and no NULs."""
    if "\r" in text:
        text = re.sub(r"\r+\n?", "\n", text)
    return text.replace("\x00", "") if "\x00" in text else text


def program_text(data: bytes, fallback: str | None = None) -> str:
    """decode, strip_ansi and plain_lines in one: what the other parsers want to get."""
    return plain_lines(strip_ansi(decode(data, fallback)))
