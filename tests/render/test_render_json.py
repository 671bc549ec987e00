"""`check --format json` and the facts document against their schemas, and the schemas against the model."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest
from reports import healthy, outcome, replaced, view
from schema_validator import mistakes

from cudadoctor.model import Evidence, Facts, FixStep, known, unknown
from cudadoctor.model.fact import FACTS_SCHEMA, STATES
from cudadoctor.model.outcome import BLAMES, CERTAINTIES, SEVERITIES, STATUSES
from cudadoctor.render import documents
from cudadoctor.render.facts import facts_json
from cudadoctor.render.formats import FORMATS, render
from cudadoctor.render.schema import DOCUMENTS, schema_of
from cudadoctor.render.view import View
from cudadoctor.testing import linux, windows, wsl

STEP = FixStep(
    "install-torch", "Replace it", "install", ("pip", "install"), ("network",), "safe", {"torch.cuda": "12.6"}
)


def document(shown: View) -> Any:
    return json.loads(render("json", shown))


def broken() -> View:
    failed = outcome(
        "CD303",
        "fail",
        "too old",
        evidence=(Evidence("driver.nvml_version", "470.223.02", "nvml"),),
        data={"needed": ("525.60.13", 1.5, {"set"}, float("nan")), "nothing": None},
    )
    return view(*replaced(failed), roots=("CD303",), steps=(STEP,), ignored={"CD601": "by design"})


@pytest.mark.parametrize("shown", [broken(), view(*healthy()), view()], ids=["broken", "healthy", "nothing judged"])
def test_a_report_is_as_its_schema_says(shown: View) -> None:
    schema = schema_of("cudadoctor.report/1")
    assert mistakes(schema, document(shown), schema) == []


@pytest.mark.parametrize(
    "facts", [linux().facts, windows().facts, wsl().facts, Facts()], ids=["linux", "windows", "wsl", "none"]
)
def test_facts_are_as_their_schema_says(facts: Facts) -> None:
    schema = schema_of("cudadoctor.facts/1")
    assert mistakes(schema, json.loads(facts_json(facts)), schema) == []


def test_the_report_holds_what_the_contract_promises() -> None:
    written = document(broken())
    assert {"schema", "tool", "matrix", "facts", "exit", "root_causes", "outcomes", "plan"} <= set(written)
    assert written["schema"] == "cudadoctor.report/1"
    assert written["tool"] == {"name": "cudadoctor", "version": "1.2.3"}
    assert written["matrix"] == {"revision": "2026.11.0", "checked": "2026-11-20", "age_days": 10}
    assert written["exit"] == 1
    assert written["root_causes"] == ["CD303"]
    assert written["ignored"] == {"CD601": "by design"}
    failed = next(entry for entry in written["outcomes"] if entry["rule"] == "CD303")
    assert failed["name"] == "torch-needs-newer-driver"
    assert failed["evidence"] == [{"fact": "driver.nvml_version", "value": "470.223.02", "source": "nvml"}]
    assert failed["data"] == {"needed": ["525.60.13", 1.5, ["set"], None], "nothing": None}
    step = written["plan"]["steps"][0]
    assert {"id", "title", "kind", "argv", "needs", "safety", "effect"} <= set(step)
    assert step["argv"] == ["pip", "install"]


def test_the_facts_in_a_report_can_be_read_back() -> None:
    written = document(broken())
    assert Facts.from_json({"schema": FACTS_SCHEMA, "facts": written["facts"]}) == broken().report.facts


def test_a_matrix_age_is_null_where_the_date_is_not_known() -> None:
    shown = view(machine=linux().unknown("system.date"))
    assert document(shown)["matrix"]["age_days"] is None


def test_json_is_plain_ascii_whatever_the_facts_hold() -> None:
    facts = Facts({"gpu.0.name": known("\x1b[31m\u5e73 \udc80", "nvml"), "driver.smi_version": unknown("caf\u00e9")})
    text = facts_json(facts)
    assert text.isascii() and "\x1b" not in text
    assert Facts.from_json(json.loads(text)) == facts


def test_the_words_of_the_schema_are_those_of_the_model() -> None:
    assert get_args(documents.Severity) == SEVERITIES
    assert set(get_args(documents.Status)) == set(STATUSES)
    assert get_args(documents.Certainty) == CERTAINTIES
    assert get_args(documents.Blame) == BLAMES
    assert get_args(documents.State) == STATES


@pytest.mark.parametrize(
    "damage, place",
    [
        ({"exit": "1"}, "$.exit"),
        ({"exit": True}, "$.exit"),
        ({"schema": "cudadoctor.report/2"}, "$.schema"),
        ({"root_causes": [303]}, "$.root_causes[0]"),
        ({"facts": {"torch.version": {"value": "2.6.0"}}}, "$.facts.torch.version"),
        ({"outcomes": [{}]}, "$.outcomes[0]"),
    ],
)
def test_a_wrong_report_is_found_out(damage: dict[str, Any], place: str) -> None:
    schema = schema_of("cudadoctor.report/1")
    found = mistakes(schema, {**document(broken()), **damage}, schema)
    assert found and found[0].startswith(place)


def test_later_versions_may_add_keys() -> None:
    schema = schema_of("cudadoctor.report/1")
    assert mistakes(schema, {**document(broken()), "added": 1}, schema) == []


@pytest.mark.parametrize("name", sorted(DOCUMENTS))
def test_schemas_are_json_with_descriptions(name: str) -> None:
    schema = json.loads(json.dumps(schema_of(name)))
    assert schema["title"] == name and schema["description"]


def test_every_format_renders() -> None:
    for name in FORMATS:
        assert render(name, broken()).endswith("\n")
