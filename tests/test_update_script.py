"""scripts/update_matrix.py: the same update, written into compat/ as people keep it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench import upstream as bench
from bench.parts import clean_environ
from bench.upstream import Fault, Upstream, published

from cudadoctor.matrix.compile import check, load_toml
from cudadoctor.matrix.toml_writer import head_of, toml_text

# A maintainer's script: it runs where that person works.
pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parents[1]
NEWEST = ("2.14", "2.15")


class Desk:
    """A maintainer's copy of compat/, without the two newest minors."""

    def __init__(self, folder: Path, upstream: Upstream) -> None:
        self.upstream = upstream
        self.compat = folder / "compat"
        shutil.copytree(ROOT / "compat", self.compat, ignore=shutil.ignore_patterns(".compiled"))
        for minor in NEWEST:
            (self.compat / "torch" / f"{minor}.toml").unlink()
        self._environment = clean_environ(
            upstream.as_internet(), XDG_CACHE_HOME=str(folder / "cache"), PIP_CONFIG_FILE=os.devnull
        )

    def update(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, str(ROOT / "scripts" / "update_matrix.py"), "--compat", str(self.compat), *arguments],
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
        )

    def files(self) -> dict[str, bytes]:
        return {str(path.relative_to(self.compat)): path.read_bytes() for path in self.compat.rglob("*.toml")}


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    folder = tmp_path / "upstream"
    folder.mkdir()
    upstream = Upstream(folder, published(ROOT / "compat", without=NEWEST))
    yield Desk(tmp_path, upstream)
    upstream.close()


def test_new_releases_become_files_in_the_present_style(desk: Desk) -> None:
    before = desk.files()
    done = desk.update()
    assert (done.returncode, done.stderr) == (0, "")
    assert "written to " in done.stdout and "review it with git diff" in done.stdout
    after = desk.files()
    for minor in NEWEST:
        text = after[f"torch/{minor}.toml"].decode()
        assert text.startswith(f"# torch {minor}: every release, newest first, and every build of it.\n#\n")
        data = load_toml(str(desk.compat / "torch" / f"{minor}.toml"))
        assert [row["version"] for row in data["release"]] == [
            row["version"] for row in load_toml(str(ROOT / "compat" / "torch" / f"{minor}.toml"))["release"]
        ]
        assert toml_text(data, head_of(text)) == text
    assert check(str(desk.compat)) == []
    old, new = (load_toml_of(files, "meta.toml", desk) for files in (before, after))
    assert new["revision"] != old["revision"] and new["checked"] >= old["checked"]
    # What is not about torch is as it was, to the byte.
    kept = {name for name in before if not name.startswith("torch/") and name != "meta.toml"}
    assert {name: after[name] for name in kept} == {name: before[name] for name in kept}
    again = desk.update()
    assert (again.returncode, again.stdout.splitlines()[0]) == (0, "up to date: nothing newer was found")
    assert desk.files() == after


def load_toml_of(files: dict[str, bytes], name: str, desk: Desk) -> dict[str, str]:
    path = desk.compat.parent / "one.toml"
    path.write_bytes(files[name])
    return load_toml(str(path))


def test_a_dry_run_a_refusal_and_a_failure_write_nothing(desk: Desk) -> None:
    before = desk.files()
    dry = desk.update("--dry-run")
    assert dry.returncode == 0 and "nothing was written (--dry-run)" in dry.stdout
    page = desk.upstream.pages.pages["cu126"]
    half, rest = page[: len(page) // 2], page[len(page) // 2 :]
    page[:] = half
    refused = desk.update()
    assert refused.returncode == 1 and refused.stdout.startswith("refused: the page of cu126 has ")
    page[:] = [*half, *rest]
    desk.upstream.faults["/whl/"] = Fault(bench.SIGN_IN)
    failed = desk.update()
    assert failed.returncode == 2 and len(failed.stderr.splitlines()) == 1
    assert failed.stderr.startswith("error: https://download.pytorch.org/whl/: ")
    assert desk.files() == before


@pytest.mark.parametrize(
    ("revision", "day", "expected"),
    [
        ("2026.11.0", "2026-11-30", "2026.11.1"),
        ("2026.11.9", "2026-11-30", "2026.11.10"),
        ("2026.11.3", "2026-12-01", "2026.12.0"),
        ("2026.12.3", "2027-01-01", "2027.1.0"),
    ],
)
def test_the_revision_goes_up(revision: str, day: str, expected: str) -> None:
    code = "import sys, update_matrix; print(update_matrix.next_revision(*sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", code, revision, day],
        cwd=ROOT / "scripts",
        env=clean_environ(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.strip() == expected
