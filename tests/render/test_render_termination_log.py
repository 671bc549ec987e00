"""`check --format termination-log`: a short plain text whose first line is fit to be the reason of a drained node."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reports import outcome, replaced, view
from shown_machines import NASTY, RECORDED, judged, lost_gpu, made, nasty, recorded

from cudadoctor.render.termination_log import MOST_BYTES, MOST_LINES, REASON_LENGTH, render
from cudadoctor.render.view import View

# What neither a shell in double quotes nor scontrol nor a table of sinfo takes for more than a letter.
REASON = re.compile(r"[A-Za-z0-9 .,:()/+\-_=@~\[\]%?]+")


def checked(shown: View) -> list[str]:
    """The lines of the text, which keeps to its bounds."""
    text = render(shown)
    assert text.endswith("\n")
    assert len(text.encode()) <= MOST_BYTES <= 4096
    lines = text.split("\n")[:-1]
    assert len(lines) <= MOST_LINES
    assert REASON.fullmatch(lines[0]), lines[0]
    assert len(lines[0]) <= REASON_LENGTH and lines[0] == " ".join(lines[0].split())
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\ud800-\udfff]", text)
    return lines


def test_a_lost_gpu() -> None:
    assert render(judged(lost_gpu())) == (
        "CD113 gpu-lost: GPU 1 has fallen off the bus: the driver says that it is lost\n"
        "to mend by: machine; exit status 1\n"
        "what mends it:\n"
        "  # Power the machine off and on again\n"
        "  End what uses the GPUs, shut down, switch the power off and on. If it is lost again, check its\n"
        "  power cables, its seat and its temperature; try another slot.\n"
        "what does not: installing the driver or torch again: the card itself does not answer\n"
        "what CD113 rests on:\n"
        "  gpu.1.lost: yes (made by hand)\n"
        "hint CD507 ram-smaller-than-vram: 64 GiB of memory beside a GPU of 80 GiB: large models may not load\n"
        "hint CD506 power-supply-advice: a GPU is lost: among the causes are supply and cables\n"
        "more: cudadoctor explain CD113\n"
    )


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_machines(name: str) -> None:
    shown = recorded(name)
    first = checked(shown)[0]
    if shown.exit == 1:
        root = shown.report.outcome(shown.report.root_causes[0])
        assert root is not None and first.startswith(f"{root.rule} {root.name}: ")
    else:
        assert first.startswith({0: "ok: ", 3: "undecided: "}[shown.exit])


@pytest.mark.parametrize(
    "what, first",
    [
        ("a check crashed", "bug: cudadoctors own rule CD303 failed: ValueError: no such version"),
        ("warned", "ok: torch 2.14.1+cu130 runs on NVIDIA GeForce RTX 4090, driver 580.95.05 (1 warning)"),
        ("warned, and that counts", "CD601 swap-too-small: no swap: a loader that outgrows RAM gets killed"),
        (
            "undecided",
            "undecided: CD106 driver-unreachable: cannot tell whether the driver answers: NVML timed out (and 1 more)",
        ),
        ("healthy", "ok: torch 2.14.1+cu130 runs on NVIDIA GeForce RTX 4090, driver 580.95.05"),
        ("nasty: quotes", "CD302 cpu-only-torch: torch says: its quoted cmd HOME /n /"),
        ("nasty: perfdata", "CD302 cpu-only-torch: torch says: a / b=1,2,3"),
        ("nasty: emoji and accents", "CD302 cpu-only-torch: torch says: cafe ?? ? /u202egnp.exe"),
    ],
)
def test_first_lines(what: str, first: str) -> None:
    assert checked(made()[what])[0] == first


def test_a_comparison_keeps_its_sense_where_its_sign_is_unfit() -> None:
    failed = outcome("CD303", "fail", "needs a driver >=580 & <600, has 535")
    assert checked(view(*replaced(failed), roots=("CD303",)))[0] == (
        "CD303 torch-needs-newer-driver: needs a driver at least 580 and below 600, has 535"
    )


def test_a_long_sentence_is_cut_in_the_reason_and_whole_below_it() -> None:
    sentence = "the driver does not answer, and this goes on " + "and on " * 20 + "to here"
    shown = view(*replaced(outcome("CD106", "fail", sentence), outcome("CD302", "fail", "x")), roots=("CD106", "CD302"))
    first, second, *_ = checked(shown)
    assert first.startswith("CD106 driver-unreachable: the driver does not answer")
    assert first.endswith("... (and 1 more)"), "that there are other causes is not cut off"
    assert second == sentence


def test_what_does_not_fit_is_left_out_by_whole_lines_with_a_note() -> None:
    warnings = [outcome("CD601", "fail", f"sentence {'of some length ' * 12}", severity="warning")] * 30
    shown = view(outcome("CD106", "fail", "no answer"), *warnings, roots=("CD106",))
    lines = checked(shown)
    assert lines[-1] == "(more: cudadoctor check)"
    assert all(line.endswith("of some length") for line in lines[2:-1])
    assert len(lines) > 8


@pytest.mark.parametrize("what", NASTY)
def test_nothing_breaks_the_text(what: str) -> None:
    assert checked(nasty(NASTY[what]))[0].startswith("CD302 cpu-only-torch: torch says:")


@settings(max_examples=60, deadline=None)
@given(st.text())
def test_no_text_breaks_the_reason(text: str) -> None:
    checked(nasty(text))
