"""`check --format github`, as a runner of GitHub Actions takes it: which lines are commands, and what they say."""

from __future__ import annotations

import re
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reports import outcome, replaced, view
from shown_machines import NASTY, RECORDED, everything, judged, lost_gpu, made, nasty, recorded

from cudadoctor.model import Evidence, FixStep
from cudadoctor.render.github import render
from cudadoctor.render.verdict import screen_of, verdict_of
from cudadoctor.render.view import View


class Command(NamedTuple):
    """A workflow command as a runner understands it."""

    name: str
    properties: dict[str, str]
    data: str


def runner(text: str) -> tuple[list[Command], list[str]]:
    """The commands that a runner carries out, and the other lines of the log.

    A line is a command if it begins with `::`, blanks or not, or if `##[` of the older syntax stands anywhere in it.
    """
    commands, log = [], []
    for line in re.split(r"\r\n|\r|\n", text):
        stripped = line.lstrip()
        assert "##[" not in line, "a command of the older syntax"
        match = re.fullmatch(r"::([a-z-]+)(?: ([^:]*))?::(.*)", stripped) if stripped.startswith("::") else None
        assert match or not stripped.startswith("::"), line
        if match is None:
            log.append(line)
            continue
        pairs = [pair.partition("=") for pair in (match[2] or "").split(",") if pair]
        properties = {key: decoded(value, {"%3A": ":", "%2C": ","}) for key, _, value in pairs}
        commands.append(Command(match[1], properties, decoded(match[3], {})))
    return commands, log


def decoded(text: str, more: dict[str, str]) -> str:
    for escape, letter in {"%0D": "\r", "%0A": "\n", **more, "%25": "%"}.items():
        text = text.replace(escape, letter)
    return text


def annotations(shown: View) -> dict[str, list[str]]:
    """Titles by kind."""
    commands, _ = runner(render(shown))
    found: dict[str, list[str]] = {"error": [], "warning": [], "notice": []}
    for command in commands:
        if command.name not in ("group", "endgroup"):
            found[command.name].append(command.properties["title"])
    return found


def test_a_lost_gpu() -> None:
    commands, log = runner(render(judged(lost_gpu())))
    assert log[0] == "CD113 gpu-lost: GPU 1 has fallen off the bus: the driver says that it is lost"
    assert commands[0] == Command(
        "error",
        {"title": "CD113 gpu-lost"},
        "GPU 1 has fallen off the bus: the driver says that it is lost\n"
        "gpu.1.lost: yes (made by hand)\n"
        "# Power the machine off and on again\n"
        "End what uses the GPUs, shut down, switch the power off and on. If it is lost again, check its\n"
        "power cables, its seat and its temperature; try another slot.\n"
        "cudadoctor explain CD113",
    )
    assert [command.name for command in commands[1:]] == ["notice", "notice", "group", "endgroup"]
    assert "FAIL  GPU 1 has fallen off the bus: the driver says that it is lost" in log


@pytest.mark.parametrize("name", RECORDED)
def test_only_root_causes_are_errors(name: str) -> None:
    shown = recorded(name)
    titles = [title.split()[0] for title in annotations(shown)["error"]]
    assert titles == (list(shown.report.root_causes) if shown.exit == 1 else [])


@pytest.mark.parametrize("what", everything())
def test_a_run_that_ends_badly_says_why(what: str) -> None:
    shown = everything()[what]
    found = annotations(shown)
    state = verdict_of(screen_of(shown)).state
    assert bool(found["error"]) == (state in ("failed", "bug"))
    if state == "undecided":
        assert found["warning" if shown.exit else "notice"][0].startswith("undecided: ")


@pytest.mark.parametrize(
    "what, kind, title",
    [
        ("a check crashed", "error", "bug in cudadoctor: CD303 torch-needs-newer-driver"),
        ("warned", "warning", "CD601 swap-too-small"),
        ("warned, and that counts", "error", "CD601 swap-too-small"),
        ("undecided", "warning", "undecided: CD106 driver-unreachable and 1 more"),
        ("undecided, and accepted", "notice", "undecided: CD106 driver-unreachable and 1 more"),
    ],
)
def test_kinds(what: str, kind: str, title: str) -> None:
    wanted: dict[str, list[str]] = {"error": [], "warning": [], "notice": [], kind: [title]}
    assert annotations(made()[what]) == wanted


def test_a_healthy_run_has_no_annotation() -> None:
    assert annotations(made()["healthy"]) == {"error": [], "warning": [], "notice": []}


def test_what_follows_from_a_root_cause_is_only_in_the_report() -> None:
    failed = (outcome("CD106", "fail", "no answer"), outcome("CD303", "fail", "follows", because_of="CD106"))
    shown = view(*replaced(*failed), roots=("CD106",))
    assert annotations(shown)["error"] == ["CD106 driver-unreachable"]
    assert "from CD106" in render(shown)


def test_github_shows_ten_of_a_kind_and_so_do_we() -> None:
    hints = [outcome("CD201", "fail", f"hint {number}", severity="info") for number in range(14)]
    shown = view(*hints)
    assert len(annotations(shown)["notice"]) == 10
    assert "and 4 more of kind notice, in the report below" in render(shown)


def test_an_annotation_says_what_mends_its_cause_and_not_another() -> None:
    steps = (
        FixStep("one", "Mend one", "install", ("pip", "install", "one"), mends=("CD302",)),
        FixStep("two", "Mend two", "reboot", ("reboot",), mends=("CD106",)),
    )
    failed = (outcome("CD302", "fail", "one"), outcome("CD106", "fail", "two"))
    commands, _ = runner(render(view(*replaced(*failed), roots=("CD302", "CD106"), steps=steps)))
    assert "pip install one" in commands[0].data and "reboot" not in commands[0].data
    assert "reboot" in commands[1].data and "pip" not in commands[1].data


@pytest.mark.parametrize("what", NASTY)
def test_no_text_becomes_a_command(what: str) -> None:
    commands, _ = runner(render(nasty(NASTY[what])))
    assert {command.name for command in commands} == {"error", "warning", "notice", "group", "endgroup"}
    assert [command.name for command in commands][-2:] == ["group", "endgroup"]
    assert all(set(command.properties) <= {"title"} for command in commands)


@settings(max_examples=60, deadline=None)
@given(st.text() | st.text(alphabet=":#[] \n\r%adegr-"))
def test_no_text_at_all_becomes_a_command(text: str) -> None:
    commands, _ = runner(render(nasty(text)))
    assert [command.name for command in commands] == ["error", "warning", "notice", "group", "endgroup"]


def test_a_percent_sign_and_a_comma_come_back_as_they_were() -> None:
    said = Evidence("torch.version", "100%, 50%0A", "a:b,c")
    commands, _ = runner(render(view(outcome("CD302", "fail", "at 100%: %0A", evidence=(said,)), roots=("CD302",))))
    assert commands[0].data.startswith("at 100%: %0A\ntorch.version: 100%, 50%0A (a:b,c)\n")
