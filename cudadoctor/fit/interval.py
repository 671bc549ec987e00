"""How uncertain a sum is whose terms are uncertain."""

from __future__ import annotations

from collections.abc import Iterable
from math import sqrt

from cudadoctor.fit.need import Interval, Term


def spread(expected: int, low: float, high: float) -> tuple[int, int]:
    """Bounds of a term of `expected` bytes, given as shares of it: spread(100, 0.9, 1.2) is (90, 120)."""
    return round(expected * low), round(expected * high)


def total(terms: Iterable[Term]) -> Interval:
    """The sum of terms that err independently of each other: their deviations add up as squares."""
    expected, below, above = 0, 0.0, 0.0
    for term in terms:
        expected += term.bytes
        below += float(term.bytes - term.low) ** 2
        above += float(term.high - term.bytes) ** 2
    return Interval(max(0, expected - round(sqrt(below))), expected, expected + round(sqrt(above)))


def widened(interval: Interval, low: float, high: float) -> Interval:
    """The same with what a whole level errs by beside its terms, as shares of the expected amount."""
    expected = interval.expected
    below = sqrt(float(expected - interval.low) ** 2 + (low * expected) ** 2)
    above = sqrt(float(interval.high - expected) ** 2 + (high * expected) ** 2)
    return Interval(max(0, expected - round(below)), expected, expected + round(above))
