"""A Python environment, read from its files: what is it, which version, where do its packages lie?

The interpreter itself is not run for this. Only where the files do not tell which interpreter a command stands for (a
shim or a wrapper script) it is asked for its path, isolated and without `site`, so that no code of the patient's runs.

What CPython does when it starts (`getpath`, `site`) is repeated here: `pyvenv.cfg` beside the executable or one folder
above it makes a venv; else links are followed, and the folder above the executable's is the prefix.
"""

from __future__ import annotations

from typing import Optional

from cudadoctor.model.fact import Fact, absent, known, unknown
from cudadoctor.model.record import NamedTuple
from cudadoctor.parse.conda_meta import parse_conda_meta_name
from cudadoctor.parse.errors import ParseError
from cudadoctor.parse.python_env import PyvenvCfg, parse_python_name, parse_pyvenv_cfg
from cudadoctor.probes.paths import home, is_folder, names_in, paths
from cudadoctor.system.port import System

# A warm shim takes 0.1 s, a Python on a cold network disk a second or two.
ASK_TIMEOUT = 4.0

# What an interpreter is asked: where it is, its version, its prefix, the folder of its standard library.
QUESTION = (
    "import sys,os;print(sys.executable);print('%d.%d.%d'%sys.version_info[:3]);"
    "print(sys.prefix);print(os.path.dirname(os.__file__))"
)

# Why an executable's files leave open which interpreter it is; only then it is asked. Where something may not be read,
# its own word would be no better.
_NO_NAME = "its name is not an interpreter's"
_A_SCRIPT = "it is a script that starts an interpreter"
_NO_LIBRARY = "its standard library is not beside it"
_UNDECIDED = (_NO_NAME, _A_SCRIPT, _NO_LIBRARY)

# How the reason begins where a command answered, and not as a Python 3 does.
NOT_PYTHON = "it is no Python 3"

VENV, CONDA, SYSTEM, USER, TOOL = "venv", "conda", "system", "user", "tool"


class Environment(NamedTuple):
    """An interpreter and where its packages lie. `base` is the prefix behind a venv, else the prefix itself."""

    executable: str
    prefix: str
    kind: str
    version: Fact[str]
    implementation: Fact[str]
    free_threaded: Fact[bool]
    base: Optional[str]
    standard_library: Optional[str]
    site_packages: tuple[str, ...]
    made_by_uv: bool = False
    extends: Optional[str] = None  # the environment that `uv run --with` laid a throw-away one over


class _Library(NamedTuple):
    """A `lib/python3.12` folder."""

    path: str
    version: str
    implementation: str
    free_threaded: bool


def read_environment(system: System, executable: str, may_ask: bool = True) -> Fact[Environment]:
    """The environment of an interpreter. Absent: there is no such file. Unknown: it is no Python that we can read.

    With `may_ask` a command that is no interpreter itself is asked which one it stands for.
    """
    already = system.once(_environments)
    if executable not in already:
        already[executable] = _by_files(system, executable)
        if already[executable].is_unknown:
            target = _pyenv_target(system, executable)
            behind = _by_files(system, target) if target else absent(executable)
            if behind.is_known:
                already[executable] = behind
    found = already[executable]
    if found.is_unknown and found.reason in _UNDECIDED and may_ask:
        if parse_python_name(system.once(paths).name(executable)) is None:
            return unknown(f"{NOT_PYTHON} by its name", executable)  # who knows what it does when it is started
        found = already[executable] = _by_asking(system, executable, found.reason)
    return found


def _environments(system: System) -> dict[str, Fact[Environment]]:
    return {}


def python_of_prefix(system: System, prefix: str) -> Optional[str]:
    """The interpreter of an environment's folder; None where there is none. A dangling link counts: it is broken, but
    it is the environment's."""
    p = system.once(paths)
    if p.is_windows:
        candidates = [
            p.join(prefix, "Scripts", "python.exe"),
            p.join(prefix, "python.exe"),
            p.join(prefix, "bin", "python.exe"),
        ]
    else:
        candidates = [p.join(prefix, "bin", name) for name in ("python", "python3", "pypy3")]
    for candidate in candidates:
        if not system.status(candidate).is_absent:
            return candidate
    for candidate in candidates:
        if system.link_target(candidate).is_known:
            return candidate
    return None


