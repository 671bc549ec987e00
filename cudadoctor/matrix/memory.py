"""What training costs beside the weights: optimizers, frameworks, losses, the allocator, CUDA's context."""

from __future__ import annotations

from typing import Any, Optional

from cudadoctor.model.record import NamedTuple

from .sections import Sections, origin


class Optimizer(NamedTuple):
    """`moments`: states as wide as the parameter; `bytes`: of state for each parameter; `temporaries`: copies as wide
    as the parameter that a step makes of all of them; `largest`: bytes a number of the largest tensor that it makes,
    one at a time. See the head of compat/memory.toml."""

    name: str
    moments: int
    bytes: float
    temporaries: int
    largest: int
    rows: int
    paged: bool
    wide_embeddings: int
    source: str


class Framework(NamedTuple):
    """How a framework trains. See the head of compat/memory.toml."""

    name: str
    adapters: str
    autocast: bool
    upcasts_kbit: bool
    unties: bool
    quantises_head: bool
    keeps_inputs: bool
    packs: bool
    splits_adapters: bool
    fused_optimizer: bool
    fused_kernels: bool
    wide_norm_weight: bool
    keeps_gradients: bool
    casts_in_step: bool
    sequence_parallel: bool
    holds_outputs: bool
    kbit_deepspeed: bool
    splits_root: bool
    repeats_kv: bool
    empties_cache: bool
    sdpa_since: str
    plain_loss_since: str
    lazy_since: str
    softmax_since: str
    foreach_since: str
    loss: str
    precision: str
    source: str


class Family(NamedTuple):
    name: str
    scores_cap: bool
    logits_cap: bool
    gelu: int
    relu: bool
    dropouts: int
    inner_dropout: bool
    probability_dropout: bool
    copies_output: bool
    wide_norm_weight: bool
    source: str


class Loss(NamedTuple):
    """Bytes for each token and word of the vocabulary; see the head of compat/memory.toml."""

    name: str
    forward: float
    backward: float
    blocks: float
    held: float
    autocast: float
    autocast_blocks: float
    chunk: int
    chunk_bytes: float
    head_gradients: int
    note: str
    source: str


class Range(NamedTuple):
    """A number, and between what it lies nine times of ten."""

    low: float
    expected: float
    high: float
    source: str


class MemoryQuestions(Sections):
    """What is not known is None."""

    def optimizers(self) -> dict[str, Optimizer]:
        """By each of their names."""
        return self.once("optimizers", self._make_optimizers)

    def training_framework(self, name: str) -> Framework:
        """The framework that a name stands for; transformers where it says none that is known."""
        data = self.raw("memory")
        lower = name.lower()
        rows = data["framework"]
        row = next((row for row in rows if any(word in lower for word in row["match"])), rows[-1])
        found: Framework = _filled(Framework, row, origin(data, row)[0])
        return found

    def training_family(self, name: str) -> Optional[Family]:
        data = self.raw("memory")
        for row in data["family"]:
            if row["name"] == name:
                found: Family = _filled(Family, row, origin(data, row)[0])
                return found
        return None

    def losses(self) -> dict[str, Loss]:
        data = self.raw("memory")
        return self.once(
            "losses", lambda: {row["name"]: _filled(Loss, row, origin(data, row)[0]) for row in data["loss"]}
        )

    def reserve_share(self, name: str) -> Range:
        """Of what comes and goes, what the allocator keeps beside: static, variable, expandable."""
        return self._range("reserve", name, "share")

    def process_bytes(self, name: str) -> Range:
        """context, context_of_old, workspaces, libraries, nccl."""
        return self._range("process", name, "bytes")

    def host_bytes(self, name: str) -> int:
        """Of the machine's memory: shard (a file of weights while it is read), program. KeyError for another."""
        return {row["name"]: int(row["bytes"]) for row in self.raw("memory")["host"]}[name]

    def gathered(self, name: str) -> int:
        """How many parameters a sharded run handles at once."""
        for row in self.raw("memory")["gather"]:
            if row["name"] == name:
                return int(row["parameters"])
        return 0

    def _range(self, table: str, name: str, column: str) -> Range:
        data = self.raw("memory")
        row = next(row for row in data[table] if row["name"] == name)
        return Range(row["low"], row[column], row["high"], origin(data, row)[0])

    def _make_optimizers(self) -> dict[str, Optimizer]:
        data = self.raw("memory")
        found = {}
        for row in data["optimizer"]:
            made = _filled(Optimizer, row, origin(data, row)[0])
            for name in (row["name"], *row.get("also", ())):
                found[name] = made
        return found


_EMPTY = {"str": "", "bool": False, "int": 0, "float": 0.0}


def _filled(kind: Any, row: dict[str, Any], source: str) -> Any:
    """A record out of a row; what the row leaves out is empty, false or nought."""
    types = kind.__annotations__
    values = {name: row.get(name, _EMPTY[types[name]]) for name in kind._fields}
    return kind(**{**values, "source": source})
