"""`check --format junit`: read back by a real parser, held against a schema, and shown as a CI's viewer would."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from junit_schema import mistakes
from junitparser import JUnitXml
from reports import healthy, outcome, replaced, view
from shown_machines import NASTY, RECORDED, everything, judged, lost_gpu, made, nasty, recorded
from shown_machines import undecided as undecided_view

from cudadoctor.render.junit import render
from cudadoctor.render.view import View
from cudadoctor.testing import linux

Element = ElementTree.Element


def read(shown: View) -> Element:
    text = render(shown)
    assert text.isascii() and text.endswith("\n")
    root = ElementTree.fromstring(text)
    assert mistakes(root) == []
    return root


def case(root: Element, rule: str) -> Element:
    (found,) = [case for case in root.iter("testcase") if case.get("name", "").startswith(rule + " ")]
    return found


def result(root: Element, rule: str) -> Element:
    (found,) = case(root, rule)
    return found


def properties(root: Element) -> dict[str, str]:
    return {found.attrib["name"]: found.attrib["value"] for found in root.iter("property")}


def test_a_lost_gpu() -> None:
    root = read(judged(lost_gpu()))
    failed = result(root, "CD113")
    assert case(root, "CD113").attrib == {"classname": "cudadoctor.driver", "name": "CD113 gpu-lost"}
    assert failed.tag == "failure" and failed.get("type") == "error"
    assert failed.get("message") == "GPU 1 has fallen off the bus: the driver says that it is lost"
    assert failed.text == (
        "GPU 1 has fallen off the bus: the driver says that it is lost\n"
        "It rests on:\n"
        "  gpu.1.lost: yes (made by hand)\n"
        "What mends it:\n"
        "  # Power the machine off and on again\n"
        "  End what uses the GPUs, shut down, switch the power off and on. If it is lost again, check its\n"
        "  power cables, its seat and its temperature; try another slot.\n"
        "What does not: installing the driver or torch again: the card itself does not answer\n"
        "cudadoctor explain CD113"
    )


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_machines(name: str) -> None:
    shown = recorded(name)
    root = read(shown)
    assert len(root.findall("testsuite")) == 1
    assert len(list(root.iter("testcase"))) == len(shown.report.outcomes)
    assert properties(root)["root_causes"].split() == list(shown.report.root_causes)


@pytest.mark.parametrize("what", everything())
def test_a_viewer_is_red_exactly_where_the_exit_status_is_not_0(what: str) -> None:
    shown = everything()[what]
    root = read(shown)
    is_red = any(found.tag in ("failure", "error") for found in root.iter())
    assert is_red == (shown.exit != 0)


def test_what_a_case_is() -> None:
    root = read(
        view(
            *replaced(
                outcome("CD106", "unknown", "cannot tell"),
                outcome("CD302", "fail", "no CUDA"),
                outcome("CD303", "skip", "cannot be judged while CD302 stands", because_of="CD302"),
                outcome("CD304", "fail", "no code", because_of="CD302"),
                outcome("CD201", "unknown", "cannot tell about nvcc"),
                outcome("CD306", "crash", "boom", blame="tool"),
                outcome("CD401", "fail", "soon", severity="warning"),
            ),
            ignored={"CD601": "none by design"},
            roots=("CD302",),
        )
    )
    told = {
        rule: (found.tag, found.get("type"), found.get("message"))
        for rule in ("CD106", "CD201", "CD302", "CD303", "CD304", "CD306", "CD401", "CD601")
        for found in [result(root, rule)]
    }
    assert told == {
        "CD106": ("error", "undecided", "cannot tell"),
        "CD201": ("skipped", None, "undecided: cannot tell about nvcc"),
        "CD302": ("failure", "error", "no CUDA"),
        "CD303": ("skipped", None, "cannot be judged while CD302 stands"),
        "CD304": ("failure", "error", "no code (from CD302)"),
        "CD306": ("error", "bug", "boom"),
        "CD401": ("skipped", None, "warning: soon"),
        "CD601": ("skipped", None, "ignored: none by design"),
    }
    assert list(case(root, "CD501")) == [], "what passes has nothing to say"


def test_warnings_are_failures_where_they_count() -> None:
    assert result(read(made()["warned"]), "CD601").tag == "skipped"
    counted = result(read(made()["warned, and that counts"]), "CD601")
    assert counted.tag == "failure" and counted.get("type") == "warning"


def test_unknown_is_never_green() -> None:
    assert result(read(undecided_view()), "CD106").tag == "error"
    accepted = result(read(undecided_view(unknown_ok=True)), "CD106")
    assert accepted.tag == "skipped"
    assert accepted.get("message", "").endswith("NVML timed out (accepted: --unknown-ok)")


def test_a_node_has_a_name_only_where_somebody_named_it() -> None:
    (nameless,) = read(view(*healthy())).findall("testsuite")
    assert nameless.get("name") == "cudadoctor" and nameless.get("hostname") is None
    (named,) = read(view(*healthy(), machine=linux().set({"scheduler.node": "node017"}))).findall("testsuite")
    assert named.get("name") == named.get("hostname") == "node017"


@pytest.mark.parametrize("what", NASTY)
def test_nothing_breaks_the_document(what: str) -> None:
    failed = result(read(nasty(NASTY[what])), "CD302")
    assert (failed.text or "").startswith("torch says:")
    assert len(failed.get("message", "")) <= 500


def test_signs_of_xml_are_shown_as_they_are() -> None:
    text = NASTY["cdata"]
    assert result(read(nasty(text)), "CD302").get("message") == f"torch says: {text}"


@settings(max_examples=60, deadline=None)
@given(st.text())
def test_no_text_breaks_the_document(text: str) -> None:
    read(nasty(text))


@pytest.mark.parametrize("what", ["a GPU of eight is lost", "undecided", "warned", "healthy"])
def test_a_library_for_junit_reads_the_same(what: str) -> None:
    shown = made()[what]
    root = read(shown)
    document = JUnitXml.fromstring(render(shown))
    assert document.tests == len(shown.report.outcomes)
    assert (document.failures, document.errors) == (int(root.get("failures", "")), int(root.get("errors", "")))
    cases = [case for suite in document for case in suite]
    results = {case.name: [type(found).__name__.lower() for found in case.result] for case in cases}
    assert results == {case.get("name"): [found.tag for found in case] for case in root.iter("testcase")}
