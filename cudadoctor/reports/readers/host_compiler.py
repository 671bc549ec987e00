"""The C++ compiler that nvcc would call, as collect_env and the compiler itself name it.

GCC version: (Ubuntu 13.2.0-23ubuntu4) 13.2.0
gcc (Ubuntu 13.2.0-23ubuntu4) 13.2.0
g++ (GCC) 14.2.1 20250110 (Red Hat 14.2.1-7)
-- The CXX compiler identification is GNU 15.2.0
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from cudadoctor.matrix import Matrix
from cudadoctor.model import ParseError
from cudadoctor.parse.host_compiler import parse_host_compiler
from cudadoctor.reports.blocks import REPORT, TABLE, TYPED, Block, Claim
from cudadoctor.reports.text import Text

TRIGGERS = (
    "gcc version: (",
    "gcc (",
    "g++ (",
    "cxx compiler identification is",
    "optimizing compiler version",
    "gcc/g++",
)

_COLLECTED = re.compile(r"GCC version: \([^)]{0,200}\){1,3} (\d{1,2}\.\d{1,2}(?:\.\d{1,2})?)\b", re.ASCII)
_CMAKE = re.compile(r"CXX compiler identification is (GNU|Clang|MSVC) (\d{1,2}(?:\.\d{1,6}){1,3})", re.ASCII)
_BANNER = re.compile(r"(?<![\w.-])((?:gcc|g\+\+)(?:-\d{1,2})? \([^)]{0,200}\){1,3} \d{1,2}\.\d.{0,200})", re.ASCII)
_NAMES = {"GNU": "gcc", "Clang": "clang", "MSVC": "msvc"}


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    for hit in hits:
        line = text[hit]
        match = _COLLECTED.search(line)
        if match:
            yield _block("GCC version of collect_env", hit, "gcc", match.group(1), REPORT)
            continue
        match = _CMAKE.search(line)
        if match:
            yield _block("CMake", hit, _NAMES[match.group(1)], match.group(2), TABLE)
            continue
        match = _BANNER.search(line)
        banner = match.group(1) if match else line
        try:
            compiler = parse_host_compiler(banner)
        except ParseError:
            continue
        yield _block("compiler's version", hit, compiler.family, compiler.version, TABLE if match else TYPED)


def _block(kind: str, line: int, name: str, version: str, trust: int) -> Block:
    claim = Claim("toolkit.host_compiler", {"name": name, "version": version, "path": None}, line)
    return Block(kind, line, line, (claim,), trust)
