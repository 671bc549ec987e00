"""Documentation pages on the screen, and that every check and concept has one that reads well in 80 columns."""

from __future__ import annotations

import json

import pytest

from cudadoctor.explain import concept_names, concept_page
from cudadoctor.model import Rule
from cudadoctor.render.pages import page_json, page_of, page_text, rules_json, rules_text
from cudadoctor.render.style import Style
from cudadoctor.rules import rule_files, rule_module, rule_of

PAGE = """The wheel has dropped this GPU.

Some words before the first heading.

What it checks
    Whether the list of architectures holds code
    that runs on every GPU. A \x1b[31mtrap.

    - One thing, which is long enough to be wrapped when the width is as narrow as this
      and goes on here.
    - Another.

How to fix
    Take another index:

        pip install torch --index-url https://download.pytorch.org/whl/cu126

References
    https://docs.nvidia.com/cuda/a-rather-long-address-that-must-stay-in-one-piece.html
"""

SCREEN = """\
CD305 gpu-dropped (error)
The wheel has dropped this GPU

Some words before the first heading.

What it checks
  Whether the list of architectures holds
  code that runs on every GPU. A
  \\x1b[31mtrap.

  - One thing, which is long enough to be
    wrapped when the width is as narrow as
    this and goes on here.
  - Another.

How to fix
  Take another index:

      pip install torch --index-url https://download.pytorch.org/whl/cu126

References
  https://docs.nvidia.com/cuda/a-rather-long-address-that-must-stay-in-one-piece.html
"""

RULE = Rule("CD305", "gpu-dropped", "The wheel has dropped this GPU", "error", "environment")


def test_a_page_is_laid_out_for_the_width_at_hand() -> None:
    assert page_text(page_of(PAGE, RULE), Style(width=42)) == SCREEN


def test_a_page_as_json() -> None:
    page = json.loads(page_json(page_of(PAGE, RULE)))
    assert page["rule"] == "CD305" and page["severity"] == "error"
    assert [section["heading"] for section in page["sections"]] == ["", "What it checks", "How to fix", "References"]
    assert page["sections"][2]["text"].endswith(
        "    pip install torch --index-url https://download.pytorch.org/whl/cu126"
    )


def pages() -> dict[str, str]:
    found = {rule: page_text(page_of(rule_module(rule).__doc__ or "", rule_of(rule)), Style()) for rule in rule_files()}
    found.update({name: page_text(page_of(concept_page(name)), Style()) for name in concept_names()})
    return found


@pytest.mark.parametrize("name", [*rule_files(), *concept_names()])
def test_every_page_reads_in_80_columns(name: str) -> None:
    text = pages()[name]
    assert text.isascii()
    too_wide = [line for line in text.splitlines() if len(line) > 80 and "://" not in line]
    assert not too_wide
    assert len(text.splitlines()) > 8


def test_the_concepts_that_the_screen_speaks_of_exist() -> None:
    names = set(concept_names())
    assert {"driver-and-cuda", "minor-version-compatibility", "nvcc-missing", "wheels-and-indexes"} <= names


def test_the_list_of_rules() -> None:
    long = Rule(
        "CD999", "a-long-name", "A title so long that it has no room beside the name of its rule at all", "info", "tool"
    )
    assert rules_text([RULE, long], Style()) == (
        "CD305  error    gpu-dropped  The wheel has dropped this GPU\n"
        "CD999  info     a-long-name\n"
        "                A title so long that it has no room beside the name of its rule\n"
        "                at all\n"
    )
    assert json.loads(rules_json([RULE]))[0]["name"] == "gpu-dropped"
