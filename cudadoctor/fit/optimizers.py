"""What an optimizer keeps for each trained parameter, and what one step allocates beside."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from cudadoctor.fit.architecture import Tensor
from cudadoctor.matrix.memory import Optimizer
from cudadoctor.matrix.query import Matrix
from cudadoctor.model.fact import ParseError


def optimizer(matrix: Matrix, name: str) -> Optimizer:
    """By one of its names. ParseError with the nearest where there is none."""
    known = matrix.optimizers()
    found = known.get(name.strip().lower().replace("-", "_"))
    if found is None:
        near = difflib.get_close_matches(name.lower(), known, 3, 0.5)
        first = dict.fromkeys(rule.name for rule in known.values())
        advice = f"the nearest are {', '.join(near)}" if near else f"known are {', '.join(first)}"
        raise ParseError(f"the optimizer {name[:40]!a} is not known: {advice}")
    return found


def state_bytes(rule: Optimizer, tensors: Iterable[tuple[tuple[int, ...], int]], width: int, wide: int = 0) -> int:
    """Of tensors (shape, copies) whose parameters are `width` bytes wide. `wide`: how many of their parameters are
    embeddings, which some keep in wider states."""
    total, rows = 0, 0
    for shape, copies in tensors:
        count = copies
        for size in shape:
            count *= size
        total += count
        if len(shape) > 1:
            rows += (shape[0] + count // copies // shape[0]) * copies
        else:
            rows += count
    if rule.rows:
        return rule.rows * rows
    if rule.moments:
        return rule.moments * width * total
    special = min(wide, total) if rule.wide_embeddings else 0
    return round(rule.bytes * (total - special)) + rule.wide_embeddings * special


def largest(tensors: Iterable[Tensor]) -> int:
    """Numbers in the largest single tensor."""
    return max((tensor.elements // max(tensor.copies, 1) for tensor in tensors), default=0)
