"""`check --format json-line`: the document of `--format json` in one line, for files that hold a node a line."""

from __future__ import annotations

import json

from cudadoctor.render.json_report import document
from cudadoctor.render.view import View


def render(view: View) -> str:
    return json.dumps(document(view), separators=(",", ":"), ensure_ascii=True, allow_nan=False) + "\n"
