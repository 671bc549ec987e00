"""Writing the files of compat/ the way that people keep them."""

from __future__ import annotations

from pathlib import Path

import pytest

from cudadoctor.matrix.compile import load_toml
from cudadoctor.matrix.toml_writer import head_of, toml_text

COMPAT = Path(__file__).resolve().parents[2] / "compat"
# What the updater writes. The other files have a layout of their own that only people write.
WRITTEN = [*sorted((COMPAT / "torch").glob("*.toml")), COMPAT / "driver_branches.toml", COMPAT / "cuda_toolkits.toml"]


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: path.stem)
def test_a_file_that_is_read_and_written_again_is_the_same(path: Path) -> None:
    text = path.read_text("utf-8")
    assert toml_text(load_toml(str(path)), head_of(text)) == text


def test_every_shape_of_value(tmp_path: Path) -> None:
    data = {
        "checked": "2026-11-30",
        "row": [
            {"text": 'quotes " and \\ and\ttabs', "flag": True, "off": False, "whole": 7, "part": 0.5, "empty": {}},
            {"list": ["a", "b"], "table": {"linux-x86_64": "2.28", "dotted.key": "x", "12": "y"}, "none": []},
        ],
        "sources": {"rfc-2.15": "a dot in the key needs quotes", "plain": "does not"},
    }
    text = toml_text(data, "# A head.\n# Two lines.\n")
    assert text == (
        "# A head.\n# Two lines.\n\n"
        'checked = "2026-11-30"\n\n'
        "row = [\n"
        '  { text = "quotes \\" and \\\\ and\\ttabs", flag = true, off = false, whole = 7, part = 0.5, empty = {} },\n'
        '  { list = ["a", "b"], table = { linux-x86_64 = "2.28", "dotted.key" = "x", 12 = "y" }, none = [] },\n'
        "]\n\n"
        "[sources]\n"
        '"rfc-2.15" = "a dot in the key needs quotes"\n'
        'plain = "does not"\n'
    )
    path = tmp_path / "file.toml"
    path.write_text(text, "utf-8")
    assert load_toml(str(path)) == data


def test_what_does_not_stand_in_these_files_is_refused() -> None:
    with pytest.raises(TypeError, match="NoneType does not stand in these files"):
        toml_text({"row": [{"a": None}]})
