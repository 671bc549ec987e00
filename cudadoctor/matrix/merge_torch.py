"""Newer releases, builds and Pythons of torch, laid over the rows that are there."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Optional

from .merging import (
    Change,
    Log,
    build_order,
    capability_of,
    joined,
    order,
    prune_sources,
    set_day,
    set_index_only,
    source_of,
    without_default_day,
)
from .observed import ListedWheel, ReleaseFacts, SeenBuild, cuda_numbers, new_releases, seen_builds
from .versions import Numbers, cuda_of_variant, torch_key

_TAGGED_CPU = ("linux-x86_64", "windows-x86_64")  # where CPU wheels of PyTorch's index carry "+cpu"
_BUILD_ORDER = (
    "variant", "platform", "pythons", "pythons_inferred", "sass", "ptx", "listed", "archs", "verified_in_binary",
    "archs_guessed", "disputed", "pythons_index_only", "glibc", "cxx11_abi", "no_local_version", "seen",
    "guessed", "checked",
)  # fmt: skip
_OWN_TABLE = (
    "PYTORCH_RELEASES_CODE_CC in torch/cuda/__init__.py of the wheel: torch's own GPU lists of its Linux builds"
)
_BINARY = "GPU list inside torch/lib/libtorch_python.so of the wheel (what torch.cuda.get_arch_list() splits)"
_CARRIED = "carried over from the nearest build before it of the same kind; the list of this build was not read"


class TorchMerge:
    """Changes `section`, that of torch. `toolkits`: CUDA versions that the matrix has; `architectures`: compute
    capabilities that it has a row for."""

    def __init__(self, section: dict[str, Any], toolkits: set[str], architectures: set[str], log: Log) -> None:
        self._section, self._toolkits, self._architectures, self._log = section, toolkits, architectures, log

    def merge(self, pages: Mapping[str, Sequence[ListedWheel]]) -> None:
        torch = self._section
        rows = {row["version"]: (data, row) for data in torch.values() for row in data["release"]}
        fresh = [
            version
            for version in new_releases(torch, self._log.observed.default)
            if version in self._log.observed.facts
        ]
        defaults = {version: row["default"] for version, (_, row) in rows.items()}
        defaults.update({version: self._log.observed.facts[version].default for version in fresh})
        builds = seen_builds(pages, self._log.observed.default, defaults)
        for version, (data, row) in rows.items():
            for way, seen in builds.get(version, {}).items():
                self._known_release(data, row, way, seen)
        for version in fresh:
            self._new_release(version, builds.get(version, {}))
        for data in torch.values():
            prune_sources(data, "release", ("builds",))
        waiting = {
            item.wheel.release
            for page in pages.values()
            for item in page
            if item.counts and torch_key(item.wheel.release) and item.wheel.release.count(".") == 2
        }
        offered = {item.wheel.release for item in self._log.observed.default if item.wheel.is_release}
        kept = {item.wheel.release for item in self._log.observed.default if item.counts}
        for version in sorted((offered - kept) & set(rows), key=order):
            self._log.notes.append(f"torch {version}: is withdrawn (yanked) on the default index; its rows stay")
        newest = max(torch_key(version) or (0, 0, 0) for version in defaults)
        for version in sorted(waiting - set(defaults), key=order):
            if (torch_key(version) or newest) > newest:
                self._log.notes.append(
                    f"torch {version}: left out, it is on PyTorch's index and not yet on the default index"
                )

    def _known_release(self, data: dict[str, Any], row: dict[str, Any], way: tuple[str, str], seen: SeenBuild) -> None:
        variant, platform = way
        name = f"torch {row['version']} {variant} {platform}"
        item = next((item for item in row["builds"] if (item["variant"], item["platform"]) == way), None)
        if item is None:
            made = self._build(data, row["version"], row["glibc"], way, seen, None)
            if made is not None:
                row["builds"].append(without_default_day(made, data))
                row["builds"].sort(key=build_order)
                self._log.changes.append(Change("build", name, "new build", 1))
            return
        if not item.get("seen", True) or item.get("guessed", False):
            for column in ("seen", "guessed", "pythons_inferred"):
                item.pop(column, None)
            item["pythons"] = joined(seen.pythons)
            item["listed"] = self._listed(data, seen)
            set_day(item, data, self._log.day)
            self._log.changes.append(Change("seen", name, "was announced, now is there", 1))
            return
        have, inferred = item["pythons"].split(" "), item.get("pythons_inferred", "").split(" ")
        more = seen.pythons - set(have)
        confirmed = seen.pythons & set(inferred)
        arrived = seen.on_default & set(item.get("pythons_index_only", "").split(" "))
        if row["default"].get(platform) == variant:
            set_index_only(item, {*item.get("pythons_index_only", "").split(), *more} - seen.on_default)
        if confirmed:
            rest = [python for python in inferred if python not in confirmed]
            item["pythons_inferred"] = " ".join(rest)
            if not rest:
                del item["pythons_inferred"]
        if more:
            item["pythons"] = joined({*have, *more})
        if more or confirmed or arrived:
            self._log.cite(data, item, self._listed(data, seen), "listed")
            set_day(item, data, self._log.day)
        if arrived:
            self._log.changes.append(Change("pythons", name, f"Python {joined(arrived)} on the default index, too"))
        if more or confirmed:
            kind, which = ("pythons", more) if more else ("confirmed", confirmed)
            text = f"wheels for Python {joined(which)}" + ("" if more else ", so far inferred, are there")
            self._log.changes.append(Change(kind, name, text))

    def _new_release(self, version: str, builds: Mapping[tuple[str, str], SeenBuild]) -> None:
        facts = self._log.observed.facts[version]
        torch = self._section
        minor = ".".join(version.split(".")[:2])
        before = self._release_before(version)
        data = torch.get(minor) or {"checked": self._log.day, "release": [], "sources": {}}
        listed = [item for item in self._log.observed.default if item.wheel.release == version and item.counts]
        days = sorted(item.day for item in listed if item.day)
        requires = next((item.requires_python for item in listed if item.requires_python), None)
        if not days or requires is None:
            self._log.notes.append(f"torch {version}: left out, the default index names no date or no Python for it")
            return
        glibc: dict[str, str] = {}
        for platform in ("linux-x86_64", "linux-aarch64"):
            floors = [builds[way].glibc for way in ((facts.default.get(platform, ""), platform),) if way in builds]
            had = before["glibc"].get(platform) if before else None
            floor = max((item for item in (*floors, had) if item), key=order, default=None)
            if floor:
                glibc[platform] = floor
        work = copy.deepcopy(data)
        made = [self._build(work, version, glibc, way, seen, facts) for way, seen in builds.items()]
        rows = sorted((item for item in made if item is not None), key=build_order)
        ways = {(item["variant"], item["platform"]) for item in rows}
        missing = [platform for platform, variant in facts.default.items() if (variant, platform) not in ways]
        if missing or not any(variant == "cpu" for variant, _ in ways):
            reason = f"its default build for {missing[0]} cannot be taken" if missing else "no CPU build of it was seen"
            self._log.notes.append(f"torch {version}: left out, {reason}")
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
        row["source"] = source_of(work, *self._default_source())
        row["builds"] = [without_default_day(item, work) for item in rows]
        row["checked"] = self._log.day
        row = without_default_day(row, work)
        row["builds"] = row.pop("builds")  # last, as people read it
        work["release"] = sorted([row, *work["release"]], key=lambda item: order(item["version"]), reverse=True)
        torch[minor] = work
        items = sorted(torch.items())
        torch.clear()
        torch.update(items)
        variants = ", ".join(dict.fromkeys(item["variant"] for item in rows))
        self._log.changes.append(Change("release", f"torch {version}", f"new release, for {variants}", len(rows)))

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
        item: dict[str, Any] = {"variant": variant, "platform": platform, "pythons": joined(seen.pythons)}
        item["listed"] = self._listed(data, seen)
        if variant != "cpu":
            if not self._add_archs(data, item, version, facts):
                self._log.notes.append(f"{name}: left out, its GPU list is not known and none is to be carried over")
                return None
            cuda = cuda_of_variant(variant)
            if cuda not in self._toolkits:
                self._log.notes.append(f"{name}: left out, the matrix has no CUDA toolkit {cuda}")
                return None
            odd = [text for text in item["sass"].split(" ") if capability_of(text) not in self._architectures]
            if odd:
                self._log.notes.append(
                    f"{name}: left out, the matrix does not know sm_{odd[0]}; a newer cudadoctor may"
                )
                return None
        if seen.glibc and seen.glibc != glibc.get(platform) and platform.startswith("linux"):
            # An old name of a tag promises less than the wheels need; the release's floor never falls.
            if platform not in glibc or order(seen.glibc) > order(glibc[platform]):
                item["glibc"] = seen.glibc
        elif platform.startswith("linux") and platform not in glibc:
            self._log.notes.append(f"{name}: left out, its wheels name no glibc version")
            return None
        default = facts.default if facts else {}
        if default.get(platform) == variant:
            set_index_only(item, seen.pythons - seen.on_default)
        if not seen.tagged and "index" in seen.sources and (variant != "cpu" or platform in _TAGGED_CPU):
            item["no_local_version"] = True
        item["checked"] = self._log.day
        return {column: item[column] for column in _BUILD_ORDER if column in item}

    def _add_archs(
        self, data: dict[str, Any], item: dict[str, Any], version: str, facts: Optional[ReleaseFacts]
    ) -> bool:
        """The GPU list of a CUDA build, from the best source that there is. Whether there is one."""
        way = (item["variant"], item["platform"])
        found = facts.read.get(way) if facts else None
        if found is not None:
            item["archs"] = source_of(data, "binary", _BINARY)
            item["verified_in_binary"] = True
        else:
            found = facts.archs.get(way) if facts else None
            if found is not None:
                item["archs"] = source_of(data, "own-table", _OWN_TABLE)
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
        item["archs"] = source_of(data, "carried-over", _CARRIED)
        item["archs_guessed"] = True
        return True

    def _carried(self, version: str, variant: str, platform: str) -> Optional[Mapping[str, Any]]:
        """The build whose GPU list is the best guess: the same variant of the nearest older release, else the nearest
        older variant of the same CUDA major."""
        limit, cuda = torch_key(version) or (0, 0, 0), cuda_numbers(variant)
        best: Optional[tuple[tuple[int, int, int], Numbers, Mapping[str, Any]]] = None
        for data in self._section.values():
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
            for data in self._section.values()
            for row in data["release"]
            for key in [torch_key(row["version"]) or (0, 0, 0)]
            if key < limit
        ]
        return max(rows, key=lambda item: item[0])[1] if rows else None

    def _default_source(self) -> tuple[str, str]:
        text = (
            f"torch on the default index: file list, METADATA and torch/version.py of the wheels, read {self._log.day}"
        )
        return f"default-{self._log.day}", text

    def _listed(self, data: dict[str, Any], seen: SeenBuild) -> str:
        if "index" in seen.sources:
            return source_of(
                data, f"index-{self._log.day}", f"wheels listed on {self._log.observed.upstream}, {self._log.day}"
            )
        return source_of(data, *self._default_source())
