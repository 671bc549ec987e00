"""`check --format json-line`: the JSON report in one line, for files that hold a node a line."""

from __future__ import annotations

import json

import pytest
from schema_validator import mistakes
from shown_machines import everything

from cudadoctor.render.json_line import render
from cudadoctor.render.json_report import render as render_json
from cudadoctor.render.schema import schema_of


@pytest.mark.parametrize("what", everything())
def test_it_is_the_report_in_one_line(what: str) -> None:
    shown = everything()[what]
    line = render(shown)
    assert line.isascii() and line.endswith("}\n") and line.count("\n") == 1
    document = json.loads(line)
    assert document == json.loads(render_json(shown))
    schema = schema_of("cudadoctor.report/1")
    assert mistakes(schema, document, schema) == []


def test_lines_of_several_nodes_are_a_file() -> None:
    shown = list(everything().values())
    documents = [json.loads(line) for line in "".join(map(render, shown)).splitlines()]
    assert [document["exit"] for document in documents] == [one.exit for one in shown]
