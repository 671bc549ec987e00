r"""An install command that somebody shows, and where pip says that it looks.

pip3 install torch torchvision --index-url https://download.pytorch.org/whl/cu126
Looking in indexes: https://mirror.example/simple, https://download.pytorch.org/whl/cu126
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Optional

from cudadoctor.matrix import Matrix
from cudadoctor.model.pattern import pattern
from cudadoctor.parse.pip_config import without_credentials
from cudadoctor.reports.blocks import TYPED, Block, Claim
from cudadoctor.reports.text import Text

TRIGGERS = ("pip install", "pip3 install", "pip.exe install", "uv add", "conda install", "mamba install", "looking in")

_COMMAND = pattern(
    r"(?:^|[\s`'\"(!%>;&/\\$])(?P<program>uv pip|uv|pip[\d.]{0,5}(?:\.exe)?|conda|mamba|micromamba)"
    r"\s+(?:install|add)\s+(?P<rest>[^`\n]{1,600})"
)
_LOOKING = pattern(
    r"Looking in (?P<what>indexes|links): (?P<urls>https?://[^\s,]{4,200}(?:, *https?://[^\s,]{4,200}){0,5})"
)
_REQUIREMENT = pattern(r"[A-Za-z][\w.-]{0,60}(?:\[[\w,-]{1,60}\])?(?:[<>=!~]=?[\w.*+!,<>=-]{1,60})?", re.ASCII)
_URL = pattern(r"https?://[\w.:@/%+~_-]{3,200}", re.ASCII)
_MAIN = ("--index-url", "-i", "--default-index", "--pypi-url")
_FURTHER = ("--extra-index-url", "--find-links", "-f", "--index")
# Options with a value that is no package.
_WITH_VALUE = (
    "-r",
    "-c",
    "--constraint",
    "--requirement",
    "-t",
    "--target",
    "-n",
    "--name",
    "-p",
    "--prefix",
    "--python",
)
_CHANNEL = ("-c", "--channel")
_END = ("|", "||", "&&", ";", "&", ">", "2>&1", "#", "and", "then", "but", "or")
_TOOLS = ("pip", "setuptools", "wheel", "uv", "conda", "mamba")
# Lines that a backslash or a caret at the end carries on.
_MOST_CARRIED = 5


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    for hit in hits[-200:]:
        line = text[hit]
        looking = _LOOKING.search(line)
        if looking:
            yield _looking(looking, hit)
            continue
        match = _COMMAND.search(line)
        if match is None:
            continue
        rest, last = match.group("rest"), hit
        while rest.rstrip().endswith(("\\", "^")) and last - hit < _MOST_CARRIED and last + 1 < len(text):
            last += 1
            rest = rest.rstrip().rstrip("\\^") + " " + text[last].strip()[:300]
        block = _command(match.group("program").lower(), rest, hit, last)
        if block is not None:
            yield block


def _looking(match: re.Match[str], line: int) -> Block:
    urls = [found for url in match.group("urls").split(",") if (found := _address(url.strip()))]
    claims = []
    if match.group("what").lower() == "indexes" and urls:
        claims.append(Claim("install.index_url", urls[0], line))
        claims.append(Claim("install.extra_index_urls", urls[1:], line))
    return Block("pip's list of indexes", line, line, tuple(claims), TYPED + 1)


def _command(program: str, rest: str, first: int, last: int) -> Optional[Block]:
    words = [word.strip("\"'") for word in rest.replace("\u2013", "--").split()]
    main: Optional[str] = None
    further: list[str] = []
    requirements: list[str] = []
    conda = program.endswith(("conda", "mamba"))
    place = 0
    while place < len(words):
        word = words[place]
        place += 1
        if word in _END or word.startswith("#"):
            break
        option, _, value = word.partition("=") if word.startswith("--") else (word, "", "")
        if option.startswith("-"):
            takes = option in _MAIN or option in _FURTHER or option in _WITH_VALUE
            if takes and not value and place < len(words):
                value = words[place]
                place += 1
            url = _address(value) if value else None
            if url and option in _MAIN:
                main = url
            elif url and option in _FURTHER:
                further.append(url)
            continue
        if _REQUIREMENT.fullmatch(word) and len(requirements) < 30:
            requirements.append(word)
    if not requirements or all(word.partition("=")[0] in _TOOLS for word in requirements):
        return None  # pip's own notice tells how to update it
    name = "conda" if conda else "uv" if program.startswith("uv") else "pip"
    claims = [Claim("install.program", name, first), Claim("install.requirements", requirements, first)]
    if not conda:
        claims.append(Claim("install.index_url", main, first, "known" if main else "absent"))
        claims.append(Claim("install.extra_index_urls", further, first))
    return Block("install command", first, last, tuple(claims), TYPED)


def _address(text: str) -> Optional[str]:
    """An index's address without user and password; None for what is none."""
    text = text.strip("\"'<>)(,;`")
    if not _URL.fullmatch(text):
        return None
    return without_credentials(text).rstrip("/.")
