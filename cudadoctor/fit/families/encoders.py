"""Encoders of text: BERT and its descendants.

What stands on top follows `architectures` of the config: nothing but the pooler where it does not say.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cudadoctor.fit.architecture import (
    BIAS,
    EMBEDDING,
    ENCODER,
    FULL,
    HEAD,
    OTHER,
    POSITION,
    WINDOW,
    Architecture,
    Attention,
    FeedForward,
    Tensor,
)

from .blocks import Block, attention_tensors, build, feed_forward_tensors, matrix, norm
from .reader import MOST_TOKENS, Reader

_BERT = {"max_position_embeddings": 512, "type_vocab_size": 2, "hidden_size": 768, "num_hidden_layers": 12}
_BERT.update(num_attention_heads=12, intermediate_size=3072, vocab_size=30522)
_ROBERTA = {**_BERT, "vocab_size": 50265}

FAMILIES: dict[str, Mapping[str, Any]] = {
    "bert": _BERT,
    "roberta": _ROBERTA,
    "xlm-roberta": _BERT,
    "camembert": _BERT,
    "distilbert": {**_BERT, "type_vocab_size": 0, "num_hidden_layers": 6},
    "mpnet": {**_BERT, "type_vocab_size": 0, "vocab_size": 30527, "relative_attention_num_buckets": 32},
    "electra": {
        **_BERT,
        "embedding_size": 128,
        "hidden_size": 256,
        "num_attention_heads": 4,
        "intermediate_size": 1024,
    },
    "albert": {
        **_BERT,
        "vocab_size": 30000,
        "embedding_size": 128,
        "hidden_size": 4096,
        "num_attention_heads": 64,
        "intermediate_size": 16384,
        "num_hidden_groups": 1,
        "inner_group_num": 1,
    },
    "deberta": {**_ROBERTA, "type_vocab_size": 0, "position_biased_input": True, "max_relative_positions": -1},
    "deberta-v2": {
        **_BERT,
        "vocab_size": 128100,
        "type_vocab_size": 0,
        "hidden_size": 1536,
        "num_hidden_layers": 24,
        "num_attention_heads": 24,
        "intermediate_size": 6144,
        "position_biased_input": True,
        "max_relative_positions": -1,
    },
    "modernbert": {
        "vocab_size": 50368,
        "hidden_size": 768,
        "intermediate_size": 1152,
        "num_hidden_layers": 22,
        "num_attention_heads": 12,
        "max_position_embeddings": 8192,
        "local_attention": 128,
        "global_attn_every_n_layers": 3,
        "norm_bias": False,
        "decoder_bias": True,
    },
}
# Those whose model has a pooler of its own.
_POOLED = ("bert", "roberta", "xlm-roberta", "camembert", "mpnet", "albert")


def labels(c: Reader) -> int:
    """Classes that a classifier on top tells apart."""
    named = c.config.get("id2label")
    return c.whole_or("num_labels", len(named) if isinstance(named, dict) and named else 2)


def head_of(c: Reader) -> str:
    """What the first class in `architectures` puts on top: MaskedLM, SequenceClassification, ..., Model."""
    classes = c.texts("architectures") or [""]
    first = classes[0] if classes else ""
    return first.split("For", 1)[1] if "For" in first else "Model"


def read(name: str, family: str, config: Mapping[str, Any], where: str = "") -> Architecture:
    c = Reader(config, FAMILIES[family], where)
    if family == "modernbert":
        return _modern(name, c)
    hidden, count = c.hidden, c.layers
    heads, kv_heads, head_dim = c.heads(hidden)
    attention = Attention(FULL, heads, kv_heads, head_dim, packed=family == "deberta")
    part = FeedForward(c.whole("intermediate_size"), False)
    tensors = feed_forward_tensors(hidden, part.intermediate, False, True) + norm("norm", hidden, True, 2)
    tensors += _deberta_attention(c, hidden, attention) if family == "deberta" else []
    tensors += attention_tensors(hidden, attention, True, True) if family != "deberta" else []
    if family == "deberta-v2" and c.flag("relative_attention") and not c.flag("share_att_key"):
        kinds = _kinds(c)
        tensors += matrix("position_k", hidden, hidden, True) if "c2p" in kinds else []
        tensors += matrix("position_q", hidden, hidden, True) if "p2c" in kinds else []
    outside = _embeddings(c, family, hidden) + _top(c, family, hidden)
    block = Block(attention, part, tuple(tensors), 2, False, "encoder")
    blocks = [block] * count
    if family == "albert":  # all layers share the tensors of a group
        groups = c.whole("num_hidden_groups") * c.whole("inner_group_num")
        outside += [one._replace(copies=one.copies * groups) for one in block.tensors]
        blocks = [block._replace(tensors=())] * count
    return build(name, ENCODER, family, hidden, c.vocabulary, blocks, outside, True, c.max_context)


def _kinds(c: Reader) -> str:
    found = c.value("pos_att_type")
    return "|".join(found) if isinstance(found, list) and all(isinstance(one, str) for one in found) else str(found)


def _deberta_attention(c: Reader, hidden: int, attention: Attention) -> list[Tensor]:
    made = matrix("qkv", 3 * hidden, hidden) + matrix("o", hidden, hidden, True)
    made += [Tensor("q_bias", BIAS, (hidden,)), Tensor("v_bias", BIAS, (hidden,))]
    if c.flag("relative_attention"):
        kinds = _kinds(c)
        made += matrix("position_k", hidden, hidden) if "c2p" in kinds else []
        made += matrix("position_q", hidden, hidden, True) if "p2c" in kinds else []
    if c.flag("talking_head"):
        made += matrix("talking_head", attention.heads, attention.heads, copies=2)
    return made


def _embeddings(c: Reader, family: str, hidden: int) -> list[Tensor]:
    width = c.whole_or("embedding_size", hidden)
    made = [Tensor("token_embedding", EMBEDDING, (c.vocabulary, width))]
    if c.flag("position_biased_input", True):
        made.append(Tensor("position_embedding", POSITION, (c.whole("max_position_embeddings", MOST_TOKENS), width)))
    types = c.whole_or("type_vocab_size", 0, least=0)
    if types:
        made.append(Tensor("type_embedding", OTHER, (types, width)))
    made += norm("embedding_norm", width, True)
    if width != hidden or family == "albert":
        made += matrix("embedding_projection", hidden, width, True)
    if family == "mpnet":
        made.append(
            Tensor("position_bias", OTHER, (c.whole("relative_attention_num_buckets"), c.whole("num_attention_heads")))
        )
    if family in ("deberta", "deberta-v2") and c.flag("relative_attention"):
        reach = c.whole("max_relative_positions", MOST_TOKENS, least=-1)
        reach = reach if reach >= 1 else c.whole("max_position_embeddings", MOST_TOKENS)
        buckets = c.whole_or("position_buckets", 0, least=-1)
        reach = buckets if buckets > 0 else reach
        made.append(Tensor("position_embedding", POSITION, (2 * reach, hidden)))
        if "layer_norm" in c.text("norm_rel_ebd", "none"):
            made += norm("position_norm", hidden, True)
        kernel = c.whole_or("conv_kernel_size", 0, least=0)
        if family == "deberta-v2" and kernel:
            groups = c.whole_or("conv_groups", 1)
            made.append(Tensor("convolution", OTHER, (hidden, hidden // groups, kernel)))
            made += [Tensor("convolution_bias", BIAS, (hidden,)), *norm("convolution_norm", hidden, True)]
    return made


def _top(c: Reader, family: str, hidden: int) -> list[Tensor]:
    head = head_of(c)
    width = c.whole_or("embedding_size", hidden)
    pooler = matrix("pooler", hidden, hidden, True)
    if head == "Model":
        return pooler if family in _POOLED else []
    if head in ("MaskedLM", "CausalLM", "PreTraining"):
        made = matrix("transform", width, hidden, True) + norm("transform_norm", width, True)
        made.append(Tensor("output_bias", BIAS, (c.vocabulary,)))
        if head == "PreTraining" and family == "bert":
            made += pooler + matrix("next_sentence", 2, hidden, True)
        if not c.flag("tie_word_embeddings", True):
            made.append(Tensor("output", HEAD, (c.vocabulary, width)))
        return made
    classifier = matrix("classifier", labels(c), hidden, True)
    if head == "SequenceClassification" or (head == "MultipleChoice" and family in _POOLED):
        return pooler + classifier
    return classifier


def _modern(name: str, c: Reader) -> Architecture:
    hidden, count = c.hidden, c.layers
    heads, kv_heads, head_dim = c.heads(hidden)
    part = FeedForward(c.whole("intermediate_size"), True)
    bias, every, window = (
        c.flag("norm_bias"),
        c.whole("global_attn_every_n_layers"),
        c.whole("local_attention", MOST_TOKENS),
    )
    kinds = c.texts("layer_types")
    blocks = []
    for number in range(count):
        full = "full" in kinds[number] if kinds and len(kinds) >= count else number % every == 0
        attention = Attention(
            *(FULL if full else WINDOW, heads, kv_heads, head_dim), window=0 if full else window, packed=True
        )
        tensors = attention_tensors(hidden, attention, c.flag("attention_bias"), c.flag("attention_bias"))
        tensors += feed_forward_tensors(hidden, part.intermediate, True, c.flag("mlp_bias"), packed=True)
        tensors += norm("norm", hidden, bias, 1 if number == 0 else 2)
        blocks.append(Block(attention, part, tuple(tensors), 1 if number == 0 else 2, False, "encoder"))
    outside = [Tensor("token_embedding", EMBEDDING, (c.vocabulary, hidden))]
    outside += norm("embedding_norm", hidden, bias) + norm("final_norm", hidden, bias)
    head = head_of(c)
    if head != "Model":
        outside += matrix("transform", hidden, hidden, c.flag("classifier_bias")) + norm("transform_norm", hidden, bias)
        if head == "MaskedLM":
            outside += [Tensor("output_bias", BIAS, (c.vocabulary,))] if c.flag("decoder_bias") else []
        else:
            outside += matrix("classifier", labels(c), hidden, True)
    return build(name, ENCODER, "modernbert", hidden, c.vocabulary, blocks, outside, True, c.max_context)
