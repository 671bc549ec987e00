"""`check --format nagios` by the guidelines for monitoring plugins: one line, performance data, an exit status."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reports import outcome, replaced, view
from shown_machines import NASTY, RECORDED, crashed, eight_gpus, everything, judged, lost_gpu, made, nasty, recorded
from shown_machines import undecided as undecided_view

from cudadoctor.render.nagios import MOST_BYTES, exit_status, render
from cudadoctor.render.view import View

# 'label'=value[unit];[warn];[crit];[min];[max], as the guidelines have it; values are of the C locale.
_NUMBER = r"-?\d+(?:\.\d+)?"
DATUM = re.compile(
    rf"(?P<label>[^'= ]+)=(?P<value>{_NUMBER})(?P<unit>s|us|ms|%|B|KB|MB|GB|TB|c)?"
    rf"(?:;(?P<warn>{_NUMBER})?)?(?:;(?P<crit>{_NUMBER})?)?(?:;(?P<min>{_NUMBER})?)?(?:;(?P<max>{_NUMBER})?)?"
)
FIRST = re.compile(r"CUDA (OK|WARNING|CRITICAL|UNKNOWN) - \S.* \| .*")
STATES = {"OK": 0, "WARNING": 1, "CRITICAL": 2, "UNKNOWN": 3}


def read(text: str) -> tuple[str, list[str], dict[str, dict[str, str]]]:
    """The first line's text, the lines below it and the performance data, as a monitor takes them apart."""
    told, data = [], {}
    for line in text.splitlines():
        words, _, rest = line.partition("|")
        assert "|" not in rest
        told.append(words.rstrip())
        for datum in rest.split():
            match = DATUM.fullmatch(datum)
            assert match, datum
            assert match["label"] not in data
            data[match["label"]] = {key: value for key, value in match.groupdict().items() if value is not None}
    return told[0], told[1:], data


def checked(shown: View) -> tuple[str, list[str], dict[str, dict[str, str]]]:
    text = render(shown)
    assert text.endswith("\n")
    assert len(text.encode()) <= MOST_BYTES
    lines = text.split("\n")
    assert FIRST.fullmatch(lines[0])
    assert lines[0].isascii() and len(lines[0]) <= 1000, "an old NRPE hands on 1024 bytes"
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\ud800-\udfff]", text)
    first, more, data = read(text)
    assert STATES[first.split()[1]] == exit_status(shown)
    return first, more, data


LOST = """\
CUDA CRITICAL - CD113 gpu-lost: GPU 1 has fallen off the bus: the driver says that it is lost | gpus=8;;;0 \
errors=1;;;0 warnings=0;;;0 hints=2;;;0 undecided=0;;;0
what mends it:
  # Power the machine off and on again
  End what uses the GPUs, shut down, switch the power off and on. If it is lost again, check its
  power cables, its seat and its temperature; try another slot.
what does not: installing the driver or torch again: the card itself does not answer
what CD113 rests on:
  gpu.1.lost: yes (made by hand)
"""


def test_a_lost_gpu() -> None:
    text = render(judged(lost_gpu()))
    assert text.startswith(LOST)
    assert exit_status(judged(lost_gpu())) == 2
    last = "cudadoctor 1.2.3, exit status 1 | gpu0_temperature=45 gpu0_power=31.5;;;0;450 "
    assert text.splitlines()[-1].startswith(last)


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_machines(name: str) -> None:
    first, _, _ = checked(recorded(name))
    assert exit_status(recorded(name)) == {0: 0, 1: 2, 2: 3, 3: 3}[recorded(name).exit]
    for outcome_ in recorded(name).report.root_causes[:1] if recorded(name).exit == 1 else ():
        assert f" - {outcome_} " in first


