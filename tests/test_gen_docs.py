"""scripts/gen_docs.py: the pages for reading outside of a terminal come from what `explain` shows."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import cudadoctor
from cudadoctor.explain import concept_names
from cudadoctor.rules import rule_files

ROOT = Path(cudadoctor.__file__).parent.parent


def gen_docs(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "gen_docs.py"), str(folder)],
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs") / "pages"
    result = gen_docs(folder)
    assert result.returncode == 0, result.stderr
    return folder


def test_every_check_and_every_concept_has_a_page(pages: Path) -> None:
    assert {path.stem for path in (pages / "checks").iterdir()} == set(rule_files())
    assert {path.stem for path in (pages / "concepts").iterdir()} == set(concept_names())


def test_every_link_leads_somewhere(pages: Path) -> None:
    links = [
        (path, target)
        for path in pages.rglob("*.md")
        for target in re.findall(r"\]\(([^)]+)\)", path.read_text(encoding="utf-8"))
    ]
    assert links
    assert [f"{path.name}: {target}" for path, target in links if not (path.parent / target).is_file()] == []


def test_a_page_says_what_explain_says(pages: Path) -> None:
    page = (pages / "checks" / "CD303.md").read_text(encoding="utf-8")
    assert "# CD303 torch-needs-newer-driver\n" in page
    for heading in ("What it checks", "Why it matters", "How to fix", "References"):
        assert f"\n## {heading}\n" in page


def test_commands_are_code_and_prose_is_not(pages: Path) -> None:
    for path in pages.rglob("*.md"):
        text = path.read_text(encoding="utf-8")
        assert text.count("```") % 2 == 0, path.name
        prose = re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)
        assert not re.search(r"(?<!\\)\*(?!\*)\w", prose.replace("**", "")), path.name


def test_pages_of_what_is_gone_go(pages: Path) -> None:
    old = pages / "checks" / "CD000.md"
    old.write_bytes((pages / "index.md").read_bytes())
    assert gen_docs(pages).returncode == 0
    assert not old.exists()


def test_a_folder_with_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("mine\n", encoding="utf-8")
    result = gen_docs(tmp_path)
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1 and "notes.md" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["notes.md"]
