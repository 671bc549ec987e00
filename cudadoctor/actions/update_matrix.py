"""Bringing the user's own copy of the compatibility data up to date, when asked for.

What was fetched is laid over what is there, checked as a whole, and put into the user's data folder in one step: a new
folder with the sections, then the index that vouches for it. A reader sees the old data or the new, never a mixture,
and two updates at once leave one of the two.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any, Callable, Optional

from cudadoctor.matrix.load import (
    INDEX,
    UPDATE_FOLDER,
    UPDATE_FORMAT,
    UPDATED_SECTIONS,
    data_folder,
    load_matrix,
    load_shipped,
)
from cudadoctor.matrix.merge import Merged, lost_rows, merge
from cudadoctor.matrix.observed import Observed, vanished
from cudadoctor.matrix.outcome import NOTHING, REFUSED, REMOVED, UP_TO_DATE, UPDATED, WOULD_UPDATE, Outcome

Section = Callable[[str], dict[str, Any]]

# Another update may still be writing into a folder that no index names yet.
_LEFT_ALONE_SECONDS = 3600


class UpdateError(Exception):
    """The update cannot be written or taken away; the message is one sentence for the user."""


def folder() -> str:
    """Where the update lies or will lie. UpdateError where there is no such place."""
    found = data_folder()
    if found is None:
        if "CUDADOCTOR_DATA" in os.environ:
            raise UpdateError(
                "CUDADOCTOR_DATA says that only the shipped data counts: unset it, or name a folder in it"
            )
        raise UpdateError("there is no home to keep an update in: name a folder in CUDADOCTOR_DATA")
    return os.path.join(found, UPDATE_FOLDER)


def judge(present: Section, observed: Observed) -> tuple[Merged, tuple[str, ...]]:
    """The merged data, and every reason not to take it: broken pages, lost rows, rules of the data that it breaks."""
    from cudadoctor.matrix.invariants import violations

    nothing = Merged({}, (), ())
    torch = present("torch")
    problems = vanished(torch, observed)
    if problems:
        return nothing, tuple(problems)
    merged = merge(present, observed)
    after = over(present, merged.sections, observed.day)
    problems = lost_rows(present, after)
    broken = violations(after)
    if broken:
        # Only what the update itself breaks: a slip in the data that is there shall not keep everybody from updating.
        before = set(violations(over(present, {}, observed.day)))
        problems += [text for text in broken if text not in before]
    return merged, tuple(problems)


def over(present: Section, sections: Mapping[str, dict[str, Any]], day: str) -> Section:
    """The present data with these sections in its place, as checked on that day."""

    def section(name: str) -> dict[str, Any]:
        if name == "meta":
            meta = dict(present("meta"))
            meta["checked"] = max(meta["checked"], day)
            meta["revision"] = str(meta["revision"]).partition("+")[0]
            return meta
        return sections[name] if name in sections else present(name)

    return section


def update(observed: Observed, *, dry_run: bool, now: datetime) -> Outcome:
    """Takes what was observed into the user's data, or says why not. UpdateError where it cannot be written."""
    matrix = load_matrix()
    merged, problems = judge(matrix.raw, observed)
    base = load_shipped().revision
    when = now.astimezone(timezone.utc)
    revision, updated = f"{base}+{when:%Y%m%d}", f"{when:%Y-%m-%dT%H:%M:%SZ}"
    place = folder()
    if problems:
        return Outcome(REFUSED, (), merged.notes, problems, matrix.revision, matrix.origin.updated, place, dry_run)
    if dry_run:
        verdict = WOULD_UPDATE if merged.changes else UP_TO_DATE
        return Outcome(verdict, merged.changes, merged.notes, (), revision, updated, place, True)
    sections = {name: merged.sections.get(name, matrix.raw(name)) for name in UPDATED_SECTIONS}
    # Also where nothing is new: the data has been checked, and counts as that old from now on.
    write(place, sections, base, revision, updated, int(matrix.raw("meta")["schema"]))
    verdict = UPDATED if merged.changes else UP_TO_DATE
    return Outcome(verdict, merged.changes, merged.notes, (), revision, updated, place)


def write(
    place: str, sections: Mapping[str, dict[str, Any]], base: str, revision: str, updated: str, schema: int
) -> None:
    """Puts an update into its folder in one step. UpdateError where that fails; then the old one counts on."""
    import secrets
    import shutil
    import zlib

    name = secrets.token_hex(8)
    target = os.path.join(place, name)
    try:
        os.makedirs(target)
        files = {}
        for section, data in sections.items():
            text = json.dumps(data, separators=(",", ":")).encode("ascii") + b"\n"
            _write(os.path.join(target, section + ".json"), text)
            files[section] = {"size": len(text), "crc32": zlib.crc32(text)}
        index = {
            "format": UPDATE_FORMAT,
            "schema": schema,
            "based_on": base,
            "revision": revision,
            "updated": updated,
            "folder": name,
            "files": files,
        }
        new = os.path.join(place, f"{name}.new")
        _write(new, json.dumps(index, indent=1).encode("ascii") + b"\n")
        os.replace(new, os.path.join(place, INDEX))
    except OSError as error:
        shutil.rmtree(target, ignore_errors=True)
        raise UpdateError(f"cannot write {place!r}: {error.strerror or error}") from None
    _sweep(place, name)


def _write(path: str, data: bytes) -> None:
    with open(path, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())  # the index must not reach the disk before what it vouches for


def _sweep(place: str, current: str) -> None:
    """Takes away what earlier updates left. What is young may be another update's that is not done."""
    import shutil

    try:
        entries = [entry for entry in os.scandir(place) if entry.name not in (current, INDEX)]
    except OSError:
        return
    for entry in entries:
        try:
            if time.time() - entry.stat().st_mtime < _LEFT_ALONE_SECONDS:
                continue
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)
            else:
                os.unlink(entry.path)
        except OSError:
            continue


def remove(cache: Optional[str]) -> Outcome:
    """Takes the update away, and the cache of what was fetched for it. UpdateError where that fails."""
    import shutil

    place = folder()
    index = os.path.join(place, INDEX)
    there = os.path.lexists(place)
    try:
        for path in (index, place):  # the index first: from there on only the shipped data counts
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path)
            elif os.path.lexists(path):
                os.unlink(path)
    except OSError as error:
        raise UpdateError(f"cannot remove {place!r}: {error.strerror or error}; delete it by hand") from None
    if cache is not None:
        shutil.rmtree(cache, ignore_errors=True)
    return Outcome(REMOVED if there else NOTHING, revision=load_shipped().revision, path=place)