def _by_files(system: System, executable: str) -> Fact[Environment]:
    p = system.once(paths)
    folder = p.folder(executable)
    for place in (folder, p.folder(folder)):
        path = p.join(place, "pyvenv.cfg")
        text = system.read_text(path, 1 << 16)
        if text.is_absent:
            continue
        if text.is_unknown:
            return unknown(f"pyvenv.cfg: {text.reason}", path)
        try:
            return known(_venv(system, executable, place, parse_pyvenv_cfg(text.get()), text.get(), path), path)
        except ParseError:
            continue  # a file without `home` makes no venv, for Python as little as for us
    return _installation(system, executable)


# -- venv, virtualenv, uv ---------------------------------------------------------------------------------------------


def _venv(system: System, executable: str, prefix: str, cfg: PyvenvCfg, text: str, source: str) -> Environment:
    p = system.once(paths)
    base, stdlib, base_sites = _behind_venv(system, cfg)
    library = _library(system, prefix, cfg.version, is_venv=True)
    if cfg.version is not None and (library is None or cfg.version.startswith(library.version)):
        version = known(cfg.version, source)
    elif library is not None:
        version = known(library.version, library.path)
    else:
        version = unknown("pyvenv.cfg names no version", source)
    if p.is_windows:
        named = cfg.executable and parse_python_name(p.name(cfg.executable))
        threads = bool(named and named.free_threaded) or "freethreaded" in cfg.home
        implementation = "PyPy" if "pypy" in cfg.home.lower() else "CPython"
        free_threaded, kind_of = known(threads, source), known(implementation, source)
        own = [p.join(prefix, "Lib", "site-packages")]
    elif library is not None:
        free_threaded, kind_of = known(library.free_threaded, library.path), known(library.implementation, library.path)
        # In a venv too the packages lie in lib64 where the interpreter behind it has its library there.
        has_lib64 = stdlib is not None and p.name(p.folder(stdlib)) == "lib64"
        own = _site_packages_below(system, prefix, p.name(library.path), has_lib64)
    else:
        reason = names_in(system, p.join(prefix, "lib")).reason or "it has no lib/python folder"
        free_threaded, kind_of = unknown(reason, prefix), unknown(reason, prefix)
        # Where lib cannot be listed this folder cannot be looked at either, and so its packages stay unknown.
        minor = ".".join((cfg.version or "3").split(".")[:2])
        own = [p.join(prefix, "lib", f"python{minor}", "site-packages")]
    sites = list(own)
    if cfg.system_site_packages:
        sites += _user_site(system, version, free_threaded) + base_sites
    extends = _setting(text, "extends-environment")
    if extends:
        sites += _sites_of_prefix(system, extends)
    is_tool = _is_tool(system, prefix, cfg.uv is not None)
    return Environment(
        executable=executable,
        prefix=prefix,
        kind=TOOL if is_tool else VENV,
        version=version,
        implementation=kind_of,
        free_threaded=free_threaded,
        base=base,
        standard_library=stdlib,
        site_packages=_import_order(system, version, sites),
        made_by_uv=cfg.uv is not None,
        extends=extends,
    )


def _setting(text: str, key: str) -> Optional[str]:
    for line in text.splitlines():
        name, sign, value = line.partition("=")
        if sign and name.strip().lower() == key:
            return value.strip() or None
    return None


def _behind_venv(system: System, cfg: PyvenvCfg) -> tuple[Optional[str], Optional[str], list[str]]:
    """Prefix, standard library and site-packages of the interpreter from which a venv was made."""
    p = system.once(paths)
    if p.is_windows:
        prefix = cfg.home
        stdlib = p.join(prefix, "Lib")
        return prefix, stdlib, [p.join(stdlib, "site-packages")]
    prefix = p.folder(cfg.home.rstrip("/"))
    library = _library(system, prefix, cfg.version)
    if library is None:
        # `home` may be a folder of links, as /usr/local/bin or ~/.local/bin.
        named = cfg.executable
        real = system.real_path(named) if named else absent("")
        if real.is_known:
            prefix = p.folder(p.folder(real.get()))
            library = _library(system, prefix, cfg.version)
    if library is None:
        return None, None, []
    return prefix, library.path, _base_site_packages(system, prefix, library)


