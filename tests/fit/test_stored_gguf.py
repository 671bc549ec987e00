"""Models out of GGUF files, written by the real library: what they are built of, and their exact bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import pytest
from model_files import bytes_of, llama_keys, llama_tensors, write_gguf

from cudadoctor.cli._model_files import model_of_path
from cudadoctor.cli._words import InputError
from cudadoctor.fit.architecture import FULL, LATENT, LINEAR, WINDOW, Attention, Model, Stored
from cudadoctor.fit.quantisation import tensor_bytes, weight_bytes
from cudadoctor.matrix import Matrix


def read(matrix: Matrix, folder: Path, family: str, keys: Any, tensors: Any, **more: Any) -> Model:
    path = folder / "model.gguf"
    write_gguf(path, family, keys, tensors, **more)
    return model_of_path(matrix, str(path))


def stored(model: Model) -> Stored:
    assert model.stored is not None
    return model.stored


@pytest.mark.parametrize("big_endian", [False, True])
def test_a_decoder(matrix: Matrix, tmp_path: Path, big_endian: bool) -> None:
    keys = {**llama_keys(), "general.file_type": 15, "general.name": "Tiny", "tokenizer.ggml.tokens": ["a"] * 1000}
    tensors = llama_tensors()
    model = read(matrix, tmp_path, "llama", keys, tensors, big_endian=big_endian)
    shape = model.architecture
    assert (shape.name, shape.family, shape.hidden, shape.vocabulary) == ("Tiny", "llama", 256, 1000)
    assert (shape.tied, shape.max_context, shape.layer_count) == (False, 4096, 2)
    run = shape.layers[0]
    assert run.attention is not None and run.feed_forward is not None
    assert run.attention[:4] == (FULL, 8, 2, 32)
    assert (run.feed_forward.intermediate, run.feed_forward.gated, run.norms, run.rms_norm) == (512, True, 2, True)
    assert model.weights == stored(model).scheme == "Q4_K_M"
    assert stored(model).total == sum(bytes_of(*one) for one in tensors.values()) == weight_bytes(matrix, model)
    assert shape.parameters == stored(model).elements


def test_the_real_library_counts_the_same_bytes(matrix: Matrix, tmp_path: Path) -> None:
    model = read(matrix, tmp_path, "llama", llama_keys(3), llama_tensors(3))
    by_type: dict[str, int] = {}
    for one in gguf.GGUFReader(tmp_path / "model.gguf").tensors:
        by_type[one.tensor_type.name] = by_type.get(one.tensor_type.name, 0) + int(one.n_bytes)
    assert stored(model).by_type == by_type


def test_each_tensor_has_the_bytes_of_the_file(matrix: Matrix, tmp_path: Path) -> None:
    """Layers of one file differ in their types: what adds up for a layer is what stands there."""
    tensors = llama_tensors(2)
    tensors["blk.1.ffn_down.weight"] = ((256, 512), "Q8_0")
    sizes = {
        one.name: size for one, size in tensor_bytes(matrix, read(matrix, tmp_path, "llama", llama_keys(), tensors))
    }
    assert sizes["down"] == bytes_of((256, 512), "Q6_K") + bytes_of((256, 512), "Q8_0")
    assert sizes["token_embedding"] == bytes_of((1000, 256), "Q4_K")
    assert sizes["output"] == bytes_of((1000, 256), "Q6_K")
    assert sizes["norm"] == 4 * 256 * 4


def test_without_a_head_the_embedding_is_it(matrix: Matrix, tmp_path: Path) -> None:
    assert read(matrix, tmp_path, "llama", llama_keys(), llama_tensors(tied=True)).architecture.tied


@pytest.mark.parametrize(
    ("file_type", "kind", "scheme"),
    [
        (15, "Q4_K", "Q4_K_M"),
        (14, "Q4_K", "Q4_K_S"),
        (1, "F16", "fp16"),
        (32, "BF16", "bf16"),
        (0, "F32", "fp32"),
        (7, "Q8_0", "Q8_0"),
        (30, "IQ4_XS", "IQ4_XS"),
        (None, "Q8_0", "Q8_0"),
        (None, "Q5_K", "Q5_K_M"),
        (None, "BF16", "bf16"),
        (1024, "Q6_K", "Q6_K"),
        (None, "I8", "mixed"),
    ],
)
def test_the_mixture(matrix: Matrix, tmp_path: Path, file_type: Any, kind: str, scheme: str) -> None:
    """As the file says; where it does not, what most of its bytes are."""
    keys = llama_keys() if file_type is None else {**llama_keys(), "general.file_type": file_type}
    assert stored(read(matrix, tmp_path, "llama", keys, llama_tensors(kind=kind, down=kind))).scheme == scheme


def test_heads_may_differ_from_layer_to_layer(matrix: Matrix, tmp_path: Path) -> None:
    keys = llama_keys(3, **{".attention.head_count_kv": [2, 4, 4], ".feed_forward_length": [512, 512, 512]})
    layers = read(matrix, tmp_path, "deci", keys, llama_tensors(3)).architecture.layers
    assert [run.attention.kv_heads for run in layers for _ in range(run.number) if run.attention] == [2, 4, 4]


def test_a_layer_without_attention(matrix: Matrix, tmp_path: Path) -> None:
    keys = llama_keys(2, **{".attention.head_count": [8, 0], ".attention.head_count_kv": [2, 0]})
    tensors = {name: one for name, one in llama_tensors().items() if not name.startswith("blk.1.attn")}
    layers = read(matrix, tmp_path, "deci", keys, tensors).architecture.layers
    assert [run.attention is None for run in layers] == [False, True]


def windows(model: Model) -> list[int]:
    runs = model.architecture.layers
    return [run.attention.window for run in runs for _ in range(run.number) if run.attention is not None]


@pytest.mark.parametrize(
    ("family", "keys", "expected"),
    [
        ("llama", {".attention.sliding_window": 64}, [0] * 6),
        ("gemma2", {}, [4096, 0] * 3),
        ("gemma3", {".attention.sliding_window": 512}, [512] * 5 + [0]),
        ("gpt-oss", {".attention.sliding_window": 128}, [128, 0] * 3),
        ("cohere2", {".attention.sliding_window": 64, ".attention.sliding_window_pattern": 3}, [64, 64, 0] * 2),
        (
            "gemma4",
            {".attention.sliding_window": 64, ".attention.sliding_window_pattern": [True, False, True] * 2},
            [64, 0, 64] * 2,
        ),
    ],
)
def test_sliding_windows(matrix: Matrix, tmp_path: Path, family: str, keys: Any, expected: list[int]) -> None:
    model = read(matrix, tmp_path, family, llama_keys(6, **keys), llama_tensors(6))
    assert windows(model) == expected
    kinds = [run.attention.kind for run in model.architecture.layers if run.attention is not None]
    assert set(kinds) == {WINDOW if window else FULL for window in expected}


@pytest.mark.parametrize(
    ("family", "layers", "keys", "cached"),
    [("gemma4", 6, {".attention.shared_kv_layers": 2}, 4), ("gemma3n", 22, {}, 20), ("llama", 6, {}, 6)],
)
def test_layers_that_use_the_cache_of_earlier_ones(
    matrix: Matrix, tmp_path: Path, family: str, layers: int, keys: Any, cached: int
) -> None:
    runs = read(matrix, tmp_path, family, llama_keys(layers, **keys), llama_tensors(layers)).architecture.layers
    heads = [run.attention.kv_heads for run in runs for _ in range(run.number) if run.attention is not None]
    assert heads == [2] * cached + [0] * (layers - cached)


def test_experts(matrix: Matrix, tmp_path: Path) -> None:
    keys = llama_keys(2, **{".expert_count": 16, ".expert_used_count": 4, ".expert_feed_forward_length": 64})
    tensors = llama_tensors()
    for name in ("gate", "up", "down"):
        del tensors[f"blk.1.ffn_{name}.weight"]
        shape = (256, 64) if name == "down" else (64, 256)
        tensors[f"blk.1.ffn_{name}_exps.weight"] = ((16, *shape), "Q8_0")
        shape = (256, 96) if name == "down" else (96, 256)
        tensors[f"blk.1.ffn_{name}_shexp.weight"] = (shape, "Q8_0")
    tensors["blk.1.ffn_gate_inp.weight"] = ((16, 256), "F32")
    shape_of = read(matrix, tmp_path, "qwen3moe", keys, tensors).architecture
    dense, sparse = (run.feed_forward for run in shape_of.layers)
    assert dense is not None and sparse is not None and not dense.experts
    assert sparse == (64, True, 16, 4, 96)
    experts = [one for one in shape_of.tensors if one.role == "expert"]
    assert {(one.name, one.shape, one.copies) for one in experts} == {
        ("gate", (64, 256), 16),
        ("up", (64, 256), 16),
        ("down", (256, 64), 16),
    }
    assert shape_of.active_parameters == shape_of.parameters - 12 * 3 * 64 * 256


def test_experts_of_the_first_files(matrix: Matrix, tmp_path: Path) -> None:
    """Before one tensor held all of a layer, each expert had its own."""
    tensors = llama_tensors(1)
    for name in ("gate", "up", "down"):
        shape = tensors.pop(f"blk.0.ffn_{name}.weight")
        for number in range(8):
            tensors[f"blk.0.ffn_{name}.{number}.weight"] = shape
    keys = llama_keys(1, **{".expert_count": 8, ".expert_used_count": 2})
    part = read(matrix, tmp_path, "llama", keys, tensors).architecture.layers[0].feed_forward
    assert part == (512, True, 8, 2, 0)


@pytest.mark.parametrize("absorbed", [False, True])
def test_latent_attention(matrix: Matrix, tmp_path: Path, absorbed: bool) -> None:
    """Files of before and after llama.cpp split kv_b: the cache is the same."""
    keys = llama_keys(
        1,
        **{
            ".attention.head_count_kv": 1 if absorbed else 8,
            ".attention.kv_lora_rank": 64,
            ".attention.q_lora_rank": 96,
            ".attention.key_length": 80 if absorbed else 48,
            ".attention.value_length": 64 if absorbed else 32,
            ".rope.dimension_count": 16,
        },
        **({".attention.key_length_mla": 48, ".attention.value_length_mla": 32} if absorbed else {}),
    )
    tensors = {name: one for name, one in llama_tensors(1).items() if "attn_q." not in name and "attn_k." not in name}
    del tensors["blk.0.attn_v.weight"]
    tensors["blk.0.attn_q_a.weight"] = ((96, 256), "F16")
    tensors["blk.0.attn_q_b.weight"] = ((8 * 48, 96), "F16")
    tensors["blk.0.attn_kv_a_mqa.weight"] = ((80, 256), "F16")
    if absorbed:
        tensors["blk.0.attn_k_b.weight"] = ((8, 64, 32), "F16")
        tensors["blk.0.attn_v_b.weight"] = ((8, 32, 64), "F16")
    else:
        tensors["blk.0.attn_kv_b.weight"] = ((8 * 64, 64), "F16")
    attention = read(matrix, tmp_path, "deepseek2", keys, tensors).architecture.layers[0].attention
    assert attention is not None
    assert (attention.kind, attention.heads, attention.head_dim, attention.value_dim) == (LATENT, 8, 48, 32)
    assert (attention.kv_rank, attention.rope_dim, attention.q_rank) == (64, 16, 96)


def test_layers_with_a_state(matrix: Matrix, tmp_path: Path) -> None:
    """Three convolution rows, and the state: what does not grow with the context."""
    keys = llama_keys(
        2, **{".ssm.conv_kernel": 4, ".ssm.inner_size": 128, ".ssm.state_size": 16, ".ssm.group_count": 2}
    )
    tensors = {name: one for name, one in llama_tensors().items() if not name.startswith("blk.0.attn_")}
    tensors["blk.0.attn_norm.weight"] = ((256,), "F32")
    tensors["blk.0.ssm_in.weight"] = ((300, 256), "F16")
    tensors["blk.0.ssm_conv1d.weight"] = ((192, 4), "F32")
    layers = read(matrix, tmp_path, "jamba", keys, tensors).architecture.layers
    assert layers[0].attention == Attention(LINEAR, 0, 0, 0, state=3 * (128 + 2 * 2 * 16) + 16 * 128)
    assert layers[1].attention is not None and layers[1].attention.kind == FULL


def test_packed_matrices(matrix: Matrix, tmp_path: Path) -> None:
    """Phi 3: queries, keys and values in one, gate and up in one."""
    tensors = llama_tensors(1)
    for name in ("attn_q", "attn_k", "attn_v", "ffn_gate"):
        del tensors[f"blk.0.{name}.weight"]
    tensors["blk.0.attn_qkv.weight"] = ((384, 256), "Q4_K")
    tensors["blk.0.ffn_up.weight"] = ((1024, 256), "Q4_K")
    run = read(matrix, tmp_path, "phi3", llama_keys(1), tensors).architecture.layers[0]
    assert run.attention is not None and run.attention.packed
    assert run.feed_forward == (512, True, 0, 0, 0)


def test_an_encoder_before_the_decoder(matrix: Matrix, tmp_path: Path) -> None:
    tensors = {}
    for name, one in llama_tensors().items():
        if name.startswith("blk."):
            tensors["enc." + name.replace("attn_output", "attn_o")] = one
            tensors["dec." + name.replace("attn_output", "attn_o")] = one
            if ".attn_" in name and "norm" not in name:
                tensors["dec." + name.replace("attn_output", "attn_o").replace("attn", "cross_attn")] = one
        else:
            tensors[name] = one
    shape = read(matrix, tmp_path, "t5", llama_keys(), tensors).architecture
    assert (shape.kind, [run.side for run in shape.layers]) == ("encoder-decoder", ["encoder", "decoder"])
    assert [run.cross is not None for run in shape.layers] == [False, True]


def test_an_encoder(matrix: Matrix, tmp_path: Path) -> None:
    keys = llama_keys(**{".attention.causal": False})
    assert read(matrix, tmp_path, "bert", keys, llama_tensors(tied=True)).architecture.kind == "encoder"


def test_layers_that_guess_ahead_keep_no_cache(matrix: Matrix, tmp_path: Path) -> None:
    tensors = llama_tensors(3)
    tensors["blk.2.nextn.eh_proj.weight"] = ((256, 512), "F16")
    model = read(matrix, tmp_path, "glm4moe", llama_keys(3), tensors)
    assert model.architecture.layer_count == 2
    assert stored(model).total == sum(bytes_of(*one) for one in tensors.values())
    assert "further tokens ahead" in model.notes[0]


def test_the_words_are_those_of_the_embedding(matrix: Matrix, tmp_path: Path) -> None:
    """It is often padded beyond the tokenizer's."""
    keys = {**llama_keys(), "tokenizer.ggml.tokens": ["a"] * 990}
    assert read(matrix, tmp_path, "llama", keys, llama_tensors()).architecture.vocabulary == 1000


