"""From the headers of safetensors files, and the config.json beside them, to the model in them, with its exact bytes.

Without a config the architecture is put together from the names and shapes of the tensors, as far as these are certain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Optional

from cudadoctor.fit.architecture import (
    BIAS,
    DECODER,
    EMBEDDING,
    EXPERT,
    FULL,
    HEAD,
    MATRIX,
    NORM,
    OTHER,
    ROUTER,
    Architecture,
    Attention,
    FeedForward,
    Model,
    Stored,
    Tensor,
)
from cudadoctor.fit.config import architecture_of_config
from cudadoctor.fit.families.blocks import Block, build
from cudadoctor.fit.quantisation import scheme, weight_bytes
from cudadoctor.matrix.quantisations import PLAIN
from cudadoctor.matrix.query import Matrix
from cudadoctor.model.pattern import pattern
from cudadoctor.parse.errors import ParseError
from cudadoctor.parse.safetensors import SafetensorsHeader, SafetensorsTensor

_IN_A_LAYER = pattern(r"(?:.*\.)?(?:layers|h|blocks)\.(\d{1,6})\.(.+)\Z")
_IN_AN_EXPERT = pattern(r"(.*experts)\.\d{1,6}\.(.+)\Z")
# Kept in old files, and made anew by whoever loads them.
_BUFFERS = ("rotary_emb.inv_freq", "rotary_pos_emb.inv_freq", ".masked_bias", "position_ids")
_MASKS = (".attn.bias", ".attention.bias")
_ADAPTER = pattern(r".*\.lora_(?:A|B|embedding_A|embedding_B)(?:\..*)?\Z")

_NAMES = {
    "q_proj": "q",
    "k_proj": "k",
    "v_proj": "v",
    "o_proj": "o",
    "wq": "q",
    "wk": "k",
    "wv": "v",
    "wo": "o",
    "qkv_proj": "qkv",
    "gate_proj": "gate",
    "up_proj": "up",
    "down_proj": "down",
    "gate_up_proj": "gate_up",
    "w1": "gate",
    "w3": "up",
    "w2": "down",
}
_EMBEDDINGS = ("embed_tokens.weight", "tok_embeddings.weight", "wte.weight", "word_embeddings.weight")
_HEADS = ("lm_head.weight", "output.weight")
_LAYERS = "model.layers."
_PLAIN = {"F32": "fp32", "F16": "fp16", "BF16": "bf16"}
_PACKED_BITS = 32
# Where a file does not say how wide a head is: what nearly all decoders have, the commonest first.
_HEAD_DIMS = (128, 64)
_TOLERATED = 0.05


def model_of_safetensors(
    matrix: Matrix,
    headers: Sequence[SafetensorsHeader],
    name: str,
    config: Optional[Mapping[str, Any]] = None,
    path: str = "",
) -> Model:
    """The model of all the files together. ParseError, one sentence, where they hold none, or where it cannot be told
    what it is built of."""
    tensors = _all_tensors(headers)
    if tensors and all(map(_ADAPTER.match, tensors)):
        raise ParseError("it holds a LoRA adapter, not a model: give the model that it belongs to")
    tensors = {key: one for key, one in tensors.items() if not _is_buffer(one)}
    if not tensors:
        raise ParseError("it holds no tensors of a model")
    stored_as = _scheme(matrix, tensors, config)
    notes: list[str] = []
    architecture = _architecture(tensors, name, config, notes)
    tensors = _without_extras(tensors, architecture, notes)
    if scheme(matrix, stored_as).kind == PLAIN and architecture.tied:
        heads = [key for key in tensors if key.endswith(_HEADS)]
        if heads and any(key.endswith(_EMBEDDINGS) for key in tensors):
            notes.append("The file holds the head that is its embedding twice; it is loaded once.")
            tensors = {key: one for key, one in tensors.items() if key not in heads}
    by_type: dict[str, int] = {}
    for tensor in tensors.values():
        by_type[tensor.dtype] = by_type.get(tensor.dtype, 0) + tensor.size
    is_plain = scheme(matrix, stored_as).kind == PLAIN
    elements = sum(tensor.elements for tensor in tensors.values()) if is_plain else architecture.parameters
    stored = Stored(path, sum(by_type.values()), by_type, elements, stored_as, len(headers))
    model = Model(architecture, stored_as, stored, tuple(notes))
    if config is not None:
        notes += _contradiction(matrix, model)
    return model._replace(notes=tuple(notes))


def _all_tensors(headers: Sequence[SafetensorsHeader]) -> dict[str, SafetensorsTensor]:
    found: dict[str, SafetensorsTensor] = {}
    for header in headers:
        for tensor in header.tensors:
            if tensor.name in found:
                raise ParseError(f"two of its files hold the tensor {_shown(tensor.name)}")
            found[tensor.name] = tensor
    return found


def _is_buffer(tensor: SafetensorsTensor) -> bool:
    return tensor.name.endswith(_BUFFERS) or (len(tensor.shape) > 2 and tensor.name.endswith(_MASKS))


def _without_extras(
    tensors: dict[str, SafetensorsTensor], architecture: Architecture, notes: list[str]
) -> dict[str, SafetensorsTensor]:
    """Layers beyond those of the config guess further tokens ahead; whoever runs the model does not load them."""
    if architecture.kind != DECODER:
        return tensors
    count = architecture.layer_count
    extra = set()
    for key in tensors:
        if key.startswith(_LAYERS):
            number = key[len(_LAYERS) :].partition(".")[0]
            if number.isdigit() and len(number) < 7 and int(number) >= count:
                extra.add(key)
    if not extra:
        return tensors
    notes.append("The layers that guess several tokens ahead are in the file and are not counted.")
    return {key: one for key, one in tensors.items() if key not in extra}


def _contradiction(matrix: Matrix, model: Model) -> list[str]:
    """A sentence where the files hold much more or less than the config describes."""
    assert model.stored is not None
    described = weight_bytes(matrix, model._replace(stored=None))
    share = model.stored.total / described - 1 if described else 0.0
    if abs(share) <= _TOLERATED:
        return []
    word = "more" if share > 0 else "less"
    return [f"The files hold {abs(share):.0%} {word} than config.json describes: they are what is counted."]


# -- how it is stored


def _scheme(matrix: Matrix, tensors: Mapping[str, SafetensorsTensor], config: Optional[Mapping[str, Any]]) -> str:
    """The scheme that the tensors show; that of the config where they show none."""
    of_names = _scheme_of_names(tensors)
    if of_names:
        return of_names
    by_type: dict[str, int] = {}
    for tensor in tensors.values():
        by_type[tensor.dtype] = by_type.get(tensor.dtype, 0) + tensor.size
    most = max(by_type, key=lambda dtype: by_type[dtype])
    said = config.get("quantization_config") if config is not None else None
    method = said.get("quant_method") if isinstance(said, Mapping) else None
    if most not in _PLAIN and isinstance(method, str) and len(method) < 64:
        try:
            return scheme(matrix, method).name
        except ParseError:
            pass
    if most in _PLAIN:
        return _PLAIN[most]
    if most.startswith("F8"):
        return "fp8"
    if most in ("I8", "U8"):
        return "int8"
    raise ParseError(f"most of its bytes are {most}, and no way to store a model so is known")


def _scheme_of_names(tensors: Mapping[str, SafetensorsTensor]) -> str:
    for key, tensor in tensors.items():
        stem, _, ending = key.rpartition(".")
        if ending == "qweight":
            return _packed_scheme(tensors, stem, tensor)
        if ending in ("absmax", "nested_absmax") or ".quant_state." in key:
            nested = any(one.endswith(".nested_absmax") for one in tensors)
            return "nf4-dq" if nested else "nf4"
        if ending == "SCB":
            return "int8"
        if ending == "weight_scale_inv":
            return "fp8"
        if ending == "weight_packed":
            return "nvfp4" if tensor.dtype == "U8" else "w4a16"
        if key.endswith(("_proj_blocks", ".blocks")) and tensor.dtype == "U8":
            return "mxfp4"
        if ending == "weight_scale":
            weight = tensors.get(stem + ".weight")
            if weight is not None and weight.dtype.startswith("F8"):
                return "fp8-channel"
            if weight is not None and weight.dtype == "I8":
                return "w8a8"
            if weight is not None and weight.dtype == "U8":
                return "nvfp4"
    return ""


def _packed_scheme(tensors: Mapping[str, SafetensorsTensor], stem: str, packed: SafetensorsTensor) -> str:
    """AWQ packs along the outputs, GPTQ along the inputs."""
    scales, zeros = tensors.get(stem + ".scales"), tensors.get(stem + ".qzeros")
    if scales is None or len(scales.shape) != 2 or len(packed.shape) != 2:
        return "gptq-int4"
    if packed.shape[1] < scales.shape[1]:
        return "awq"
    if zeros is not None and len(zeros.shape) == 2 and scales.shape[1]:
        bits = _PACKED_BITS * zeros.shape[1] // scales.shape[1]
        return "gptq-int8" if bits == 8 else "gptq-int4"
    return "gptq-int4"


# -- what it is built of


def _architecture(
    tensors: Mapping[str, SafetensorsTensor], name: str, config: Optional[Mapping[str, Any]], notes: list[str]
) -> Architecture:
    if config is None:
        return architecture_of_tensors(tensors, name, notes)
    try:
        return architecture_of_config(config, name)
    except ParseError as error:
        try:
            found = architecture_of_tensors(tensors, name, notes)
        except ParseError:
            raise error from None
        notes.insert(0, f"{str(error)[:1].upper()}{str(error)[1:]}: the tensors' names and shapes are what is read.")
        return found


def architecture_of_tensors(tensors: Mapping[str, SafetensorsTensor], name: str, notes: list[str]) -> Architecture:
    """A decoder, from names and shapes alone; what had to be assumed is added to `notes`. ParseError, which says that
    config.json is missing, where they are not those of a plain one."""
    if any(one.dtype not in _PLAIN for one in tensors.values() if len(one.shape) > 1):
        raise _missing("its tensors are packed, and do not show their shapes")
    embedding = next((one for key, one in tensors.items() if key.endswith(_EMBEDDINGS) and len(one.shape) == 2), None)
    if embedding is None:
        raise _missing("it has no embedding of a decoder")
    layers: dict[int, dict[str, SafetensorsTensor]] = {}
    outside: list[Tensor] = []
    for key, tensor in tensors.items():
        found = _IN_A_LAYER.match(key)
        if found is None:
            outside.append(_outside(key, tensor))
        else:
            layers.setdefault(int(found[1]), {})[found[2]] = tensor
    if not layers or sorted(layers) != list(range(len(layers))):
        raise _missing(f"its layers are not numbered one after the other: {len(layers)} are there")
    vocabulary, hidden = embedding.shape
    blocks = [_block(layers[number], hidden, notes) for number in range(len(layers))]
    return build(
        *(name, DECODER, "", hidden, vocabulary, blocks, outside),
        tied=not any(tensor.role == HEAD for tensor in outside),
        source="names and shapes of the tensors",
    )


def _missing(why: str) -> ParseError:
    return ParseError(f"{why}: config.json, which says what the model is built of, is missing beside it")


def _outside(key: str, tensor: SafetensorsTensor) -> Tensor:
    if key.endswith(_EMBEDDINGS):
        return Tensor("token_embedding", EMBEDDING, tensor.shape)
    if key.endswith(_HEADS):
        return Tensor("output", HEAD, tensor.shape)
    if len(tensor.shape) < 2:
        return Tensor("final_norm", BIAS if key.endswith("bias") else NORM, tensor.shape)
    return Tensor("other", OTHER, tensor.shape)


def _block(here: Mapping[str, SafetensorsTensor], hidden: int, notes: list[str]) -> Block:
    counted: dict[tuple[str, str, tuple[int, ...]], int] = {}
    widths: dict[str, int] = {}
    head_dim = 0
    experts = 0
    for key, tensor in here.items():
        word, role, is_expert = _word(key, tensor)
        if word in ("q", "k", "v", "o") and role == MATRIX and len(tensor.shape) == 2:
            widths[word] = tensor.shape[1 if word == "o" else 0]
        if word in ("q_norm", "k_norm") and len(tensor.shape) == 1:
            head_dim = tensor.shape[0]
        one = (word, role, tensor.shape)
        counted[one] = counted.get(one, 0) + 1
        if is_expert and word == "down" and role == EXPERT:
            experts += 1
    if "q" not in widths or "k" not in widths or widths["q"] % (widths["k"] or 1):
        raise _missing("its layers have no queries and keys of their own")
    attention = _attention(widths, head_dim, notes)
    down = [shape for (word, role, shape) in counted if word == "down" and role == (EXPERT if experts else MATRIX)]
    if not down:
        raise _missing("its layers have no feed-forward part that is known")
    gated = any(word in ("gate", "gate_up") for word, role, _ in counted if role in (MATRIX, EXPERT))
    part = FeedForward(down[0][-1], gated)
    if experts:
        shared = [shape[-1] for (word, role, shape) in counted if word == "down" and role == MATRIX]
        part = FeedForward(down[0][-1], gated, experts, experts, sum(shared))
        _add(notes, "How many experts a token visits stands in config.json, which is missing: all are taken.")
    tensors = tuple(Tensor(*one, copies) for one, copies in counted.items())
    norms = sum(one.copies for one in tensors if one.role == NORM and one.shape == (hidden,))
    return Block(attention, part, tensors, norms)


def _word(key: str, tensor: SafetensorsTensor) -> tuple[str, str, bool]:
    expert = _IN_AN_EXPERT.match(key)
    stem, _, ending = (expert[2] if expert else key).rpartition(".")
    last = stem.rpartition(".")[2]
    word = _NAMES.get(last, last if last.isascii() and last.isidentifier() and len(last) < 64 else "other")
    if ending == "bias":
        return word + "_bias", BIAS, bool(expert)
    if len(tensor.shape) < 2:
        is_norm = "norm" in last or last.startswith("ln")
        return (word if last in ("q_norm", "k_norm") else "norm", NORM, False) if is_norm else (word, OTHER, False)
    if last == "gate" and not expert:
        return "router", ROUTER, False
    return word, EXPERT if expert else MATRIX, bool(expert)


def _attention(widths: Mapping[str, int], head_dim: int, notes: list[str]) -> Attention:
    """Keys and values are as wide as their matrices, whatever the heads; how wide one head is, the norms of queries and
    keys tell, if there are any."""
    query, key = widths["q"], widths["k"]
    certain = bool(head_dim) and not query % head_dim and not key % head_dim and head_dim < query
    if not certain:
        head_dim = next((size for size in _HEAD_DIMS if not query % size and not key % size), key)
        _add(
            notes,
            f"The width of a head stands in config.json, which is missing: {head_dim} is taken. The KV cache does not "
            "depend on it. A sliding window would stand there, too: none is taken.",
        )
    return Attention(FULL, query // head_dim, key // head_dim, head_dim, qk_norm=certain)


def _add(notes: list[str], sentence: str) -> None:
    if sentence not in notes:
        notes.append(sentence)


def _shown(name: str) -> str:
    shown = ascii(name)
    return shown if len(shown) <= 60 else shown[:57] + "..."
