"""`cudadoctor verify --format json`: the document `cudadoctor.verify/1`."""

from __future__ import annotations

from typing import cast

from cudadoctor.render.json_report import dump, finding_entry
from cudadoctor.render.verify_documents import VerifyDocument
from cudadoctor.render.verify_view import VerifyView, headline


def render(view: VerifyView) -> str:
    return dump(document(view))


def document(view: VerifyView) -> VerifyDocument:
    proof = view.proof
    entry = {
        "schema": "cudadoctor.verify/1",
        "tool": {"name": "cudadoctor", "version": view.tool_version},
        "matrix": {"revision": view.matrix.revision, "checked": view.matrix.checked, "age_days": view.matrix_age_days},
        "exit": view.exit,
        "verdict": headline(view)[1],
        "python": {"executable": proof.python, "version": proof.python_version},
        "torch": {**proof.torch._asdict(), "archs": list(proof.torch.archs)},
        "checks": list(proof.checks),
        "gpus": [gpu._asdict() for gpu in proof.gpus],
        "results": [result.plain() for result in proof.results],
        "causes": [finding_entry(outcome) for outcome in proof.causes],
    }
    return cast(VerifyDocument, entry)
