"""What a layer keeps of its forward pass for the backward pass, byte by byte for each token.

Counted from what autograd saves: an operation saves what its gradient needs, and a tensor that several operations save
is kept once. h is the hidden width, q and g the widths of queries and of keys, a the heads, I the width of the
feed-forward part, c the bytes of a number, s the tokens of a sequence.
"""

from __future__ import annotations

from typing import Optional

from cudadoctor.fit.architecture import LATENT, LINEAR, Architecture, Attention, FeedForward, Layers
from cudadoctor.fit.workload import Lora
from cudadoctor.model.record import NamedTuple

WIDE = 4  # bytes of fp32


class Style(NamedTuple):
    """How a framework runs the layers."""

    width: int = 2
    """Bytes of a number in matrix products."""
    residual: int = 2
    """Of the hidden state between the layers."""
    trains_all: bool = False
    attention: str = "sdpa"
    fused: bool = False
    """Norms and activations save their input only."""
    wide_norm_weight: bool = False
    packs: bool = False
    keeps_inputs: bool = False
    """Quantised layers save their input, although their weights are not trained."""
    results: int = 2
    """Bytes of a number that a matrix of the feed-forward part puts out: bitsandbytes' 4-bit layers give back the type
    of their input, which is fp32 behind norms in fp32."""
    lora: Optional[Lora] = None
    adapters: str = "shared"
    """What an adapter saves of its input: shared (the input itself), copied (its own copy, from dropout), wide (an fp32
    copy), cast (a copy in 16 bits of the fp32 one)."""
    scores_cap: bool = False
    gelu: int = 0
    """Bytes a number that an activation function written in Python saves; 0: one kernel."""
    relu: bool = False
    """The activation keeps its result only, which the next matrix reads as well."""
    dropouts: int = 0
    """Masks over the hidden width in a layer."""
    inner_dropout: bool = False
    probability_dropout: bool = False
    wide_softmax: bool = True
    """Attention's softmax runs in fp32 where it is written out."""
    softmax_input: bool = False
    """The softmax keeps its input beside its result, as torch's did before 1.11."""
    repeats: bool = True
    """Without flash attention, keys and values are repeated for each head."""
    copies_output: bool = False
    """Queries are put together anew after the rotation, and attention's output is copied for it."""
    rotates: bool = True
    experts_adapted: bool = False


class Part(NamedTuple):
    """`bytes` for each token of one layer; `divided`: tensor parallelism divides it."""

    name: str
    bytes: int
    formula: str
    divided: bool = True


def targeted(lora: Optional[Lora], *names: str) -> int:
    """How many of those matrices have an adapter of their own."""
    if lora is None:
        return 0
    if "all" in lora.targets:
        return len(names)
    return sum(name in lora.targets for name in names)


def layer_parts(shape: Architecture, run: Layers, style: Style, context: int, source: int = 0) -> tuple[Part, ...]:
    """All that one layer of a run keeps for each of its tokens. `context`: tokens of a sequence; `source`: tokens of
    the encoder's output for each token here, times 1000, where the layer attends to it."""
    parts = list(_norms(shape, run, style))
    if style.dropouts:
        parts.append(Part("dropout masks", style.dropouts * shape.hidden, f"{style.dropouts} h", False))
    if run.attention is not None:
        parts += _attention(shape.hidden, run.attention, style, context)
    if run.cross is not None:
        parts += _attention(shape.hidden, run.cross, style, context, "cross attention", source)
    if run.feed_forward is not None:
        same = shape.shared_blocks and run.norms == 1 and run.attention is not None
        parts += _feed_forward(shape.hidden, run.feed_forward, style, same)
    return tuple(part for part in parts if part.bytes)


