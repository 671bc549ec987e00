"""Installed packages that matter to CUDA: versions, origin, what they require and what they were built for.

Names and versions come from the names of the metadata folders; files are read only for torch and what is built against
it, and none is run.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Optional

from cudadoctor.model.fact import Fact, absent, known, unknown
from cudadoctor.model.record import NamedTuple
from cudadoctor.parse.cuda_packages import (
    COMPANIONS,
    EXTENSIONS,
    NAMES,
    REQUIREMENTS,
    TORCH,
    WITH_REQUIREMENTS,
)
from cudadoctor.parse.dist_info import DirectUrl, Requirement, parse_direct_url, parse_metadata, parse_wheel_name
from cudadoctor.parse.errors import ParseError
from cudadoctor.parse.markers import evaluate
from cudadoctor.parse.torch_version import parse_torch_version
from cudadoctor.parse.versions import cuda_from_tag, split_local
from cudadoctor.probes.api import EVERYWHERE, Probe
from cudadoctor.probes.paths import paths
from cudadoctor.probes.patient import patient
from cudadoctor.probes.site_packages import Installed, SitePackages, site_packages
from cudadoctor.system.port import System

# The headers of the largest METADATA (vLLM's) take 20 KB; what follows is a description.
_METADATA_LIMIT = 1 << 16

# conda writes the keys of its records in order; `channel` stands before the long lists of files.
_CONDA_RECORD_HEAD = 4096

_CUDA_TOOLKIT = "cuda-toolkit"

# Packages for which it means something which torch or CUDA they were built for.
_BUILT = frozenset(("torchvision", "torchaudio", *EXTENSIONS)) - {
    "bitsandbytes",  # brings a library for each CUDA
    "deepspeed",  # compiles at run time
    "dgl",
    "flashinfer-python",
    "gptqmodel",
    "lmdeploy",
    "sglang",
    "unsloth",
    "unsloth-zoo",
}


def look(system: System) -> dict[str, Fact[Any]]:
    found = site_packages(system)
    if not found.is_known:
        # No Python: then there are no packages either. A Python that cannot be read leaves all of them open.
        state = absent(found.source) if found.is_absent else unknown(found.reason, found.source)
        facts: dict[str, Fact[Any]] = {f"package.{name}.version": state for name in NAMES}
        facts["packages.duplicates"] = facts["packages.leftovers"] = state
        return facts
    folders = found.get()
    facts = {}
    for name, copies in folders.distributions.items():
        facts.update(_about(system, name, copies[0]))
    for name, (package, path) in folders.conda.items():
        facts.setdefault(f"package.{name}.version", known(package.version, path))
        facts.setdefault(f"package.{name}.installer", known("conda", path))
        facts[f"package.{name}.conda_build"] = known(package.build, path)
    for name in NAMES:
        if f"package.{name}.version" not in facts:
            facts[f"package.{name}.version"] = _not_found(folders, found.source)
        elif name not in folders.conda:
            facts[f"package.{name}.conda_build"] = _not_in_conda(folders, found.source)
    for name in _required_names(facts):
        # nvidia-cublas-cu12 and its kin: whoever requires one is told that it is not there.
        facts.setdefault(f"package.{name}.version", _not_found(folders, found.source))
    if TORCH in folders.conda:
        facts["package.torch.conda_channel"] = _channel(system, folders.conda[TORCH][1])
    facts["packages.duplicates"] = _duplicates(system, folders, found.source)
    facts["packages.leftovers"] = _leftovers(folders, found.source)
    return facts


def _required_names(facts: Mapping[str, Fact[Any]]) -> set[str]:
    names: set[str] = set()
    for name, fact in facts.items():
        if name.endswith(".requires") and fact.is_known:
            names.update(re.split(r"[^a-z0-9-]", requirement, maxsplit=1)[0] for requirement in fact.get())
    return names


def _not_found(folders: SitePackages, source: str) -> Fact[Any]:
    if folders.unreadable is not None:
        return unknown(folders.unreadable.reason, folders.unreadable.source)
    return absent(source)


def _not_in_conda(folders: SitePackages, source: str) -> Fact[Any]:
    if folders.conda_unreadable is not None:
        return unknown(folders.conda_unreadable.reason, folders.conda_unreadable.source)
    return absent(source)


def _about(system: System, name: str, one: Installed) -> dict[str, Fact[Any]]:
    facts: dict[str, Fact[Any]] = {
        f"package.{name}.version": known(one.version, one.metadata),
        f"package.{name}.location": known(one.folder, one.metadata),
    }
    if name.startswith("nvidia-") or name not in NAMES:
        return facts
    p = system.once(paths)
    installer = system.read_text(p.join(one.metadata, "INSTALLER"), 256)
    facts[f"package.{name}.installer"] = installer.map(str.strip)
    if name in WITH_REQUIREMENTS:
        facts[f"package.{name}.requires"] = (
            system.once(_requirements_of_torch) if name == TORCH else _requires(system, one)
        )
    if name in _BUILT:
        built = _built_for(system, name, one)
        facts[f"package.{name}.built_for_cuda"] = built.cuda
        if name not in COMPANIONS:  # these say it by their requirements
            facts[f"package.{name}.built_for_torch"] = built.torch
    return facts


# -- requirements -----------------------------------------------------------------------------------------------------


def _metadata_file(system: System, one: Installed) -> Fact[str]:
    p = system.once(paths)
    if one.metadata.endswith(".dist-info"):
        return system.read_text(p.join(one.metadata, "METADATA"), _METADATA_LIMIT)
    folder = p.join(one.metadata, "EGG-INFO") if one.metadata.endswith(".egg") else one.metadata
    text = system.read_text(p.join(folder, "PKG-INFO"), _METADATA_LIMIT)
    required = system.read_text(p.join(folder, "requires.txt"), _METADATA_LIMIT)
    if required.is_unknown:
        return required
    return text.map(lambda content: _with_requires_txt(content, required.value or ""))


def _with_requires_txt(metadata: str, requires: str) -> str:
    """The old form beside it in its words: sections of requires.txt are "[extra:marker]", "[extra]" and "[:marker]"."""
    lines, condition = [], ""
    for line in map(str.strip, requires.splitlines()):
        if line.startswith("[") and line.endswith("]"):
            extra, _, marker = line[1:-1].partition(":")
            parts = ([f"({marker})"] if marker else []) + ([f'extra == "{extra}"'] if extra else [])
            condition = "; " + " and ".join(parts) if parts else ""
        elif line:
            lines.append(f"Requires-Dist: {line}{condition}")
    head, blank, description = metadata.partition("\n\n")
    return head.rstrip("\n") + "".join("\n" + line for line in lines) + blank + description


def _requires(system: System, one: Installed) -> Fact[list[str]]:
    """The requirements of a package that count here. Of `cuda-toolkit`, which is nothing but a list of NVIDIA's
    packages by extras, those of the extras with which torch asks for it."""
    text = _metadata_file(system, one)
    if text.is_absent:
        return unknown("it has no METADATA", one.metadata)
    if one.name != _CUDA_TOOLKIT:
        return text.map(lambda content: _applying(system, content))
    extras = [
        extra
        for requirement in system.once(_requirements_of_torch).value or ()
        if requirement.startswith(_CUDA_TOOLKIT + "[")
        for extra in requirement.partition("[")[2].partition("]")[0].split(",")
    ]
    return text.map(lambda content: _applying(system, _of_extras(content, extras)))


def _requirements_of_torch(system: System) -> Fact[list[str]]:
    found = site_packages(system)
    copies = found.get().distributions.get(TORCH) if found.is_known else None
    return _requires(system, copies[0]) if copies else absent(found.source)


def _applying(system: System, metadata: str) -> list[str]:
    environment = system.once(marker_environment)
    verdicts: dict[str, Optional[bool]] = {}
    kept: list[str] = []
    for requirement in parse_metadata(metadata, REQUIREMENTS).requirements:
        marker = requirement.marker
        if marker not in verdicts:
            verdicts[marker] = evaluate(marker, environment)
        if verdicts[marker] is None:
            raise ParseError(f"whether it requires {requirement.name} here cannot be told ({marker})")
        written = _written(requirement)
        if verdicts[marker] and written not in kept:
            kept.append(written)
    return kept


def _of_extras(metadata: str, extras: list[str]) -> str:
    """METADATA in which the requirements of these extras are unconditional, and those of others are gone."""
    lines = []
    for line in metadata.splitlines():
        before, is_extra, after = line.rpartition("extra == ")
        quote = after[:1]
        name, _, rest = after[1:].partition(quote) if quote else ("", "", "")
        if not is_extra or not line.startswith("Requires-Dist"):
            lines.append(line)
        elif name in extras:
            lines.append(f"{before}extra == ''{rest}")
        if not line:
            break
    return "\n".join(lines)


def _written(requirement: Requirement) -> str:
    extras = f"[{','.join(requirement.extras)}]" if requirement.extras else ""
    return f"{requirement.name}{extras}{requirement.specifier}"


def marker_environment(system: System) -> dict[str, str]:
    """PEP 508's variables for the patient's Python; those that are not known are left out. For `system.once`."""
    names = {"linux": ("Linux", "linux", "posix"), "windows": ("Windows", "win32", "nt")}
    platform, sys_platform, os_name = names.get(system.platform, ("Darwin", "darwin", "posix"))
    variables = {"platform_system": platform, "sys_platform": sys_platform, "os_name": os_name, "extra": ""}
    machine = system.machine()
    if machine.is_known:
        variables["platform_machine"] = machine.get()
    chosen = system.once(patient).environment
    if chosen.is_known:
        version, implementation = chosen.get().version, chosen.get().implementation
        if version.is_known:
            parts = version.get().split(".")
            variables["python_version"] = ".".join(parts[:2])
            if len(parts) > 2:
                variables["python_full_version"] = version.get()
        if implementation.is_known:
            variables["platform_python_implementation"] = implementation.get()
            variables["implementation_name"] = implementation.get().lower()
    return variables


# -- what it was built for --------------------------------------------------------------------------------------------


class _Built(NamedTuple):
    """`torch` is absent where the package's files say nothing, as most do; `cuda` is unknown then, since absent means a
    build without CUDA."""

    torch: Fact[str]
    cuda: Fact[str]


def _built_for(system: System, name: str, one: Installed) -> _Built:
    p = system.once(paths)
    silent = unknown("its files do not say", one.metadata)
    if name == "xformers":
        return _xformers(system, one, silent)
    cuda: Fact[str] = silent
    local = split_local(one.version).local
    text, source = local or "", one.metadata
    if name in COMPANIONS:
        # Its __version__ has the local part that the version on the default index lacks.
        own = system.read_text(p.join(one.folder, name, "version.py"), 1 << 16).map(parse_torch_version)
        if own.is_known:
            text, source = split_local(own.get().version).local or text, own.source
            if own.get().has_cuda_line:
                cuda = known(own.get().cuda or "", source) if own.get().cuda else absent(source)
    elif not local:
        direct = system.read_text(p.join(one.metadata, "direct_url.json"), 1 << 14).map(parse_direct_url)
        text, source = (_build_of_wheel(direct.get()), direct.source) if direct.is_known else ("", source)
    tag = re.search(r"cu[0-9]{2,3}(?![0-9])|cpu(?![a-z])", text.lower())
    if cuda.is_unknown and tag is not None:
        number = _cuda_of(tag.group())
        cuda = known(number, source) if number else absent(source)
    named = _torch_in_build(text)
    return _Built(known(named, source) if named else absent(source), cuda)


def _cuda_of(tag: str) -> Optional[str]:
    """ "cu126" -> "12.6", "cpu" -> None. flash-attn names the major alone: "cu12" -> "12", which is not CUDA 1.2."""
    digits = tag[2:]
    return digits if tag.startswith("cu1") and len(digits) == 2 else cuda_from_tag(tag)


def _build_of_wheel(direct: DirectUrl) -> str:
    """The local version in the name of the wheel that was installed by its address, in lower case."""
    name = direct.url.rpartition("/")[2].partition("#")[0].partition("?")[0]
    try:
        return (split_local(parse_wheel_name(name).version).local or "").lower()
    except ParseError:
        return ""


def _torch_in_build(local: str) -> Optional[str]:
    """ "cu12torch2.6cxx11abifalse" -> "2.6", "pt26cu124" -> "2.6", "torch2.9.1" -> "2.9.1"; else None."""
    found = re.search(r"torch-?([0-9]{1,2}\.[0-9]{1,2}(?:\.[0-9]{1,2})?)", local, re.ASCII)
    if found:
        return found.group(1)
    found = re.search(r"(?:^|[.])pt([0-9])([0-9]{1,2})(?=cu|cpu|rocm|$)", local, re.ASCII)
    return f"{found.group(1)}.{found.group(2)}" if found else None


def _xformers(system: System, one: Installed, silent: Fact[str]) -> _Built:
    """xformers writes down what it was built for: {"version": {"cuda": 1208, "torch": "2.8.0+cu128", ...}}."""
    p = system.once(paths)
    text = system.read_text(p.join(one.folder, "xformers", "cpp_lib.json"), 1 << 16)
    if not text.is_known:
        return _Built(Fact(text.state, None, text.source, text.reason), silent)
    import json

    try:
        version = json.loads(text.get())["version"]
        torch, cuda = version.get("torch"), version.get("cuda")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return _Built(unknown("it cannot be read", text.source), unknown("it cannot be read", text.source))
    return _Built(
        known(torch, text.source) if isinstance(torch, str) else absent(text.source),
        known(f"{cuda // 100}.{cuda % 100}", text.source) if type(cuda) is int and cuda >= 100 else silent,
    )


# -- the environment as a whole ---------------------------------------------------------------------------------------


def _channel(system: System, path: str) -> Fact[str]:
    """The channel's name alone: its address may hold a token."""
    head = system.read_text(path, _CONDA_RECORD_HEAD)

    def read(text: str) -> str:
        found = re.search(r"\"channel\"\s*:\s*\"([^\"]{1,300})\"", text)
        if found is None:
            raise ParseError(f"its first {_CONDA_RECORD_HEAD} bytes name no channel")
        parts = [part for part in found.group(1).split("/") if part]
        if len(parts) > 1 and re.fullmatch(r"noarch|(?:linux|win|osx)-\w+", parts[-1]):
            parts.pop()
        return "/".join(parts[-2:]) if parts[-2:-1] == ["pkgs"] else parts[-1]

    return head.map(read)


