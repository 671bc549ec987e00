"""Which host compiler nvcc would call.

First lines of `gcc --version`:

    gcc (Ubuntu 13.3.0-6ubuntu2~24.04) 13.3.0
    gcc (GCC) 8.5.0 20210514 (Red Hat 8.5.0-26)
    x86_64-conda-linux-gnu-cc (conda-forge gcc 14.2.0-1) 14.2.0

of `clang --version`:

    Ubuntu clang version 18.1.3 (1ubuntu1)
    Apple clang version 15.0.0 (clang-1500.3.9.4)

of cl, on its error stream and in the language of the system:

    Microsoft (R) C/C++ Optimizing Compiler Version 19.39.33523 for x64
"""

from __future__ import annotations

import re

from cudadoctor.model.record import NamedTuple

from .errors import unlike


class HostCompiler(NamedTuple):
    """`family` is "gcc", "clang", "apple-clang" or "msvc"; `version` as printed: "13.3.0", "19.39.33523"."""

    family: str
    version: str

    @property
    def major(self) -> int:
        return int(self.version.split(".")[0])


def parse_host_compiler(text: str) -> HostCompiler:
    """The first line that is a compiler's banner. ParseError when there is none."""
    for line in text.splitlines()[:20]:
        line = line[:300]
        found = re.search(r"\bclang version ([0-9]{1,3}(?:\.[0-9]{1,4}){0,3})", line, re.ASCII)
        if found:
            return HostCompiler("apple-clang" if "Apple" in line else "clang", found.group(1))
        # Microsoft's banner is translated; the product name and the number are not.
        found = re.search(r"C/C\+\+.*?\b(1[0-9]\.[0-9]{1,2}(?:\.[0-9]{1,6}){0,2})\b", line, re.ASCII)
        if found and "Microsoft" in line:
            return HostCompiler("msvc", found.group(1))
        # After the bracket: the number inside it is the package's.
        found = re.match(r"\S*(?:gcc|g\+\+|c\+\+|cc)\S* \([^)]*\)+ ([0-9]{1,3}(?:\.[0-9]{1,3}){0,2})\b", line, re.ASCII)
        if found:
            return HostCompiler("gcc", found.group(1))
    raise unlike("a compiler's --version", text.strip())
