"""The logits and what the loss makes of them: for a large vocabulary the largest tensors of a training step."""

from __future__ import annotations

from cudadoctor.matrix.memory import Framework, Loss
from cudadoctor.matrix.query import Matrix
from cudadoctor.model.fact import ParseError
from cudadoctor.model.record import NamedTuple


def loss_rule(matrix: Matrix, name: str, said: bool, framework: Framework) -> Loss:
    """The loss of that name; where nobody said one, what the framework computes."""
    if framework.loss and not said:
        name = framework.loss
    known = matrix.losses()
    if name not in known:
        raise ParseError(f"the loss {name[:40]!a} is none of {', '.join(known)}")
    return known[name]


class Logits(NamedTuple):
    """Bytes that live at once, and beside them those that the allocator keeps; `each` for a token and a word."""

    live: int
    kept: int
    each: float


def logits(
    rule: Loss, tokens: int, batch: int, vocabulary: int, width: int, autocast: bool, holds: bool, capped: bool
) -> Logits:
    """`width`: bytes of a number of the logits; `holds`: the loop holds the model's output; `capped`: the logits pass
    a tanh, whose result is kept."""
    each, blocks = max(rule.forward, rule.backward), rule.blocks
    if autocast and rule.autocast:
        each, blocks = rule.autocast, rule.autocast_blocks
    if holds:
        each = max(rule.forward, each + rule.held)
    if width > 2:  # the fp32 copy is the logits themselves, or what was 16 bits wide is twice as wide
        each = each * 2 if rule.autocast else each + 2
    if capped:
        each += width
    words = tokens * vocabulary
    live = each * words
    if rule.chunk:
        live += rule.chunk_bytes * min(tokens, rule.chunk * batch) * vocabulary
    return Logits(round(live), round(max(0.0, blocks - each) * words), each)
