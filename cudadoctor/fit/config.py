"""From the config.json of a model to what it is built of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cudadoctor.fit.architecture import Architecture, Model
from cudadoctor.parse.errors import ParseError

_TYPES = {"float32": "fp32", "float": "fp32", "float16": "fp16", "half": "fp16", "bfloat16": "bf16"}
_MOST_NAME = 60


def model_of_config(config: Mapping[str, Any], name: str) -> Model:
    """The model that a config of transformers or diffusers describes. `weights` follows quantization_config, else the
    type of its numbers. ParseError, one sentence, where it is broken, contradicts itself or is of an architecture that
    is not known."""
    _refuse_without_sizes(config)
    architecture = architecture_of_config(config, name)
    weights, notes = weights_of_config(config)
    return Model(architecture, weights, notes=(*_taken(config, architecture), *notes))


def architecture_of_config(config: Mapping[str, Any], name: str) -> Architecture:
    """The same without the question how the weights are stored. What the config leaves out, be it all, is as the
    family's class has it."""
    from cudadoctor.fit.families import is_known, read

    family = family_of(config)
    try:
        if not is_known(family):
            raise ParseError(_unknown(config, family))
        return read(name, family, config)
    except RecursionError:
        raise ParseError("config: it is nested too deeply") from None


# What decides the size of a model, by any of its names.
_WIDTH = ("hidden_size", "n_embd", "n_embed", "d_model", "dim", "model_dim", "embed_dim", "hidden_sizes")
_WIDTH_OF_A_DENOISER = ("attention_head_dim", "num_attention_heads", "block_out_channels", "cross_attention_dim")
_DEPTH = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers", "depths", "depth")
_DEPTH_OF_A_DENOISER = (*_DEPTH, "block_out_channels", "cross_attention_dim")
_DEPTH_TOO = ("hybrid_override_pattern", "layers_block_type", "layer_types")
_WORDS = ("vocab_size", "padded_vocab_size", "n_vocab")


def _says(config: Mapping[str, Any], keys: tuple[str, ...]) -> bool:
    return any(config.get(key) is not None for key in keys)


def _refuse_without_sizes(config: Mapping[str, Any]) -> None:
    """A whole config.json says how wide and how deep the model is. Inside of others, what is as the class has it is
    left out when it is saved."""
    family = family_of(config)
    if any(isinstance(config.get(key), Mapping) for key in ("text_config", "vision_config", "thinker_config")):
        return
    is_denoiser = "model_type" not in config and "_class_name" in config
    missing = []
    if not _says(config, _DEPTH_OF_A_DENOISER if is_denoiser else (*_DEPTH, *_DEPTH_TOO)):
        missing.append("num_layers" if is_denoiser else "num_hidden_layers")
    if not _says(config, _WIDTH_OF_A_DENOISER if is_denoiser else _WIDTH):
        missing.append("attention_head_dim" if is_denoiser else "hidden_size")
    from cudadoctor.fit.families import is_known

    if missing and is_known(family):
        what = " and ".join(missing)
        raise ParseError(
            f"config: {what} {'is' if len(missing) == 1 else 'are'} missing: this is not all of a config.json"
        )


def _taken(config: Mapping[str, Any], made: Architecture) -> tuple[str, ...]:
    """Says which of the sizes that decide the config leaves to its class."""
    inner = config.get("text_config")
    parts = (config, inner if isinstance(inner, Mapping) else {})
    if "model_type" not in config and "_class_name" in config:
        return ()
    found = [
        f"{key} {value}"
        for key, names, value in (
            ("num_hidden_layers", (*_DEPTH, *_DEPTH_TOO), made.layer_count),
            ("hidden_size", _WIDTH, made.hidden),
            ("vocab_size", _WORDS, made.vocabulary),
        )
        if value and not any(_says(part, names) for part in parts)
    ]
    return (f"its config leaves out what its class takes: {', '.join(found)}",) if found else ()


def family_of(config: Mapping[str, Any]) -> str:
    """model_type or _class_name of the config; where it has neither, what its first class is called after. ParseError
    for files that are something else."""
    found = config.get("model_type", config.get("_class_name"))
    if isinstance(found, str) and found:
        if found.endswith("Pipeline"):
            raise ParseError(f"this is the model_index.json of a {_shown(found)}: give config.json of its denoiser")
        return found
    if found is not None and found != "":
        raise ParseError("config: model_type is not a text")
    for key, what in (
        ("peft_type", "of an adapter: give the config of its base model"),
        ("tokenizer_class", "of a tokenizer: give config.json of the model"),
        ("bos_token_id", "for generation: give config.json of the model"),
    ):
        if key in config and not any(one in config for one in ("hidden_size", "architectures", "n_embd", "d_model")):
            raise ParseError(f"this is a config {what}")
    from cudadoctor.fit.families import known

    classes = config.get("architectures")
    first = classes[0] if isinstance(classes, list) and classes and isinstance(classes[0], str) else ""
    stem = first.split("For", 1)[0].lower()
    for family in known():
        if stem and stem in (family.replace("_", "").replace("-", ""), family + "model", family + "lmheadmodel"):
            return family
    if first:
        raise ParseError(f"config: model_type is missing, and the class {_shown(first)} is not known")
    raise ParseError("config: model_type is missing: this is not the config.json of a model")


