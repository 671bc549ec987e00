"""What lies in the folders from which the patient imports: one listing a folder, names before files."""

from __future__ import annotations

import re
from typing import Optional

from cudadoctor.model.fact import Fact, known, unknown
from cudadoctor.model.record import NamedTuple
from cudadoctor.parse.conda_meta import CondaPackage, parse_conda_meta_name
from cudadoctor.parse.cuda_packages import CONDA_TO_PYPI, matters, matters_in_conda
from cudadoctor.parse.dist_info import Distribution, normalise_name, parse_dist_info_name
from cudadoctor.probes.paths import names_in, paths
from cudadoctor.probes.patient import patient
from cudadoctor.system.port import System

_ENDINGS = (".dist-info", ".egg-info", ".egg")


class Installed(NamedTuple):
    """A distribution and the folder that holds its metadata (`metadata`: the folder or file itself)."""

    name: str
    version: str
    folder: str
    metadata: str


class SitePackages(NamedTuple):
    """`distributions` by normalised name in import order, only what matters to CUDA. `import_path`: the folders and
    what their .pth files add. `unreadable` is the first folder that could not be listed. `conda` by PyPI's names, with
    the file in conda-meta."""

    folders: tuple[str, ...]
    import_path: tuple[str, ...]
    distributions: dict[str, list[Installed]]
    leftovers: list[str]
    unreadable: Optional[Fact[list[str]]]
    conda: dict[str, tuple[CondaPackage, str]]
    conda_unreadable: Optional[Fact[list[str]]]


def site_packages(system: System) -> Fact[SitePackages]:
    """Of the chosen interpreter; absent or unknown as the interpreter is."""
    return system.once(_site_packages)


def has_package(system: System, name: str) -> Fact[bool]:
    """Whether a package is importable from the patient's folders: by its own folder or its metadata."""
    found = site_packages(system)
    if not found.is_known:
        return Fact(found.state, None, found.source, found.reason)
    for folder in found.get().folders:
        names = names_in(system, folder)
        if names.is_known and name in names.get():
            return known(True, folder)
    unreadable = found.get().unreadable
    if unreadable is not None:
        return unknown(unreadable.reason, unreadable.source)
    return known(False, found.source)


def _site_packages(system: System) -> Fact[SitePackages]:
    p = system.once(paths)
    chosen = system.once(patient).environment
    if not chosen.is_known:
        return Fact(chosen.state, None, chosen.source, chosen.reason)
    environment = chosen.get()
    distributions: dict[str, list[Installed]] = {}
    leftovers: list[str] = []
    import_path: list[str] = []
    unreadable: Optional[Fact[list[str]]] = None
    for folder in environment.site_packages:
        import_path.append(folder)
        names = names_in(system, folder)
        if not names.is_known:
            # It was there a moment ago when the environment was read: absent means as little as unknown.
            unreadable = unreadable or unknown(names.reason or "it is gone", folder)
            continue
        for name in names.get():
            if name.startswith("~"):
                leftovers.append(p.join(folder, name))
            elif name.endswith(_ENDINGS):
                found = _distribution(name)
                if found is not None and not found.is_leftover and matters(found.name):
                    one = Installed(found.name, found.version, folder, p.join(folder, name))
                    distributions.setdefault(found.name, []).append(one)
            elif name.endswith(".pth"):
                import_path += _added_by(system, folder, name)
    conda, conda_unreadable = _conda_packages(system, environment.prefix)
    return known(
        SitePackages(
            environment.site_packages,
            tuple(dict.fromkeys(import_path)),
            distributions,
            leftovers,
            unreadable,
            conda,
            conda_unreadable,
        ),
        ", ".join(environment.site_packages) or environment.prefix,
    )


def _distribution(name: str) -> Optional[Distribution]:
    # The name before the version is enough to pass over most of a big environment.
    if not matters(normalise_name(name.partition("-")[0])):
        return None
    if name.endswith(".egg"):  # flash_attn-2.5.8-py3.10-linux-x86_64.egg, of `setup.py install`
        name = re.sub(r"-py[0-9.]+(?:-[^-]+)?(?:-[^-]+)?\.egg$", "", name) + ".egg-info"
    return parse_dist_info_name(name)


def _added_by(system: System, folder: str, name: str) -> list[str]:
    """Folders that a .pth file adds to the import path. Its lines of code are not run; the call that uv's throw-away
    environments consist of is understood."""
    p = system.once(paths)
    text = system.read_text(p.join(folder, name), 1 << 16)
    added: list[str] = []
    for line in text.get().splitlines() if text.is_known else ():
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        if line.startswith(("import ", "import\t")):
            added += re.findall(r"site\.addsitedir\(r?[\"']([^\"']+)[\"']\)", line)
            continue
        added.append(p.plain(p.join(folder, line)))
    return added


def _conda_packages(
    system: System, prefix: str
) -> tuple[dict[str, tuple[CondaPackage, str]], Optional[Fact[list[str]]]]:
    p = system.once(paths)
    folder = p.join(prefix, "conda-meta")
    names = names_in(system, folder)
    if not names.is_known:
        return {}, None if names.is_absent else names
    found: dict[str, tuple[CondaPackage, str]] = {}
    for name in names.get():
        package = parse_conda_meta_name(name)
        if package is not None:
            known_as = CONDA_TO_PYPI.get(package.name, package.name)
            if matters_in_conda(known_as):
                found[known_as] = (package, p.join(folder, name))
    return found, None
