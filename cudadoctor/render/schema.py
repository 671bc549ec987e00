"""JSON Schemas of the documents, derived from their types in `documents.py`."""

from __future__ import annotations

from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from cudadoctor.render import (
    documents,
    fit_documents,
    fleet_documents,
    matrix_documents,
    policy_documents,
    verify_documents,
)

DOCUMENTS: dict[str, type] = {
    "cudadoctor.report/1": documents.ReportDocument,
    "cudadoctor.facts/1": documents.FactsDocument,
    "cudadoctor.plan/1": documents.PlanDocument,
    "cudadoctor.verify/1": verify_documents.VerifyDocument,
    "cudadoctor.matrix/1": matrix_documents.MatrixDocument,
    "cudadoctor.fleet/1": fleet_documents.FleetDocument,
    "cudadoctor.fit/1": fit_documents.FitDocument,
    "cudadoctor.policy/1": policy_documents.PolicyDocument,
}

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}


def schema_of(name: str) -> dict[str, Any]:
    """The JSON Schema of the document that calls itself `name`. Objects may hold more keys than it lists, because keys
    are added within a major version."""
    definitions: dict[str, Any] = {}
    root = _object(DOCUMENTS[name], definitions)
    return {"$schema": _DIALECT, "title": name, **root, "$defs": dict(sorted(definitions.items()))}


def _object(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    hints = get_type_hints(kind)
    entry: dict[str, Any] = {
        "type": "object",
        "properties": {key: _schema(hint, definitions) for key, hint in hints.items()},
        "required": sorted(kind.__required_keys__),
    }
    if kind.__doc__ and kind.__doc__ != dict.__doc__:
        entry["description"] = " ".join(kind.__doc__.split())
    return entry


def _schema(hint: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any:
        return {}
    if hint in _PLAIN:
        return {"type": _PLAIN[hint]}
    if origin is Literal:
        return {"const": arguments[0]} if len(arguments) == 1 else {"enum": list(arguments)}
    if origin is list:
        return {"type": "array", "items": _schema(arguments[0], definitions)}
    if origin is dict:
        return {"type": "object", "additionalProperties": _schema(arguments[1], definitions)}
    if origin is Union:
        return {"anyOf": [_schema(argument, definitions) for argument in arguments]}
    if not hasattr(hint, "__required_keys__"):
        raise TypeError(f"a document cannot hold {hint!r}")
    if hint.__name__ not in definitions:
        definitions[hint.__name__] = {}  # reserved, for types that hold themselves
        definitions[hint.__name__] = _object(hint, definitions)
    return {"$ref": f"#/$defs/{hint.__name__}"}
