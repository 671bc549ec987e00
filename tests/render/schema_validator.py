"""As much of JSON Schema as our own schemas use, so that the tests need no further package."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_TYPES: dict[str, Any] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
}
_KEYWORDS = {
    "$ref", "$defs", "$schema", "title", "description", "type", "const", "enum", "anyOf", "items", "properties",
    "required", "additionalProperties",
}  # fmt: skip


def mistakes(schema: Mapping[str, Any], value: Any, root: Mapping[str, Any], where: str = "$") -> list[str]:
    """What in `value` is not as `schema` says, each with its place; empty where it is valid."""
    unknown = set(schema) - _KEYWORDS
    assert not unknown, f"the validator does not know {unknown}"
    if "$ref" in schema:
        return mistakes(root["$defs"][schema["$ref"].rpartition("/")[2]], value, root, where)
    if "anyOf" in schema:
        tries = [mistakes(choice, value, root, where) for choice in schema["anyOf"]]
        return [] if any(not found for found in tries) else [f"{where}: {value!r} fits none of {len(tries)} forms"]
    if "const" in schema and value != schema["const"]:
        return [f"{where}: {value!r} is not {schema['const']!r}"]
    if "enum" in schema and value not in schema["enum"]:
        return [f"{where}: {value!r} is none of {schema['enum']}"]
    if "type" in schema:
        fits = isinstance(value, _TYPES[schema["type"]])
        if not fits or (isinstance(value, bool) and schema["type"] in ("integer", "number")):
            return [f"{where}: {value!r} is no {schema['type']}"]
    found = []
    if isinstance(value, dict):
        found += [f"{where}: lacks {key!r}" for key in schema.get("required", ()) if key not in value]
        for key, item in value.items():
            below = schema.get("properties", {}).get(key, schema.get("additionalProperties"))
            if isinstance(below, Mapping):
                found += mistakes(below, item, root, f"{where}.{key}")
    if isinstance(value, list) and "items" in schema:
        for number, item in enumerate(value):
            found += mistakes(schema["items"], item, root, f"{where}[{number}]")
    return found
