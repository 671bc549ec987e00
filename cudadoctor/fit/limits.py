"""The largest batch and the longest context that still fit, all else as it is."""

from __future__ import annotations

from typing import Callable, Optional

from cudadoctor.fit.architecture import DIFFUSION, VISION
from cudadoctor.fit.sums import Setting, Sums

# Nobody runs more at once on one GPU; beyond it an answer would only show what the sums cannot know.
MOST_SEQUENCES = 4096
MOST_TOKENS = 1 << 23


def with_batch(setting: Setting, batch: int) -> Setting:
    return setting._replace(workload=setting.workload._replace(batch=batch))


def with_context(setting: Setting, context: int) -> Setting:
    """The prompt grows with the context where it is all of it, and never exceeds it."""
    workload = setting.workload
    prompt = None if workload.prompt is None else min(workload.prompt, context)
    return setting._replace(workload=workload._replace(context=context, prompt=prompt))


def largest_batch(sums: Sums, setting: Setting) -> Optional[int]:
    """Sequences (or images) on one GPU. None: not even one fits, or it is not known what is free."""
    if sums.room(setting) is None:
        return None
    return most(lambda batch: sums.fits(with_batch(setting, batch)), setting.workload.batch, MOST_SEQUENCES)


def longest_context(sums: Sums, setting: Setting) -> Optional[int]:
    """Tokens of a sequence, up to what the model was made for. None: not even one fits, nothing is known, or the model
    knows no length."""
    if sums.room(setting) is None or not has_context(setting):
        return None
    limit = setting.model.architecture.max_context or MOST_TOKENS
    start = min(setting.workload.context, limit)
    return most(lambda context: sums.fits(with_context(setting, context)), start, limit)


def has_context(setting: Setting) -> bool:
    """Whether the length of a sequence is something that a person chooses."""
    return setting.model.architecture.kind not in (VISION, DIFFUSION)


def most(fits: Callable[[int], bool], start: int, limit: int) -> Optional[int]:
    """The largest number from 1 to `limit` that fits, where all smaller ones do, too; None: not even 1. It is looked
    for around `start`, and asks at most twice as often as `limit` has bits."""
    low, high = 0, limit + 1  # low fits (0: nothing is asked), high does not
    guess = max(1, min(start, limit))
    if fits(guess):
        low = guess
        while low < limit:
            guess = min(limit, 2 * low)
            if not fits(guess):
                high = guess
                break
            low = guess
    else:
        high = guess
    while high - low > 1:
        guess = (low + high) // 2
        if fits(guess):
            low = guess
        else:
            high = guess
    return low or None
