"""Newer drivers, driver branches and CUDA toolkits, laid over the rows that are there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .merging import Change, Log, order, prune_sources, put_after, source_of, without_default_day
from .observed import SeenBranch

_KINDS = (("lts", "lts"), ("long term", "lts"), ("production", "production"), ("new feature", "new-feature"))


class DriverMerge:
    """Changes `data`, the section of driver branches, and `toolkits`, that of CUDA toolkits."""

    def __init__(self, data: dict[str, Any], toolkits: dict[str, Any], log: Log) -> None:
        self._data, self._toolkits, self._log = data, toolkits, log

    def drivers(self, branches: Sequence[SeenBranch]) -> None:
        data = self._data
        rows = {row["linux"]: row for row in data["branch"]}
        newest = max(rows)
        for seen in sorted(branches):
            versions = sorted({version for version, _ in seen.releases}, key=order)
            if not versions:
                continue
            if seen.number in rows:
                self._known_branch(data, rows[seen.number], seen, versions[-1])
            elif seen.number > newest:
                self._new_branch(data, rows[newest], seen, versions)
        prune_sources(data, "branch", ())

    def _known_branch(self, data: dict[str, Any], row: dict[str, Any], seen: SeenBranch, latest: str) -> None:
        if seen.cuda is not None and seen.cuda != row["cuda"]:
            said = f"{row['name']}: {latest} is said to serve CUDA {seen.cuda}"
            self._log.notes.append(f"{said}, the matrix has {row['cuda']}; left as it is")
        known = row.get("latest_linux") or row.get("first_linux")
        if known is not None and order(latest) <= order(known):
            return
        had = f" (was {known})" if known else ""
        put_after(
            row, "latest_linux", latest, ("first_date", "first_linux", "end_of_life_other", "end_of_life", "cuda")
        )
        self._log.cite(data, row, self._driver_source(data))
        self._log.changes.append(Change("driver", row["name"], f"newest Linux driver {latest}{had}"))

    def _new_branch(
        self, data: dict[str, Any], before: Mapping[str, Any], seen: SeenBranch, versions: Sequence[str]
    ) -> None:
        name = f"R{seen.number}"
        if seen.cuda is None:
            self._log.notes.append(f"{name}: left out, no source says which CUDA version it serves")
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
        row["checked"] = self._log.day
        data["branch"].insert(0, without_default_day(row, data))
        self._log.changes.append(Change("branch", name, f"new branch, serves CUDA {seen.cuda}, from {versions[0]}"))

    def _driver_source(self, data: dict[str, Any]) -> str:
        read = "NVIDIA redistributable indexes and docs.nvidia.com/datacenter/tesla/drivers/releases.json"
        return source_of(data, f"drivers-{self._log.day}", f"{read}, {self._log.day}")

    def toolkits(self) -> None:
        """New releases of cuda-toolkit on the default index. Each needs a driver branch that shows its CUDA version."""
        data = self._toolkits
        branches = {row["cuda"]: row["name"] for row in reversed(self._data["branch"])}
        known = {order(row["release"]) for row in data["toolkit"]}
        for release, day in sorted(self._log.observed.toolkits, key=lambda item: order(item[0])):
            key, cuda = order(release), ".".join(release.split(".")[:2])
            minor = [other for other in known if other[:2] == key[:2]]
            if key in known or key <= max(minor or known):
                continue
            older = any(row["cuda"] == cuda and row.get("linux") for row in data["toolkit"])
            if cuda not in branches and not older:
                self._log.notes.append(
                    f"CUDA toolkit {release}: left out, no driver branch is known to show CUDA {cuda}"
                )
                continue
            known.add(key)
            row = {"cuda": cuda, "release": release, "label": release}
            row.update({"date": day} if day else {})
            row.update({"branch": branches[cuda]} if cuda in branches else {})
            row["source"] = source_of(
                data, f"toolkit-{self._log.day}", f"cuda-toolkit on the default index, {self._log.day}"
            )
            row.update({"confidence": "derived", "note": "no driver of its own seen", "checked": self._log.day})
            data["toolkit"].insert(0, without_default_day(row, data))
            data["toolkit"].sort(key=lambda item: order(item["release"]), reverse=True)
            self._log.changes.append(Change("toolkit", f"CUDA {release}", "new toolkit"))
