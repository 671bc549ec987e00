"""`conda info`: the virtual packages tell what conda has seen of the driver and of the system.

         active environment : demo
        active env location : /opt/conda/envs/demo
           virtual packages : __archspec=1=zen3
                              __cuda=12.4=0              the newest CUDA that the driver serves
                              __glibc=2.35=0
                   platform : linux-64

`python version` there is that of conda's own Python.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from cudadoctor.matrix import Matrix
from cudadoctor.reports.blocks import REPORT, TYPED, Block, Claim
from cudadoctor.reports.text import Text

TRIGGERS = ("active environment :", "virtual packages :")

_LONGEST = 40
_LISTED = re.compile(r"\b__(?:unix|linux|win|osx|glibc|archspec|conda)=")
_CUDA = re.compile(r"\b__cuda=(\d{1,2}\.\d{1,2})(?:=|\b)")
_GLIBC = re.compile(r"\b__glibc=(\d\.\d{1,3})(?:=|\b)")
_LINE = re.compile(r"\s*([a-z][a-z /()-]{2,40}?)\s+:\s?(.*)$")
_PLATFORMS = {
    "linux-64": ("linux", "x86_64"),
    "linux-aarch64": ("linux", "aarch64"),
    "win-64": ("windows", "x86_64"),
    "osx-64": ("darwin", "x86_64"),
    "osx-arm64": ("darwin", "aarch64"),
}


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    end = -1
    for hit in hits:
        if hit <= end:
            continue
        claims: list[Claim] = []
        listed = False
        last = hit
        for index, line in text.lines(hit, hit + _LONGEST):
            cuda, glibc, field = _CUDA.search(line), _GLIBC.search(line), _LINE.match(line)
            listed = listed or bool(_LISTED.search(line))
            if cuda:
                claims += [
                    Claim("conda.virtual_cuda", cuda.group(1), index),
                    # CONDA_OVERRIDE_CUDA may say something else than the driver: others are believed before it.
                    Claim("driver.smi_cuda", cuda.group(1), index, trust=TYPED),
                ]
            if glibc:
                claims.append(Claim("system.glibc", glibc.group(1), index))
            if field and field.group(1) == "platform" and field.group(2).strip() in _PLATFORMS:
                os_name, arch = _PLATFORMS[field.group(2).strip()]
                claims += [Claim("system.os", os_name, index), Claim("system.arch", arch, index)]
            if field and field.group(1) == "active env location":
                claims += [
                    Claim("python.prefix", field.group(2).strip(), index),
                    Claim("python.environment", "conda", index),
                ]
            if field or cuda or glibc:
                last = index
            elif index > last + 3:
                break
        end = last
        if listed and not any(claim.fact == "conda.virtual_cuda" for claim in claims):
            claims.append(Claim("conda.virtual_cuda", None, hit, "absent"))
        if claims:
            yield Block("conda info", hit, last, tuple(claims), REPORT)