def _norms(shape: Architecture, run: Layers, style: Style) -> list[Part]:
    h, attention = shape.hidden, run.attention
    parts = []
    if run.rms_norm and not style.fused:
        each = WIDE * h
        formula = "4 h a norm (its input in fp32)"
        if style.trains_all:
            normed = WIDE if style.wide_norm_weight else style.residual
            each += normed * h
            formula += f" + {normed} h (normed, for the weight's gradient)"
        parts.append(Part("norms", run.norms * each, f"{run.norms} x ({formula})", False))
    elif run.norms:
        # Two norms of one input keep it once.
        kept = 1 if shape.shared_blocks else run.norms
        each = style.residual * h + 2 * WIDE
        parts.append(Part("norms", kept * each, f"{kept} x {style.residual} h (the input of a norm)", False))
    if attention is not None and attention.qk_norm:
        width = attention.query_width + attention.kv_width
        each = style.width if style.fused else WIDE + (style.width if style.trains_all else 0)
        parts.append(Part("norms of queries and keys", each * width, f"{each} (q + g)"))
    return parts


def _inputs(name: str, width: int, modules: int, linears: int, style: Style, kept: bool, divided: bool) -> list[Part]:
    """What matrices keep of one input: `linears` of them read it, `modules` of these have an adapter; `kept`: something
    else keeps that very tensor already."""
    c, parts = style.width, []
    if style.trains_all:
        copies = 1 if style.residual <= c else linears  # autocast casts it anew for each of them
        if not kept or style.residual > c:
            parts.append(Part(name, copies * c * width, f"{copies} x {c} x {width}", divided))
        return parts
    if style.keeps_inputs:
        copies = 1 if kept else 2
        said = "kept by the quantised matrix, in this step and from the last"
        parts.append(Part(name, copies * c * width, f"{copies} x {c} x {width} ({said})", divided))
    if not modules or style.lora is None:
        return parts
    mask = 1 if style.lora.dropout > 0 else 0
    if style.adapters == "shared" and not mask:
        if not kept and not style.keeps_inputs:
            parts.append(Part(name, c * width, f"{c} x {width}", divided))
        return parts
    each = (WIDE if style.adapters == "wide" else c) + mask
    said = "a copy for the adapter" + (" and its dropout mask" if mask else "")
    parts.append(Part(name + " of adapters", modules * each * width, f"{modules} x {each} x {width} ({said})", divided))
    return parts


def _attention(
    hidden: int,
    attention: Attention,
    style: Style,
    context: int,
    name: str = "attention",
    source: int = 0,
) -> list[Part]:
    c, q, g = style.width, attention.query_width, attention.kv_width
    heads = attention.heads
    value = attention.kv_heads * (attention.value_dim or attention.head_dim)
    joined = heads * (attention.value_dim or attention.head_dim)
    three = targeted(style.lora, "qkv") or targeted(style.lora, "q", "k", "v")
    packed = style.packs or attention.packed
    if packed:
        three = min(three, 1)
    linears = 1 if packed else 3
    parts = _inputs("input of " + name, hidden, three, linears, style, False, False)
    if attention.kind == LINEAR:
        # The chunked kernels keep queries, keys, values, gates and the output; states of chunks beside are fewer.
        kept = c * (2 * q + 2 * g + 2 * value + joined)
        return [*parts, Part(name, kept, f"{c} (2 q + 2 g + 3 v)"), *_out(joined, style, name)]
    if attention.kind == LATENT:
        low = (attention.q_rank + attention.kv_rank) * (WIDE + c + (c if style.trains_all else 0))
        wide = heads * attention.head_dim
        keys = c * (2 * wide + heads * (attention.head_dim - attention.rope_dim) + joined)
        parts.append(Part(name + ", low rank", low, "(q_rank + kv_rank) (4 + c)", False))
        parts.append(Part(name, keys + c * joined, f"{c} (q + k + kv_b + out)"))
    elif source:
        kept = c * (q + joined) + c * (g + value) * source // 1000
        parts.append(Part(name, kept, f"{c} (q + out) + {c} (g + v) of the encoder's tokens"))
    else:
        repeated = style.attention != "flash" and attention.kv_heads != heads
        repeated = repeated and (style.repeats or style.attention == "eager" or bool(attention.window))
        if repeated:
            kept, said = c * (q + q + joined + joined), f"{c} (q + k + v + out), keys and values for each head"
        else:
            kept, said = c * (q + g + value + joined), f"{c} (q + g + v + out)"
        if packed and style.rotates and not repeated and style.attention != "eager":
            kept, said = kept + c * (q + g), said + f" + {c} (q + g): the view of v keeps the packed buffer"
        copied = style.copies_output and style.attention == "sdpa" and not style.scores_cap
        if copied and (style.trains_all or style.keeps_inputs or targeted(style.lora, "o")):
            kept, said = kept + c * joined, said + f" + {c} out, copied"
        parts.append(Part(name, kept, said))
    if style.attention == "eager" or style.scores_cap:
        each = WIDE if style.wide_softmax else c
        said = "softmax"
        scores = each if style.softmax_input else 0
        if style.probability_dropout:
            each, said = each + 1 + c, said + ", dropout's mask and result"
        elif each > c:
            each, said = each + c, said + " in fp32 and its 16-bit copy"
        if style.scores_cap:
            each, said = each + c, said + ", tanh"
        if scores:
            each, said = each + scores, said + ", its input"
        parts.append(Part(name + " scores", each * heads * context, f"{each} a s ({said})"))
    else:
        parts.append(Part(name + " sums", WIDE * heads, "4 a"))
    return [*parts, *_out(joined, style, name)]


