"""A model of which nobody said more than its size: 7b, 350M, 1.5T."""

from __future__ import annotations

import re
from typing import Any, Optional

from cudadoctor.fit.architecture import Model
from cudadoctor.fit.config import model_of_config
from cudadoctor.matrix import Matrix
from cudadoctor.model.pattern import pattern
from cudadoctor.parse.errors import ParseError

_SIZE = pattern(r"\s*(\d{1,6}(?:\.\d{1,4})?)\s*([mbt])\s*\Z", re.ASCII | re.IGNORECASE)
_UNIT = {"m": 10**6, "b": 10**9, "t": 10**12}
_LEAST, _MOST = 10**7, 10**13


def size_of(text: str) -> Optional[int]:
    """Parameters; None for what is no size at all."""
    match = _SIZE.match(text)
    return round(float(match.group(1)) * _UNIT[match.group(2).lower()]) if match else None


def model_of_size(matrix: Matrix, text: str) -> Model:
    """A dense decoder as they mostly are at that size, marked as guessed. ParseError for what is no size."""
    wanted = size_of(text)
    if wanted is None:
        raise ParseError(f"this is not a size such as 7b: {text[:60]!a}")
    if not _LEAST <= wanted <= _MOST:
        raise ParseError(f"no model has {text.strip()[:20]} parameters: 10M to 10T are taken")
    rows = matrix.typical_models()
    row = min(rows, key=lambda one: max(one.parameters, wanted) / min(one.parameters, wanted))
    name = text.strip().lower()
    config = dict(row.config)
    if not 0.98 <= wanted / row.parameters <= 1.02:
        config = _matched(_scaled(config, wanted / row.parameters), wanted, name)
    shape = model_of_config(config, name).architecture
    shape = shape._replace(name=name, guessed=True, source=f"{row.source} ({row.checked})")
    kv_heads = config["num_key_value_heads"]
    plan = f"{shape.layer_count} layers, a hidden width of {shape.hidden}, {kv_heads} key/value heads"
    plan += f" and a vocabulary of {shape.vocabulary}"
    return Model(shape, "bf16", notes=(f"{name} is only a size: a dense decoder with {plan} is assumed",))


def _scaled(config: dict[str, Any], factor: float) -> dict[str, Any]:
    """The same plan at another size: depth and width grow alike, the width in steps of a head."""
    side = factor ** (1 / 3)
    heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    made = dict(config)
    made["num_hidden_layers"] = max(2, round(config["num_hidden_layers"] * side))
    made["num_key_value_heads"] = kv_heads if round(heads * side) >= kv_heads else 1
    step = made["num_key_value_heads"]
    made["num_attention_heads"] = max(1, round(heads * side / step)) * step
    made["hidden_size"] = max(1, round(config["hidden_size"] * made["num_attention_heads"] / heads))
    return made


def _matched(config: dict[str, Any], wanted: int, name: str) -> dict[str, Any]:
    """The width of the feed-forward part takes what is left, so that the total is the one that was asked for."""
    layers, hidden = config["num_hidden_layers"], config["hidden_size"]
    config = {
        **config,
        "vocab_size": min(config["vocab_size"], max(256, wanted // (3 * hidden))),
        "intermediate_size": 1,
    }
    left = wanted - model_of_config(config, name).architecture.parameters
    return {**config, "intermediate_size": max(1, 1 + round(left / (3 * hidden * layers)))}
