"""The torch that an import would take, read and not imported: version, CUDA, GPU code, origin, copies."""

from __future__ import annotations

import re
from typing import Any, Callable, Optional

from cudadoctor.model.fact import Fact, absent, known, unknown
from cudadoctor.model.record import NamedTuple
from cudadoctor.parse.conda_meta import CondaPackage
from cudadoctor.parse.cuda_packages import TORCH
from cudadoctor.parse.dist_info import parse_direct_url
from cudadoctor.parse.elf import elf_archs, section
from cudadoctor.parse.errors import ParseError
from cudadoctor.parse.fatbin import FatbinArchs, find_arch_string
from cudadoctor.parse.pe import pe_archs
from cudadoctor.parse.torch_version import TorchVersion, parse_torch_version
from cudadoctor.probes.api import EVERYWHERE, Probe
from cudadoctor.probes.paths import Paths, names_in, paths
from cudadoctor.probes.site_packages import Installed, SitePackages, site_packages
from cudadoctor.probes.torch_libraries import library_folders, missing_libraries
from cudadoctor.system.port import RandomReader, System

_FACTS = (
    "torch.version",
    "torch.metadata_version",
    "torch.path",
    "torch.cuda",
    "torch.hip",
    "torch.origin",
    "torch.sass",
    "torch.ptx",
    "torch.copies",
    "torch.missing_libraries",
    "torch.platform_tag",
    "torch.cudnn",
)

# Builds from 1.8 to 1.13 have their kernels in a library of their own.
_KERNELS = ("libtorch_cuda.so", "libtorch_cuda_cu.so")
_KERNELS_WINDOWS = ("torch_cuda.dll", "torch_cuda_cu.dll")

# The read-only data of libtorch_python is 3 to 8 MB; more than this is not searched.
_MOST_READ_ONLY_DATA = 32 << 20


class _Torch(NamedTuple):
    """`path` is the package's folder, `version` what its version.py says, `folder` where on the import path it lies."""

    path: str
    folder: str
    version: Fact[TorchVersion]


def look(system: System) -> dict[str, Fact[Any]]:
    found = site_packages(system)
    if not found.is_known:
        return {name: Fact(found.state, None, found.source, found.reason) for name in _FACTS}
    folders = found.get()
    copies, unreadable = _copies(system, folders)
    metadata = folders.distributions.get(TORCH, [])
    facts: dict[str, Fact[Any]] = {
        "torch.copies": _copies_fact(copies, unreadable, found.source),
        "torch.metadata_version": _metadata_version(copies, metadata, folders, found.source),
        "torch.cudnn": _cudnn(folders, found.source),
    }
    if not copies:
        # Where a folder could not be looked into, torch may lie in it.
        nothing = unreadable or folders.unreadable
        state: Fact[Any] = unknown(nothing.reason, nothing.source) if nothing else absent(found.source)
        facts.update((name, state) for name in _FACTS if name not in facts)
        return facts
    torch = copies[0]
    source = torch.version.source
    facts["torch.path"] = known(torch.path, torch.path)
    facts["torch.version"] = torch.version.map(lambda version: version.version)
    facts["torch.cuda"] = _named_or_absent(torch.version, lambda version: version.cuda)
    facts["torch.hip"] = _named_or_absent(torch.version, lambda version: version.hip, needs_cuda_line=False)
    own = next((one for one in metadata if one.folder == torch.folder), None)
    facts["torch.origin"] = _origin(system, torch, own, folders.conda.get(TORCH))
    facts["torch.platform_tag"] = _platform_tag(system, own) if own else absent(torch.folder)
    if facts["torch.cuda"].is_absent:
        # A build without CUDA has no GPU code of ours, and says so itself.
        facts["torch.sass"] = facts["torch.ptx"] = known([], source)
    else:
        facts["torch.sass"], facts["torch.ptx"] = _gpu_code(system, torch.path)
    facts["torch.missing_libraries"] = missing_libraries(system, torch.path, facts["torch.cuda"].is_known)
    return facts


