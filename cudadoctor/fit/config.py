"""From the config.json of a model to what it is built of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cudadoctor.fit.architecture import Architecture, Model
from cudadoctor.parse.errors import ParseError


def model_of_config(config: Mapping[str, Any], name: str) -> Model:
    """The model that a Hugging Face config describes. ParseError, one sentence, where it is broken, contradicts itself
    or is of an architecture that is not known."""
    from cudadoctor.fit.families import read

    family = config.get("model_type", config.get("_class_name"))
    if not isinstance(family, str):
        raise ParseError(f"config: the architecture {family!a} is not known")
    return Model(read(name, family, config), "bf16")


def architecture_of_config(config: Mapping[str, Any], name: str) -> Architecture:
    return model_of_config(config, name).architecture
