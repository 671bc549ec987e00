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
_LEAST, _MOST = 10**6, 10**13


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
        raise ParseError(f"no model has {text.strip()[:20]} parameters: 1M to 10T are taken")
    rows = matrix.typical_models()
    row = min(rows, key=lambda one: max(one.parameters, wanted) / min(one.parameters, wanted))
    name = text.strip().lower()
    config, model = dict(row.config), model_of_config(row.config, name)
    if not 0.98 <= wanted / row.parameters <= 1.02:
        config = scaled(config, wanted / row.parameters)
        model = model_of_config(config, name)
    # The feed-forward width takes what is left, so that the total is the one that was asked for.
    model = _matched(config, wanted, name, model)
    shape = model.architecture._replace(name=name, guessed=True, source=f"{row.source} ({row.checked})")
    plan = f"{shape.layer_count} layers and a hidden width of {shape.hidden}"
    said = f"{name} is only a size: a dense decoder with {plan} is assumed"
    return Model(shape, "bf16", notes=(said,))


def scaled(config: dict[str, Any], factor: float) -> dict[str, Any]:
    """The same plan at another size: depth and width grow alike, widths in steps of a head."""
    made = dict(config)
    side = factor ** (1 / 3)
    width = made["head_dim"]
    made["num_hidden_layers"] = max(2, round(config["num_hidden_layers"] * side))
    groups = max(1, round(config["num_attention_heads"] * side / config["num_key_value_heads"]))
    kv_heads = config["num_key_value_heads"] if groups * config["num_key_value_heads"] * width >= width else 1
    made["num_attention_heads"] = groups * kv_heads
    made["num_key_value_heads"] = kv_heads
    made["hidden_size"] = made["num_attention_heads"] * width
    made["intermediate_size"] = max(
        64, round(config["intermediate_size"] * made["hidden_size"] / config["hidden_size"])
    )
    return made


def _matched(config: dict[str, Any], wanted: int, name: str, model: Model) -> Model:
    layers, hidden = config["num_hidden_layers"], config["hidden_size"]
    left = wanted - model.architecture.parameters
    width = config["intermediate_size"] + round(left / (3 * hidden * layers))
    if width < hidden:
        return model
    return model_of_config({**config, "intermediate_size": width}, name)
