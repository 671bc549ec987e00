"""Families of models: the config of each to an Architecture with all its tensors.

One file a group of families. A file has FAMILIES, by the model_type of a Hugging Face config or the _class_name of a
diffusers one, and read(name, family, config); it is imported when a config may ask for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Callable

from cudadoctor.fit.architecture import Architecture
from cudadoctor.parse.errors import ParseError

Read = Callable[[str, str, Mapping[str, Any], str], Architecture]


def read(name: str, family: str, config: Mapping[str, Any], where: str = "") -> Architecture:
    """`where` is the part of a larger config that this is. ParseError where the family is not known, or the config is
    broken."""
    for families, reads in _files():
        if family in families:
            return reads(name, family, config, where)
    raise ParseError(f"the architecture {family[:60]!a} is not known")


def is_known(family: str) -> bool:
    return any(family in families for families, _ in _files())


def known() -> tuple[str, ...]:
    """Every family, in the order of the files."""
    return tuple(dict.fromkeys(family for families, _ in _files() for family in families))


def _files() -> Iterator[tuple[Mapping[str, Any], Read]]:
    from . import decoders

    yield decoders.FAMILIES, decoders.read
    from . import latent

    yield latent.FAMILIES, latent.read
    from . import multimodal

    yield multimodal.FAMILIES, multimodal.read
    from . import encoders

    yield encoders.FAMILIES, encoders.read
    from . import encoder_decoders

    yield encoder_decoders.FAMILIES, encoder_decoders.read
    from . import vision

    yield vision.FAMILIES, vision.read
    from . import diffusion

    yield diffusion.FAMILIES, diffusion.read
    from . import hybrids

    yield hybrids.FAMILIES, hybrids.read
