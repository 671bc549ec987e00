"""The catalogue of models: what each is called, and the values of its config that decide its size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cudadoctor.model.record import NamedTuple

from .sections import Sections, origin


class ModelRow(NamedTuple):
    """`config` has the keys of a Hugging Face config.json (diffusers' for image models); `line` is what a family of
    models is called by its makers. `parameters` is the count that the config must come out at."""

    name: str
    line: str
    names: tuple[str, ...]
    parameters: int
    weights: str
    config: Mapping[str, Any]
    note: str
    source: str
    checked: str


class TypicalRow(NamedTuple):
    """What a model of about that many parameters mostly looks like."""

    parameters: int
    config: Mapping[str, Any]
    source: str
    checked: str


class ModelQuestions(Sections):
    def models(self) -> tuple[ModelRow, ...]:
        """All of the catalogue, in its order: line by line, the smallest first."""
        return self.once("models", self._model_rows)

    def typical_models(self) -> tuple[TypicalRow, ...]:
        """The smallest first."""
        return self.once("typical_models", self._typical_rows)

    def _model_rows(self) -> tuple[ModelRow, ...]:
        data = self.raw("models")
        return tuple(
            ModelRow(
                *(row["name"], row["line"], tuple(row.get("names", ())), row["parameters"], row["weights"]),
                *(row["config"], row.get("note", ""), *origin(data, row)),
            )
            for row in data["model"]
        )

    def _typical_rows(self) -> tuple[TypicalRow, ...]:
        data = self.raw("models")
        rows = [TypicalRow(row["parameters"], row["config"], *origin(data, row)) for row in data["typical"]]
        return tuple(sorted(rows, key=lambda row: row.parameters))
