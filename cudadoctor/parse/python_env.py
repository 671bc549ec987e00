r"""What a Python installation says about itself in small files and names.

pyvenv.cfg (written by venv, virtualenv and uv, each in its own words):

    home = /usr/bin
    include-system-site-packages = false
    version = 3.12.3                        virtualenv and uv: version_info = 3.12.3
    executable = /usr/bin/python3.12

EXTERNALLY-MANAGED (PEP 668), beside the standard library:

    [externally-managed]
    Error=To install Python packages system-wide, try apt install
     python3-xyz, ...

Names: python3.12, python3.13t (free-threaded), pypy3.10, python.exe. A wheel's tag: cp312-cp312-manylinux_2_28_x86_64.
"""

from __future__ import annotations

import re

from cudadoctor.model.record import NamedTuple

from .digits import is_dotted, leading_dotted
from .errors import unlike


class PyvenvCfg(NamedTuple):
    """`home` is the folder of the interpreter behind the environment; `version` "3.12.3" (or "3.12"), None when not
    said.
    """

    home: str
    version: str | None
    system_site_packages: bool
    executable: str | None
    uv: str | None
    prompt: str | None


def parse_pyvenv_cfg(text: str) -> PyvenvCfg:
    """pyvenv.cfg. ParseError without `home`, which every one has."""
    values: dict[str, str] = {}
    for line in text.lstrip("\ufeff").splitlines():
        key, sign, value = line.partition("=")
        if sign:
            values[key.strip().lower()] = value.strip()
    home = values.get("home")
    if not home:
        raise unlike("a pyvenv.cfg", text.strip())
    version = None
    for key in ("version_info", "version"):
        dotted = ".".join(leading_dotted(values.get(key, "")).split(".")[:3])
        if is_dotted(dotted, 2, 3, 3):
            version = dotted
            break
    prompt = values.get("prompt", "").strip("'\"") or None
    return PyvenvCfg(
        home=home,
        version=version,
        system_site_packages=values.get("include-system-site-packages", "").lower() == "true",
        executable=values.get("executable") or values.get("base-executable"),
        uv=values.get("uv"),
        prompt=prompt,
    )


def parse_externally_managed(text: str) -> str | None:
    """The message of an EXTERNALLY-MANAGED file in one piece; None where it has none (the marker still holds).

    Never fails.
    """
    message: str | None = None
    for line in text.splitlines():
        found = re.match(r"Error\s{0,10}[=:]\s{0,10}(.*)$", line)
        if found:
            message = found.group(1)
        elif message is not None:
            if line[:1] not in (" ", "\t", ""):
                break
            message += "\n" + line.strip()
    return message.strip() or None if message is not None else None


class PythonName(NamedTuple):
    """What a file name says: `version` "3.12" or "3" or None; `free_threaded` for a "t" after the version."""

    implementation: str  # "python", "pypy"
    version: str | None
    free_threaded: bool


def parse_python_name(name: str) -> PythonName | None:
    """For example "python3.12", "python3.13t", "pypy3", "python.exe" -> PythonName; None for a file of another name.

    Never fails.
    """
    found = re.fullmatch(r"(python|pypy)w?([0-9](?:\.[0-9]{1,3})?)?(t?)d?(?:\.exe)?", name, re.ASCII | re.I)
    if found is None:
        return None
    return PythonName(found.group(1).lower(), found.group(2), bool(found.group(3)))


def parse_site_packages_version(path: str) -> PythonName | None:
    """The version in ".../lib/python3.12/site-packages"; None where the path has none (Windows). Never fails."""
    found = re.search(r"(?:^|[/\\])(python|pypy)([0-9]\.[0-9]{1,3})(t?)[/\\](?:site|dist)-packages", path, re.ASCII)
    return PythonName(found.group(1), found.group(2), bool(found.group(3))) if found else None


class WheelTag(NamedTuple):
    """A single compatibility tag, taken apart.

    `python_version` "3.12" of cp312 (None for py3 and abi3 tags without a minor); `free_threaded` for cp313t;
    `system` "linux", "win", "macosx", "any"; `glibc` (2, 28) for manylinux, `musl` (1, 2) for musllinux, `machine`
    "x86_64", "aarch64", "arm64".
    """

    python: str
    abi: str
    platform: str
    python_version: str | None
    free_threaded: bool
    system: str
    glibc: tuple[int, int] | None
    musl: tuple[int, int] | None
    machine: str | None


# PEP 513, 571, 599: what the older names stand for.
_OLD_MANYLINUX = {"manylinux1": (2, 5), "manylinux2010": (2, 12), "manylinux2014": (2, 17)}


def parse_wheel_tag(text: str) -> WheelTag:
    """For example "cp312-cp312-manylinux_2_28_x86_64" -> WheelTag. Compressed sets (with dots) are not one tag.

    ParseError for anything else.
    """
    found = re.fullmatch(
        r"([a-z]{2}[0-9]{1,4}|[a-z]{2})-([a-z0-9_]{1,20})-([A-Za-z0-9_]{1,60})", text.strip(), re.ASCII
    )
    if found is None:
        raise unlike("a wheel tag such as cp312-cp312-manylinux_2_28_x86_64", text)
    python, abi, platform = found.groups()
    version = re.fullmatch(r"cp([0-9])([0-9]{1,3})", python, re.ASCII)
    glibc: tuple[int, int] | None = None
    musl: tuple[int, int] | None = None
    system, machine = "any", None
    linux = re.fullmatch(r"(manylinux|musllinux)_([0-9]{1,2})_([0-9]{1,3})_(\w{1,30})", platform, re.ASCII)
    old = re.fullmatch(r"(manylinux1|manylinux2010|manylinux2014|linux)_(\w{1,30})", platform, re.ASCII)
    mac = re.fullmatch(r"macosx_[0-9]{1,2}_[0-9]{1,2}_(\w{1,30})", platform, re.ASCII)
    if linux:
        system, machine = "linux", linux.group(4)
        pair = (int(linux.group(2)), int(linux.group(3)))
        glibc, musl = (pair, None) if linux.group(1) == "manylinux" else (None, pair)
    elif old:
        system, machine, glibc = "linux", old.group(2), _OLD_MANYLINUX.get(old.group(1))
    elif mac:
        system, machine = "macosx", mac.group(1)
    elif platform.startswith("win"):
        system = "win"
        machine = {"win_amd64": "x86_64", "win_arm64": "arm64", "win32": "x86"}.get(platform)
    elif platform != "any":
        raise unlike("a wheel tag such as cp312-cp312-manylinux_2_28_x86_64", text)
    return WheelTag(
        python=python,
        abi=abi,
        platform=platform,
        python_version=f"{version.group(1)}.{version.group(2)}" if version else None,
        free_threaded=re.fullmatch(r"cp[0-9]{2,4}d?td?", abi, re.ASCII) is not None,
        system=system,
        glibc=glibc,
        musl=musl,
        machine=machine,
    )


class CudaSuffix(NamedTuple):
    """A name such as "nvidia-cublas-cu12" in its two parts; `cuda_major` is None for a name without such an end."""

    base: str
    cuda_major: int | None


def split_cuda_suffix(name: str) -> CudaSuffix:
    """A normalised package name without its "-cu12". Never fails."""
    found = re.fullmatch(r"(.{1,200})-cu([0-9]{2})[0-9]{0,1}", name, re.ASCII)
    return CudaSuffix(found.group(1), int(found.group(2))) if found else CudaSuffix(name, None)
