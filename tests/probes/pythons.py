"""Python installations and environments as a recording shows them, for machines written by hand.

machine_with(debian(), venv("/home/me/proj/.venv", "3.12.3"), VIRTUAL_ENV="/home/me/proj/.venv")
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Optional

from cudadoctor.probes.python_layout import QUESTION
from cudadoctor.system.replay import ReplaySystem

from .tables import machine, windows

Sections = dict[str, Any]


def _binary(data: bytes) -> dict[str, str]:
    return {"base64": base64.b64encode(data).decode()}


def elf_header(bits: int = 64, machine_number: int = 62) -> bytes:
    """The first bytes of a Linux program: 62 is x86_64, 183 aarch64, 3 x86."""
    return b"\x7fELF" + bytes([bits // 32, 1, 1]) + bytes(9) + bytes([2, 0, machine_number, 0]) + bytes(44)


PROGRAM = _binary(elf_header())
OTHER_PROGRAM = _binary(elf_header(32, 3))
SCRIPT = "#!/bin/sh\n"


def merged(*parts: Sections) -> Sections:
    """Sections of a recording laid over each other."""
    whole: Sections = {}
    for part in parts:
        for name, section in part.items():
            whole[name] = {**whole.get(name, {}), **section} if isinstance(section, dict) else section
    return whole


def machine_with(*parts: Sections, asked: Optional[str] = None, own: Any = None, **variables: str) -> ReplaySystem:
    """A Linux machine of these parts; `own` is the interpreter that runs cudadoctor."""
    more: Sections = {"own_interpreter": own} if own else {}
    return machine(
        **merged(
            {"working_folder": "/home/me/job", "variables": {"HOME": "/home/me", "PATH": "/usr/bin", **variables}},
            *parts,
            {**more, **({"asked_python": asked} if asked else {})},
        )
    )


def windows_with(*parts: Sections, asked: Optional[str] = None, **variables: str) -> ReplaySystem:
    more = {"asked_python": asked} if asked else {}
    variables = {
        "USERPROFILE": "C:\\Users\\me",
        "APPDATA": "C:\\Users\\me\\AppData\\Roaming",
        "PATH": "C:\\Windows\\System32",
        **variables,
    }
    return windows(**merged({"working_folder": "C:\\Users\\me", "variables": variables}, *parts, more))


def answering(parts: Sections) -> Sections:
    """`*` in a program's arguments stands for the question that the probe asks an interpreter."""
    programs = [
        {**program, "argv": [QUESTION if word == "*" else word for word in program["argv"]]}
        for program in parts.get("programs", [])
    ]
    return {**parts, "programs": programs} if programs else parts


def own(prefix: str, base_prefix: str = "/usr", version: str = "3.12.3") -> dict[str, str]:
    """What cudadoctor knows of the interpreter that runs it."""
    return {
        "executable": f"{prefix}/bin/python",
        "prefix": prefix,
        "base_prefix": base_prefix,
        "version": version,
    }


# -- installations ----------------------------------------------------------------------------------------------------


def debian(minor: str = "3.12", externally_managed: bool = True) -> Sections:
    """The distribution's own Python of Debian and Ubuntu; there is no `python`, only `python3`."""
    files = {f"/usr/bin/python{minor}": PROGRAM, f"/usr/lib/python{minor}/os.py": ""}
    if externally_managed:
        files[f"/usr/lib/python{minor}/EXTERNALLY-MANAGED"] = "[externally-managed]\n"
    return {
        "files": files,
        "links": {"/usr/bin/python3": f"python{minor}"},
        "folders": {"/usr/lib/python3/dist-packages": [], f"/usr/local/lib/python{minor}/dist-packages": []},
    }


def fedora(minor: str = "3.12") -> Sections:
    return {
        "files": {f"/usr/bin/python{minor}": PROGRAM, f"/usr/lib64/python{minor}/os.py": ""},
        "links": {"/usr/bin/python3": f"python{minor}", "/usr/bin/python": "./python3"},
        "folders": {
            f"/usr/lib64/python{minor}/site-packages": [],
            f"/usr/lib/python{minor}/site-packages": [],
            f"/usr/local/lib/python{minor}/site-packages": [],
        },
    }


