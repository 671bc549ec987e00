"""A config's values, each checked where it is read: a wrong one ends in one sentence, never in a wrong number."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Optional

from cudadoctor.parse.errors import ParseError

# What no model comes near, with room for those of the next years. They keep a hostile config from costing time.
MOST_LAYERS = 4_096
MOST_WIDTH = 1 << 24
MOST_EXPERTS = 1 << 14
MOST_WORDS = 1 << 27
MOST_TOKENS = 1 << 32

# Transformers' own name of a value, and what older or foreign configs call it.
ALIASES: dict[str, tuple[str, ...]] = {
    "hidden_size": ("n_embd", "n_embed", "d_model", "dim", "model_dim"),
    "num_hidden_layers": ("n_layer", "n_layers", "num_layers"),
    "num_attention_heads": ("n_head", "n_heads", "num_heads", "attention_heads"),
    "num_key_value_heads": ("num_kv_heads", "n_head_kv", "n_kv_heads", "num_query_groups"),
    "head_dim": ("kv_channels", "attention_head_dim"),
    "intermediate_size": ("n_inner", "ffn_hidden_size", "ffn_dim", "d_ff", "hidden_dim", "d_inner"),
    "vocab_size": ("padded_vocab_size", "n_vocab"),
    "max_position_embeddings": ("n_positions", "n_ctx", "seq_length", "max_seq_len", "max_sequence_length"),
    "num_local_experts": ("num_experts", "n_routed_experts", "moe_num_experts"),
    "num_experts_per_tok": ("num_experts_per_token", "moe_topk", "moe_k", "experts_per_token", "num_selected_experts"),
}


class Reader:
    """`defaults` are what the family's own class takes for a value that the config leaves out: published configs do
    leave them out. `where` is the part of the config, such as "text_config", for the sentences of errors."""

    def __init__(
        self, config: Mapping[str, Any], defaults: Optional[Mapping[str, Any]] = None, where: str = ""
    ) -> None:
        self.config = config
        self.defaults = defaults or {}
        self.where = where

    def value(self, key: str) -> Any:
        """As it stands there, by any of its names; None where it is null there. Else the family's default."""
        names = (key, *ALIASES.get(key, ()))
        for name in names:
            found = self.config.get(name)
            if found is not None:
                return found
        if key in self.defaults and not any(name in self.config for name in names):
            return self.defaults[key]
        return None

    def has(self, key: str) -> bool:
        """Whether the config itself says it, be it null."""
        return any(name in self.config for name in (key, *ALIASES.get(key, ())))

    def _name(self, key: str) -> str:
        said = next((n for n in (key, *ALIASES.get(key, ())) if self.config.get(n) is not None), key)
        return f"{self.where}.{said}" if self.where else said

    def wrong(self, key: str, expected: str) -> ParseError:
        found = self.value(key)
        if isinstance(found, (list, tuple, Mapping)):  # of any length and depth
            shown = "an object" if isinstance(found, Mapping) else f"a list of {len(found)}"
        else:
            shown = ascii(found)
        return ParseError(
            f"config: {self._name(key)} is not {expected}: {shown if len(shown) < 60 else shown[:57] + '...'}"
        )

    def whole_or_none(self, key: str, most: int = MOST_WIDTH, least: int = 1) -> Optional[int]:
        """A whole number between the two; None where nothing is said."""
        found = self.value(key)
        if found is None:
            return None
        if isinstance(found, float) and math.isfinite(found) and found.is_integer():
            found = int(found)
        if isinstance(found, bool) or not isinstance(found, int):
            raise self.wrong(key, "a whole number")
        if not least <= found <= most:
            raise self.wrong(key, f"between {least} and {most}")
        return found

    def whole(self, key: str, most: int = MOST_WIDTH, least: int = 1) -> int:
        found = self.whole_or_none(key, most, least)
        if found is None:
            raise ParseError(f"config: {self._name(key)} is missing")
        return found

    def whole_or(self, key: str, default: int, most: int = MOST_WIDTH, least: int = 1) -> int:
        found = self.whole_or_none(key, most, least)
        return default if found is None else found

    def number_or(self, key: str, default: float) -> float:
        found = self.value(key)
        if found is None:
            return default
        if isinstance(found, bool) or not isinstance(found, (int, float)) or not 0 <= found <= MOST_WIDTH:
            raise self.wrong(key, "a number")  # NaN is not between anything
        return float(found)

    def flag(self, key: str, default: bool = False) -> bool:
        found = self.value(key)
        if found is None:
            return default
        if not isinstance(found, bool):
            if found in (0, 1):
                return bool(found)
            raise self.wrong(key, "true or false")
        return found

    def text(self, key: str, default: str = "") -> str:
        found = self.value(key)
        if found is None:
            return default
        if not isinstance(found, str):
            raise self.wrong(key, "a text")
        return found

    def wholes(
        self, key: str, most: int = MOST_WIDTH, least: int = 0, longest: int = MOST_LAYERS
    ) -> Optional[list[int]]:
        """A list of whole numbers."""
        found = self.value(key)
        if found is None:
            return None
        if not isinstance(found, (list, tuple)) or len(found) > longest:
            raise self.wrong(key, f"a list of at most {longest} numbers")
        if not all(isinstance(one, int) and not isinstance(one, bool) and least <= one <= most for one in found):
            raise self.wrong(key, f"a list of whole numbers between {least} and {most}")
        return list(found)

    def texts(self, key: str, longest: int = MOST_LAYERS) -> Optional[list[str]]:
        found = self.value(key)
        if found is None:
            return None
        if (
            not isinstance(found, (list, tuple))
            or len(found) > longest
            or not all(isinstance(one, str) for one in found)
        ):
            raise self.wrong(key, f"a list of at most {longest} words")
        return list(found)

    def part(self, key: str, defaults: Optional[Mapping[str, Any]] = None) -> Reader:
        """A config inside of this one, such as that of the vision tower; an empty one where it is left out."""
        found = self.value(key)
        if found is None:
            found = {}
        if not isinstance(found, Mapping):
            raise self.wrong(key, "an object")
        return Reader(found, defaults, f"{self.where}.{key}" if self.where else key)

    # -- what almost every family reads

    @property
    def layers(self) -> int:
        return self.whole("num_hidden_layers", MOST_LAYERS)

    @property
    def hidden(self) -> int:
        return self.whole("hidden_size")

    @property
    def vocabulary(self) -> int:
        return self.whole("vocab_size", MOST_WORDS)

    @property
    def max_context(self) -> Optional[int]:
        return self.whole_or_none("max_position_embeddings", MOST_TOKENS)

    def heads(self, hidden: int) -> tuple[int, int, int]:
        """Heads, heads of keys and values, width of a head. ParseError where they contradict each other."""
        heads = self.whole("num_attention_heads")
        kv_heads = self.whole_or("num_key_value_heads", heads)
        if heads % kv_heads:
            raise ParseError(
                f"config: {self._name('num_attention_heads')} {heads} cannot be shared out to "
                f"{self._name('num_key_value_heads')} {kv_heads}"
            )
        return heads, kv_heads, self.head_dim(hidden, heads)

    def head_dim(self, hidden: int, heads: int) -> int:
        found = self.whole_or_none("head_dim")
        if found is not None:
            return found
        if hidden % heads:
            raise ParseError(
                f"config: {self._name('num_attention_heads')} {heads} does not divide {self._name('hidden_size')} "
                f"{hidden}, and no head_dim is given"
            )
        return hidden // heads
