"""Models by name, as people type them: llama-3.1-8b, Llama 3.1 8B, meta-llama/Llama-3.1-8B-Instruct, llama3.1:8b."""

from __future__ import annotations

import re

from cudadoctor.fit.architecture import Model
from cudadoctor.fit.config import model_of_config
from cudadoctor.matrix import Matrix
from cudadoctor.matrix.models import ModelRow
from cudadoctor.model.pattern import pattern
from cudadoctor.parse.errors import ParseError

# Numbers with their unit stay together (8b, 0.5b, 124m, 128k), so that 3.1-8b and 3-1.8b remain two things.
_WORD = pattern(r"\d+(?:\.\d+)*(?:[bmk](?![a-z]))?|[a-z]+", re.ASCII)
# Words that say how a model was trained on or packed, not how large it is.
_NOISE = frozenset(
    (
        *("instruct", "chat", "it", "sft", "dpo", "tuned", "base", "pt", "preview", "latest", "text"),
        *("hf", "meta", "model", "gguf", "ggml", "safetensors", "mlx", "onnx"),
    )
)
_LONGEST = 200
_MOST_SHOWN = 5


def names(matrix: Matrix) -> tuple[str, ...]:
    """All of the catalogue, in its order."""
    return tuple(row.name for row in matrix.models())


def find(matrix: Matrix, text: str) -> Model:
    """The model of that name. ParseError, with the nearest names, where none or several are called so."""
    return model_of_row(row_of(matrix, text))


def row_of(matrix: Matrix, text: str) -> ModelRow:
    """The row of the catalogue; errors as `find`."""
    index = matrix.once("model_index", lambda: _index(matrix))
    said = words(text[:_LONGEST].rsplit("/", 1)[-1])
    for key in (said, without_noise(said)):
        if key and key in index:
            return index[key]
    raise ParseError(_not_found(matrix, text, without_noise(said)))


def model_of_row(row: ModelRow) -> Model:
    """The model that a row of the catalogue describes."""
    model = model_of_config(row.config, row.name)
    source = f"{row.source} ({row.checked})"
    notes = (*model.notes, row.note) if row.note else model.notes
    return model._replace(
        architecture=model.architecture._replace(name=row.name, source=source), weights=row.weights, notes=notes
    )


def smaller(matrix: Matrix, model: Model) -> tuple[Model, ...]:
    """Models of the same kind with fewer parameters: those of the same line first, the largest of each first."""
    shape = model.architecture
    rows = {row.name: row for row in matrix.models()}
    line = rows[shape.name].line if shape.name in rows else ""
    below = [row for row in rows.values() if row.parameters < shape.parameters]
    below.sort(key=lambda row: (row.line != line, -row.parameters))
    return tuple(found for found in map(model_of_row, below) if found.architecture.kind == shape.kind)


def words(text: str) -> tuple[str, ...]:
    """What a name consists of, whatever stands between."""
    return tuple(_WORD.findall(text.lower()))


def without_noise(said: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(word for word in said if word not in _NOISE)


def _index(matrix: Matrix) -> dict[tuple[str, ...], ModelRow]:
    index: dict[tuple[str, ...], ModelRow] = {}
    for row in matrix.models():
        for name in (row.name, *row.names):
            said = words(name.rsplit("/", 1)[-1])
            for key in (said, without_noise(said)):
                if key:
                    index.setdefault(key, row)
    return index


def _not_found(matrix: Matrix, text: str, said: tuple[str, ...]) -> str:
    shown = ascii(text if len(text) <= 60 else text[:57] + "...")
    # Whoever names a line without a size means one of its models.
    begins = [row.name for row in matrix.models() if said and without_noise(words(row.name))[: len(said)] == said]
    if begins:
        return f"{shown} is not one model: {_listed(begins)}"
    from difflib import get_close_matches

    known: dict[str, str] = {}
    for row in matrix.models():
        for name in (row.name, *row.names):
            known.setdefault("-".join(without_noise(words(name.rsplit("/", 1)[-1]))), row.name)
    near = [known[one] for one in get_close_matches("-".join(said), known, n=3 * _MOST_SHOWN, cutoff=0.6)]
    near = list(dict.fromkeys(near))
    advice = (
        f"the nearest are {_listed(near)}"
        if near
        else "give its config.json, a file of its weights, or a size such as 7b"
    )
    return f"no model called {shown} is known: {advice}"


def _listed(found: list[str]) -> str:
    shown = ", ".join(found[:_MOST_SHOWN])
    return f"{shown}, and {len(found) - _MOST_SHOWN} more" if len(found) > _MOST_SHOWN else shown
