"""config.json: what Hugging Face's libraries write beside the weights of a model.

{
  "architectures": ["LlamaForCausalLM"],
  "hidden_size": 4096,
  "model_type": "llama",
  "num_hidden_layers": 32,
  ...
}
"""

from __future__ import annotations

import json
from typing import Any

from .errors import ParseError, unlike

# The longest that are published name ten thousands of classes and take some 2 MB.
MOST_BYTES = 8 << 20
MOST_DIGITS = 40


def read_config(text: bytes) -> dict[str, Any]:
    """The object that the file holds. ParseError where it is none, too large, nested too deeply or no JSON."""
    if len(text) > MOST_BYTES:
        raise ParseError(f"config.json has {len(text)} bytes: no config is that long")
    try:
        read = json.loads(text.decode("utf-8-sig"), parse_int=_number)
    except UnicodeDecodeError:
        raise ParseError("config.json is not text in UTF-8") from None
    except RecursionError:
        raise ParseError("config.json is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise ParseError(f"config.json is not JSON: {error.msg} in line {error.lineno}") from None
    if not isinstance(read, dict):
        raise unlike("a config: it is no JSON object", type(read).__name__)
    return read


def _number(digits: str) -> int:
    # Python takes quadratic time for a number of a million digits.
    if len(digits) > MOST_DIGITS:
        raise ParseError(f"config.json holds a number of {len(digits)} digits")
    return int(digits)