def _shown(text: str) -> str:
    return ascii(text if len(text) <= _MOST_NAME else text[: _MOST_NAME - 3] + "...")


def _unknown(config: Mapping[str, Any], family: str) -> str:
    """What can be said of an architecture that is not known: what it calls itself, and what is like it."""
    from cudadoctor.fit.families import is_known

    said = f"config: the architecture {_shown(family)} is not known"
    inner = config.get("text_config")
    if isinstance(inner, Mapping) and isinstance(inner.get("model_type"), str) and is_known(inner["model_type"]):
        return f"{said}; its text_config alone, a {inner['model_type']}, would be"
    facts = []
    for key, word in (("num_hidden_layers", "layers"), ("hidden_size", "of hidden width"), ("vocab_size", "words")):
        value = config.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 10**9:
            facts.append(f"{value} {word}")
    return f"{said} ({', '.join(facts)}): give a file of its weights, or a size such as 7b" if facts else said


# -- how the weights are stored


def weights_of_config(config: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    """A name of compat/quantisations.toml, and what has to be said about it."""
    quantised = config.get("quantization_config", config.get("compression_config"))
    inner = config.get("text_config")
    if quantised is None and isinstance(inner, Mapping):
        quantised = inner.get("quantization_config")
    if quantised is not None:
        if not isinstance(quantised, Mapping):
            raise ParseError("config: quantization_config is not an object")
        found = _quantised(quantised)
        if found:
            return found, _group_note(quantised)
        method = quantised.get("quant_method")
        called = _shown(method) if isinstance(method, str) else "an unnamed method"
        return _dtype(config) or "bf16", (
            f"its weights are quantised by {called} in a way that is not known: counted as if they were not",
        )
    said = _dtype(config)
    if said:
        return said, ()
    return "bf16", ("its config does not say the type of its weights: 16 bits a number are assumed",)


def _dtype(config: Mapping[str, Any]) -> str:
    inner = config.get("text_config")
    for part in (config, inner if isinstance(inner, Mapping) else {}):
        for key in ("torch_dtype", "dtype"):
            found = part.get(key)
            if isinstance(found, str) and found.replace("torch.", "") in _TYPES:
                return _TYPES[found.replace("torch.", "")]
    return ""


def _quantised(said: Mapping[str, Any]) -> str:
    method = said.get("quant_method")
    bits = said.get("bits", said.get("w_bit"))
    if method == "bitsandbytes" or (method is None and ("load_in_4bit" in said or "load_in_8bit" in said)):
        if said.get("load_in_8bit") is True:
            return "int8"
        if said.get("load_in_4bit") is True:
            return "nf4-dq" if said.get("bnb_4bit_use_double_quant") is True else "nf4"
        return ""
    if method == "gptq":
        return {4: "gptq-int4", 8: "gptq-int8"}.get(bits, "") if isinstance(bits, int) else ""
    if method == "awq":
        return "awq" if bits == 4 else ""
    if method == "fp8":
        return "fp8" if said.get("weight_block_size") is not None else "fp8-channel"
    if method == "fbgemm_fp8":
        return "fp8-channel"
    if method == "mxfp4":
        return "mxfp4"
    if method == "modelopt":
        return {"NVFP4": "nvfp4", "FP8": "fp8-channel"}.get(str(said.get("quant_algo"))[:20], "")
    if method == "compressed-tensors":
        return _compressed(said)
    return ""


def _compressed(said: Mapping[str, Any]) -> str:
    groups = said.get("config_groups")
    if not isinstance(groups, Mapping) or len(groups) != 1:
        return ""
    group = next(iter(groups.values()))
    weights = group.get("weights") if isinstance(group, Mapping) else None
    if not isinstance(weights, Mapping):
        return ""
    kind, bits, strategy = weights.get("type"), weights.get("num_bits"), weights.get("strategy")
    if kind == "float" and bits == 8:
        return "fp8" if strategy == "block" else "fp8-channel"
    if kind == "float" and bits == 4:
        return "nvfp4" if weights.get("group_size") == 16 else ""
    if kind == "int" and bits == 8:
        return "w8a8"
    return "w4a16" if kind == "int" and bits == 4 else ""


def _group_note(said: Mapping[str, Any]) -> tuple[str, ...]:
    size = said.get("group_size", said.get("q_group_size"))
    if said.get("quant_method") not in ("gptq", "awq"):
        return ()
    if isinstance(size, int) and not isinstance(size, bool) and size not in (0, 128):
        shown = "whole rows" if size < 0 else f"{size} numbers" if size < 10**6 else "many numbers"
        return (f"its scales are shared by {shown}; groups of 128 are counted",)
    return ()
