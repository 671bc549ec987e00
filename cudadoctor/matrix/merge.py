"""Laying what was observed upstream over the data that is there. Pure: nothing is fetched here and nothing written.

Only what is newer is taken: new releases, new builds and Pythons of known ones, wheels that were announced and now are
there, new drivers, branches and toolkits. Nothing is taken away: rows that would get lost are a fault of ours
(:func:`lost_rows`).

What cannot be seen upstream is carried over from the release before and marked: the GPU list of a build that no source
gives is ``archs_guessed``, which decides nothing.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Callable, Optional

from cudadoctor.model.record import NamedTuple

from .observed import (
    PLATFORMS,
    ListedWheel,
    Observed,
    ReleaseFacts,
    SeenBranch,
    SeenBuild,
    cuda_numbers,
    new_releases,
    seen_builds,
)
from .versions import Numbers, cuda_of_variant, numbers, target, torch_key

Section = Callable[[str], dict[str, Any]]

_TAGGED_CPU = ("linux-x86_64", "windows-x86_64")  # where CPU wheels of PyTorch's index carry "+cpu"
_BUILD_ORDER = (
    "variant", "platform", "pythons", "pythons_inferred", "sass", "ptx", "listed", "archs", "verified_in_binary",
    "archs_guessed", "disputed", "glibc", "cxx11_abi", "no_local_version", "seen", "guessed", "checked",
)  # fmt: skip
_KINDS = (("lts", "lts"), ("long term", "lts"), ("production", "production"), ("new feature", "new-feature"))
_OWN_TABLE = (
    "PYTORCH_RELEASES_CODE_CC in torch/cuda/__init__.py of the wheel: torch's own GPU lists of its Linux builds"
)
_BINARY = "GPU list inside torch/lib/libtorch_python.so of the wheel (what torch.cuda.get_arch_list() splits)"
_CARRIED = "carried over from the nearest build before it of the same kind; the list of this build was not read"
# Sources that an update names end in the day of it.
_DATED = re.compile(r"-\d{4}-\d{2}-\d{2}(-\d+)?\Z")


class Change(NamedTuple):
    """One thing that is new. `kind`: release, build, seen (announced before), branch, driver, toolkit, pythons (more of
    them), confirmed (inferred before)."""

    kind: str
    subject: str
    text: str
    builds: int = 0


class Merged(NamedTuple):
    """`sections`: those that changed, whole. `notes`: what was seen and not taken, and why."""

    sections: Mapping[str, dict[str, Any]]
    changes: tuple[Change, ...]
    notes: tuple[str, ...]


def lost_rows(before: Section, after: Section) -> list[str]:
    """What `before` has and `after` has not: releases, builds and their Pythons, branches, toolkits. As sentences."""
    found = []
    for name, keys in (("torch", _torch_keys), ("driver_branches", _branch_keys), ("cuda_toolkits", _toolkit_keys)):
        found += [f"{key} would be lost" for key in sorted(set(keys(before(name))) - set(keys(after(name))))]
    return found


def _torch_keys(torch: Mapping[str, Any]) -> Iterator[str]:
    for data in torch.values():
        for row in data["release"]:
            yield f"torch {row['version']}"
            for item in row["builds"]:
                build = f"torch {row['version']} {item['variant']} {item['platform']}"
                yield build
                if item.get("seen", True) and not item.get("guessed", False):
                    yield from (f"{build} for Python {python}" for python in item["pythons"].split(" "))


def _branch_keys(data: Mapping[str, Any]) -> Iterator[str]:
    return (f"branch {row['name']}" for row in data["branch"])


def _toolkit_keys(data: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"toolkit {row['release']}" for row in data["toolkit"])
    yield from (f"floor of CUDA {row['cuda']}" for row in data["floor"])


# -- merging


def merge(present: Section, observed: Observed) -> Merged:
    """The present data with what was observed over it; `present` itself is left as it is."""
    work = _Work(present, observed)
    if observed.branches is not None:
        work.drivers(observed.branches)
    work.toolkits()
    if observed.pages is not None:
        work.torch(observed.pages)
    changed = {name: data for name, data in work.data.items() if data != present(name)}
    return Merged(changed, tuple(work.changes), tuple(work.notes))


class _Work:
    """One merge: copies of the sections, and what is told about it."""

    def __init__(self, present: Section, observed: Observed) -> None:
        self.observed, self.day = observed, observed.day
        self.data = {name: copy.deepcopy(present(name)) for name in ("torch", "driver_branches", "cuda_toolkits")}
        self.architectures = {
            capability for row in present("architectures")["architecture"] for capability in row["capability"]
        }
        self.changes: list[Change] = []
        self.notes: list[str] = []

    # -- drivers and toolkits

    def drivers(self, branches: Sequence[SeenBranch]) -> None:
        data = self.data["driver_branches"]
        rows = {row["linux"]: row for row in data["branch"]}
        newest = max(rows)
        for seen in sorted(branches):
            versions = sorted({version for version, _ in seen.releases}, key=_numbers)
            if not versions:
                continue
            if seen.number in rows:
                self._known_branch(data, rows[seen.number], seen, versions[-1])
            elif seen.number > newest:
                self._new_branch(data, rows[newest], seen, versions)
        _prune_sources(data, "branch", ())

    def _known_branch(self, data: dict[str, Any], row: dict[str, Any], seen: SeenBranch, latest: str) -> None:
        if seen.cuda is not None and seen.cuda != row["cuda"]:
            said = f"{row['name']}: {latest} is said to serve CUDA {seen.cuda}"
            self.notes.append(f"{said}, the matrix has {row['cuda']}; left as it is")
        known = row.get("latest_linux") or row.get("first_linux")
        if known is not None and _numbers(latest) <= _numbers(known):
            return
        had = f" (was {known})" if known else ""
        _put_after(
            row, "latest_linux", latest, ("first_date", "first_linux", "end_of_life_other", "end_of_life", "cuda")
        )
        self._cite(data, row, self._driver_source(data))
        self.changes.append(Change("driver", row["name"], f"newest Linux driver {latest}{had}"))

    def _new_branch(
        self, data: dict[str, Any], before: Mapping[str, Any], seen: SeenBranch, versions: Sequence[str]
    ) -> None:
        name = f"R{seen.number}"
        if seen.cuda is None:
            self.notes.append(f"{name}: left out, no source says which CUDA version it serves")
            return
        days = dict(seen.releases)
        kind = next((ours for theirs, ours in _KINDS if theirs in seen.kind), None)
        row: dict[str, Any] = {"name": name, "linux": seen.number, "cuda": seen.cuda}
        row.update({"kind": kind} if kind else {})
        row["first_linux"] = versions[0]
        row.update({"first_date": days[versions[0]]} if days[versions[0]] else {})
        row.update({"latest_linux": versions[-1]} if len(versions) > 1 else {})
        row["modules"] = list(before["modules"])
        row["source"] = [self._driver_source(data)]
        row["confidence"] = "derived"
        row["note"] = f"kernel module flavours as of {before['name']}; Windows numbers not known"
        row["checked"] = self.day
        data["branch"].insert(0, _without_default_day(row, data))
        self.changes.append(Change("branch", name, f"new branch, serves CUDA {seen.cuda}, from {versions[0]}"))

    def _driver_source(self, data: dict[str, Any]) -> str:
        text = f"NVIDIA redistributable indexes and docs.nvidia.com/datacenter/tesla/drivers/releases.json, {self.day}"
        return _source(data, f"drivers-{self.day}", text)

    def toolkits(self) -> None:
        """New releases of cuda-toolkit on the default index. Each needs a driver branch that shows its CUDA version."""
        data = self.data["cuda_toolkits"]
        branches = {row["cuda"]: row["name"] for row in reversed(self.data["driver_branches"]["branch"])}
        known = {_numbers(row["release"]) for row in data["toolkit"]}
        for release, day in sorted(self.observed.toolkits, key=lambda item: _numbers(item[0])):
            key, cuda = _numbers(release), ".".join(release.split(".")[:2])
            minor = [other for other in known if other[:2] == key[:2]]
            if key in known or key <= max(minor or known):
                continue
            older = any(row["cuda"] == cuda and row.get("linux") for row in data["toolkit"])
            if cuda not in branches and not older:
                self.notes.append(f"CUDA toolkit {release}: left out, no driver branch is known to show CUDA {cuda}")
                continue
            known.add(key)
            row = {"cuda": cuda, "release": release, "label": release}
            row.update({"date": day} if day else {})
            row.update({"branch": branches[cuda]} if cuda in branches else {})
            row["source"] = _source(data, f"toolkit-{self.day}", f"cuda-toolkit on the default index, {self.day}")
            row.update({"confidence": "derived", "note": "no driver of its own seen", "checked": self.day})
            data["toolkit"].insert(0, _without_default_day(row, data))
            data["toolkit"].sort(key=lambda item: _numbers(item["release"]), reverse=True)
            self.changes.append(Change("toolkit", f"CUDA {release}", "new toolkit"))

    # -- torch

    def torch(self, pages: Mapping[str, Sequence[ListedWheel]]) -> None:
        torch = self.data["torch"]
        rows = {row["version"]: (data, row) for data in torch.values() for row in data["release"]}
        fresh = [version for version in new_releases(torch, self.observed.default) if version in self.observed.facts]
        defaults = {version: row["default"] for version, (_, row) in rows.items()}
        defaults.update({version: self.observed.facts[version].default for version in fresh})
        builds = seen_builds(pages, self.observed.default, defaults)
        for version, (data, row) in rows.items():
            for way, seen in builds.get(version, {}).items():
                self._known_release(data, row, way, seen)
            row["builds"].sort(key=_build_order)
        for version in fresh:
            self._new_release(version, builds.get(version, {}))
        for data in torch.values():
            _prune_sources(data, "release", ("builds",))
        waiting = {
            item.wheel.release
            for page in pages.values()
            for item in page
            if item.counts and torch_key(item.wheel.release) and item.wheel.release.count(".") == 2
        }
        offered = {item.wheel.release for item in self.observed.default if item.wheel.is_release}
        kept = {item.wheel.release for item in self.observed.default if item.counts}
        for version in sorted((offered - kept) & set(rows), key=_numbers):
            self.notes.append(f"torch {version}: is withdrawn (yanked) on the default index; its rows stay")
        newest = max(torch_key(version) or (0, 0, 0) for version in defaults)
        for version in sorted(waiting - set(defaults), key=_numbers):
            if (torch_key(version) or newest) > newest:
                self.notes.append(
                    f"torch {version}: left out, it is on PyTorch's index and not yet on the default index"
                )

    def _known_release(self, data: dict[str, Any], row: dict[str, Any], way: tuple[str, str], seen: SeenBuild) -> None:
        variant, platform = way
        name = f"torch {row['version']} {variant} {platform}"
        item = next((item for item in row["builds"] if (item["variant"], item["platform"]) == way), None)
        if item is None:
            made = self._build(data, row["version"], row["glibc"], way, seen, None)
            if made is not None:
                row["builds"].append(_without_default_day(made, data))
                self.changes.append(Change("build", name, "new build", 1))
            return
        if not item.get("seen", True) or item.get("guessed", False):
            for column in ("seen", "guessed", "pythons_inferred"):
                item.pop(column, None)
            item["pythons"] = _joined(seen.pythons)
            item["listed"] = self._listed(data, seen)
            _set_day(item, data, self.day)
            self.changes.append(Change("seen", name, "was announced, now is there", 1))
            return
        have, inferred = item["pythons"].split(" "), item.get("pythons_inferred", "").split(" ")
        more = seen.pythons - set(have)
        confirmed = seen.pythons & set(inferred)
        if confirmed:
            rest = [python for python in inferred if python not in confirmed]
            item["pythons_inferred"] = " ".join(rest)
            if not rest:
                del item["pythons_inferred"]
        if more:
            item["pythons"] = _joined({*have, *more})
        if more or confirmed:
            self._cite(data, item, self._listed(data, seen), "listed")
            _set_day(item, data, self.day)
            kind, which = ("pythons", more) if more else ("confirmed", confirmed)
            text = f"wheels for Python {_joined(which)}" + ("" if more else ", so far inferred, are there")
            self.changes.append(Change(kind, name, text))

    def _new_release(self, version: str, builds: Mapping[tuple[str, str], SeenBuild]) -> None:
        facts = self.observed.facts[version]
        torch = self.data["torch"]
        minor = ".".join(version.split(".")[:2])
        before = self._release_before(version)
        data = torch.get(minor) or {"checked": self.day, "release": [], "sources": {}}
        listed = [item for item in self.observed.default if item.wheel.release == version and item.counts]
        days = sorted(item.day for item in listed if item.day)
        requires = next((item.requires_python for item in listed if item.requires_python), None)
        if not days or requires is None:
            self.notes.append(f"torch {version}: left out, the default index names no date or no Python for it")
            return
        glibc: dict[str, str] = {}
        for platform in ("linux-x86_64", "linux-aarch64"):
            floors = [builds[way].glibc for way in ((facts.default.get(platform, ""), platform),) if way in builds]
            had = before["glibc"].get(platform) if before else None
            floor = max((item for item in (*floors, had) if item), key=_numbers, default=None)
            if floor:
                glibc[platform] = floor
        work = copy.deepcopy(data)
        made = [self._build(work, version, glibc, way, seen, facts) for way, seen in builds.items()]
        rows = sorted((item for item in made if item is not None), key=_build_order)
        ways = {(item["variant"], item["platform"]) for item in rows}
        missing = [platform for platform, variant in facts.default.items() if (variant, platform) not in ways]
        if missing or not any(variant == "cpu" for variant, _ in ways):
            reason = f"its default build for {missing[0]} cannot be taken" if missing else "no CPU build of it was seen"
            self.notes.append(f"torch {version}: left out, {reason}")
            return
        row: dict[str, Any] = {
            "version": version,
            "date": days[0],
            "requires_python": requires,
            "default": dict(facts.default),
            "glibc": glibc,
            # Not to be seen from outside; it has only ever changed from the old to the new one.
            "cxx11_abi": before["cxx11_abi"] if before else True,
            "companions": dict(facts.companions),
        }
        row.update({"companions_untagged": list(facts.companions_untagged)} if facts.companions_untagged else {})
        row["nvidia"] = dict(facts.nvidia)
        row["source"] = _source(work, *self._default_source())
        row["builds"] = [_without_default_day(item, work) for item in rows]
        row["checked"] = self.day
        row = _without_default_day(row, work)
        row["builds"] = row.pop("builds")  # last, as people read it
        work["release"] = sorted([row, *work["release"]], key=lambda item: _numbers(item["version"]), reverse=True)
        torch[minor] = work
        self.data["torch"] = dict(sorted(torch.items()))
        variants = ", ".join(dict.fromkeys(item["variant"] for item in rows))
        self.changes.append(Change("release", f"torch {version}", f"new release, for {variants}", len(rows)))

    def _build(
        self,
        data: dict[str, Any],
        version: str,
        glibc: Mapping[str, str],
        way: tuple[str, str],
        seen: SeenBuild,
        facts: Optional[ReleaseFacts],
    ) -> Optional[dict[str, Any]]:
        """A row for a build that is new; None, with a note, where what the matrix must know of it is not to be had."""
        variant, platform = way
        name = f"torch {version} {variant} {platform}"
        item: dict[str, Any] = {"variant": variant, "platform": platform, "pythons": _joined(seen.pythons)}
        item["listed"] = self._listed(data, seen)
        if variant != "cpu":
            if not self._add_archs(data, item, version, facts):
                self.notes.append(f"{name}: left out, its GPU list is not known and none is to be carried over")
                return None
            cuda = cuda_of_variant(variant)
            if all(row["cuda"] != cuda for row in self.data["cuda_toolkits"]["toolkit"]):
                self.notes.append(f"{name}: left out, the matrix has no CUDA toolkit {cuda}")
                return None
            odd = [text for text in item["sass"].split(" ") if _capability(text) not in self.architectures]
            if odd:
                self.notes.append(f"{name}: left out, the matrix does not know sm_{odd[0]}; a newer cudadoctor may")
                return None
        if seen.glibc and seen.glibc != glibc.get(platform) and platform.startswith("linux"):
            # An old name of a tag promises less than the wheels need; the release's floor never falls.
            if platform not in glibc or _numbers(seen.glibc) > _numbers(glibc[platform]):
                item["glibc"] = seen.glibc
        elif platform.startswith("linux") and platform not in glibc:
            self.notes.append(f"{name}: left out, its wheels name no glibc version")
            return None
        if not seen.tagged and "index" in seen.sources and (variant != "cpu" or platform in _TAGGED_CPU):
            item["no_local_version"] = True
        item["checked"] = self.day
        return {column: item[column] for column in _BUILD_ORDER if column in item}

    def _add_archs(
        self, data: dict[str, Any], item: dict[str, Any], version: str, facts: Optional[ReleaseFacts]
    ) -> bool:
        """The GPU list of a CUDA build, from the best source that there is. Whether there is one."""
        way = (item["variant"], item["platform"])
        found = facts.read.get(way) if facts else None
        if found is not None:
            item["archs"] = _source(data, "binary", _BINARY)
            item["verified_in_binary"] = True
        else:
            found = facts.archs.get(way) if facts else None
            if found is not None:
                item["archs"] = _source(data, "own-table", _OWN_TABLE)
        if found is not None:
            item["sass"] = " ".join(found.sass)
            item.update({"ptx": " ".join(found.ptx)} if found.ptx else {})
            return bool(found.sass)
        carried = self._carried(version, *way)
        if carried is None:
            return False
        item["sass"] = carried["sass"]
        for column in ("ptx", "disputed"):
            item.update({column: carried[column]} if column in carried else {})
        item["archs"] = _source(data, "carried-over", _CARRIED)
        item["archs_guessed"] = True
        return True

    def _carried(self, version: str, variant: str, platform: str) -> Optional[Mapping[str, Any]]:
        """The build whose GPU list is the best guess: the same variant of the nearest older release, else the nearest
        older variant of the same CUDA major."""
        limit, cuda = torch_key(version) or (0, 0, 0), cuda_numbers(variant)
        best: Optional[tuple[tuple[int, int, int], Numbers, Mapping[str, Any]]] = None
        for data in self.data["torch"].values():
            for row in data["release"]:
                key = torch_key(row["version"]) or (0, 0, 0)
                for item in row["builds"]:
                    other = cuda_numbers(item["variant"])
                    if key > limit or not item.get("sass") or item["platform"] != platform or other[:1] != cuda[:1]:
                        continue
                    if other > cuda or (key == limit and other == cuda):
                        continue
                    rank = (key, other, item)
                    same = other == cuda
                    if best is None or (same, rank[:2]) > (best[1] == cuda, best[:2]):
                        best = rank
        return best[2] if best else None

    def _release_before(self, version: str) -> Optional[Mapping[str, Any]]:
        limit = torch_key(version) or (0, 0, 0)
        rows = [
            (key, row)
            for data in self.data["torch"].values()
            for row in data["release"]
            for key in [torch_key(row["version"]) or (0, 0, 0)]
            if key < limit
        ]
        return max(rows, key=lambda item: item[0])[1] if rows else None

    def _default_source(self) -> tuple[str, str]:
        text = f"torch on the default index: file list, METADATA and torch/version.py of the wheels, read {self.day}"
        return f"default-{self.day}", text

    def _listed(self, data: dict[str, Any], seen: SeenBuild) -> str:
        if "index" in seen.sources:
            return _source(data, f"index-{self.day}", f"wheels listed on {self.observed.upstream}, {self.day}")
        return _source(data, *self._default_source())

    def _cite(self, data: dict[str, Any], row: dict[str, Any], key: str, column: str = "source") -> None:
        """Adds a source to those that a row names. Those of earlier updates give way: it has been looked at again."""
        have = row.get(column, [])
        kept = [name for name in ([have] if isinstance(have, str) else have) if name == key or not _DATED.search(name)]
        names = kept if key in kept else [*kept, key]
        row[column] = names if len(names) > 1 or isinstance(have, list) else names[0]
        if column == "source":
            _set_day(row, data, self.day)


# -- rows and their sources


def _source(data: dict[str, Any], key: str, text: str) -> str:
    """The key in [sources] under which this text stands, put there where it does not."""
    sources: dict[str, str] = data.setdefault("sources", {})
    for known, other in sources.items():
        if other == text:
            return known
    name, number = key, 2
    while name in sources:
        name, number = f"{key}-{number}", number + 1
    sources[name] = text
    return name


def _prune_sources(data: dict[str, Any], table: str, inner: Iterable[str]) -> None:
    """Takes out sources that no row names any more."""
    used: set[str] = set()
    rows = list(data[table])
    for row in rows:
        for column in inner:
            rows = rows + list(row.get(column, ()))
    for row in [data, *rows]:
        for column in ("source", "listed", "archs"):
            value = row.get(column, ())
            used |= {value} if isinstance(value, str) else set(value)
    sources = data.get("sources", {})
    for key in [key for key in sources if key not in used]:
        del sources[key]


def _set_day(row: dict[str, Any], data: Mapping[str, Any], day: str) -> None:
    row["checked"] = day
    if data["checked"] == day:
        del row["checked"]


def _without_default_day(row: dict[str, Any], data: Mapping[str, Any]) -> dict[str, Any]:
    """The row without its day of checking where that is the file's."""
    return {key: value for key, value in row.items() if key != "checked" or value != data["checked"]}


def _put_after(row: dict[str, Any], column: str, value: Any, places: Iterable[str]) -> None:
    """Sets a column; a new one goes behind the first of `places` that the row has."""
    if column in row:
        row[column] = value
        return
    place = next((name for name in places if name in row), None)
    items = list(row.items())
    row.clear()
    for name, old in items:
        row[name] = old
        if name == place:
            row[column] = value
    row.setdefault(column, value)


def _joined(pythons: Iterable[str]) -> str:
    return " ".join(sorted(pythons, key=lambda python: (int(python.rstrip("t").split(".")[1]), python.endswith("t"))))


def _build_order(item: Mapping[str, Any]) -> tuple[Numbers, int]:
    return cuda_numbers(item["variant"]), PLATFORMS.index(item["platform"])


def _numbers(text: str) -> Numbers:
    return numbers(text) or ()


def _capability(text: str) -> Optional[str]:
    found = target(text)
    return f"{found.major}.{found.minor}" if found else None