LESS = {name: one for name, one in llama_tensors(2).items() if not name.startswith("blk.1.")}


@pytest.mark.parametrize(
    ("keys", "tensors", "says"),
    [
        (llama_keys(), LESS, "its metadata says 2 layers, its tensors are of 1, up to number 0"),
        (llama_keys(4_000_000_000), llama_tensors(), "its metadata says 4000000000 layers"),
        (llama_keys(), {"output_norm.weight": ((256,), "F32")}, "it holds no layers of a model"),
        ({**llama_keys(), ".embedding_length": "wide"}, llama_tensors(), "a count was expected"),
        ({**llama_keys(), ".embedding_length": 0}, llama_tensors(), "has no llama.embedding_length"),
        ({**llama_keys(), ".attention.head_count": 7}, llama_tensors(), "7 heads do not divide the 256"),
        ({**llama_keys(), ".attention.head_count_kv": 3}, llama_tensors(), "3 key heads do not divide the 8"),
        ({**llama_keys(), ".attention.head_count_kv": [2]}, llama_tensors(), "a count for each of 2 layers"),
        ({**llama_keys(), "general.type": "mmproj"}, llama_tensors(), "the vision or audio part of a model"),
        ({**llama_keys(), "general.type": "adapter"}, llama_tensors(), "it is an adapter, not a whole one"),
        ({**llama_keys(), "split.count": 3}, llama_tensors(), "one of 3 parts, of which 1 are there"),
    ],
)
def test_what_cannot_be_used_is_one_sentence(
    matrix: Matrix, tmp_path: Path, keys: Any, tensors: Any, says: str
) -> None:
    with pytest.raises(InputError) as told:
        read(matrix, tmp_path, "llama", keys, tensors)
    assert says in str(told.value)
    assert str(told.value).startswith("cannot use '") and "\n" not in str(told.value)


@pytest.mark.parametrize("family", ["", "two words", "a\nb", "x" * 200, "\u00e4"])
def test_an_architecture_has_a_plain_name(matrix: Matrix, tmp_path: Path, family: str) -> None:
    with pytest.raises(InputError, match=r"its metadata has no general\.architecture"):
        read(matrix, tmp_path, family, llama_keys(), llama_tensors())


def test_a_name_that_would_harm_a_terminal_is_not_shown(matrix: Matrix, tmp_path: Path) -> None:
    keys = {**llama_keys(), "general.name": "a\x1b[2Jb"}
    assert read(matrix, tmp_path, "llama", keys, llama_tensors()).architecture.name.isprintable()
