"""`check --format prometheus`: read by Prometheus's own parsers, and true to what is known."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families
from reports import healthy, outcome, replaced, view
from shown_machines import NASTY, RECORDED, eight_gpus, everything, judged, lost_gpu, made, nasty, recorded

from cudadoctor.model import Facts, known
from cudadoctor.model.report import Report
from cudadoctor.render.prometheus import render
from cudadoctor.render.view import View
from cudadoctor.testing import linux

Series = dict[tuple[tuple[str, str], ...], float]


def families(shown: View) -> dict[str, Metric]:
    text = render(shown)
    assert text.isascii() and text.endswith("\n")
    return {family.name: family for family in text_string_to_metric_families(text)}


def series(shown: View, name: str) -> Series:
    """The samples of a metric by their labels."""
    found = {}
    for family in families(shown).values():
        for sample in family.samples:
            if sample.name == f"cudadoctor_{name}":
                found[tuple(sorted(sample.labels.items()))] = sample.value
    return found


def of_gpus(shown: View, name: str) -> dict[str, float]:
    return {dict(labels)["gpu"]: value for labels, value in series(shown, name).items()}


def state(shown: View) -> list[str]:
    return [dict(labels)["verdict"] for labels, value in series(shown, "verdict").items() if value == 1]


@pytest.mark.parametrize("what", everything())
def test_every_machine_is_told_in_good_form(what: str) -> None:
    text = render(everything()[what])
    lines = text.splitlines()
    names = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(names) == len(set(names)), "a metric stands in one place"
    assert [line.split()[2] for line in lines if line.startswith("# HELP")] == names
    keys = [line.rpartition(" ")[0] for line in lines if not line.startswith("#")]
    assert len(keys) == len(set(keys)), "no series twice: a collector refuses the whole file"
    for family in families(everything()[what]).values():
        assert re.fullmatch(r"cudadoctor_[a-z][a-z_]*", family.name)
        assert family.documentation.endswith(".")
        assert all(math.isfinite(sample.value) for sample in family.samples)
        assert family.type == ("counter" if family.samples[0].name.endswith("_total") else "gauge")


@pytest.mark.parametrize("what", everything())
def test_the_stricter_format_reads_it_too(what: str) -> None:
    # OpenMetrics has an end, and names a counter without the _total of its samples.
    text = re.sub(r"^(# (?:HELP|TYPE) \w+)_total ", r"\1 ", render(everything()[what]), flags=re.MULTILINE)
    # It keeps "info" for a type that the older format does not have.
    assert list(openmetrics(text + "# EOF\n"))


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_machines(name: str) -> None:
    shown = recorded(name)
    assert series(shown, "exit_status") == {(): shown.exit}
    assert state(shown) == [{0: "ok", 1: "failed", 3: "undecided"}[shown.exit]]
    places = {dict(labels)["rule"]: place for labels, place in series(shown, "root_cause").items()}
    assert places == {rule: place for place, rule in enumerate(shown.report.root_causes, 1)}


@pytest.mark.parametrize(
    "what, wanted",
    [
        ("a GPU of eight is lost", "failed"),
        ("a GPU of eight is lost, another node may do", "failed"),
        ("a check crashed", "bug"),
        ("warned", "ok"),
        ("warned, and that counts", "failed"),
        ("undecided", "undecided"),
        ("undecided, and accepted", "undecided"),
        ("healthy", "ok"),
    ],
)
def test_verdicts_are_a_state_of_four(what: str, wanted: str) -> None:
    told = series(made()[what], "verdict")
    assert state(made()[what]) == [wanted]
    assert len(told) == 4 and sum(told.values()) == 1


def test_what_fails_and_what_is_unknown_has_a_series() -> None:
    shown = view(
        *replaced(
            outcome("CD106", "fail", "no answer", blame="machine"),
            outcome("CD302", "unknown", "cannot tell"),
            outcome("CD303", "fail", "follows", because_of="CD106"),
            outcome("CD304", "crash", "boom"),
        ),
        roots=("CD106",),
    )
    told = {dict(labels)["rule"]: dict(labels) for labels in series(shown, "rule_status")}
    assert {rule: (labels["status"], labels.get("because_of")) for rule, labels in told.items()} == {
        "CD106": ("fail", None),
        "CD302": ("unknown", None),
        "CD303": ("fail", "CD106"),
        "CD304": ("crash", None),
    }
    assert told["CD106"]["name"] == "driver-unreachable" and told["CD106"]["severity"] == "error"
    counts = {dict(labels)["status"]: value for labels, value in series(shown, "rules").items()}
    assert counts == {"pass": 4, "fail": 2, "skip": 0, "unknown": 1, "crash": 1}


def test_units_are_the_base_units() -> None:
    shown = judged(eight_gpus().set({"gpu.0.utilization": 7, "gpu.0.ecc_uncorrected": 2, "gpu.0.ecc_mode": True}))
    told = {name: of_gpus(shown, f"gpu_{name}")["0"] for name in (
        "memory_used_bytes", "temperature_celsius", "power_watts", "utilization_ratio", "clock_sm_hertz",
        "pcie_width_lanes", "ecc_uncorrected_errors_total", "ecc_enabled",
    )}  # fmt: skip
    assert told == {
        "memory_used_bytes": 600 << 20,
        "temperature_celsius": 45,
        "power_watts": 31.5,
        "utilization_ratio": 0.07,
        "clock_sm_hertz": 210e6,
        "pcie_width_lanes": 16,
        "ecc_uncorrected_errors_total": 2,
        "ecc_enabled": 1,
    }


def test_what_is_not_known_has_no_sample() -> None:
    shown = judged(lost_gpu())
    assert of_gpus(shown, "gpu_lost") == {str(n): float(n == 1) for n in range(8)}
    for name in families(shown):
        if name.startswith("cudadoctor_gpu_") and name != "cudadoctor_gpu_lost":
            assert "1" not in of_gpus(shown, name.removeprefix("cudadoctor_")), "of a lost GPU nothing is known"
    nothing = view(machine=linux().only())
    assert not [name for name in families(nothing) if "gpu" in name or "driver" in name or "age" in name]


def test_a_card_without_ecc_has_no_errors_to_count() -> None:
    assert "cudadoctor_gpu_ecc_uncorrected_errors" not in families(judged(eight_gpus()))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "12", None, [1], 1 << 70])
def test_no_number_is_made_of_what_is_none(value: object) -> None:
    facts = Facts(
        {"gpu.count": known(1, "x"), "gpu.0.temperature": known(value, "x"), "gpu.0.power": known(value, "x")}
    )
    shown = View(Report(facts, healthy(), (), ""), 0)
    assert not [name for name in families(shown) if "temperature" in name or "power" in name]


@pytest.mark.parametrize("what", NASTY)
def test_nothing_breaks_a_label(what: str) -> None:
    shown = nasty(NASTY[what])
    (labels,) = [dict(labels) for labels in series(shown, "gpu_info")]
    assert labels["compute_capability"] == "8.9"
    assert all(len(value) <= 1000 for value in labels.values())
    if NASTY[what].isprintable() and NASTY[what].isascii() and len(NASTY[what]) < 100:
        assert labels.get("name", "") == NASTY[what], "a reader gets the very text back"


@settings(max_examples=60, deadline=None)
@given(st.text())
def test_no_text_breaks_a_label(text: str) -> None:
    assert len(series(nasty(text), "gpu_info")) == 1


def test_nobody_is_named() -> None:
    text = render(view(*healthy(), machine=linux().set({"scheduler.node": "node017"})))
    assert "node017" not in text and not re.search(r"uuid|serial|GPU-[0-9a-f]{8}", text, re.IGNORECASE)