# -- which one --------------------------------------------------------------------------------------------------------


def _copies(system: System, folders: SitePackages) -> tuple[list[_Torch], Optional[Fact[Any]]]:
    """Every torch package on the import path, the winner first, and what could not be looked at before it."""
    p = system.once(paths)
    copies: list[_Torch] = []
    unreadable: Optional[Fact[Any]] = None
    for folder in folders.import_path:
        # The folders' own names are known; what a .pth file adds is asked for directly, whatever its size.
        if folder in folders.folders:
            names = names_in(system, folder)
            if names.is_known and TORCH not in names.get():
                continue
        path = p.join(folder, TORCH)
        text = system.read_text(p.join(path, "version.py"), 1 << 16)
        if text.is_known:
            copies.append(_Torch(path, folder, text.map(parse_torch_version)))
        elif text.is_unknown:
            unreadable = unreadable or text
        elif system.status(p.join(path, "__init__.py")).is_known:
            # A source tree before its build, or a half-removed package: an import takes it all the same.
            copies.append(_Torch(path, folder, unknown("it has no version.py", path)))
    if not copies:
        editable = _editable(system, folders)
        if editable is not None:
            copies.append(editable)
    return copies, unreadable


def _editable(system: System, folders: SitePackages) -> Optional[_Torch]:
    """torch of a source tree that `pip install -e` registered with an import hook: its file names the folder."""
    p = system.once(paths)
    for folder in folders.folders:
        names = names_in(system, folder)
        for name in names.value or ():
            if name.startswith("__editable___torch_") and name.endswith("_finder.py"):
                text = system.read_text(p.join(folder, name), 1 << 16)
                found = re.search(r"['\"]torch['\"]\s*:\s*['\"]([^'\"]+)['\"]", text.value or "")
                if found:
                    path = found.group(1)
                    version = system.read_text(p.join(path, "version.py"), 1 << 16)
                    read = version.map(parse_torch_version)
                    return _Torch(
                        path, p.folder(path), unknown("it has no version.py", path) if read.is_absent else read
                    )
    return None


def _copies_fact(copies: list[_Torch], unreadable: Optional[Fact[Any]], source: str) -> Fact[list[str]]:
    if not copies and unreadable is not None:
        return unknown(unreadable.reason, unreadable.source)
    return known([copy.path for copy in copies], source)


def _metadata_version(copies: list[_Torch], metadata: list[Installed], folders: SitePackages, source: str) -> Fact[str]:
    """Of the copy that wins; metadata elsewhere only where no copy has its own."""
    beside = [one for one in metadata if copies and one.folder == copies[0].folder] or metadata
    if beside:
        return known(beside[0].version, beside[0].metadata)
    if folders.unreadable is not None:
        return unknown(folders.unreadable.reason, folders.unreadable.source)
    return absent(source)


def _named_or_absent(
    version: Fact[TorchVersion], pick: Callable[[TorchVersion], Optional[str]], needs_cuda_line: bool = True
) -> Fact[str]:
    if not version.is_known:
        return Fact(version.state, None, version.source, version.reason)
    value = pick(version.get())
    if value is not None:
        return known(value, version.source)
    if needs_cuda_line and not version.get().has_cuda_line:
        return unknown("its version.py has no line about CUDA", version.source)
    return absent(version.source)


def _origin(
    system: System, torch: _Torch, own: Optional[Installed], conda: Optional[tuple[CondaPackage, str]]
) -> Fact[str]:
    p = system.once(paths)
    if own is None:
        if conda is not None:
            return known("conda", conda[1])
        if p.name(torch.folder) == "dist-packages" and torch.folder.startswith("/usr/lib"):
            return known("system", torch.folder)
        return known("source", torch.path)
    installer = system.read_text(p.join(own.metadata, "INSTALLER"), 256)
    name = installer.get().strip() if installer.is_known else ""
    if name == "conda" or (conda is not None and not name):
        return known("conda", installer.source)
    if torch.folder.startswith("/usr/lib") and (not name or name in ("debian", "rpm", "dnf")):
        return known("system", own.metadata)
    direct = system.read_text(p.join(own.metadata, "direct_url.json"), 1 << 14).map(parse_direct_url)
    if direct.is_known and direct.get().kind in ("directory", "vcs"):
        return known("source", direct.source)
    if own.metadata.endswith((".egg-info", ".egg")) and not name:
        return known("source", own.metadata)
    return known("pip", own.metadata)


