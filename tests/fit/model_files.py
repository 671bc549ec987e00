"""Files of models, written by the real libraries `gguf` and `safetensors`. Their tensors are holes in sparse files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import gguf
import numpy

Tensors = Mapping[str, tuple[tuple[int, ...], str]]
"""Name -> shape as torch has it, and the type's name."""


def bytes_of(shape: Sequence[int], kind: str) -> int:
    values, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[kind]]
    count = 1
    for length in shape:
        count *= length
    return count // values * size


def write_gguf(path: Path, family: str, keys: Mapping[str, Any], tensors: Tensors, big_endian: bool = False) -> None:
    """A whole file. `keys` that begin with a dot are those of the architecture."""
    order = gguf.GGUFEndian.BIG if big_endian else gguf.GGUFEndian.LITTLE
    writer = gguf.GGUFWriter(None, family, endianess=order)
    for key, value in keys.items():
        name = family + key if key.startswith(".") else key
        if isinstance(value, bool):
            writer.add_bool(name, value)
        elif isinstance(value, int):
            writer.add_uint32(name, value)
        elif isinstance(value, float):
            writer.add_float32(name, value)
        elif isinstance(value, str):
            writer.add_string(name, value)
        else:
            writer.add_array(name, value)
    at = 0
    for name, (shape, kind) in tensors.items():
        size = bytes_of(shape, kind)
        writer.add_tensor_info(name, shape, numpy.dtype("float32"), size, gguf.GGMLQuantizationType[kind])
        at = -(-at // 32) * 32 + size
    writer.write_header_to_file(path)
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    writer.close()
    with path.open("r+b") as file:
        head = file.seek(0, 2)
        file.truncate(-(-head // 32) * 32 + at)


def llama_keys(layers: int = 2, **more: Any) -> dict[str, Any]:
    """Eight heads, two for keys and values, over a width of 256."""
    keys = {
        ".block_count": layers,
        ".context_length": 4096,
        ".embedding_length": 256,
        ".feed_forward_length": 512,
        ".attention.head_count": 8,
        ".attention.head_count_kv": 2,
        ".attention.layer_norm_rms_epsilon": 1e-5,
    }
    return {**keys, **more}


def llama_tensors(layers: int = 2, kind: str = "Q4_K", down: str = "Q6_K", tied: bool = False) -> dict[str, Any]:
    made: dict[str, Any] = {"token_embd.weight": ((1000, 256), kind), "output_norm.weight": ((256,), "F32")}
    if not tied:
        made["output.weight"] = ((1000, 256), "Q6_K")
    for layer in range(layers):
        at = f"blk.{layer}."
        for name, out, into in (("q", 256, 256), ("k", 64, 256), ("v", 64, 256), ("output", 256, 256)):
            made[f"{at}attn_{name}.weight"] = ((out, into), kind)
        made[at + "ffn_gate.weight"] = ((512, 256), kind)
        made[at + "ffn_up.weight"] = ((512, 256), kind)
        made[at + "ffn_down.weight"] = ((256, 512), down)
        made[at + "attn_norm.weight"] = made[at + "ffn_norm.weight"] = ((256,), "F32")
    return made


def write_safetensors(path: Path, tensors: Tensors) -> None:
    """By the real library, so with real (small) tensors."""
    from safetensors.numpy import save_file

    types = {"F16": "float16", "F32": "float32", "I32": "int32", "U8": "uint8", "I8": "int8"}
    save_file({name: numpy.zeros(shape, types[kind]) for name, (shape, kind) in tensors.items()}, str(path))


_BITS = {"BF16": 16, "F16": 16, "F32": 32, "F8_E4M3": 8, "I8": 8, "U8": 8, "I32": 32, "I64": 64}


def header_of(tensors: Tensors, **changed: Any) -> bytes:
    """The header of a safetensors file, for what the library would not write: other types, and what is wrong.
    `changed`: entries of tensors, as they are to stand there."""
    entries: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    at = 0
    for name, (shape, kind) in tensors.items():
        count = 1
        for length in shape:
            count *= length
        size = count * _BITS[kind] // 8
        entries[name] = {"dtype": kind, "shape": list(shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps({**entries, **changed}).encode()
    return len(text).to_bytes(8, "little") + text


def write_sparse(path: Path, tensors: Tensors) -> int:
    """A safetensors file whose data is a hole; its size is returned."""
    head = header_of(tensors)
    ends = [entry["data_offsets"][1] for name, entry in json.loads(head[8:]).items() if name != "__metadata__"]
    path.write_bytes(head)
    with path.open("r+b") as file:
        file.truncate(len(head) + max(ends))
    return len(head) + max(ends)


def hf_llama(layers: int = 2, hidden: int = 256, kind: str = "F16", tied: bool = False) -> dict[str, Any]:
    """A decoder in the names of transformers; keys and values have a quarter of the width."""
    words = 1000
    made: dict[str, Any] = {
        "model.embed_tokens.weight": ((words, hidden), kind),
        "model.norm.weight": ((hidden,), kind),
    }
    if not tied:
        made["lm_head.weight"] = ((words, hidden), kind)
    for layer in range(layers):
        at = f"model.layers.{layer}."
        for name, out in (("q", hidden), ("k", hidden // 4), ("v", hidden // 4), ("o", hidden)):
            made[f"{at}self_attn.{name}_proj.weight"] = ((out, hidden), kind)
        made[at + "mlp.gate_proj.weight"] = made[at + "mlp.up_proj.weight"] = ((2 * hidden, hidden), kind)
        made[at + "mlp.down_proj.weight"] = ((hidden, 2 * hidden), kind)
        made[at + "input_layernorm.weight"] = made[at + "post_attention_layernorm.weight"] = ((hidden,), kind)
    return made


def hf_config(layers: int = 2, hidden: int = 256, tied: bool = False, **more: Any) -> dict[str, Any]:
    return {
        "model_type": "llama",
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "intermediate_size": 2 * hidden,
        "vocab_size": 1000,
        "tie_word_embeddings": tied,
        "max_position_embeddings": 4096,
        **more,
    }
