"""What lives at once while tokens pass through a layer without gradients: counted in numbers for each token.

The counts follow the Python code of the layers: which names still hold a tensor when the next one is made.
"""

from __future__ import annotations

from functools import lru_cache

from cudadoctor.fit.architecture import DECODER, LATENT, LINEAR, POSITION, Architecture, Attention, FeedForward, Layers
from cudadoctor.matrix.query import Matrix
from cudadoctor.model.record import NamedTuple


class Peak(NamedTuple):
    """`numbers` of one token, with the formula in words and in numbers; `vague`: an estimate more than a count."""

    numbers: int
    formula: str
    numbers_text: str
    vague: bool = False


@lru_cache(maxsize=64)
def peak(
    matrix: Matrix,
    architecture: Architecture,
    side: str = "",
    tensor: int = 1,
    copies: int = 4,
    grouped: bool = True,
) -> Peak:
    """Of the layer that takes most, of one `side` or of all. `tensor`: over how many GPUs its matrices are split;
    `copies` of the hidden state live beside; `grouped`: all experts run in one call."""
    packed = any(tensor_of.name in ("gate_up", "gate_up_proj") for tensor_of in architecture.tensors)
    family = matrix.training_family(architecture.family)
    written_out = family is not None and family.gelu > 2
    if architecture.kind == DECODER and any(one.role == POSITION for one in architecture.tensors):
        copies += 1  # the embeddings, and their sum with those of the positions
    found = [
        one
        for layers in architecture.layers
        if not side or layers.side == side
        for one in _of_layer(layers, architecture.hidden, tensor, copies, packed, written_out, grouped)
    ]
    if not found:
        return Peak(copies * architecture.hidden, f"{copies} x hidden", f"{copies} x {architecture.hidden:,}", True)
    return max(found, key=lambda one: one.numbers)


def _of_layer(
    layers: Layers, hidden: int, tensor: int, copies: int, packed: bool, written_out: bool, grouped: bool
) -> list[Peak]:
    found = []
    around = f"{copies} x hidden"
    beside = f"{copies} x {hidden:,}"
    if layers.rms_norm:
        # In fp32: the input and its normed copy, each as wide as two 16-bit tensors.
        number = (copies + 4) * hidden
        found.append(Peak(number, f"({copies} + 4) x hidden", f"({copies} + 4) x {hidden:,}"))
    if layers.attention is not None:
        found.append(_attention(layers.attention, hidden, tensor, copies))
    part = layers.feed_forward
    if part is not None:
        found.append(_feed_forward(part, hidden, tensor, copies, packed, written_out, grouped, around, beside))
    return found


def _attention(attention: Attention, hidden: int, tensor: int, copies: int) -> Peak:
    """Rotating the queries holds them, both products and their sum; keys and values wait."""
    if attention.kind == LINEAR:
        wide = 6 * hidden // tensor
        text = (f"({copies} + 6) x hidden", f"({copies} + 6) x {hidden:,}")
        return Peak(copies * hidden + wide, *text, vague=True)
    query = -(-attention.query_width // tensor)
    keys = -(-attention.kv_width // tensor)
    if attention.kind == LATENT:
        keys = query  # keys and values of every head are made of the latent vector
    number = (copies - 1) * hidden + 4 * query + 2 * keys
    return Peak(
        number,
        f"{copies - 1} x hidden + 4 x queries + 2 x keys",
        f"{copies - 1} x {hidden:,} + 4 x {query:,} + 2 x {keys:,}",
        attention.kind == LATENT,
    )


def _feed_forward(
    part: FeedForward,
    hidden: int,
    tensor: int,
    copies: int,
    packed: bool,
    written_out: bool,
    grouped: bool,
    around: str,
    beside: str,
) -> Peak:
    width = -(-part.intermediate // tensor)
    if part.experts:
        chosen = max(part.experts_per_token, 1)
        if not grouped:
            # One expert after the other: tokens spread unevenly, up to twice the mean share is common.
            share = min(1.0, 2 * chosen / part.experts)
            number = (copies + 1) * hidden + int(share * (3 * width + 2 * hidden))
            formula = f"({copies} + 1) x hidden + 2 x chosen / experts x (3 x intermediate + 2 x hidden)"
            text = f"({copies} + 1) x {hidden:,} + 2 x {chosen} / {part.experts} x (3 x {width:,} + 2 x {hidden:,})"
            return Peak(number, formula, text, True)
        number = copies * hidden + chosen * (2 * hidden + 4 * width)
        formula = f"{around} + experts a token x (4 x intermediate + 2 x hidden)"
        return Peak(number, formula, f"{beside} + {chosen} x (4 x {width:,} + 2 x {hidden:,})", True)
    wide = packed if part.gated else written_out
    times = 4 if wide else 3 if part.gated else 2
    number = copies * hidden + times * width
    return Peak(number, f"{times} x intermediate + {around}", f"{times} x {width:,} + {beside}")
