"""Every format tells of the same verdict: its state, the exit status, and the root causes in their order.

Each reader below takes from a format what it tells, as whoever reads that format would; a verdict of which a format
has no room for a part is compared without it.
"""

from __future__ import annotations

import json
import re
from typing import Callable, NamedTuple, Optional
from xml.etree import ElementTree

import pytest
from prometheus_client.parser import text_string_to_metric_families
from shown_machines import everything

from cudadoctor.explain import concept_page
from cudadoctor.render import nagios
from cudadoctor.render.formats import FORMATS, exit_status, render
from cudadoctor.render.verdict import STATES, screen_of, verdict_of
from cudadoctor.render.view import View


class Told(NamedTuple):
    """What a format tells; None: it does not."""

    state: Optional[str] = None
    exit: Optional[int] = None
    first: Optional[str] = None  # the rule that the verdict states
    roots: Optional[list[str]] = None


def _state_of_line(line: str) -> str:
    word = line.partition(":")[0]
    return word if word in STATES else "failed"


def _first_rule(text: str) -> Optional[str]:
    match = re.match(r"(?:undecided: )?(CD\d{3}) ", text)
    return match[1] if match else None


def text(shown: View) -> Told:
    word = render("text", shown).split()[0]
    # A pasted text's first line is the likeliest thing that was found, be it a warning: the rest is asked for below.
    return Told({"FAIL": "failed", "BUG": "bug", "????": "undecided", "OK": "ok", "warn": None}[word])


def markdown(shown: View) -> Told:
    word = render("markdown", shown).split(":")[0].strip("*")
    return Told({"FAIL": "failed", "BUG": "bug", "OK": "ok", "warn": None}.get(word, word))


def report(name: str) -> Callable[[View], Told]:
    def read(shown: View) -> Told:
        document = json.loads(render(name, shown))
        return Told(exit=document["exit"], roots=document["root_causes"])

    return read


def junit(shown: View) -> Told:
    root = ElementTree.fromstring(render("junit", shown))
    told = {found.attrib["name"]: found.attrib["value"] for found in root.iter("property")}
    return Told(told["verdict"], int(told["exit"]), roots=told["root_causes"].split())


def github(shown: View) -> Told:
    lines = render("github", shown).splitlines()
    # Root causes are annotated before anything else of their kind; a warning is one where there is no error.
    titles = [match[1] for line in lines if (match := re.match(r"::(?:error|warning) title=(CD\d{3}) ", line))]
    roots = list(shown.report.root_causes)
    return Told(_state_of_line(lines[0]), first=_first_rule(lines[0]), roots=titles[: len(roots)])


def nagios_line(shown: View) -> Told:
    line = render("nagios", shown).splitlines()[0]
    state, _, said = line.removeprefix("CUDA ").partition(" - ")
    status = nagios.exit_status(shown)
    assert nagios.STATES[status] == state
    assert exit_status("nagios", shown) == status
    states = {"OK": "ok", "WARNING": "failed", "CRITICAL": "failed", "UNKNOWN": _state_of_line(said)}
    return Told("undecided" if said.startswith("undecided: ") else states[state], first=_first_rule(said))


def prometheus(shown: View) -> Told:
    samples = [s for f in text_string_to_metric_families(render("prometheus", shown)) for s in f.samples]
    (state,) = [s.labels["verdict"] for s in samples if s.name == "cudadoctor_verdict" and s.value == 1]
    (status,) = [int(s.value) for s in samples if s.name == "cudadoctor_exit_status"]
    places = {int(s.value): s.labels["rule"] for s in samples if s.name == "cudadoctor_root_cause"}
    return Told(state, status, roots=[places[place] for place in sorted(places)])


def termination_log(shown: View) -> Told:
    lines = render("termination-log", shown).splitlines()
    status = next(int(match[1]) for line in lines if (match := re.search(r"exit status (\d+)$", line)))
    return Told(_state_of_line(lines[0]), status, _first_rule(lines[0]))


READERS: dict[str, Callable[[View], Told]] = {
    "text": text,
    "json": report("json"),
    "json-line": report("json-line"),
    "markdown": markdown,
    "junit": junit,
    "github": github,
    "nagios": nagios_line,
    "prometheus": prometheus,
    "termination-log": termination_log,
}


def test_every_format_has_a_reader_here() -> None:
    assert set(READERS) == set(FORMATS)


def test_the_page_about_formats_names_them_all() -> None:
    page = concept_page("formats")
    assert [name for name in FORMATS if not re.search(rf"(?<![\w-]){name}(?![\w-])", page)] == []


@pytest.mark.parametrize("form", READERS)
@pytest.mark.parametrize("what", everything())
def test_the_verdict_is_the_same(what: str, form: str) -> None:
    shown = everything()[what]
    verdict = verdict_of(screen_of(shown))
    told = READERS[form](shown)
    assert told.state in (None, verdict.state)
    assert told.exit in (None, shown.exit)
    assert told.roots in (None, list(shown.report.root_causes))
    if told.first is not None:
        assert verdict.outcome is not None and told.first == verdict.outcome.rule
    if form != "nagios":
        assert exit_status(form, shown) == shown.exit


@pytest.mark.parametrize("what", everything())
def test_the_state_is_that_of_the_exit_status(what: str) -> None:
    shown = everything()[what]
    state = verdict_of(screen_of(shown)).state
    if "accepted" in what:
        assert (state, shown.exit) == ("undecided", 0), "accepted is not decided"
    elif "retries" in what:
        assert state == "failed", "a status of the user's own choice changes no verdict"
    else:
        assert state == {0: "ok", 1: "failed", 75: "failed", 2: "bug", 3: "undecided"}[shown.exit]
