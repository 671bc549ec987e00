"""The document `cudadoctor.fit/1`: its schema, and that its numbers are bytes that add up."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fit_answers import LLAMA, answer, on_eight, tight, training, without_gpu
from schema_validator import mistakes

from cudadoctor.fit.answer import Answer
from cudadoctor.fit.architecture import Stored
from cudadoctor.fit.measured import CudaContext, DryRun, Measured
from cudadoctor.fit.workload import LORA, Workload
from cudadoctor.render.fit_json import document, render, render_all
from cudadoctor.render.fit_view import FitView
from cudadoctor.render.schema import schema_of

SCHEMA = schema_of("cudadoctor.fit/1")

STORED = LLAMA._replace(stored=Stored("model.gguf", 4_920_734_720, {"Q4_K": 4, "F32": 1}, 8_030_261_248, "q4_k_m"))

ANSWERS = {
    "fits": answer(),
    "tight": tight(),
    "cured": training(),
    "uncured": training(cured=False),
    "without a GPU": without_gpu(),
    "on eight": on_eight(),
    "out of a file": answer(model=STORED),
    "with adapters": answer(workload=Workload(method=LORA, stated=frozenset({"train"}))),
}


def told(made: Answer, **options: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(render(FitView(made, **options)))
    return found


@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_every_answer_keeps_to_the_schema(name: str) -> None:
    assert mistakes(SCHEMA, told(ANSWERS[name]), SCHEMA) == []


@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_the_document_lists_all_that_it_holds(name: str) -> None:
    """What is written is in the schema, too: nothing is handed out unnamed."""

    def unnamed(schema: dict[str, Any], value: Any, place: str) -> list[str]:
        if "$ref" in schema:
            schema = SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]]
        if "anyOf" in schema:
            return [] if value is None else unnamed(schema["anyOf"][0], value, place)
        if isinstance(value, list):
            return [text for item in value for text in unnamed(schema.get("items", {}), item, place)]
        if not isinstance(value, dict) or "properties" not in schema:
            return []
        known = schema["properties"]
        found = [f"{place}.{key}" for key in value if key not in known]
        return found + [text for key in value if key in known for text in unnamed(known[key], value[key], key)]

    assert unnamed(SCHEMA, told(ANSWERS[name]), "$") == []


def test_what_was_measured_is_in_the_schema_too() -> None:
    found = told(answer())
    assert found["measured"] is None
    seen = Measured(DryRun("measured", peak=1 << 34, weights=1 << 33, phase="prefill"), (CudaContext(0, 1 << 28),))
    found = told(answer(), measured=seen)
    assert mistakes(SCHEMA, found, SCHEMA) == []
    assert found["measured"]["dry_run"]["peak"] == 1 << 34


def test_amounts_are_bytes_that_add_up() -> None:
    found = told(training())
    sum_of_terms = sum(term["bytes"] for term in found["breakdown"])
    expected = found["levels"]["device"]["expected"]
    assert abs(sum_of_terms - expected) < 2**24  # the hand-made terms are given in hundredths of a GiB
    assert found["verdict"] == "does-not-fit" and found["headroom_bytes"] < 0
    assert [change["id"] for change in found["cure"]["changes"]] == ["expandable_segments", "checkpointing", "qlora"]
    assert found["cheapest_changes"][1]["lines"] == ["model.gradient_checkpointing_enable()"]


def test_the_level_asked_for_is_that_of_need_bytes() -> None:
    levels = told(answer())["levels"]
    for level in ("allocated", "reserved", "device"):
        assert told(answer(), level=level)["need_bytes"] == levels[level]
    assert told(on_eight(), level="allocated", per_gpu=False)["need_bytes"] == told(on_eight())["levels"]["all_gpus"]


def test_a_list_of_answers_keeps_their_order() -> None:
    views = [FitView(answer(), id="b"), FitView(tight(), id="a")]
    assert [entry["id"] for entry in json.loads(render_all(views))] == ["b", "a"]
    assert json.loads(render_all([])) == []


def test_nothing_of_where_a_file_lies_is_told() -> None:
    assert "model.gguf" not in json.dumps(document(FitView(ANSWERS["out of a file"])))


def test_it_is_ascii() -> None:
    named = answer(model=LLAMA._replace(architecture=LLAMA.architecture._replace(name="Modell \u00e4")))
    assert render(FitView(named)).isascii()
