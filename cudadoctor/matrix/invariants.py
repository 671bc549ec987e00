"""What must hold of the compatibility data, whatever it says: no number of it stands here.

``matrix verify``, ``matrix update`` and the tests all ask :func:`violations`. Not on the path of a check.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Callable, Optional

from cudadoctor.parse.versions import satisfies

from .query import Matrix
from .schema import GPU_COLUMNS, TABLES, check_file, check_rows
from .tables import MatrixError, Pin
from .torch_builds import COMPANIONS
from .versions import Numbers, numbers, target, torch_key

# The user's own update adds its day: 2026.11.0+20261205.
_REVISION = re.compile(r"(20\d\d)\.(\d{1,2})\.(\d+)(?:\+20\d{6})?\Z")
_SYSTEMS = ("linux", "windows")
_NEVER: Numbers = (10**9,)


def violations(section: Callable[[str], dict[str, Any]]) -> list[str]:
    """Every rule that the data breaks, as sentences; an empty list where it is sound.

    ``section`` gives the raw data of one section by name, as for :class:`Matrix`. Where a section does not even keep to
    its columns, that is all that is said: the other rules could not be asked.
    """
    found: list[str] = []
    for name in ("meta", *TABLES):
        try:
            found += _columns(name, section(name))
        except MatrixError as error:
            found.append(str(error))
    if found:
        return found
    try:
        matrix = Matrix(section)
        for file, rule in _RULES:
            found += (_placed(file, sentence) for sentence in rule(matrix))
    except MatrixError as error:
        found.append(str(error))
    return found


def _placed(file: str, sentence: str) -> str:
    """The sentence behind the name of the file whose row it names, as a fault of a column has it."""
    minor = re.match(r"torch (\d+\.\d+)\.", sentence) if file == "torch" else None
    if minor:
        file += f"/{minor.group(1)}"
    return f"{file}: {sentence}" if file and not sentence.startswith(f"{file}/") else sentence


def _columns(name: str, data: Mapping[str, Any]) -> Iterator[str]:
    """Unknown and missing columns, values of the wrong kind, rows without a source."""
    if name == "torch":
        for minor, rows in data.items():
            yield from check_file(f"torch/{minor}", rows)
    elif name == "gpus":
        shared = {column: rule for column, rule in TABLES["gpus"]["group"].items() if column != "gpus"}
        rows = [json.loads(row) for row in data.get("rows", ())]
        yield from check_rows("gpus", {**data, "rows": rows}, {**shared, **GPU_COLUMNS})
    else:
        yield from check_file(name, data)


# -- revision and dates


def _dates(matrix: Matrix) -> Iterator[str]:
    match = _REVISION.match(matrix.revision)
    if match is None:
        yield f"meta: revision {matrix.revision!r} is not a year, a month and a running number, like 2026.11.0"
    elif not 1 <= int(match.group(2)) <= 12:
        yield f"meta: revision {matrix.revision!r} names no month"
    elif f"{match.group(1)}-{int(match.group(2)):02}" > matrix.checked[:7]:
        yield f"meta: revision {matrix.revision!r} is newer than the check of {matrix.checked}"
    for name in TABLES:
        for where, row in _dated(name, matrix.raw(name)):
            if row < "2020" or row > matrix.checked:
                yield f"{where}: was checked on {row}, the data as a whole on {matrix.checked}"


def _dated(name: str, data: Any) -> Iterator[tuple[str, str]]:
    """Each date of a check in a section."""
    if isinstance(data, Mapping):
        if isinstance(data.get("checked"), str):
            yield name, data["checked"]
        for key, value in data.items():
            yield from _dated(f"{name} {key}" if name == "torch" else name, value)
    elif isinstance(data, list):
        for value in data:
            yield from _dated(name, value)


# -- toolkits and drivers


def _floors(matrix: Matrix) -> Iterator[str]:
    """A newer CUDA major never needs an older driver, and a floor is at most what its toolkits came with."""
    floors = matrix.floors()
    majors = [row.cuda for row in floors]
    for major in {major for major in majors if majors.count(major) > 1}:
        yield f"CUDA {major}: has more than one floor"
    for system in _SYSTEMS:
        for newer, older in zip(floors, floors[1:]):
            if _key(matrix.floor(newer.cuda, system)) < _key(matrix.floor(older.cuda, system)):
                yield (
                    f"CUDA {newer.cuda}: its {system} floor {matrix.floor(newer.cuda, system)} is below that of "
                    f"CUDA {older.cuda}, {matrix.floor(older.cuda, system)}"
                )
    for row in floors:
        if _key(row.linux)[:1] != _key(row.linux_table)[:1]:
            yield f"CUDA {row.cuda}: floor {row.linux} is not of the branch {row.linux_table}"
    covered = set(majors)
    for major in range(min(covered), max(covered) + 1):
        if major not in covered:
            yield f"CUDA {major}: has no floor, though CUDA {min(covered)} and {max(covered)} have"


def _toolkits(matrix: Matrix) -> Iterator[str]:
    """Driver numbers of toolkits never fall within a major or across majors."""
    rows = matrix.toolkits()
    releases = [row.release for row in rows]
    for release in sorted({release for release in releases if releases.count(release) > 1}):
        yield f"toolkit {release}: stands more than once"
    for row in rows:
        if not _starts(row.release, row.cuda):
            yield f"toolkit {row.release}: is not of CUDA {row.cuda}"
        if row.linux is None and row.branch is None and not _older_listed(rows, row):
            yield f"toolkit {row.release}: has neither a Linux driver nor a branch, and no older release to lean on"
    for system in _SYSTEMS:
        listed = [(row.release, own) for row in rows for own in [_own_driver(row, system)] if own]
        for (newer, high), (older, low) in zip(listed, listed[1:]):
            if _key(high) < _key(low):
                yield f"toolkit {newer}: its {system} driver {high} is older than that of {older}, {low}"
        for row in rows:
            own, major, minor = _own_driver(row, system), *_key(row.cuda)
            floor = matrix.floor(major, system)
            # The very first toolkit of a major may have come with less than the floor that was set later.
            if own and floor and minor and _key(own) < _key(floor):
                yield f"toolkit {row.release}: came with the {system} driver {own}, below the floor {floor}"


def _own_driver(row: Any, system: str) -> Optional[str]:
    own: Optional[str] = row.linux if system == "linux" else row.windows
    return own


def _older_listed(rows: Any, row: Any) -> bool:
    """Whether an earlier release of the same CUDA names a driver: a refresh of one library comes without its own."""
    return any(other.cuda == row.cuda and other.linux for other in rows if other.release < row.release)


def _branches(matrix: Matrix) -> Iterator[str]:
    """Names, numbers and what nvidia-smi shows; every Windows number belongs to one branch."""
    rows = matrix.branches()
    taken: dict[int, str] = {}
    for row in rows:
        if row.name != f"R{row.linux}":
            yield f"branch {row.name}: its Linux number is {row.linux}"
        for number in (*row.windows, *row.windows_guessed):
            if number in taken:
                yield f"Windows driver {number}: is said to be of {taken[number]} and of {row.name}"
            taken[number] = row.name
            if number < row.linux:
                yield f"branch {row.name}: the Windows driver {number} lies below it"
        for system, driver in (
            ("linux", row.first_linux),
            ("linux", row.latest_linux),
            ("windows", row.latest_windows),
        ):
            behind = matrix.branch_of(driver, system) if driver else row
            if behind is None or behind.name != row.name:
                yield f"branch {row.name}: the {system} driver {driver} is not of this branch"
        if row.first_linux and row.latest_linux and _key(row.first_linux) > _key(row.latest_linux):
            yield f"branch {row.name}: its first driver {row.first_linux} is newer than its latest, {row.latest_linux}"
    names = [row.name for row in rows]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"branch {name}: stands more than once"
    for toolkit in matrix.toolkits():
        branch = matrix.branch_of(toolkit.linux, "linux") if toolkit.linux else None
        if branch is not None and _key(branch.cuda) < _key(toolkit.cuda):
            shows = f"branch {branch.name}: shows CUDA {branch.cuda}"
            yield f"{shows}, but toolkit {toolkit.release} came with {toolkit.linux}"


def _newer_serves_no_worse(matrix: Matrix) -> Iterator[str]:
    """A newer branch serves every CUDA that an older one serves, and compiles its PTX: what it drops is GPUs."""
    rows = list(reversed(matrix.branches()))
    for older, newer in zip(rows, rows[1:]):
        if _key(newer.cuda) < _key(older.cuda):
            yield f"branch {newer.name}: shows CUDA {newer.cuda}, the older {older.name} shows {older.cuda}"
        if newer.modules != older.modules and older.open_modules_only:
            yield f"branch {newer.name}: has proprietary modules again, which {older.name} had not"
    wanted = sorted({row.cuda for row in matrix.toolkits()}, key=_key)
    for older, newer in zip(rows, rows[1:]):
        if older.latest_linux is None:
            continue
        start = newer.first_linux or f"{newer.linux}.0"
        for cuda in wanted:
            before = matrix.driver_serves(older.latest_linux, "linux", cuda)
            after = matrix.driver_serves(start, "linux", cuda)
            if before.answer == "yes" and after.answer == "no":
                yield f"CUDA {cuda}: is served by {older.latest_linux} ({older.name}) but not by {start} ({newer.name})"


def _dropped_gpus(matrix: Matrix) -> Iterator[str]:
    """What a branch drops is in the rows of both the architecture and its last branch."""
    ended = {(row.name, row.max_driver) for row in matrix.architectures() if row.max_driver}
    said = {(name, branch.name) for branch in matrix.branches() for name in branch.last_for}
    for name, last in sorted(ended - said, key=str):
        yield f"architecture {name}: ends with {last}, whose row does not say so"
    for name, last in sorted(said - ended):
        yield f"branch {last}: is said to be the last for {name}, whose row does not say so"


def _compats(matrix: Matrix) -> Iterator[str]:
    """A forward compatibility package is newer than the kernel drivers that it is for."""
    for row in matrix.forward_compats():
        behind = matrix.branch_of(row.driver, "linux")
        if matrix.toolkit(row.cuda) is None:
            yield f"{row.package}: there is no toolkit {row.cuda}"
        if behind is None:
            yield f"{row.package}: the branch of driver {row.driver} is not known"
            continue
        if _key(behind.cuda) < _key(row.cuda):
            yield f"{row.package}: is made from {row.driver}, whose branch shows only CUDA {behind.cuda}"
        for name in row.bases:
            base = matrix.branch(name)
            if base is None:
                yield f"{row.package}: the branch {name} is not known"
            elif base.linux >= behind.linux:
                yield f"{row.package}: is for {name}, which is no older than {behind.name}, of which it is made"


# -- architectures and GPUs


def _architectures(matrix: Matrix) -> Iterator[str]:
    seen: dict[str, str] = {}
    for row in matrix.architectures():
        for item in row.capability:
            if item in seen:
                yield f"compute capability {item}: stands in {seen[item]} and {row.name}"
            seen[item] = row.name
        if row.first_cuda and row.last_cuda and _key(row.first_cuda) >= _key(row.last_cuda):
            yield f"architecture {row.name}: ends with CUDA {row.last_cuda}, before its first, {row.first_cuda}"
        for column in ("first_cuda", "last_cuda"):
            cuda = getattr(row, column)
            oldest = matrix.toolkits()[-1].cuda
            if cuda and matrix.toolkit(cuda) is None and _key(cuda) >= _key(oldest):
                yield f"architecture {row.name}: {column} {cuda} has no row among the toolkits"
        for column in ("min_driver", "max_driver"):
            name = getattr(row, column)
            if name and matrix.branch(name) is None:
                yield f"architecture {row.name}: {column} {name} has no row among the branches"
        last = matrix.branch(row.max_driver) if row.max_driver else None
        if last is not None and row.last_cuda and _key(row.last_cuda)[0] > _key(last.cuda)[0]:
            yield f"architecture {row.name}: CUDA {row.last_cuda} is newer than what its last branch {last.name} runs"


def _gpus(matrix: Matrix) -> Iterator[str]:
    """Every product belongs to its architecture; names and PCI ids lead back to it."""
    by_pci: dict[str, set[str]] = {}
    printed: dict[str, set[str]] = {}
    for gpu in matrix.gpus():
        row = matrix.architecture(gpu.capability)
        if row is None:
            yield f"{gpu.name}: compute capability {gpu.capability} has no row among the architectures"
            continue
        if row.name != gpu.architecture:
            yield f"{gpu.name}: is called {gpu.architecture}, but {gpu.capability} is {row.name}"
        if not row.tegra and gpu.modules is None:
            yield f"{gpu.name}: says nothing of the Linux kernel modules"
        if row.modules in ("open", "proprietary") and gpu.modules != row.modules:
            yield f"{gpu.name}: modules are {gpu.modules}, its architecture takes {row.modules}"
        family = matrix.first_branch_for(gpu.capability)
        firm = gpu.min_driver_bound == "exact" and "min_driver" not in gpu.guessed
        if family and gpu.min_driver and firm and int(gpu.min_driver[1:]) < family.number:
            yield f"{gpu.name}: needs {gpu.min_driver}, but its architecture starts with {family.branch}"
        for column in gpu.guessed:
            if column not in GPU_COLUMNS:
                yield f"{gpu.name}: guessed column {column!r} is none"
        for pci in gpu.pci:
            by_pci.setdefault(pci, set()).add(gpu.capability)
        for name in (gpu.name, *gpu.smi):
            printed.setdefault(name, set()).add(gpu.capability)
            if gpu not in matrix.gpu(name).rows:
                yield f"{gpu.name}: is not found by its own name {name!r}"
    for pci, found in sorted(by_pci.items()):
        if len(found) > 1:
            yield f"PCI id {pci}: stands for GPUs of {' and '.join(sorted(found))}"


def _chips(matrix: Matrix) -> Iterator[str]:
    """Ranges of PCI ids do not overlap, and agree with the products that lie in them."""
    ranges = matrix.raw("pci_chips")["chip"]
    for before, after in zip(ranges, ranges[1:]):
        if not before["first"] <= before["last"] < after["first"]:
            yield f"PCI range {before['first']}-{before['last']}: overlaps or follows {after['first']}-{after['last']}"
    for row in ranges:
        if matrix.architecture(row["capability"]) is None:
            yield f"chip {row['chip']}: {row['capability']} has no row among the architectures"
    for gpu in matrix.gpus():
        for pci in gpu.pci:
            for row in ranges:
                if row["first"] <= pci <= row["last"] and row["capability"] != gpu.capability:
                    yield f"{gpu.name}: its PCI id {pci} lies among those of {row['chip']}, {row['capability']}"


# -- torch


def _torch_releases(matrix: Matrix) -> Iterator[str]:
    for minor, data in matrix.raw("torch").items():
        for row in data["release"]:
            if row["version"].rpartition(".")[0] != minor:
                yield f"torch/{minor}: holds the release {row['version']}"
    keys = [torch_key(row["version"]) for data in matrix.raw("torch").values() for row in data["release"]]
    for key in sorted({key for key in keys if key and keys.count(key) > 1}):
        yield f"torch {'.'.join(map(str, key))}: stands more than once"
    for release in matrix.torch_releases():
        name = f"torch {release.version}"
        builds = [build for variant in release.variants for build in variant.builds]
        if release.variant("cpu") is None:
            yield f"{name}: has no CPU build"
        for platform, variant in release.default.items():
            build = release.build(variant, platform)
            if build is None:
                yield f"{name}: {variant} is the default on {platform}, but there is no such build"
            elif not build.seen or build.guessed:
                yield f"{name}: {variant} is the default on {platform}, but nobody has seen that build"
            if platform.startswith(("windows", "macos")) and variant != "cpu":
                yield f"{name}: the default on {platform} is {variant}, which no index of that name ever had"
        ways = [(build.variant, build.platform) for build in builds]
        for way in sorted({way for way in ways if ways.count(way) > 1}):
            yield f"{name}: the build {' for '.join(way)} stands more than once"
        for package in COMPANIONS:
            if package not in release.companions:
                yield f"{name}: has no {package}"
        for package in release.companions_untagged:
            if package not in release.companions:
                yield f"{name}: {package} is untagged but no companion"
    yield from _companions(matrix)


def _companions(matrix: Matrix) -> Iterator[str]:
    """A newer torch never has an older companion, and one that is pinned exactly belongs to one torch only."""
    rows = list(reversed(matrix.torch_releases()))
    for package in COMPANIONS:
        for older, newer in zip(rows, rows[1:]):
            have, had = newer.companions.get(package), older.companions.get(package)
            if have is None or had is None:
                continue
            if _key(have) < _key(had):
                yield f"torch {newer.version}: has {package} {have}, the older torch {older.version} has {had}"
            elif have == had and matrix.pinned_exactly(package, have):
                yield f"{package} {have}: wants exactly one torch, but stands in {older.version} and {newer.version}"


def _torch_builds(matrix: Matrix) -> Iterator[str]:
    """Every variant has a toolkit, every compiled target is one that this toolkit knows, guesses are never firm."""
    for release in matrix.torch_releases():
        for variant in release.variants:
            for build in variant.builds:
                name = f"torch {release.version} {variant.name} {build.platform}"
                if set(build.pythons_inferred) - set(build.pythons):
                    yield f"{name}: infers Pythons that it has not"
                if (build.glibc is not None) != build.platform.startswith("linux"):
                    yield f"{name}: glibc is {build.glibc}"
                if build.guessed and build.seen:
                    yield f"{name}: is a guess and yet seen"
                if build.verified and (build.archs_guessed or build.guessed or not build.seen):
                    yield f"{name}: was read from the wheel and yet is a guess"
                if build.platform.startswith("macos") and variant.name != "cpu":
                    yield f"{name}: there is no CUDA on macOS"
                yield from _targets(matrix, name, build, variant.cuda)


def _targets(matrix: Matrix, name: str, build: Any, cuda: Optional[str]) -> Iterator[str]:
    if cuda is None:
        if build.sass or build.ptx:
            yield f"{name}: a CPU build has no GPU code"
        return
    if matrix.toolkit(cuda) is None:
        yield f"{name}: there is no toolkit {cuda}"
    if not build.sass:
        yield f"{name}: has no GPU list"
    for text in (*build.sass, *build.ptx, *build.disputed):
        found = target(text)
        row = matrix.architecture(f"{found.major}.{found.minor}") if found else None
        if row is None:
            yield f"{name}: target {text} has no row among the architectures"
        elif row.first_cuda and _key(cuda) < _key(row.first_cuda):
            yield f"{name}: target {text} came with CUDA {row.first_cuda}"
        elif row.last_cuda and _key(cuda) > _key(row.last_cuda):
            yield f"{name}: target {text} ended with CUDA {row.last_cuda}"


# -- what surrounds torch


def _packages(matrix: Matrix) -> Iterator[str]:
    """Every release is of a package that is known, once, newest first, and for CUDA versions that were."""
    data = matrix.raw("frameworks")
    names = [name for row in data["framework"] for name in (row["name"], *row.get("names", ()))]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"{name}: is the name of two frameworks"
    ruled = {row["package"] for row in data["rule"]}
    for framework in matrix.frameworks():
        releases, pins = matrix.framework_releases(framework.name), matrix.pins(framework.name)
        if framework.tied_to_torch and releases and pins:
            yield f"{framework.name}: has releases that are tied to torch and releases that are not"
        for release in releases:
            for major in release.cuda:
                if major not in framework.cuda:
                    yield f"{framework.name} {release.version}: is for CUDA {major}, which the package is not"
        for major in framework.cuda:
            if matrix.floor(int(major), "linux") is None:
                yield f"{framework.name}: CUDA {major} has no driver floor"
        for major, driver in framework.linux.items():
            if _key(driver) < _key(matrix.floor(int(major), "linux"))[: len(_key(driver))]:
                yield f"{framework.name}: wants driver {driver} for CUDA {major}, which itself wants a newer one"
        for found in framework.capability.values():
            if matrix.architecture(found) is None:
                yield f"{framework.name}: {found} has no row among the architectures"
        for pin in pins:
            yield from _pin(matrix, pin)
    known = {framework.name for framework in matrix.frameworks()} | set(COMPANIONS)
    for table in ("rule", "pin", "release"):
        seen: dict[str, list[str]] = {}
        for row in data[table]:
            name, version = row["package"], row.get("version") or row.get("since", "")
            if name not in known:
                yield f"{table} {name} {version}: the package has no row among the frameworks"
            before = seen.setdefault(name, [])
            if version in before:
                yield f"{table} {name} {version}: stands more than once"
            elif table != "rule" and before and _release_key(version) > _release_key(before[-1]):
                yield f"{table} {name} {version}: stands after the older {before[-1]}"
            before.append(version)
            for word in row.get("cuda", "").split():
                if "." in word and matrix.toolkit(word) is None:
                    yield f"{table} {name} {version}: there is no toolkit {word}"
                elif "." not in word and matrix.floor(int(word), "linux") is None:
                    yield f"{table} {name} {version}: CUDA {word} has no driver floor"
    for name in sorted({row["package"] for row in data["pin"]} - ruled):
        yield f"pin {name}: has no rule"


def _pin(matrix: Matrix, pin: Pin) -> Iterator[str]:
    """Some torch accepts it, and what it wants beside torch belongs to that torch."""
    name = f"pin {pin.package} {pin.version}"
    accepted = [version for version in matrix.torch_versions() if satisfies(version, pin.torch)]
    if not accepted:
        yield f"{name}: there is no torch {pin.torch}"
    for package, wanted in (("torchvision", pin.torchvision), ("torchaudio", pin.torchaudio)):
        belongs = [matrix.companions(version).get(package, "") for version in accepted]
        if wanted and belongs and not any(satisfies(version, wanted) for version in belongs):
            yield f"{name}: wants {package}{wanted}, but torch {pin.torch.lstrip('=')} has {belongs[0]}"


def _compilers(matrix: Matrix) -> Iterator[str]:
    """A newer toolkit takes at least the compilers of the older."""
    rows = sorted(matrix.raw("host_compilers")["compiler"], key=lambda row: _key(row["cuda"]))
    for older, newer in zip(rows, rows[1:]):
        for column in ("gcc_max", "clang_max", "msvc_below"):
            if newer[column] < older[column]:
                yield (
                    f"host compilers of {newer['cuda']}: {column} {newer[column]} is below the {older[column]} "
                    f"of {older['cuda']}"
                )
    for row in rows:
        if matrix.toolkit(row["cuda"]) is None:
            yield f"host compilers of {row['cuda']}: there is no such toolkit"
        if row.get("gcc_min", 0) > row["gcc_max"] or row.get("clang_min", 0) > row["clang_max"]:
            yield f"host compilers of {row['cuda']}: the oldest is newer than the newest"
        if row["msvc_min"] >= row["msvc_below"]:
            yield f"host compilers of {row['cuda']}: the oldest MSVC is newer than the newest"


def _xids(matrix: Matrix) -> Iterator[str]:
    """Each number once, in order, with an action that is explained; only what is grave says that a GPU is unfit."""
    data = matrix.raw("xid")
    actions = [row["name"] for row in data["action"]]
    for name in sorted({name for name in actions if actions.count(name) > 1}):
        yield f"action {name}: stands there twice"
    used = {row["action"] for row in data["xid"]}
    for name in actions:
        if name not in used:
            yield f"action {name}: no Xid has it"
    before = 0
    for row in data["xid"]:
        code = row["code"]
        if code <= before:
            yield f"Xid {code}: comes after {before}"
        before = max(before, code)
        if row["action"] not in actions:
            yield f"Xid {code}: action {row['action']!r} is not explained"
        if row["causes"][0] == "program" and row["severity"] == "critical":
            yield f"Xid {code}: a program's fault, and yet critical for the GPU"
        if (row["severity"] == "info") != (row["action"] in ("none", "earlier-error", "as-told")):
            yield f"Xid {code}: severity {row['severity']} and action {row['action']} do not go together"


# Each with the file that it is about; the first names its files itself.
_RULES: tuple[tuple[str, Callable[[Matrix], Iterator[str]]], ...] = (
    ("", _dates),
    ("cuda_toolkits", _floors),
    ("cuda_toolkits", _toolkits),
    ("driver_branches", _branches),
    ("driver_branches", _newer_serves_no_worse),
    ("architectures", _dropped_gpus),
    ("forward_compat", _compats),
    ("architectures", _architectures),
    ("gpus", _gpus),
    ("pci_chips", _chips),
    ("torch", _torch_releases),
    ("torch", _torch_builds),
    ("frameworks", _packages),
    ("host_compilers", _compilers),
    ("xid", _xids),
)


def _key(version: Optional[str]) -> Numbers:
    """For comparing; a number that is missing is above all others, so that nothing rests on it."""
    return numbers(version or "") or _NEVER


def _release_key(version: str) -> tuple[int, ...]:
    """0.0.28.post3 comes after 0.0.28; release candidates are not listed."""
    return tuple(map(int, re.findall(r"\d+", version)))


def _starts(release: str, cuda: str) -> bool:
    return _key(release)[: len(_key(cuda))] == _key(cuda)