def installed(prefix: str, minor: str) -> Sections:
    """A Python that was built or unpacked somewhere: python.org's, pyenv's, uv's, /usr/local, a cluster's module."""
    return {
        "files": {f"{prefix}/bin/python{minor}": PROGRAM, f"{prefix}/lib/python{minor}/os.py": ""},
        "links": {f"{prefix}/bin/python3": f"python{minor}", f"{prefix}/bin/python": f"python{minor}"},
        "folders": {f"{prefix}/lib/python{minor}/site-packages": []},
    }


def venv(
    prefix: str = "/home/me/proj/.venv",
    version: str = "3.12.3",
    home: str = "/usr/bin",
    *lines: str,
    key: str = "version",
    suffix: str = "",
    system_site: bool = False,
) -> Sections:
    """A virtual environment; `key` and further `lines` of pyvenv.cfg tell who made it."""
    minor = ".".join(version.split(".")[:2]) + suffix
    config = [
        f"home = {home}",
        f"include-system-site-packages = {'true' if system_site else 'false'}",
        f"{key} = {version}",
        *lines,
    ]
    return {
        "files": {f"{prefix}/pyvenv.cfg": config},
        "links": {
            f"{prefix}/bin/python": f"{home}/python3",
            f"{prefix}/bin/python{minor}": "python",
            f"{prefix}/lib64": "lib",
        },
        "folders": {f"{prefix}/lib/python{minor}/site-packages": []},
    }


def conda(prefix: str, version: str = "3.11.9", *meta: str, base: bool = False) -> Sections:
    """A conda environment; `meta` are more names of packages in conda-meta, without .json."""
    minor = ".".join(version.split(".")[:2])
    names = ["history", f"python-{version}-h955ad1f_0_cpython.json", *(f"{name}.json" for name in meta)]
    whole = merged(installed(prefix, minor), {"folders": {f"{prefix}/conda-meta": names}})
    return merged(whole, {"folders": {f"{prefix}/condabin": ["conda"]}}) if base else whole


def windows_python(prefix: str, minor: str = "3.12") -> Sections:
    """python.org's installer."""
    return {
        "files": {
            f"{prefix}\\python.exe": "MZ",
            f"{prefix}\\python3.dll": "MZ",
            f"{prefix}\\python{minor.replace('.', '')}.dll": "MZ",
        },
        "folders": {f"{prefix}\\Lib\\site-packages": []},
    }


def windows_venv(prefix: str, version: str = "3.12.7", home: str = "C:\\Python312") -> Sections:
    config = [f"home = {home}", "include-system-site-packages = false", f"version = {version}"]
    return {
        "files": {f"{prefix}\\pyvenv.cfg": config, f"{prefix}\\Scripts\\python.exe": "MZ"},
        "folders": {f"{prefix}\\Lib\\site-packages": []},
    }


# -- packages ---------------------------------------------------------------------------------------------------------


def package(
    site: str, name: str, version: str, *requires: str, installer: Optional[str] = "pip", **files: str
) -> Sections:
    """A wheel's dist-info in the folder `site`; more of its files by name."""
    info = f"{site}/{name.replace('-', '_')}-{version}.dist-info"
    metadata = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    metadata += [f"Requires-Dist: {one}" for one in requires]
    content: dict[str, Any] = {f"{info}/METADATA": [*metadata, "", "A description."]}
    if installer:
        content[f"{info}/INSTALLER"] = installer + "\n"
    content.update((f"{info}/{key}", text) for key, text in files.items())
    return {"files": content}


def torch(site: str, version: str, cuda: Optional[str] = None, metadata: Optional[str] = None) -> Sections:
    """torch with its version.py; without libraries."""
    text = f"__version__ = {version!r}\ndebug = False\ncuda: Optional[str] = {cuda!r}\nhip: Optional[str] = None\n"
    return merged(
        package(site, "torch", metadata or version),
        {"files": {f"{site}/torch/__init__.py": "", f"{site}/torch/version.py": text}},
    )


def site_of(prefix: str, minor: str = "3.12") -> str:
    return f"{prefix}/lib/python{minor}/site-packages"


def environment_of(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The values of the known python.* facts by their short names."""
    return {name.partition(".")[2]: fact.value for name, fact in facts.items() if fact.is_known}