def _is_tool(system: System, prefix: str, made_by_uv: bool) -> bool:
    """Whether the environment holds a tool and its needs, as pipx, `uv tool` and uvx make them."""
    p = system.once(paths)
    parts = prefix.replace("\\", "/").split("/")
    if made_by_uv and "archive-v0" in parts:  # uvx
        return True
    if "pipx" in parts and ("venvs" in parts or ".cache" in parts):
        return True
    return any(not system.status(p.join(prefix, name)).is_absent for name in ("uv-receipt.toml", "pipx_metadata.json"))


# -- installations ----------------------------------------------------------------------------------------------------


def _installation(system: System, executable: str) -> Fact[Environment]:
    """An interpreter that is no venv's: conda, the distribution's, one from python.org, pyenv, uv."""
    p = system.once(paths)
    real = system.real_path(executable)
    if not real.is_known:
        return Fact(real.state, None, executable, real.reason)
    named = parse_python_name(p.name(real.get()))
    if named is None:
        return unknown(_NO_NAME, real.get())
    if p.is_windows:
        return _windows_installation(system, executable)
    head = system.read_bytes(real.get(), 2)
    if head.is_known and head.get() == b"#!":
        return unknown(_A_SCRIPT, real.get())
    prefix = p.folder(p.folder(real.get()))
    library = _library(system, prefix, named.version)
    if library is None:
        return unknown(_NO_LIBRARY, real.get())
    version = _conda_python_version(system, prefix, library.version)
    if version is None:
        version = _full_version(system, real.get(), prefix, library)
    free_threaded = known(library.free_threaded, library.path)
    sites = _user_site(system, version, free_threaded) + _base_site_packages(system, prefix, library)
    return known(
        Environment(
            executable=executable,
            prefix=prefix,
            kind=_kind(system, prefix),
            version=version,
            implementation=known(library.implementation, library.path),
            free_threaded=free_threaded,
            base=prefix,
            standard_library=library.path,
            site_packages=_import_order(system, version, sites),
        ),
        real.get(),
    )


def _windows_installation(system: System, executable: str) -> Fact[Environment]:
    p = system.once(paths)
    prefix = p.folder(executable)
    stdlib = p.join(prefix, "Lib")
    if not is_folder(system, stdlib):
        # The Microsoft Store's alias, or a launcher.
        return unknown(_NO_LIBRARY, executable)
    named = parse_python_name(p.name(executable))
    version = _conda_python_version(system, prefix, "")
    if version is None:
        version = _version_of_dlls(system, prefix)
    threads = bool(named and named.free_threaded) or "freethreaded" in prefix
    free_threaded = known(threads, executable)
    implementation = "PyPy" if named and named.implementation == "pypy" else "CPython"
    sites = [*_user_site(system, version, free_threaded), p.join(stdlib, "site-packages")]
    return known(
        Environment(
            executable=executable,
            prefix=prefix,
            kind=_kind(system, prefix),
            version=version,
            implementation=known(implementation, executable),
            free_threaded=free_threaded,
            base=prefix,
            standard_library=stdlib,
            site_packages=_import_order(system, version, sites),
        ),
        executable,
    )


def _version_of_dlls(system: System, prefix: str) -> Fact[str]:
    names = names_in(system, prefix)
    if not names.is_known:
        return unknown(names.reason or "its folder is not there", prefix)
    for name in names.get():
        digits = name.lower()[len("python") : -len(".dll")]
        if name.lower().startswith("python3") and name.lower().endswith(".dll") and digits[1:].rstrip("t").isdigit():
            return known(f"{digits[0]}.{digits[1:].rstrip('t')}", prefix)
    return unknown("no file beside it tells its version", prefix)


def _kind(system: System, prefix: str) -> str:
    p = system.once(paths)
    if is_folder(system, p.join(prefix, "conda-meta")):
        return CONDA
    own = home(system)
    return USER if own and len(own) > 1 and p.is_inside(prefix, own) else SYSTEM


def _conda_python_version(system: System, prefix: str, minor: str) -> Optional[Fact[str]]:
    p = system.once(paths)
    folder = p.join(prefix, "conda-meta")
    names = names_in(system, folder)
    if names.is_known:
        for name in names.get():
            if name.startswith("python-3"):
                package = parse_conda_meta_name(name)
                if package and package.name == "python" and package.version.startswith(minor):
                    return known(package.version, p.join(folder, name))
    return None