def _platform_tag(system: System, own: Installed) -> Fact[str]:
    wheel = system.read_text(system.once(paths).join(own.metadata, "WHEEL"), 1 << 14)

    def read(text: str) -> str:
        for line in text.splitlines():
            key, _, value = line.partition(":")
            if key.strip().lower() == "tag":
                return value.strip().rpartition("-")[2]
        raise ParseError("it names no tag")

    return wheel.map(read)


def _cudnn(folders: SitePackages, source: str) -> Fact[str]:
    for name, copies in folders.distributions.items():
        if name.startswith("nvidia-cudnn-cu") or name == "nvidia-cudnn":
            return known(copies[0].version, copies[0].metadata)
    if "cudnn" in folders.conda:
        package, path = folders.conda["cudnn"]
        return known(package.version, path)
    if folders.unreadable is not None:
        return unknown(folders.unreadable.reason, folders.unreadable.source)
    return absent(source)


# -- GPU code ---------------------------------------------------------------------------------------------------------


def _gpu_code(system: System, path: str) -> tuple[Fact[list[str]], Fact[list[str]]]:
    """What the kernels' library embeds; else the list that torch carries as a text (what get_arch_list() prints)."""
    p = system.once(paths)
    folders = library_folders(system, path)
    problem: Fact[Any] = unknown("the library with its GPU code was not found", folders[0])
    for name in _KERNELS_WINDOWS if p.is_windows else _KERNELS:
        library = _open_first(system, p, folders, name)
        if library.is_absent:
            continue
        read = _archs(library, p.is_windows)
        if read.is_known:
            archs = read.get()
            return known(list(archs.sass), read.source), known(list(archs.ptx), read.source)
        problem = read
    listed = _listed_archs(system, p, folders)
    if listed.is_known:
        sass = [name for name in listed.get() if name.startswith("sm_")]
        ptx = [name for name in listed.get() if name.startswith("compute_")]
        return known(sass, listed.source), known(ptx, listed.source)
    nothing: Fact[Any] = unknown(problem.reason, problem.source)
    return nothing, nothing


def _open_first(system: System, p: Paths, folders: list[str], name: str) -> Fact[RandomReader]:
    for folder in folders:
        opened = system.open_binary(p.join(folder, name))
        if not opened.is_absent:
            return opened
    return absent(p.join(folders[0], name))


def _archs(library: Fact[RandomReader], is_windows: bool) -> Fact[FatbinArchs]:
    if not library.is_known:
        return unknown(library.reason, library.source)
    try:
        archs = (pe_archs if is_windows else elf_archs)(library.get())
    except (ParseError, OSError) as error:
        return unknown(str(error), library.source)
    return known(archs, library.source) if archs else unknown("it embeds no GPU code", library.source)


def _listed_archs(system: System, p: Paths, folders: list[str]) -> Fact[tuple[str, ...]]:
    library = _open_first(system, p, folders, "torch_python.dll" if p.is_windows else "libtorch_python.so")
    if not library.is_known or p.is_windows:
        return unknown(library.reason or "it is not searched", library.source)
    try:
        data = section(library.get(), ".rodata")
        if data is None or data.size > _MOST_READ_ONLY_DATA:
            return unknown("it has no read-only data of a likely size", library.source)
        found = find_arch_string(library.get().read_at(data.offset, data.size))
    except (ParseError, OSError) as error:
        return unknown(str(error), library.source)
    return known(found, library.source) if found else unknown("it names no architectures", library.source)


PROBE = Probe("torch_build", EVERYWHERE, _FACTS, look)