def _out(joined: int, style: Style, name: str) -> list[Part]:
    """The attention's output is kept already: it is in 16 bits, and what the next matrix reads."""
    if style.trains_all:
        return []
    return _inputs("output of " + name, joined, targeted(style.lora, "o"), 1, style, True, True)


def _feed_forward(hidden: int, part: FeedForward, style: Style, same: bool) -> list[Part]:
    """`same`: it reads what the attention reads."""
    parts: list[Part] = []
    linears = 2 if part.gated else 1
    into = targeted(style.lora, "gate", "up") if part.gated else targeted(style.lora, "up")
    into = max(into, targeted(style.lora, "gate_up"))
    c = style.width
    if not part.experts:
        if not (same and (style.trains_all or style.keeps_inputs)):
            parts += _inputs("input of feed-forward", hidden, into, linears, style, False, False)
        return parts + _hidden_of(part.intermediate, part.gated, style, "feed-forward")
    visits = part.experts_per_token
    parts.append(Part("router", 2 * WIDE * part.experts, "8 E", False))
    if style.trains_all and not part.shared:  # else the shared expert keeps the same
        parts.append(Part("input of the router", c * hidden, f"{c} h", False))
    # Experts are one tensor for all of them, that no adapter is made for.
    bare = style if style.trains_all or style.experts_adapted else style._replace(lora=None)
    parts += _inputs("input of experts", visits * hidden, into, linears, bare, False, False)
    parts += _hidden_of(visits * part.intermediate, part.gated, bare, "experts")
    parts.append(Part("weighted outputs of experts", c * visits * hidden, f"{c} h x {visits}", False))
    if part.shared:
        parts += _inputs("input of the shared expert", hidden, into, linears, style, False, False)
        parts += _hidden_of(part.shared, part.gated, style, "shared expert")
    return parts


def _hidden_of(width: int, gated: bool, style: Style, name: str) -> list[Part]:
    c = max(style.width, style.results)
    if gated:
        factor, said = (2, "gate, up") if style.fused else (3, "gate, its activation, up")
        kept, formula = factor * c * width, f"{factor * c} I ({said})"
    elif style.relu:
        kept, formula = c * width, f"{c} I (behind the activation)"
    else:
        each = c
        if style.gelu and not style.fused:
            # Its powers run in fp32 under autocast.
            each = style.gelu * c // 2 if style.residual <= c else style.gelu * 7 // 4
        kept, formula = each * width, f"{each} I (before the activation)"
    parts = [Part(name, kept, formula)]
    kept_already = style.relu and not gated and not style.inner_dropout
    parts += _inputs("last matrix of " + name, width, targeted(style.lora, "down"), 1, style, kept_already, True)
    if style.inner_dropout:
        parts.append(Part("dropout of " + name, width if style.trains_all else (c + 1) * width, "I, its mask"))
    return parts


def passing(run: Layers, hidden: int, width: int) -> int:
    """Bytes a token of the gradients that live at once while one layer's backward pass runs."""
    part = run.feed_forward
    inner = 0
    if part is not None:
        visits = part.experts_per_token if part.experts else 1
        inner = max(part.intermediate * visits, part.shared)
    return width * (3 * inner + 2 * hidden)
