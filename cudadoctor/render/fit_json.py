"""`cudadoctor fit --format json`: the document `cudadoctor.fit/1`; of several questions a list of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional, cast

from cudadoctor.fit.answer import Alternative, Answer, Change
from cudadoctor.fit.architecture import Model
from cudadoctor.fit.target import Card, Target
from cudadoctor.fit.workload import LORA, QLORA, Workload
from cudadoctor.render.fit_documents import FitDocument
from cudadoctor.render.fit_measured import MeasuredDocument
from cudadoctor.render.fit_view import FitView, asked_need, headline
from cudadoctor.render.json_report import dump


def render(view: FitView) -> str:
    return dump(document(view))


def render_all(views: Sequence[FitView]) -> str:
    """A list, in the order in which was asked, also of one."""
    return dump([document(view) for view in views])


def document(view: FitView) -> FitDocument:
    answer = view.answer
    need = answer.need
    entry = {
        "schema": "cudadoctor.fit/1",
        "tool": {"name": "cudadoctor", "version": view.tool_version},
        "matrix": {"revision": view.matrix.revision, "checked": view.matrix.checked, "age_days": view.matrix_age_days},
        "exit": view.exit,
        "id": view.id,
        "verdict": answer.verdict,
        "message": headline(view)[1],
        "level": view.level,
        "per_gpu": view.per_gpu,
        "need_bytes": asked_need(view)._asdict(),
        "levels": {
            "allocated": need.allocated._asdict(),
            "reserved": need.reserved._asdict(),
            "device": need.device._asdict(),
            "all_gpus": need.all_gpus._asdict(),
        },
        "available_bytes": answer.available,
        "headroom_bytes": answer.headroom,
        "breakdown": [term._asdict() for term in need.terms],
        "largest_batch": answer.largest_batch,
        "longest_context": answer.longest_context,
        "kv_bytes_per_token": need.kv_bytes_per_token,
        "peak": need.peak,
        "speed": _speed(answer),
        "host_bytes": need.host._asdict(),
        "cheapest_changes": [_change(change) for change in answer.changes],
        "cure": _cure(answer),
        "alternatives": [_alternative(item) for item in answer.alternatives],
        "assumed": list(need.assumed),
        "warnings": list(answer.warnings),
        "notes": list(answer.notes),
        "measured": _measured(view),
        "model": _model(answer.model),
        "workload": _workload(answer.workload),
        "target": _target(answer.target),
    }
    return cast(FitDocument, entry)


def _measured(view: FitView) -> Optional[MeasuredDocument]:
    if view.measured is None:
        return None
    from cudadoctor.render.fit_measured import document as measured

    return measured(view.measured, view.answer.need, view.quantised)


def _speed(answer: Answer) -> dict[str, Any]:
    speed = answer.speed
    low, high = speed.load_seconds if speed.load_seconds is not None else (None, None)
    return {
        "decode_tokens_per_second": speed.tokens,
        "formula": speed.formula,
        "load_seconds_low": low,
        "load_seconds_high": high,
        "load_formula": speed.load_formula,
        "source": speed.source,
    }


def _change(change: Change) -> dict[str, Any]:
    return {**change._asdict(), "lines": list(change.lines)}


def _cure(answer: Answer) -> Optional[dict[str, Any]]:
    cure = answer.cure
    if cure is None:
        return None
    return {
        "verdict": cure.verdict,
        "need_bytes": cure.need._asdict(),
        "available_bytes": cure.available,
        "changes": [_change(change) for change in cure.changes],
    }


def _alternative(item: Alternative) -> dict[str, Any]:
    return {
        "kind": item.kind,
        "name": item.name,
        "gpus": item.gpus,
        "need_bytes": item.need._asdict(),
        "card": None if item.card is None else _card(item.card),
        "changes": [_change(change) for change in item.changes],
    }


def _card(card: Card) -> dict[str, Any]:
    return card._asdict()


def _model(model: Model) -> dict[str, Any]:
    shape, stored = model.architecture, model.stored
    return {
        "name": shape.name,
        "kind": shape.kind,
        "family": shape.family,
        "parameters": shape.parameters,
        "active_parameters": shape.active_parameters,
        "layers": shape.layer_count,
        "hidden": shape.hidden,
        "vocabulary": shape.vocabulary,
        "max_context": shape.max_context,
        "weights": model.weights,
        "stored": None
        if stored is None
        else {
            "total": stored.total,
            "by_type": dict(stored.by_type),
            "elements": stored.elements,
            "scheme": stored.scheme,
            "files": stored.files,
        },
        "guessed": shape.guessed,
        "source": shape.source,
        "notes": list(model.notes),
    }


def _workload(workload: Workload) -> dict[str, Any]:
    entry = workload._asdict()
    lora = workload.lora
    has_adapters = workload.method in (LORA, QLORA)
    entry["lora"] = {**lora._asdict(), "targets": list(lora.targets)} if has_adapters else None
    entry["sharding"] = workload.sharding.kind
    entry["gpus"] = workload.sharding.degree
    entry["stated"] = sorted(workload.stated)
    del entry["unread"]  # what is assumed instead stands in `assumed`
    return entry


def _target(target: Target) -> dict[str, Any]:
    return {
        "kind": target.kind,
        "cards": [_card(card) for card in target.cards],
        "machine": target.machine._asdict(),
        "system": target.system,
        "notes": list(target.notes),
    }
