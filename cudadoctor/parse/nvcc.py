"""Which CUDA toolkit this is.

`nvcc --version` (before CUDA 11 there is no Build line):

    nvcc: NVIDIA (R) Cuda compiler driver
    Copyright (c) 2005-2024 NVIDIA Corporation
    Built on Thu_Jan_01_00:00:00_PST_2024
    Cuda compilation tools, release 12.4, V12.4.131
    Build cuda_12.4.r12.4/compiler.00000000_0

version.json in the toolkit's folder (CUDA 11.1 on):

    {"cuda" : {"name" : "CUDA SDK", "version" : "12.4.20240101"}, "cuda_nvcc" : {"name" : ..., "version" : "12.4.131"}}

version.txt in the toolkit's folder (to CUDA 11.0):

    CUDA Version 10.1.243
"""

from __future__ import annotations

import re

from cudadoctor.model.record import NamedTuple

from .errors import unlike


class NvccVersion(NamedTuple):
    """`release` is the toolkit's "12.4", `version` nvcc's own "12.4.131", `build` the Build line or None."""

    release: str
    version: str
    build: str | None = None


def parse_nvcc(text: str) -> NvccVersion:
    """What `nvcc --version` printed, other lines before and after it allowed.

    ParseError when there is no release in it.
    """
    found = re.search(r"release ([0-9]{1,3}\.[0-9]{1,3})(?:, V([0-9]{1,3}(?:\.[0-9]{1,5}){1,3}))?", text, re.ASCII)
    if found is None:
        raise unlike("the output of nvcc --version", text.strip())
    build = re.search(r"^Build (\S+)", text, re.ASCII | re.MULTILINE)
    return NvccVersion(found.group(1), found.group(2) or found.group(1), build.group(1) if build else None)


class ToolkitVersion(NamedTuple):
    """`release` is "12.4"; `version` the whole number as the file has it; `nvcc` that of its compiler, None without
    one.
    """

    release: str
    version: str
    nvcc: str | None


def parse_version_json(text: str) -> ToolkitVersion:
    """A toolkit's version.json. ParseError when it is none."""
    import json

    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise unlike("a CUDA toolkit's version.json", text.strip()) from None

    def version_of(component: str) -> str | None:
        entry = document.get(component) if isinstance(document, dict) else None
        version = entry.get("version") if isinstance(entry, dict) else None
        return version if isinstance(version, str) and re.match(r"[0-9]{1,3}\.[0-9]{1,3}", version) else None

    nvcc = version_of("cuda_nvcc")
    whole = version_of("cuda") or nvcc
    if whole is None:
        raise unlike("a CUDA toolkit's version.json", text.strip())
    return ToolkitVersion(".".join(whole.split(".")[:2]), whole, nvcc)


def parse_version_txt(text: str) -> ToolkitVersion:
    """A toolkit's version.txt. ParseError when it is none."""
    found = re.search(r"CUDA Version ([0-9]{1,3}\.[0-9]{1,3}(?:\.[0-9]{1,5})?)", text, re.ASCII)
    if found is None:
        raise unlike("a CUDA toolkit's version.txt", text.strip())
    return ToolkitVersion(".".join(found.group(1).split(".")[:2]), found.group(1), None)


def release_of_folder(name: str) -> str | None:
    """A folder named "cuda-12.4" (Linux) or "v12.4" (Windows) -> "12.4"; None without the number."""
    found = re.fullmatch(r"(?:cuda-|v)([0-9]{1,3}\.[0-9]{1,3})", name, re.ASCII | re.I)
    return found.group(1) if found else None
