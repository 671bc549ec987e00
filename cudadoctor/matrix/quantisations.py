"""How weights and caches are stored: the bytes of each scheme, and the types that llama.cpp's mixtures are made of."""

from __future__ import annotations

from typing import Optional

from cudadoctor.model.record import NamedTuple

from .sections import Sections, origin

PLAIN, MATRICES, MIXTURE = "plain", "matrices", "mixture"


class BlockType(NamedTuple):
    """A type of ggml: `values` numbers take `size` bytes. `fallback`: what is taken where a row is no whole number of
    blocks; None: float16."""

    name: str
    id: int
    values: int
    size: int
    fallback: Optional[str]


class StorageScheme(NamedTuple):
    """`kind`: plain (every tensor has `bits`), matrices (only those of the layers have), mixture (of ggml's types;
    `block_type` is what most matrices get). See the head of compat/quantisations.toml for the rest."""

    name: str
    kind: str
    also: tuple[str, ...]
    bits: float
    """Of a number, without what scales take."""
    group: int
    group_rows: int
    group_bytes: float
    row_bytes: int
    column_bytes: int
    tensor_bytes: int
    flat: bool
    only_experts: bool
    own_head: bool
    block_type: Optional[str]
    importance: bool
    file_type: Optional[int]
    """general.file_type of a GGUF file."""
    source: str
    checked: str


class TypeRule(NamedTuple):
    """`mixtures` ("*": all) store tensors of the categories `tensors` as `type` where all the words of `where` hold."""

    mixtures: frozenset[str]
    tensors: frozenset[str]
    where: tuple[str, ...]
    type: str


class WindowPattern(NamedTuple):
    """Each `every`th layer sees everything, the others a window; `tokens` of it where the file does not say, else 0.
    Layers from number `cached_layers` on use the cache of earlier ones; 0: all have their own."""

    every: int
    tokens: int
    cached_layers: int


class QuantisationQuestions(Sections):
    """What is not known is not there: a name without a scheme has none."""

    def block_types(self) -> dict[str, BlockType]:
        """ggml's types, by name."""
        return self.once("block_types", self._make_types)

    def storage_schemes(self) -> dict[str, StorageScheme]:
        """Every scheme, by name."""
        return self.once("storage_schemes", self._make_schemes)

    def type_rules(self) -> tuple[TypeRule, ...]:
        """What mixtures choose for single tensors: the first that fits holds."""
        return self.once("type_rules", self._make_rules)

    def window_pattern(self, architecture: str) -> Optional[WindowPattern]:
        """What llama.cpp does with the layers of a GGUF file that has no pattern itself; None: no windows."""
        for row in self.raw("quantisations")["window"]:
            if row["architecture"] == architecture:
                return WindowPattern(row["every"], row.get("tokens", 0), row.get("cached_layers", 0))
        return None

    def _make_types(self) -> dict[str, BlockType]:
        rows = self.raw("quantisations")["type"]
        return {
            row["name"]: BlockType(row["name"], row["id"], row["values"], row["bytes"], row.get("fallback"))
            for row in rows
        }

    def _make_schemes(self) -> dict[str, StorageScheme]:
        data = self.raw("quantisations")
        types = self.block_types()
        found = {}
        for kind in (PLAIN, MATRICES, MIXTURE):
            for row in data[kind]:
                bits = row.get("bits", 8 * row.get("bytes", 0))
                if kind == MIXTURE:
                    bits = 8 * types[row["type"]].size / types[row["type"]].values
                found[row["name"]] = StorageScheme(
                    row["name"],
                    kind,
                    tuple(row.get("also", ())),
                    bits,
                    row.get("group", 0),
                    row.get("group_rows", 1),
                    row.get("group_bytes", 0),
                    row.get("row_bytes", 0),
                    row.get("column_bytes", 0),
                    row.get("tensor_bytes", 0),
                    row.get("flat", False),
                    row.get("only") == "expert",
                    row.get("own_head", False),
                    row.get("type"),
                    row.get("importance", False),
                    row.get("file_type"),
                    *origin(data, row),
                )
        return found

    def _make_rules(self) -> tuple[TypeRule, ...]:
        return tuple(
            TypeRule(frozenset(row["in"]), frozenset(row["of"]), tuple(row.get("where", ())), row["type"])
            for row in self.raw("quantisations")["rule"]
        )
