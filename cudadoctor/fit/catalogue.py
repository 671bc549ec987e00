"""Models by name, as people type them: llama-3.1-8b, Llama 3.1 8B, meta-llama/Llama-3.1-8B-Instruct, llama3.1:8b,
and with the way it is quantised: Qwen2.5-7B-Instruct-AWQ, llama-3.1-8b-Q4_K_M."""

from __future__ import annotations

import re
from typing import Optional

from cudadoctor.fit.architecture import Model
from cudadoctor.fit.config import model_of_config
from cudadoctor.matrix import Matrix
from cudadoctor.matrix.models import ModelRow
from cudadoctor.model.pattern import pattern
from cudadoctor.parse.errors import ParseError

# Numbers with their unit stay together (8b, 0.5b, 124m, 128k), so that 3.1-8b and 3-1.8b remain two things.
_WORD = pattern(r"\d+(?:\.\d+)*(?:[bmk](?![a-z]))?|[a-z]+", re.ASCII)
_BREAK = pattern(r"[-_:. ]")
# Words that say how a model was trained on or packed, not how large it is.
_NOISE = frozenset(
    (
        *("instruct", "chat", "it", "sft", "dpo", "tuned", "pt", "preview", "latest", "text", "quantized", "qat"),
        *("hf", "meta", "model", "safetensors", "mlx", "onnx"),
    )
)
_ALSO_NOISE = frozenset((*_NOISE, "base"))  # but bert-base and t5-base are sizes
_LONGEST = 200
_MOST_SHOWN = 5

Words = tuple[str, ...]


def names(matrix: Matrix) -> tuple[str, ...]:
    """All of the catalogue, in its order."""
    return tuple(row.name for row in matrix.models())


def find(matrix: Matrix, text: str) -> Model:
    """The model of that name; `weights` as its files are published, or as the end of the name says. ParseError, with
    the nearest names, where none or several are called so."""
    last = text[:_LONGEST].rsplit("/", 1)[-1]
    row = _row(matrix, last)
    if row is not None:
        return model_of_row(row)
    quantised = _quantised(matrix, last)
    if quantised is not None:
        return quantised
    said = _without(words(last), _NOISE)
    begins = [row for row in matrix.models() if said and words(row.name)[: len(said)] == said]
    if len(begins) == 1:
        return model_of_row(begins[0])
    raise ParseError(_not_found(matrix, text, said, [row.name for row in begins]))


def is_tag(text: str) -> bool:
    """Whether a name is written as Ollama writes it: llama3.1:8b, qwen2.5:7b-instruct-q4_K_M, someone/model:tag."""
    name, colon, tag = text.strip().rpartition(":")
    return bool(colon and name and tag) and not any(sign in tag for sign in "/\\ ")


def says_weights(matrix: Matrix, text: str) -> bool:
    """Whether a name ends in how the weights are stored."""
    last = text[:_LONGEST].rsplit("/", 1)[-1]
    return _row(matrix, last) is None and _quantised(matrix, last) is not None


def model_of_row(row: ModelRow) -> Model:
    """The model that a row of the catalogue describes."""
    shape = model_of_config(row.config, row.name).architecture._replace(source=f"{row.source} ({row.checked})")
    return Model(shape, row.weights, notes=(row.note,) if row.note else ())


def words(text: str) -> Words:
    """What a name consists of, whatever stands between."""
    return tuple(_WORD.findall(text.lower()))


def _without(said: Words, noise: frozenset[str]) -> Words:
    return tuple(word for word in said if word not in noise)


def _keys(said: Words) -> tuple[Words, ...]:
    """Under what a name is looked up, the most exact first."""
    return (said, _without(said, _NOISE), _without(said, _ALSO_NOISE))


def _row(matrix: Matrix, text: str) -> Optional[ModelRow]:
    index = matrix.once("model_index", lambda: _index(matrix))
    return next((index[key] for key in _keys(words(text)) if key in index), None)


def _index(matrix: Matrix) -> dict[Words, ModelRow]:
    index: dict[Words, ModelRow] = {}
    for row in matrix.models():
        for name in (row.name, *row.names):
            for key in _keys(words(name))[:2]:
                if key:
                    index.setdefault(key, row)
    return index


def _quantised(matrix: Matrix, text: str) -> Optional[Model]:
    """Where the name ends in one of a quantisation: the model before it, with its weights stored so."""
    from cudadoctor.fit.quantisation import scheme

    for found in _BREAK.finditer(text):
        row, end = _row(matrix, text[: found.start()]), text[found.end() :]
        if row is None or not end:
            continue
        parts = [part for part in _BREAK.split(end) if part.lower() not in _ALSO_NOISE]
        packed = [part for part in parts if part.lower() != "gguf"] or parts
        try:
            stored = scheme(matrix, "-".join(packed)).name
        except ParseError:
            continue
        model = model_of_row(row)._replace(weights=stored)
        if packed == parts and parts[0].lower() == "gguf":
            model = model._replace(notes=(*model.notes, f"GGUF files come in many types: {stored} is assumed"))
        return model
    return None


def _not_found(matrix: Matrix, text: str, said: Words, begins: list[str]) -> str:
    shown = ascii(text if len(text) <= 60 else text[:57] + "...")
    # Whoever names a line without a size means one of its models.
    if begins:
        return f"{shown} is not one model: {_listed(begins)}"
    from difflib import get_close_matches

    known: dict[str, str] = {}
    for row in matrix.models():
        for name in (row.name, *row.names):
            known.setdefault("-".join(words(name)), row.name)
    near = get_close_matches("-".join(said), known, n=3 * _MOST_SHOWN, cutoff=0.6)
    listed = list(dict.fromkeys(known[one] for one in near))[:_MOST_SHOWN]
    if listed:
        return f"no model called {shown} is known: the nearest are {', '.join(listed)}"
    return f"no model called {shown} is known: give its config.json, a file of its weights, or a size such as 7b"


def _listed(found: list[str]) -> str:
    shown = ", ".join(found[:_MOST_SHOWN])
    return f"{shown}, and {len(found) - _MOST_SHOWN} more" if len(found) > _MOST_SHOWN else shown
