#!/usr/bin/env python3
"""Maintainers: fetch what is newer upstream and write it into compat/, to be reviewed and committed.

    .venv/bin/python scripts/update_matrix.py --binaries
    git diff compat

The same fetching, merging and checking as `cudadoctor matrix update`, which every user has; here the result is TOML.
Files keep their heads, their order and their spelling, so that the diff shows what is new and nothing else. What
nobody can see upstream stays for a person: notes, the GPU lists of Windows builds (archs_guessed), announced builds.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Optional

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from cudadoctor.actions.fetch import FetchError, cache_folder  # noqa: E402
from cudadoctor.actions.observe_upstream import Request, fetch  # noqa: E402
from cudadoctor.actions.update_matrix import judge, over  # noqa: E402
from cudadoctor.matrix import load_matrix  # noqa: E402
from cudadoctor.matrix.compile import check  # noqa: E402
from cudadoctor.matrix.outcome import REFUSED, UP_TO_DATE, UPDATED, WOULD_UPDATE, Outcome  # noqa: E402
from cudadoctor.matrix.toml_writer import head_of, toml_text  # noqa: E402
from cudadoctor.matrix.versions import numbers  # noqa: E402
from cudadoctor.render.matrix_update import update_text  # noqa: E402

_META = re.compile(r'^(revision|checked) = "[^"]*"$', re.M)


def main(arguments: Optional[list[str]] = None) -> int:
    """Exit status as of `cudadoctor matrix update`: 0, 1 refused, 2 not to be fetched."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--compat", default=str(ROOT / "compat"), help="the folder of the data")
    parser.add_argument("--dry-run", action="store_true", help="show what would change")
    parser.add_argument("--index-url", help="the default index, instead of pip's own")
    parser.add_argument("--mirror", help="a mirror of PyTorch's index")
    parser.add_argument("--without", choices=["torch", "drivers"])
    parser.add_argument("--binaries", action="store_true", help="read the GPU lists of new Linux wheels out of them")
    parser.add_argument("--all-variants", action="store_true", help="also the pages of CUDA versions that ended")
    parser.add_argument("--timeout", type=float, default=600.0)
    chosen = parser.parse_args(arguments)
    day = f"{datetime.now(timezone.utc):%Y-%m-%d}"
    matrix = load_matrix(chosen.compat)
    request = Request(
        sys.executable,
        chosen.index_url,
        chosen.mirror,
        chosen.without,
        chosen.binaries,
        chosen.all_variants,
        chosen.timeout,
        cache_folder(),
    )
    try:
        merged, problems = judge(matrix.raw, fetch(request, matrix.raw, day))
    except FetchError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    verdict = REFUSED if problems else UPDATED if merged.changes else UP_TO_DATE
    if chosen.dry_run and verdict == UPDATED:
        verdict = WOULD_UPDATE
    revision = next_revision(matrix.revision, day) if verdict == UPDATED else matrix.revision
    outcome = Outcome(verdict, merged.changes, merged.notes, problems, revision, None, chosen.compat, chosen.dry_run)
    if verdict == UPDATED:
        write(Path(chosen.compat), merged.sections, revision, day)
        problems = tuple(check(chosen.compat))
    print(update_text(outcome, "", chosen.compat))
    if verdict == UPDATED:
        print(f"written to {chosen.compat}, data {revision}: review it with git diff")
    for problem in problems if verdict == UPDATED else ():
        print(f"not sound: {problem}")
    return 1 if problems else 0


def write(compat: Path, sections: Mapping[str, dict[str, Any]], revision: str, day: str) -> None:
    """Writes the files that changed, and the revision and day into meta.toml."""
    for name, data in sections.items():
        if name == "torch":
            for minor, rows in data.items():
                _write(compat / "torch" / f"{minor}.toml", rows, _torch_head(compat, minor))
        else:
            path = compat / f"{name}.toml"
            _write(path, data, head_of(path.read_text("utf-8")))
    meta = compat / "meta.toml"
    text = meta.read_text("utf-8")
    checked = max(day, str(over(load_matrix(str(compat)).raw, {}, day)("meta")["checked"]))
    fresh = {"revision": revision, "checked": checked}
    _replace(meta, _META.sub(lambda found: f'{found.group(1)} = "{fresh[found.group(1)]}"', text))


def next_revision(revision: str, day: str) -> str:
    """ "2026.11.0" -> "2026.11.1" in the same month, "2026.12.0" in the next."""
    month = f"{int(day[:4])}.{int(day[5:7])}"
    before, _, number = revision.rpartition(".")
    return f"{month}.{int(number) + 1}" if before == month else f"{month}.0"


def _torch_head(compat: Path, minor: str) -> str:
    """The head of a file of releases; a new one gets that of the newest before it."""
    path = compat / "torch" / f"{minor}.toml"
    if path.exists():
        return head_of(path.read_text("utf-8"))
    newest = max((compat / "torch").glob("*.toml"), key=lambda file: numbers(file.stem) or ())
    return head_of(newest.read_text("utf-8")).replace(f"torch {newest.stem}:", f"torch {minor}:", 1)


def _write(path: Path, data: Mapping[str, Any], head: str) -> None:
    text = toml_text(data, head)
    if not path.exists() or path.read_text("utf-8") != text:
        _replace(path, text)


def _replace(path: Path, text: str) -> None:
    new = path.with_name(path.name + ".new")
    new.write_bytes(text.encode("utf-8"))  # one kind of line ends, whatever the system
    os.replace(new, path)


if __name__ == "__main__":
    sys.exit(main())