def _full_version(system: System, executable: str, prefix: str, library: _Library) -> Fact[str]:
    """3.12.3 where something tells it, else 3.12: the folder of pyenv or uv, or our own interpreter being the same."""
    p = system.once(paths)
    name = p.name(prefix)
    for part in name.split("-"):  # versions/3.12.3, cpython-3.12.3-linux-x86_64-gnu
        if part.startswith(library.version + ".") and part.replace(".", "").isdigit():
            return known(part, prefix)
    own = system.own_interpreter()
    if own.is_known and own.get()["version"].startswith(library.version + "."):
        real = system.real_path(own.get()["executable"])
        if real.is_known and real.get() == executable:
            return known(own.get()["version"], own.source)
    return known(library.version, library.path)


def _library(system: System, prefix: str, version: Optional[str], is_venv: bool = False) -> Optional[_Library]:
    """The `lib/python3.12` of a prefix; of several that of `version`, else the newest."""
    p = system.once(paths)
    found: list[tuple[tuple[int, ...], _Library]] = []
    for lib in ("lib", "lib64"):
        names = names_in(system, p.join(prefix, lib))
        for name in names.get() if names.is_known else ():
            if not name.startswith(("python3.", "pypy3.")):
                continue
            named = parse_python_name(name)
            if named is None or named.version is None:
                continue
            implementation = "PyPy" if named.implementation == "pypy" else "CPython"
            library = _Library(p.join(prefix, lib, name), named.version, implementation, named.free_threaded)
            found.append((tuple(int(part) for part in named.version.split(".")), library))
    if version is not None and "." in version:
        minor = ".".join(version.split(".")[:2])
        found = [entry for entry in found if entry[1].version == minor]
    if not found:
        return None
    # Fedora and openSUSE have the standard library in lib64 and an almost empty folder in lib.
    best = max(entry[0] for entry in found)
    candidates = [library for numbers, library in found if numbers == best]
    if len(candidates) > 1 and not is_venv:
        for library in candidates:
            if not system.status(p.join(library.path, "os.py")).is_absent:
                return library
    return candidates[0]


# -- where packages lie -----------------------------------------------------------------------------------------------


def _site_packages_below(system: System, prefix: str, library: str, has_lib64: bool) -> list[str]:
    p = system.once(paths)
    return [p.join(prefix, lib, library, "site-packages") for lib in (("lib64", "lib") if has_lib64 else ("lib",))]


def _base_site_packages(system: System, prefix: str, library: _Library) -> list[str]:
    p = system.once(paths)
    name = p.name(library.path)
    has_lib64 = p.name(p.folder(library.path)) == "lib64"
    if prefix == "/usr":
        debian = "/usr/lib/python3/dist-packages"
        if not system.status(debian).is_absent:
            return [f"/usr/local/lib/{name}/dist-packages", debian, f"/usr/lib/{name}/dist-packages"]
        local = _site_packages_below(system, "/usr/local", name, has_lib64)
        return local + _site_packages_below(system, prefix, name, has_lib64)
    return _site_packages_below(system, prefix, name, has_lib64)


def _sites_of_prefix(system: System, prefix: str) -> list[str]:
    p = system.once(paths)
    if p.is_windows:
        return [p.join(prefix, "Lib", "site-packages")]
    library = _library(system, prefix, None)
    return _site_packages_below(system, prefix, p.name(library.path), has_lib64=False) if library else []


def _user_site(system: System, version: Fact[str], free_threaded: Fact[bool]) -> list[str]:
    """`~/.local/lib/python3.12/site-packages` and its kin, unless the environment switches it off."""
    p = system.once(paths)
    switched_off = system.variable("PYTHONNOUSERSITE")
    if not version.is_known or (switched_off.is_known and switched_off.get()):
        return []
    minor = ".".join(version.get().split(".")[:2])
    suffix = "t" if free_threaded.is_known and free_threaded.get() else ""
    chosen = system.variable("PYTHONUSERBASE")
    if p.is_windows:
        roaming = system.variable("APPDATA")
        base = chosen.get() if chosen.is_known else p.join(roaming.get(), "Python") if roaming.is_known else ""
        return [p.join(base, f"Python{minor.replace('.', '')}{suffix}", "site-packages")] if base else []
    own = home(system)
    base = chosen.get() if chosen.is_known else p.join(own, ".local") if own else ""
    found = [p.join(base, "lib", f"python{minor}{suffix}", "site-packages")] if base else []
    if system.platform == "darwin" and own and not chosen.is_known:
        found.append(p.join(own, "Library", "Python", minor, "lib", "python", "site-packages"))
    return found


