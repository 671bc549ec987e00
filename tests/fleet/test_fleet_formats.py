"""What a fleet's report looks like. The texts in `shown/` are read like code; they are written anew by

CUDADOCTOR_WRITE_EXPECTED=1 python -m pytest tests/fleet/test_fleet_formats.py
"""

from __future__ import annotations

import json
import os
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from fleet_nodes import a100, facts_line, fleet_of, node, outcome, report_line
from render.junit_schema import mistakes as mistakes_of_junit
from render.schema_validator import mistakes

from cudadoctor.fleet.model import FleetReport
from cudadoctor.render.fleet_view import FORMATS, FleetView, render
from cudadoctor.render.schema import schema_of
from cudadoctor.render.style import Style

SHOWN = Path(__file__).parent / "shown"
WRITE = os.environ.get("CUDADOCTOR_WRITE_EXPECTED") == "1"

LOST = outcome(message="GPU 3 has fallen off the bus (Xid 79)")
OPEN = outcome("CD501", "no-nvidia-gpu", "unknown", chain=True, message="nobody could look for a GPU")


def rack() -> FleetReport:
    """Sixty nodes with a bit of everything."""
    lines = [facts_line(node(f"node{number:03d}", 2)) for number in range(1, 41) if number not in (7, 12, 17, 33)]
    lines += [facts_line(a100(f"node{number:03d}").driver("580.65.06", "13.0")) for number in range(41, 61)]
    lines += [
        facts_line(node("node007", 2).driver("580.65.06", "13.0").set({"gpu.0.throttle_reasons": ["hw_slowdown"]})),
        report_line("node012", OPEN),
        report_line("node017", LOST),
        report_line("node033", LOST),
        report_line("node033", LOST),
        facts_line(node("spare1", 1)),
        "FAIL  no driver\n",
    ]
    return fleet_of(lines, [f"node{number:03d}" for number in range(1, 63)])


HOSTILE = '<script>alert("1")</script>&\x1b[31m|`*_@x\u202e\x00'


def hostile() -> FleetReport:
    bad = outcome("CD113", HOSTILE, message=HOSTILE)
    return fleet_of(
        [
            report_line(HOSTILE, bad),
            report_line("n1", system__kernel_release="6.8"),
            report_line("n2", system__kernel_release="6.8"),
            report_line("n3", system__kernel_release=HOSTILE),
            "]]>" + HOSTILE + "\n",
        ],
        ["n1", "n2", "n3"],
    )


FLEETS = {
    "rack": rack,
    "fine": lambda: fleet_of([facts_line(node(f"n{number}")) for number in range(1, 5)]),
    "one": lambda: fleet_of([report_line("n1", LOST)]),
    "nobody": lambda: fleet_of([], ["n1", "n2"]),
    "hostile": hostile,
}


def shown(name: str, form: str, **style: Any) -> str:
    return render(FleetView(FLEETS[name](), form, Style(**style), "1.2.3"))


@pytest.mark.once
@pytest.mark.parametrize("form, ending", [("text", "txt"), ("markdown", "md")])
def test_the_report_as_people_see_it(form: str, ending: str) -> None:
    file = SHOWN / f"rack.{ending}"
    # Which data judged the nodes is the matrix's own matter.
    text = re.sub(r"data 20[0-9.]+", "data DATE", shown("rack", form))
    if WRITE:
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, "utf-8")
    assert text == file.read_text("utf-8")


@pytest.mark.parametrize("name", FLEETS)
@pytest.mark.parametrize("form", FORMATS)
def test_every_format_shows_every_fleet(form: str, name: str) -> None:
    text = shown(name, form)
    assert text.endswith("\n")
    assert "\x1b" not in text and "\u202e" not in text and "\x00" not in text


@pytest.mark.parametrize("name", FLEETS)
def test_the_text_keeps_to_eighty_columns(name: str) -> None:
    assert max(map(len, shown(name, "text").splitlines())) <= 80


@pytest.mark.parametrize("name", FLEETS)
def test_the_first_word_is_the_verdict_in_every_format_that_has_one(name: str) -> None:
    report = FLEETS[name]()
    assert shown(name, "text").startswith(report.word)
    assert json.loads(shown(name, "json"))["exit"] == report.exit
    word = "undecided" if report.word == "????" else report.word
    assert shown(name, "markdown").startswith(f"**{word}:**")
    assert f"<b>{word}</b>" in shown(name, "html")


