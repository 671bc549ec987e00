r"""A pasted text as numbered lines, each freed of what the way of pasting has put around it.

    > | NVIDIA-SMI 550.54 ...                a quotation mark
    2026-03-10T09:15:02.12Z | NVIDIA-SMI     a log's time
    2026-03-10 09:15:02,120 - root - INFO - Total VRAM       Python's logging
    trainer-1  | RuntimeError: ...           docker compose
    "| NVIDIA-SMI 550.54 ...\n",             a notebook's JSON
    \x1b[4m\tGPU0\x1b[0m, [4m GPU0[0m        colours, also where the escape has got lost
    &gt;&gt;&gt; torch.cuda                  HTML
    ... is not compatible wi=\nth the current               a mail, quoted-printable
    {"stdout": "Tue Mar 10\n+-----\n| NVID...    a whole text in one string

Lines are cleaned when they are asked for: of a log of twenty megabytes only few are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from html import unescape
from typing import Optional

from cudadoctor.model.record import NamedTuple
from cudadoctor.parse.decode import decode_pasted, plain_lines, strip_ansi

# No line that a program prints about a GPU is longer; a line beyond it is data (a notebook's picture, a core dump).
LONGEST = 100_000


class Marks(NamedTuple):
    """Whose triggers stand in a line, and which. Lines that differ in numbers only have one and the same object."""

    owners: tuple[str, ...]
    triggers: tuple[bytes, ...]


class Text:
    """One pasted text. Lines count from 0 here; `number(i)` is what a person calls line i; `whole` is all of it, with
    one line feed a line."""

    def __init__(self, name: str, content: bytes | str) -> None:
        self.name = name
        text = decode_pasted(content) if isinstance(content, bytes) else content.lstrip("\ufeff")
        self.whole = plain_lines(text)
        # As a person counts the lines; None: as they stand.
        self._numbers: Optional[list[int]] = None
        for step in (_unmailed, _broken_as_html, _unrolled):
            self.whole, numbers = step(self.whole)
            if numbers is not None:
                before: Optional[list[int]] = self._numbers
                self._numbers = numbers if before is None else [before[number - 1] for number in numbers]
        self._raw = self.whole.split("\n")
        self._clean: dict[str, str] = {}  # by the line as it was pasted, since logs repeat themselves
        self.marks: dict[int, Marks] = {}

    def __len__(self) -> int:
        return len(self._raw)

    def __getitem__(self, index: int) -> str:
        """Line `index` cleaned, without blanks at its end."""
        raw = self._raw[index]
        found = self._clean.get(raw)
        if found is None:
            found = self._clean[raw] = clean(raw)
        return found

    def raw(self, index: int) -> str:
        """Line `index` as it was pasted."""
        return self._raw[index]

    def number(self, index: int) -> int:
        return index + 1 if self._numbers is None else self._numbers[index]

    def run_start(self, hit: int, after: int, most: int, fits: Callable[[str], object]) -> int:
        """The first of the lines up to `hit` that follow each other and fit: none of them at or before line `after`,
        and at most `most` above `hit`. Line `hit` itself is not asked."""
        first = hit
        while first - 1 > after and hit - first < most and fits(self[first - 1]):
            first -= 1
        return first

    def lines(self, first: int, last: int) -> Iterator[tuple[int, str]]:
        """(index, cleaned line) from `first` up to and with `last`, as far as the text goes."""
        for index in range(max(first, 0), min(last + 1, len(self._raw))):
            yield index, self[index]


# A line of a page's source ends where a tag says so, and not where the source breaks it.
_LINE_END = re.compile(r"<br\s*/?>|</(?:p|div|li|tr|h[1-6])>", re.IGNORECASE)
_MOST_PIECES = 2000


def _broken_as_html(whole: str) -> tuple[str, Optional[list[int]]]:
    """The text with the lines of HTML apart, and the number of each line as a person counts it (None: as it stands)."""
    if "<" not in whole or len(_LINE_END.findall(whole, 0, 200_000)) < 3:
        return whole, None
    lines: list[str] = []
    numbers: list[int] = []
    for number, line in enumerate(whole.split("\n"), 1):
        pieces = _LINE_END.split(line, _MOST_PIECES) if "<" in line else [line]
        lines += pieces
        numbers += [number] * len(pieces)
    return "\n".join(lines), numbers


# In a mail's quoted-printable body an equals sign stands for nothing but a byte or a line that goes on. The header says
# that it is one, or two long lines that go on do.
_MAIL_HEADER = re.compile(r"^content-transfer-encoding: *quoted-printable *$", re.IGNORECASE | re.MULTILINE)
_GOES_ON = re.compile(r"^[^\n]{69,75}[^=\n]=\n", re.MULTILINE)
_OTHER_EQUALS = re.compile(r"=(?![0-9A-F]{2}|\n|\Z)")
_BYTES = re.compile(r"(?:=[0-9A-F]{2})+")


def _unmailed(whole: str) -> tuple[str, Optional[list[int]]]:
    """The text with a quoted-printable body decoded, and the number of each line as a person counts it (None: as it
    stands)."""
    if "=\n" not in whole and "=3D" not in whole:
        return whole, None
    header = _MAIL_HEADER.search(whole)
    start = max(whole.find("\n\n", header.end()), header.end()) if header else 0
    body = whole[start:]
    parts = re.sub(r"^--.*$", "", body, flags=re.MULTILINE) if header else body
    if _OTHER_EQUALS.search(parts) or (header is None and len(_GOES_ON.findall(body)) < 2):
        return whole, None
    lines: list[str] = []
    numbers: list[int] = []
    goes_on = False
    before = whole[:start].count("\n")
    for place, line in enumerate(whole.split("\n"), 1):
        quoted = place > before
        soft = quoted and line.endswith("=")
        plain = line[:-1] if soft else line
        if goes_on:
            lines[-1] += plain
        else:
            lines.append(plain)
            numbers.append(place)
        goes_on = soft
    first = next((index for index, number in enumerate(numbers) if number > before), len(lines))
    lines[first:] = [_BYTES.sub(_decoded, line) for line in lines[first:]]
    return "\n".join(lines), numbers


def _decoded(match: re.Match[str]) -> str:
    return bytes.fromhex(match.group().replace("=", "")).decode("utf-8", "replace").replace("\n", " ")


# A line with so many written line feeds in quotation marks holds a whole text: a program's JSON, Python's repr.
_ROLLED = 6
_QUOTED = re.compile(r"""\s*(?:["']?[\w.-]{1,40}["']?\s*[:=]\s*)?[bru]?["'{\[]""")
_WRITTEN = {r"\n": "\n", r"\t": "\t", r"\u001b": "\x1b", r"\x1b": "\x1b", r"\r": "", r"\"": '"', r"\'": "'", r"\/": "/"}
_ESCAPE = re.compile(r"""\\(?:u001b|x1b|[ntr"'/])""")


def _unrolled(whole: str) -> tuple[str, Optional[list[int]]]:
    """The text with such lines unrolled, and the number of each line as a person counts it (None: as it stands)."""
    if whole.count("\\n") < _ROLLED:
        return whole, None
    pasted = whole.split("\n")
    rolled = {
        place
        for place, line in enumerate(pasted)
        if "\\n" in line and line.count("\\n") >= _ROLLED and _QUOTED.match(line)
    }
    if not rolled:
        return whole, None
    lines: list[str] = []
    numbers: list[int] = []
    for place, line in enumerate(pasted):
        parts = [line]
        if place in rolled:
            parts = _ESCAPE.sub(lambda match: _WRITTEN[match.group()], line).split("\n")
        lines += parts
        numbers += [place + 1] * len(parts)
    return "\n".join(lines), numbers


# What word processors and web pages write for a plain blank or quotation mark.
PLAIN = {0xA0: " ", 0x2018: "'", 0x2019: "'", 0x201C: '"', 0x201D: '"'}
# Colours whose escape character a web form has dropped. A list index such as [0] is none: it has no m behind it.
_LOST_ESCAPE = re.compile(r"\[(?:\d{1,3}(?:;\d{1,3})*)?m(?![\w\]])|\[(?:0|1|4|7|3\d|9\d)(?:;\d{1,3})*m")
_TAG = re.compile(
    r"</?(?:details|summary|pre|code|p|div|span|b|i|em|strong|table|tbody|tr|td|br|ul|ol|li)\b[^<>]{0,200}>", re.I
)
_QUOTE = re.compile(r"(?:>(?!>>)[ \t]?)+(?!>)")
_DIFF = re.compile(r"[+](?=\||\+[-=]{3})")
_TIME = r"\d{1,2}:\d{2}:\d{2}(?:[.,]\d+)?"
_PREFIX = re.compile(
    "|".join(
        (
            # ISO time, as in CI logs; Python's logging puts the logger and its level behind it
            rf"\d{{4}}-\d{{2}}-\d{{2}}[T ]{_TIME}(?:Z|[+-]\d{{2}}:?\d{{2}})?"
            r"(?: +- [\w.-]{1,80} - (?:DEBUG|INFO|WARNING|ERROR|CRITICAL) - | +- +| +|$)",
            r"\[\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?\] ?",
            rf"[A-Z][a-z]{{2}} +\d{{1,2}} {_TIME} \S+ [\w.@/-]+(?:\[\d+\])?: ",  # the system log's
            r"[\w.-]+-\d+ +\| ?",  # docker compose
            r"remote: ",
            r"\[(?:rank|default)?\d+\]: ?",  # torchrun
            r"\([\w.-]+ pid=\d+(?:, ip=[\d.]+)?\) ",  # Ray, vLLM
        )
    )
)
# ComfyUI's log has a time before each piece that a program writes: several in a line.
_WRITE = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6} - ")
_COMMENTED = re.compile(r"(?:#|//) (?=[|+]|\w+ version)")
# A raw stream of docker's puts eight bytes before each line.
_DOCKER_HEADER = re.compile(r"^[\x01\x02]\x00{0,3}.{0,4}?(?=[ -~]{4})")
_NOTEBOOK = re.compile(r'\s*"(.*?)(?:\\n)?",?\s*$')


def clean(raw: str) -> str:
    """One line without the wrapping; never fails, and never makes a line longer than `LONGEST`."""
    line = raw[:LONGEST]
    if "\x1b" in line or "\x9b" in line:
        line = strip_ansi(line)
    if "[" in line and "m" in line:
        line = _LOST_ESCAPE.sub("", line)
    if "&" in line and ";" in line:
        line = unescape(line)
    if "<" in line and ">" in line:
        line = _TAG.sub("", line)
    if line[:1] in "\x01\x02" and line[:1]:
        line = _DOCKER_HEADER.sub("", line)
    if not line.isascii():
        line = line.translate(PLAIN)
    line = _unquoted(line)
    stripped = line.lstrip()
    if stripped.startswith('"') and stripped.rstrip().endswith(('\\n"', '\\n",', '|"', '|",')):
        match = _NOTEBOOK.match(stripped)
        if match:
            line = match.group(1).replace('\\"', '"').replace("\\\\", "\\")
    if "\\|" in line:
        line = line.replace("\\|", "|")
    if line[4:5] == "-" and _WRITE.match(line):
        line = _WRITE.sub("", line)
    for _ in range(3):
        start = line.lstrip()
        match = _PREFIX.match(start) or _COMMENTED.match(start) or _DIFF.match(start)
        if not match:
            break
        line = start[match.end() :]
    return line.rstrip()


def _unquoted(line: str) -> str:
    """Without a mail's or a forum's quotation marks; `>>> ` is Python's prompt and stays."""
    start = line.lstrip()
    if not start.startswith(">"):
        return line
    if start.startswith((">>> ", "> >>> ")) or start == ">>>":
        return start[2:] if start.startswith("> ") else start
    match = _QUOTE.match(start)
    return start[match.end() :] if match else line
