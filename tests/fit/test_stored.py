"""Models out of safetensors files: exact bytes, how they are stored, and what they are built of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from model_files import header_of, hf_config, hf_llama, write_safetensors, write_sparse

from cudadoctor.cli._model_files import model_of_path
from cudadoctor.cli._words import InputError
from cudadoctor.fit.architecture import Model, Stored
from cudadoctor.fit.quantisation import tensor_bytes, weight_bytes
from cudadoctor.matrix import Matrix


def read(matrix: Matrix, folder: Path, tensors: Any, config: Any = None) -> Model:
    path = folder / "model.safetensors"
    write_sparse(path, tensors)
    if config is not None:
        (folder / "config.json").write_text(json.dumps(config))
    return model_of_path(matrix, str(path))


def stored(model: Model) -> Stored:
    assert model.stored is not None
    return model.stored


@pytest.mark.parametrize("with_config", [True, False])
def test_a_decoder_that_the_real_library_wrote(matrix: Matrix, tmp_path: Path, with_config: bool) -> None:
    """The same comes out of the config and out of names and shapes, but for what these do not say."""
    path = tmp_path / "model.safetensors"
    write_safetensors(path, hf_llama())
    if with_config:
        (tmp_path / "config.json").write_text(json.dumps(hf_config()))
    model = model_of_path(matrix, str(path))
    shape = model.architecture
    assert (shape.hidden, shape.vocabulary, shape.layer_count, shape.tied) == (256, 1000, 2, False)
    run = shape.layers[0]
    assert run.attention is not None and run.attention.kv_width == 64
    assert run.feed_forward == (512, True, 0, 0, 0)
    assert shape.parameters == stored(model).elements
    assert stored(model).total == path.stat().st_size - 8 - int.from_bytes(path.read_bytes()[:8], "little")
    assert model.weights == stored(model).scheme == "fp16"
    assert bool(model.notes) is not with_config


def test_what_a_file_alone_does_not_say_is_said(matrix: Matrix, tmp_path: Path) -> None:
    assert read(matrix, tmp_path, hf_llama()).notes == (
        "The width of a head stands in config.json, which is missing: 64 is taken. The KV cache does not depend on it. "
        "A sliding window would stand there, too: none is taken.",
    )


def test_norms_of_queries_tell_the_width_of_a_head(matrix: Matrix, tmp_path: Path) -> None:
    tensors = hf_llama()
    for layer in range(2):
        for name in ("q", "k"):
            tensors[f"model.layers.{layer}.self_attn.{name}_norm.weight"] = ((32,), "F16")
    model = read(matrix, tmp_path, tensors)
    attention = model.architecture.layers[0].attention
    assert attention is not None and attention[:4] == ("full", 8, 2, 32)
    assert attention.qk_norm and not model.notes


def test_experts_without_a_config(matrix: Matrix, tmp_path: Path) -> None:
    tensors = hf_llama(1)
    for name, shape in (("w1", (128, 256)), ("w2", (256, 128)), ("w3", (128, 256))):
        for number in range(4):
            tensors[f"model.layers.0.block_sparse_moe.experts.{number}.{name}.weight"] = (shape, "F16")
    tensors["model.layers.0.block_sparse_moe.gate.weight"] = ((4, 256), "F16")
    for name in ("gate", "up", "down"):
        del tensors[f"model.layers.0.mlp.{name}_proj.weight"]
    model = read(matrix, tmp_path, tensors)
    assert model.architecture.layers[0].feed_forward == (128, True, 4, 4, 0)
    assert any("How many experts a token visits" in note for note in model.notes)


def test_the_head_that_is_the_embedding_is_loaded_once(matrix: Matrix, tmp_path: Path) -> None:
    """Many files hold it twice; whoever loads them ties it."""
    twice = read(matrix, tmp_path, hf_llama(), hf_config(tied=True))
    assert any("twice" in note for note in twice.notes)
    once = read(matrix, tmp_path, hf_llama(tied=True), hf_config(tied=True))
    assert stored(twice).total == stored(once).total == 2 * once.architecture.parameters
    assert not once.notes


def test_what_is_made_anew_when_it_is_loaded_does_not_count(matrix: Matrix, tmp_path: Path) -> None:
    tensors = hf_llama()
    bare = stored(read(matrix, tmp_path, tensors, hf_config())).total
    tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = ((16,), "F32")
    tensors["transformer.h.0.attn.bias"] = ((1, 1, 1024, 1024), "F32")
    assert stored(read(matrix, tmp_path, tensors, hf_config())).total == bare


def test_layers_that_guess_ahead_are_not_loaded(matrix: Matrix, tmp_path: Path) -> None:
    model = read(matrix, tmp_path, hf_llama(3), hf_config(2))
    assert stored(model).total == 2 * model.architecture.parameters
    assert any("several tokens ahead" in note for note in model.notes)


def test_files_that_hold_less_than_the_config_says(matrix: Matrix, tmp_path: Path) -> None:
    model = read(matrix, tmp_path, hf_llama(1), hf_config(2))
    assert any("less than config.json describes: they are what is counted" in note for note in model.notes)


def test_the_tensors_of_a_file_add_up(matrix: Matrix, tmp_path: Path) -> None:
    model = read(matrix, tmp_path, hf_llama(kind="BF16"), hf_config())
    assert model.weights == "bf16"
    assert sum(size for _, size in tensor_bytes(matrix, model)) == weight_bytes(matrix, model) == stored(model).total


# -- quantised checkpoints


def quantised(change: Any) -> dict[str, Any]:
    """The decoder, with what `change` makes of each matrix of its layers."""
    made: dict[str, Any] = {}
    for name, (shape, kind) in hf_llama().items():
        if name.endswith("_proj.weight"):
            made.update(change(name[: -len(".weight")], *shape))
        else:
            made[name] = (shape, kind)
    return made


def gptq(bits: int, g_idx: bool = True) -> Any:
    def change(name: str, out: int, into: int) -> dict[str, Any]:
        made = {
            f"{name}.qweight": ((into * bits // 32, out), "I32"),
            f"{name}.qzeros": ((into // 128, out * bits // 32), "I32"),
            f"{name}.scales": ((into // 128, out), "F16"),
        }
        return {**made, f"{name}.g_idx": ((into,), "I32")} if g_idx else made

    return change


def awq(name: str, out: int, into: int) -> dict[str, Any]:
    return {
        f"{name}.qweight": ((into, out // 8), "I32"),
        f"{name}.qzeros": ((into // 128, out // 8), "I32"),
        f"{name}.scales": ((into // 128, out), "F16"),
    }


def fp8(name: str, out: int, into: int) -> dict[str, Any]:
    return {
        f"{name}.weight": ((out, into), "F8_E4M3"),
        f"{name}.weight_scale_inv": ((-(-out // 128), -(-into // 128)), "F32"),
    }


def fp8_channel(name: str, out: int, into: int) -> dict[str, Any]:
    return {f"{name}.weight": ((out, into), "F8_E4M3"), f"{name}.weight_scale": ((out, 1), "BF16")}


def w8a8(name: str, out: int, into: int) -> dict[str, Any]:
    return {f"{name}.weight": ((out, into), "I8"), f"{name}.weight_scale": ((out, 1), "BF16")}


def w4a16(name: str, out: int, into: int) -> dict[str, Any]:
    return {
        f"{name}.weight_packed": ((out, into // 8), "I32"),
        f"{name}.weight_scale": ((out, into // 128), "BF16"),
        f"{name}.weight_shape": ((2,), "I64"),
    }


def nf4(name: str, out: int, into: int) -> dict[str, Any]:
    return {
        f"{name}.weight": ((out * into // 2, 1), "U8"),
        f"{name}.weight.absmax": ((out * into // 64,), "F32"),
        f"{name}.weight.quant_map": ((16,), "F32"),
    }


def nf4_dq(name: str, out: int, into: int) -> dict[str, Any]:
    blocks = out * into // 64
    return {
        f"{name}.weight": ((out * into // 2, 1), "U8"),
        f"{name}.weight.absmax": ((blocks,), "U8"),
        f"{name}.weight.quant_map": ((16,), "F32"),
        f"{name}.weight.nested_absmax": ((-(-blocks // 256),), "F32"),
        f"{name}.weight.nested_quant_map": ((256,), "F32"),
    }


def int8(name: str, out: int, into: int) -> dict[str, Any]:
    return {f"{name}.weight": ((out, into), "I8"), f"{name}.SCB": ((out,), "F32")}


def nvfp4(name: str, out: int, into: int) -> dict[str, Any]:
    return {
        f"{name}.weight": ((out, into // 2), "U8"),
        f"{name}.weight_scale": ((out, into // 16), "F8_E4M3"),
        f"{name}.weight_scale_2": ((), "F32"),
        f"{name}.input_scale": ((), "F32"),
    }


QUANTISED = {
    "gptq-int4": gptq(4),
    "gptq-int8": gptq(8),
    "awq": awq,
    "fp8": fp8,
    "fp8-channel": fp8_channel,
    "w8a8": w8a8,
    "w4a16": w4a16,
    "nf4": nf4,
    "nf4-dq": nf4_dq,
    "int8": int8,
    "nvfp4": nvfp4,
}


@pytest.mark.parametrize("scheme", QUANTISED)
def test_a_quantised_checkpoint(matrix: Matrix, tmp_path: Path, scheme: str) -> None:
    """The scheme is seen in the names; the bytes are those of the file, and the scheme foretells them."""
    tensors = quantised(QUANTISED[scheme])
    size = len(header_of(tensors))
    model = read(matrix, tmp_path, tensors, hf_config())
    assert model.weights == stored(model).scheme == scheme
    assert stored(model).total == (tmp_path / "model.safetensors").stat().st_size - size
    assert stored(model).elements == model.architecture.parameters
    foretold = weight_bytes(matrix, model._replace(stored=None))
    assert foretold == pytest.approx(stored(model).total, rel=0.003)


def test_experts_in_mxfp4(matrix: Matrix, tmp_path: Path) -> None:
    """gpt-oss: blocks of 32 numbers with their scales, for the experts alone."""
    config = hf_config(1, model_type="gpt_oss", num_local_experts=4, num_experts_per_tok=2, head_dim=32)
    tensors = {name: one for name, one in hf_llama(1, kind="BF16").items() if ".mlp." not in name}
    for name in ("q", "k", "v", "o"):
        tensors[f"model.layers.0.self_attn.{name}_proj.bias"] = ((64 if name in "kv" else 256,), "BF16")
    at = "model.layers.0.mlp."
    tensors |= {
        "model.layers.0.self_attn.sinks": ((8,), "BF16"),
        at + "router.weight": ((4, 256), "BF16"),
        at + "router.bias": ((4,), "BF16"),
        at + "experts.gate_up_proj_blocks": ((4, 1024, 8, 16), "U8"),
        at + "experts.gate_up_proj_scales": ((4, 1024, 8), "U8"),
        at + "experts.gate_up_proj_bias": ((4, 1024), "BF16"),
        at + "experts.down_proj_blocks": ((4, 256, 16, 16), "U8"),
        at + "experts.down_proj_scales": ((4, 256, 16), "U8"),
        at + "experts.down_proj_bias": ((4, 256), "BF16"),
    }
    model = read(matrix, tmp_path, tensors, config)
    assert model.weights == "mxfp4"
    assert weight_bytes(matrix, model._replace(stored=None)) == pytest.approx(stored(model).total, rel=0.003)


def test_old_gptq_without_the_order_of_groups(matrix: Matrix, tmp_path: Path) -> None:
    assert read(matrix, tmp_path, quantised(gptq(4, g_idx=False)), hf_config()).weights == "gptq-int4"


@pytest.mark.parametrize(
    ("tensors", "config", "says"),
    [
        ({}, None, "it holds no tensors of a model"),
        (quantised(gptq(4)), None, "its tensors are packed, and do not show their shapes: config.json"),
        ({"a.weight": ((8, 8), "F16")}, None, "it has no embedding of a decoder: config.json"),
        (
            {**hf_llama(3), "model.layers.7.mlp.up_proj.weight": ((8, 8), "F16")},
            None,
            "not numbered one after the other",
        ),
        ({k: v for k, v in hf_llama(1).items() if "mlp" not in k}, None, "no feed-forward part that is known"),
        ({k: v for k, v in hf_llama(1).items() if "attn" not in k}, None, "no queries and keys of their own"),
        (
            {"base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight": ((8, 64), "F32")},
            None,
            "it holds a LoRA adapter, not a model",
        ),
    ],
)
def test_what_cannot_be_used_is_one_sentence(
    matrix: Matrix, tmp_path: Path, tensors: Any, config: Any, says: str
) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(header_of(tensors)) if not tensors else write_sparse(path, tensors)
    with pytest.raises(InputError) as told:
        model_of_path(matrix, str(path))
    assert says in str(told.value) and "\n" not in str(told.value)


def test_a_config_of_an_unknown_architecture(matrix: Matrix, tmp_path: Path) -> None:
    """The tensors show what it is; where they do not, the config's error is what is said."""
    model = read(matrix, tmp_path, hf_llama(), hf_config(model_type="brand_new"))
    assert model.architecture.layer_count == 2
    assert "names and shapes are what is read" in model.notes[0]
    with pytest.raises(InputError, match="brand_new"):
        read(matrix, tmp_path, quantised(gptq(4)), hf_config(model_type="brand_new"))