@pytest.mark.parametrize("name", FLEETS)
def test_the_json_is_as_its_schema_says(name: str) -> None:
    schema = schema_of("cudadoctor.fleet/1")
    assert mistakes(schema, json.loads(shown(name, "json")), schema) == []


def test_the_json_tells_everything() -> None:
    document = json.loads(shown("rack", "json"))
    assert document["bad_list"] == "node[017,033,061-062]"
    assert document["missing"] == ["node061", "node062"]
    assert document["unexpected"] == ["spare1"]
    assert document["repeated"] == [{"node": "node033", "counts": "nodes.ndjson:61", "others": ["nodes.ndjson:60"]}]
    assert [(entry["line"], entry["reason"][:7]) for entry in document["unreadable"]] == [(63, "no JSON")]
    (driver,) = [entry for entry in document["differences"] if entry["what"] == "driver"]
    assert driver["others"] == [{"value": "580.65.06", "nodes": ["node007"]}]
    assert driver["norm"]["value"] == "580.95.05" and len(driver["norm"]["nodes"]) == 37
    assert document["disagreement"]["rule"] == "CD707"
    assert {entry["name"]: entry["state"] for entry in document["nodes"]}["node012"] == "undecided"


@pytest.mark.parametrize("name", FLEETS)
def test_junit_is_what_viewers_read_and_counts_what_it_holds(name: str) -> None:
    text = shown(name, "junit")
    assert text.isascii()
    assert mistakes_of_junit(ElementTree.fromstring(text)) == []


def test_junit_has_a_test_a_node() -> None:
    suite = ElementTree.fromstring(shown("rack", "junit"))[0]
    found = {case.attrib["name"]: [element.tag for element in case] for case in suite.findall("testcase")}
    assert found["node001"] == []
    assert found["node017"] == ["failure"] and found["node061"] == ["failure"]
    assert found["node012"] == ["error"]
    assert found["nodes-alike"] == ["skipped"]


def test_lists_for_schedulers_are_one_line_of_names() -> None:
    assert shown("rack", "bad-nodes") == "node[017,033,061-062]\n"
    assert shown("fine", "bad-nodes") == "\n"
    assert shown("fine", "good-nodes") == "n[1-4]\n"
    assert shown("hostile", "bad-nodes") == "\n"


class Page(HTMLParser):
    """The elements of a page, with what they name and the text between them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.text = ""
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {key: value or "" for key, value in attrs}))
        if tag not in ("meta", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("name", FLEETS)
def test_the_page_is_whole_and_needs_nothing_else(name: str) -> None:
    text = shown(name, "html")
    page = Page(text)
    assert page.open == []
    assert "://" not in text and "@import" not in text and "url(" not in text
    assert not [tag for tag, _ in page.tags if tag in ("link", "img", "iframe", "object", "embed")]
    assert [tag for tag, _ in page.tags].count("script") == 1
    assert not [named for _, named in page.tags if "src" in named or any(key.startswith("on") for key in named)]
    links = [named["href"] for tag, named in page.tags if tag == "a"]
    assert {link[1:] for link in links} <= {named["id"] for _, named in page.tags if "id" in named}


def test_the_map_has_a_cell_a_node_that_is_told_by_more_than_its_colour() -> None:
    page = Page(shown("rack", "html"))
    cells = [named for _, named in page.tags if "c " in named.get("class", "") and "title" in named]
    assert len(cells) == 63
    states = {named["title"].partition(":")[0]: named["class"].split()[1] for named in cells}
    assert states["node017"] == "fail" and states["node061"] == "gone" and states["node012"] == "open"
    assert states["node007"] == "odd" and states["node001"] == "fine"
    for sign in ("×017", "–061", "?012", "!007"):
        assert sign in page.text


def test_five_thousand_nodes_are_a_page_of_a_size_to_be_sent() -> None:
    report = fleet_of([report_line(f"n{n:04d}", *([LOST] if n % 100 == 0 else [])) for n in range(5000)])
    text = render(FleetView(report, "html", Style(), "1.2.3"))
    assert len(Page(text).tags) < 12_000
    assert len(text) < 1_000_000


def test_a_hostile_name_is_nothing_but_text() -> None:
    page = Page(shown("hostile", "html"))
    assert "alert" in page.text
    assert "<script>alert" not in shown("hostile", "html")
    assert "<script>" not in shown("hostile", "markdown")
    assert "`" not in shown("hostile", "markdown").replace("\\`", "")
