"""What one layer keeps for the backward pass, beside what torch.autograd.graph.saved_tensors_hooks counted of the real
classes (torch 2.13, transformers 5.24): bytes a layer and token, of heads of 16, without dropout."""

from __future__ import annotations

from typing import Any

import pytest

from cudadoctor.fit.activations import Style, layer_parts, passing
from cudadoctor.fit.architecture import FULL as EVERYTHING
from cudadoctor.fit.architecture import LINEAR, Architecture, Attention, FeedForward, Layers
from cudadoctor.fit.config import model_of_config
from cudadoctor.fit.training import _case, _style, _tokens
from cudadoctor.fit.workload import FULL, Lora, Workload
from cudadoctor.matrix import Matrix

pytestmark = pytest.mark.once

_NARROW: dict[str, Any] = {
    "num_hidden_layers": 4, "hidden_size": 96, "intermediate_size": 208, "num_attention_heads": 6, "vocab_size": 1000,
}  # fmt: skip
_GROUPED = {**_NARROW, "num_key_value_heads": 2}
_WIDE_HEADS = {**_GROUPED, "hidden_size": 120, "head_dim": 16}
_GPT2 = {"n_layer": 4, "n_embd": 96, "n_inner": 208, "n_head": 6, "vocab_size": 1000}
_VIT = {**_NARROW, "image_size": 224, "patch_size": 16}
_LATENT = {
    **_WIDE_HEADS, "num_key_value_heads": 6, "moe_intermediate_size": 56, "n_routed_experts": 8, "n_group": 2,
    "num_experts_per_tok": 2, "topk_group": 1, "first_k_dense_replace": 0, "kv_lora_rank": 40, "q_lora_rank": 44,
    "qk_rope_head_dim": 8, "qk_nope_head_dim": 16, "v_head_dim": 20,
}  # fmt: skip
_EXPERTS = {**_WIDE_HEADS, "num_local_experts": 4, "num_experts_per_tok": 2}
_SMALL_EXPERTS = {**_WIDE_HEADS, "num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 56}

# family, config, precision, attention, bytes
SAVED = (
    ("llama", {**_WIDE_HEADS, "num_key_value_heads": 6}, "bf16", "sdpa", 4384),
    ("llama", _WIDE_HEADS, "bf16", "eager", 6376),
    ("mistral", {**_WIDE_HEADS, "sliding_window": None}, "bf16", "eager", 6376),
    ("qwen2", _GROUPED, "bf16", "eager", 5992),
    ("qwen3", _WIDE_HEADS, "bf16", "eager", 7176),
    ("gemma", _WIDE_HEADS, "bf16", "eager", 6865),
    ("gemma2", _WIDE_HEADS, "bf16", "eager", 9473),
    ("phi", {**_GROUPED, "num_key_value_heads": 6}, "bf16", "sdpa", 3452),
    ("phi", {**_GROUPED, "num_key_value_heads": 6}, "bf16", "eager", 5252),
    ("phi3", _GROUPED, "bf16", "sdpa", 4192),
    ("phi3", _GROUPED, "bf16", "eager", 5992),
    ("phi3", _GROUPED, "fp32", "sdpa", 7584),
    ("gpt2", _GPT2, "bf16", "sdpa", 3840),
    ("gpt2", _GPT2, "bf16", "eager", 5496),
    ("gpt2", _GPT2, "fp32", "sdpa", 7464),
    ("gpt_neox", _NARROW, "bf16", "sdpa", 2784),
    ("gpt_neox", _NARROW, "bf16", "eager", 4200),
    ("opt", {**_NARROW, "ffn_dim": 208, "word_embed_proj_dim": 96}, "bf16", "sdpa", 2176),
    ("opt", {**_NARROW, "ffn_dim": 208, "word_embed_proj_dim": 96}, "bf16", "eager", 4168),
    ("bert", _NARROW, "bf16", "sdpa", 2592),
    ("bert", _NARROW, "bf16", "eager", 4248),
    ("bert", _NARROW, "fp32", "sdpa", 4968),
    ("vit", _VIT, "bf16", "sdpa", 2400),
    ("vit", _VIT, "bf16", "eager", 9468),
    # Places of tokens among the experts, a few numbers each, are not counted.
    ("mixtral", _EXPERTS, "bf16", "eager", 9100),
    ("qwen3_moe", _SMALL_EXPERTS, "bf16", "eager", 7480),
    ("deepseek_v3", _LATENT, "bf16", "eager", 8104),
)


@pytest.mark.parametrize(
    ("family", "config", "precision", "attention", "saved"), SAVED, ids=["-".join((r[0], *r[2:4])) for r in SAVED]
)
def test_a_layer_keeps_what_autograd_saves(
    matrix: Matrix, family: str, config: dict[str, Any], precision: str, attention: str, saved: int
) -> None:
    model = model_of_config({"model_type": family, **config}, family)
    said = frozenset(("attn", "precision"))
    workload = Workload(FULL, batch=2, context=56, attention=attention, precision=precision, stated=said)
    case = _case(matrix, model, workload)
    run = model.architecture.layers[0]
    parts = layer_parts(model.architecture, run, _style(case), _tokens(case, run)[1])
    counted = sum(part.bytes for part in parts)
    has_experts = bool(run.feed_forward and run.feed_forward.experts)
    assert counted == pytest.approx(saved, rel=0.02 if has_experts else 0.006)


# -- what no class tells on a CPU: each part, reckoned by hand

HIDDEN, INNER = 100, 300
SHAPE = Architecture("plain", "decoder", "llama", HIDDEN, 1000, (), ())
HEADS = Attention(EVERYTHING, 4, 4, 10)
MLP = FeedForward(INNER, True)
TRAINS = Style(trains_all=True)


def parts_of(style: Style, source: int = 0, **run: Any) -> dict[str, int]:
    found: dict[str, int] = {}
    for part in layer_parts(
        SHAPE, Layers(0, 1, **{"attention": None, "feed_forward": None, "norms": 0, **run}), style, 50, source
    ):
        found[part.name] = found.get(part.name, 0) + part.bytes
    return found


def test_linear_attention_keeps_queries_keys_values_gates_and_the_output() -> None:
    linear = Attention(LINEAR, 4, 2, 10)
    assert parts_of(TRAINS, attention=linear) == {
        "input of attention": 2 * 100,
        "attention": 2 * (2 * 40 + 2 * 20 + 2 * 20 + 40),
    }


def test_cross_attention_keeps_keys_and_values_of_the_encoder() -> None:
    """Three tokens of the encoder for each of the decoder's."""
    found = parts_of(TRAINS, cross=HEADS, source=3000)
    assert found["cross attention"] == 2 * (40 + 40) + 3 * 2 * (40 + 40)


def test_experts_keep_each_token_as_often_as_it_is_sent() -> None:
    experts = FeedForward(INNER, True, experts=8, experts_per_token=2)
    kept = {
        "router": 2 * 4 * 8,
        "input of the router": 2 * HIDDEN,
        "input of experts": 2 * 2 * HIDDEN,
        "experts": 2 * 3 * 2 * INNER,
        "last matrix of experts": 2 * 2 * INNER,
        "weighted outputs of experts": 2 * 2 * HIDDEN,
    }
    assert parts_of(TRAINS, feed_forward=experts) == kept
    del kept["input of the router"]  # the shared expert keeps the same
    kept.update({"input of the shared expert": 200, "shared expert": 2 * 3 * 50, "last matrix of shared expert": 100})
    assert parts_of(TRAINS, feed_forward=experts._replace(shared=50)) == kept


def test_fused_kernels_keep_gate_and_up_only() -> None:
    assert parts_of(TRAINS, feed_forward=MLP)["feed-forward"] == 2 * 3 * INNER
    assert parts_of(TRAINS._replace(fused=True), feed_forward=MLP)["feed-forward"] == 2 * 2 * INNER


@pytest.mark.parametrize(
    ("style", "each"),
    [
        (TRAINS, 2),
        (TRAINS._replace(relu=True), 2),
        (TRAINS._replace(gelu=8), 8),
        (TRAINS._replace(gelu=8, residual=4), 14),  # under autocast its powers are fp32
        (TRAINS._replace(gelu=8, fused=True), 2),
    ],
)
def test_an_activation_that_is_written_out_keeps_its_steps(style: Style, each: int) -> None:
    found = parts_of(style, feed_forward=FeedForward(INNER, False))
    assert found["feed-forward"] == each * INNER


def test_dropout_keeps_a_mask_of_bytes() -> None:
    found = parts_of(TRAINS._replace(dropouts=2, inner_dropout=True), feed_forward=FeedForward(INNER, False))
    assert found["dropout masks"] == 2 * HIDDEN
    assert found["dropout of feed-forward"] == INNER
    frozen = parts_of(Style(inner_dropout=True), feed_forward=FeedForward(INNER, False))
    assert frozen["dropout of feed-forward"] == 3 * INNER  # its result, which nothing else keeps


@pytest.mark.parametrize(
    ("style", "bytes_of_a_score"),
    [
        (Style(attention="eager"), 4 + 2),
        (Style(attention="eager", wide_softmax=False), 2),
        (Style(attention="eager", width=4), 4),
        (Style(attention="eager", probability_dropout=True), 4 + 1 + 2),
        (Style(attention="flash", scores_cap=True), 4 + 2 + 2),
    ],
)
def test_scores_of_attention(style: Style, bytes_of_a_score: int) -> None:
    assert parts_of(style, attention=HEADS)["attention scores"] == bytes_of_a_score * 4 * 50


# What an adapter keeps of the 300 numbers that its matrix reads -> bytes
ADAPTERS = (
    (Style(lora=Lora(8, ("down",), 0.0)), 2),
    (Style(lora=Lora(8, ("down",), 0.1)), 2 + 1),
    (Style(lora=Lora(8, ("down",), 0.0), adapters="copied"), 2),
    (Style(lora=Lora(8, ("down",), 0.0), adapters="wide"), 4),
    (Style(lora=Lora(8, ("down",), 0.1), adapters="wide"), 4 + 1),
    (Style(lora=Lora(8, ("up",), 0.1)), 0),
)


@pytest.mark.parametrize(("style", "each"), ADAPTERS)
def test_an_adapter_keeps_its_input(style: Style, each: int) -> None:
    found = parts_of(style, feed_forward=MLP)
    kept = sum(size for name, size in found.items() if name.startswith("last matrix"))
    assert kept == each * INNER


def test_a_quantised_matrix_keeps_its_input_until_the_next_step() -> None:
    found = parts_of(Style(keeps_inputs=True), attention=HEADS, feed_forward=MLP)
    assert found["input of attention"] == 2 * 2 * HIDDEN
    assert found["output of attention"] == 2 * 40  # that of this step is kept by the attention
    assert found["last matrix of feed-forward"] == 2 * 2 * INNER


def test_a_layer_passes_three_times_its_inner_and_twice_its_outer_width() -> None:
    assert passing(Layers(0, 1, HEADS, MLP), HIDDEN, 2) == 2 * (3 * INNER + 2 * HIDDEN)
    experts = FeedForward(INNER, True, experts=8, experts_per_token=2)
    assert passing(Layers(0, 1, HEADS, experts), HIDDEN, 2) == 2 * (3 * 2 * INNER + 2 * HIDDEN)
    shared = experts._replace(shared=1000)
    assert passing(Layers(0, 1, HEADS, shared), HIDDEN, 2) == 2 * (3 * 1000 + 2 * HIDDEN)