def _duplicates(system: System, folders: SitePackages, source: str) -> Fact[list[dict[str, Any]]]:
    duplicates = []
    for name, copies in folders.distributions.items():
        versions = [copy.version for copy in copies]
        locations = [copy.folder for copy in copies]
        if name in folders.conda and not _is_conda_own(system, copies[0]):
            # pip wrote over what conda had installed; conda still believes in its own.
            package, path = folders.conda[name]
            versions.append(package.version)
            locations.append(system.once(paths).folder(path))
        if len(versions) > 1:
            duplicates.append({"name": name, "versions": versions, "locations": locations})
    if folders.unreadable is not None and not duplicates:
        return unknown(folders.unreadable.reason, folders.unreadable.source)
    return known(duplicates, source)


def _is_conda_own(system: System, one: Installed) -> bool:
    installer = system.read_text(system.once(paths).join(one.metadata, "INSTALLER"), 256)
    return not installer.is_known or installer.get().strip() == "conda"


def _leftovers(folders: SitePackages, source: str) -> Fact[list[str]]:
    if folders.unreadable is not None and not folders.leftovers:
        return unknown(folders.unreadable.reason, folders.unreadable.source)
    return known(folders.leftovers, source)


PROBE = Probe("packages", EVERYWHERE, ("package.*", "packages.*"), look)