@pytest.mark.parametrize(
    "what, state, says",
    [
        ("a GPU of eight is lost", "CRITICAL", "CD113 gpu-lost"),
        ("a GPU of eight is lost, another node may do", "CRITICAL", "CD113 gpu-lost"),
        ("a status for retries that means something else", "CRITICAL", "CD113 gpu-lost"),
        ("a check crashed", "UNKNOWN", "bug: cudadoctor's own rule CD303 failed"),
        ("warned", "OK", "(1 warning)"),
        ("warned, and that counts", "WARNING", "CD601 swap-too-small"),
        ("undecided", "UNKNOWN", "undecided: CD106 driver-unreachable: cannot tell"),
        ("undecided, and accepted", "OK", "undecided: CD106 driver-unreachable"),
        ("healthy", "OK", "torch 2.14.1+cu130 runs on NVIDIA GeForce RTX 4090"),
    ],
)
def test_states(what: str, state: str, says: str) -> None:
    first, _, _ = checked(made()[what])
    assert first.startswith(f"CUDA {state} - ") and says in first


def test_a_crash_beside_a_failure_is_no_reason_to_be_calm() -> None:
    shown = view(*replaced(outcome("CD303", "crash", "boom"), outcome("CD106", "fail")), roots=("CD106",))
    assert exit_status(shown) == 2


def test_several_root_causes_are_counted() -> None:
    shown = view(
        *replaced(outcome("CD106", "fail", "no answer"), outcome("CD302", "fail", "no CUDA")), roots=("CD106", "CD302")
    )
    first, more, _ = checked(shown)
    assert first == "CUDA CRITICAL - CD106 driver-unreachable: no answer (and 1 more)"
    assert more[0] == "error CD302 cpu-only-torch: no CUDA"


@pytest.mark.parametrize("what", NASTY)
def test_nothing_breaks_the_line(what: str) -> None:
    first, more, data = checked(nasty(NASTY[what]))
    assert first.startswith("CUDA CRITICAL - CD302 cpu-only-torch: torch says:")
    assert "b" not in data, "a text's own words are no performance data"
    assert any(line.startswith("cudadoctor 1.2.3") for line in more)


@settings(max_examples=60, deadline=None)
@given(st.text())
def test_no_text_breaks_the_line(text: str) -> None:
    checked(nasty(text))


def test_performance_data_is_what_is_known() -> None:
    _, _, data = checked(judged(lost_gpu()))
    assert data["gpus"] == {"label": "gpus", "value": "8", "min": "0"}
    assert data["gpu0_memory_used"] == {
        "label": "gpu0_memory_used", "value": "629145600", "unit": "B", "min": "0", "max": "85899345920"
    }  # fmt: skip
    assert data["gpu0_utilization"]["unit"] == "%" and data["gpu0_utilization"]["max"] == "100"
    assert data["gpu0_power"]["value"] == "31.5" and data["gpu0_power"]["max"] == "450"
    assert "unit" not in data["gpu0_temperature"], "there is no unit for degrees"
    assert not [label for label in data if label.startswith("gpu1_")], "of a lost GPU nothing is measured"


def test_no_gpu_known_is_not_no_gpu() -> None:
    _, _, data = checked(judged(eight_gpus().unknown("gpu.count")))
    assert "gpus" not in data


def test_many_gpus_stay_within_what_a_monitor_reads() -> None:
    machine = eight_gpus()
    for index in range(8, 32):
        machine = machine.gpu("NVIDIA H100 80GB HBM3", "9.0", 80, index=index)
    _, _, data = checked(judged(machine))
    measured = {label.partition("_")[0] for label in data if label.startswith("gpu") and "_" in label}
    assert len(measured) > 8
    labels = [label for label in data if "_" in label]
    assert len(labels) == 4 * len(measured), "a GPU is whole or left out"


def test_unknown_is_never_ok_unasked() -> None:
    for what, shown in everything().items():
        if shown.exit in (2, 3) and not what.startswith("a status for retries"):
            assert exit_status(shown) == 3, what
    assert exit_status(undecided_view(unknown_ok=True)) == 0
    assert exit_status(crashed()) == 3