def _import_order(system: System, version: Fact[str], sites: list[str]) -> tuple[str, ...]:
    """PYTHONPATH and the folders that EasyBuild's `sitecustomize` adds, then `sites`; only those that exist, once."""
    p = system.once(paths)
    ordered: list[str] = []
    python_path = system.variable("PYTHONPATH")
    for folder in p.split_list(python_path.get()) if python_path.is_known else ():
        if not p.is_absolute(folder):
            here = system.working_folder()
            if not here.is_known:
                continue
            folder = p.join(here.get(), folder)
        ordered.append(p.plain(folder))
    modules = system.variable("EBPYTHONPREFIXES")
    if modules.is_known and version.is_known:
        minor = ".".join(version.get().split(".")[:2])
        ordered += [p.join(prefix, "lib", f"python{minor}", "site-packages") for prefix in p.split_list(modules.get())]
    ordered += sites
    kept: list[str] = []
    seen: set[str] = set()
    for folder in ordered:
        status = system.status(folder)
        if status.is_absent or (status.is_known and status.get().kind != "directory"):
            continue
        real = system.real_path(folder)  # lib64 is often a link to lib
        key = p.key(real.get() if real.is_known else folder)
        if key not in seen:
            seen.add(key)
            kept.append(folder)
    return tuple(kept)


# -- shims and wrappers -----------------------------------------------------------------------------------------------


def _by_asking(system: System, executable: str, why: str) -> Fact[Environment]:
    answer = system.run([executable, "-I", "-S", "-c", QUESTION], ASK_TIMEOUT)
    if not answer.is_known:
        return unknown(answer.reason or why, executable)
    result = answer.get()
    if result.timed_out:
        return unknown("it did not answer in time when it was asked which Python it is", executable)
    lines = [line.strip() for line in result.stdout.splitlines()]
    if result.exit_status != 0 or len(lines) < 4 or not lines[1].startswith("3."):
        return unknown(f"{NOT_PYTHON} ({why})", executable)
    found = _by_files(system, lines[0]) if lines[0] else absent(executable)
    if found.is_known:
        environment = found.get()
        if environment.version.is_known and environment.version.get() in lines[1]:
            environment = environment._replace(version=known(lines[1], answer.source))
        return known(environment, answer.source)
    return known(_as_told(system, lines[0] or executable, lines[1], lines[2], lines[3], answer.source), answer.source)


def _as_told(system: System, executable: str, version: str, prefix: str, stdlib: str, source: str) -> Environment:
    """An interpreter in no layout that we know, by what it says of itself."""
    p = system.once(paths)
    named = parse_python_name(p.name(stdlib))
    told = known(version, source)
    free_threaded: Fact[bool] = (
        known(named.free_threaded, stdlib) if named else unknown("its folders do not tell", stdlib)
    )
    sites = [*_user_site(system, told, free_threaded), p.join(stdlib, "site-packages")]
    return Environment(
        executable=executable,
        prefix=prefix,
        kind=_kind(system, prefix),
        version=told,
        implementation=known("PyPy" if named and named.implementation == "pypy" else "CPython", stdlib),
        free_threaded=free_threaded,
        base=prefix,
        standard_library=stdlib,
        site_packages=_import_order(system, told, sites),
    )


def _pyenv_target(system: System, shim: str) -> Optional[str]:
    """The interpreter behind a shim of pyenv's, by the files that pyenv itself asks: starting it takes 0.1 s."""
    p = system.once(paths)
    folder = p.folder(shim)
    root = p.folder(folder)
    if p.is_windows or p.name(folder) != "shims" or not is_folder(system, p.join(root, "versions")):
        return None
    chosen = system.variable("PYENV_VERSION")
    texts = [chosen] if chosen.is_known and chosen.get() else []
    here = system.working_folder()
    place = here.get() if here.is_known else ""
    while place and not texts:
        text = system.read_text(p.join(place, ".python-version"), 4096)
        if text.is_known:
            texts.append(text)
        if place == p.folder(place):
            break
        place = p.folder(place)
    if not texts:
        texts.append(system.read_text(p.join(root, "version"), 4096))
    if not texts[0].is_known:
        return None
    for version in texts[0].get().replace(":", "\n").split():
        if version == "system":
            return None
        target = p.join(root, "versions", version, "bin", p.name(shim))
        if system.status(target).is_known:
            return target
    return None
