"""What pip and uv say beside their lists: what is installed already, what does not fit, what they left behind.

    Requirement already satisfied: torch in /opt/env/lib/python3.10/site-packages (2.2.2+cu121)
    Successfully installed torch-2.6.0+cpu torchvision-0.21.0+cpu
    torchvision 0.20.1+cu124 requires torch==2.5.1, but you have torch 2.6.0 which is incompatible.
    xformers 0.0.28.post3 has requirement torch==2.5.1, but you have torch 2.6.0.
    WARNING: Ignoring invalid distribution ~orch (/opt/env/lib/python3.12/site-packages)
    Downloading torch-2.9.1-cp312-cp312-win_amd64.whl (109.9 MB)
    hint: You require CPython 3.11 (`cp311`), but we only found wheels for ...
     + onnxruntime-gpu==1.20.1

The error lines themselves are symptoms (see `messages`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from cudadoctor.matrix import Matrix
from cudadoctor.parse.cuda_packages import matters
from cudadoctor.parse.markers import normalise_name
from cudadoctor.reports.blocks import LOG, TYPED, Block, Claim
from cudadoctor.reports.readers._said import VERSION, package_claims
from cudadoctor.reports.text import Text

TRIGGERS = (
    "requirement already satisfied: ",
    "successfully installed ",
    ", but you have ",
    "ignoring invalid distribution ",
    "downloading torch-",
    "cached torch-",
    "downloading https://download.pytorch.org/",
    "you require cpython ",
    "matching python abi tag",
    "externally-managed-environment",
    "+ torch",
    "+ jax",
    "+ nvidia-",
    "+ onnxruntime",
    "+ tensorflow",
    "+ xformers",
    "+ flash-attn",
    "+ triton",
)

_SATISFIED = re.compile(
    r"Requirement already satisfied: ([A-Za-z0-9][\w.-]{0,80})\S{0,200} in (\S.{0,300}?) (?:\(from .{0,200}\) )?"
    rf"\(({VERSION})\)"
)
_INSTALLED = re.compile(r"Successfully installed (.{3,20000})$")
_PAIR = re.compile(rf"([A-Za-z][\w.]*(?:-[A-Za-z][\w.]*|-cu\d\d)*(?:-\d(?=-))?)-({VERSION})(?=\s|$)")
_CONFLICT = re.compile(
    rf"\b([A-Za-z][\w.-]{{0,80}}) ({VERSION}) (?:requires|has requirement) "
    r"([A-Za-z][\w.-]{0,80}(?:\[[\w,-]{1,60}\])?)([^;\s]{0,80})[^\n]{0,80}?"
    rf", but you have ([A-Za-z][\w.-]{{0,80}}) ({VERSION}?)(?= which|\.?$|\.\s)"
)
# What uv has put into an environment. In a diff of a requirements file nothing stands before the sign.
_ADDED = re.compile(rf"(?: | \x1b\[\d+m)\+ ([A-Za-z][\w.-]{{0,80}})==({VERSION})$")
_LEFT = re.compile(r"Ignoring invalid distribution ([~-][\w.-]{1,60}) ?\(")
_WHEEL = re.compile(r"\btorch-\d[\w.+%]{0,40}-cp(\d)(\d{1,2})-cp\1\2t?-((?:manylinux|linux|win|macosx)_?\w{2,60})\.whl")
_CPYTHON = re.compile(
    r"(?:You require CPython (\d\.\d{1,2})\b|matching Python ABI tag \(e\.g\., `cp(\d)(\d{1,2})t?`\))"
)
_PLATFORMS = {
    "win_amd64": ("windows", "x86_64"),
    "win32": ("windows", "x86"),
    "win_arm64": ("windows", "aarch64"),
}


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    required: dict[str, list[str]] = {}
    seen: set[str] = set()
    for hit in hits[:3000]:
        line = text[hit]
        if line in seen:
            continue
        seen.add(line)
        claims = [*_already(line, hit), *_conflict(line, hit, required), *_of_machine(line, hit)]
        if claims:
            yield Block("pip's output", hit, hit, tuple(claims), LOG)


def _already(line: str, hit: int) -> Iterator[Claim]:
    satisfied, installed, added = _SATISFIED.search(line), _INSTALLED.search(line), _ADDED.match(line)
    if satisfied:
        name, folder, version = satisfied.groups()
        stated = list(package_claims(name, version, hit))
        yield from stated
        if stated:
            yield Claim(f"package.{normalise_name(name)}.location", folder, hit)
    elif added:
        yield from package_claims(added.group(1), added.group(2).strip(), hit)
    elif installed:
        for word in installed.group(1).split():
            pair = _PAIR.fullmatch(word)
            if pair:
                yield from package_claims(pair.group(1), pair.group(2), hit)


def _conflict(line: str, hit: int, required: dict[str, list[str]]) -> Iterator[Claim]:
    match = _CONFLICT.search(line)
    if match is None:
        return
    name, version, wanted, specifier, other, has = match.groups()
    package = normalise_name(name)
    yield from package_claims(name, version, hit)
    yield from package_claims(other, has.rstrip("."), hit)
    if matters(package):
        requirements = required.setdefault(package, [])
        requirements.append(f"{normalise_name(wanted.partition('[')[0])}{specifier.strip('()').rstrip(',')}")
        yield Claim(f"package.{package}.requires", list(requirements), hit)


def _of_machine(line: str, hit: int) -> Iterator[Claim]:
    left, wheel, python = _LEFT.search(line), _WHEEL.search(line), _CPYTHON.search(line)
    if left:
        yield Claim("packages.leftovers", [left.group(1)], hit)
    if python:
        version = python.group(1) or f"{python.group(2)}.{python.group(3)}"
        yield Claim("python.version", version, hit, trust=TYPED)
    if wheel:
        # What pip takes fits the Python and the system for which it is taken.
        yield Claim("python.version", f"{wheel.group(1)}.{wheel.group(2)}", hit, trust=TYPED)
        os_name, arch = _PLATFORMS.get(wheel.group(3), ("", ""))
        if "linux" in wheel.group(3):
            os_name = "linux"
            arch = next((one for one in ("x86_64", "aarch64") if wheel.group(3).endswith(one)), "")
        if os_name and arch:
            yield Claim("system.os", os_name, hit, trust=TYPED)
            yield Claim("system.arch", arch, hit, trust=TYPED)
    if re.match(r"\s*(?:error|\u00d7)\W{0,4}(?:externally-managed-environment|This environment is externally)", line):
        yield Claim("python.externally_managed", True, hit)
