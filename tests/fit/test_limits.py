"""The largest batch and the longest context: the last number that fits, and one more that does not."""

from __future__ import annotations

import plain_sums
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_sums import GIB, KV_TOKEN

from cudadoctor.fit.limits import (
    MOST_SEQUENCES,
    largest_batch,
    longest_context,
    most,
    with_batch,
    with_context,
)
from cudadoctor.fit.sums import Setting, Sums
from cudadoctor.fit.target import Target
from cudadoctor.fit.workload import Workload
from cudadoctor.matrix import Matrix

pytestmark = pytest.mark.once


def sums(matrix: Matrix, target: Target) -> Sums:
    return Sums(matrix, target, plain_sums.estimate)


@given(st.integers(0, 5000), st.integers(1, 5000), st.integers(1, 4000))
def test_the_last_number_that_fits_is_found_from_any_start(edge: int, start: int, limit: int) -> None:
    asked = []

    def fits(number: int) -> bool:
        asked.append(number)
        return number <= edge

    assert most(fits, start, limit) == (min(edge, limit) or None)
    assert all(1 <= number <= limit for number in asked)
    assert len(asked) <= 2 * limit.bit_length() + 2


@pytest.mark.parametrize("gib", [20, 24, 48, 80])
def test_one_sequence_more_does_not_fit(matrix: Matrix, gib: float) -> None:
    known = sums(matrix, plain_sums.target(gib))
    setting = Setting(plain_sums.model(), Workload(context=2048))
    batch = largest_batch(known, setting)
    assert batch is not None
    assert known.fits(with_batch(setting, batch))
    assert not known.fits(with_batch(setting, batch + 1))


@pytest.mark.parametrize("gib", [20, 24, 32])
def test_one_token_more_does_not_fit(matrix: Matrix, gib: float) -> None:
    known = sums(matrix, plain_sums.target(gib))
    setting = Setting(plain_sums.model(), Workload(context=4096, prompt=512))
    context = longest_context(known, setting)
    assert context is not None
    assert known.fits(with_context(setting, context))
    assert not known.fits(with_context(setting, context + 1))


def test_a_context_is_never_longer_than_the_model_was_made_for(matrix: Matrix) -> None:
    known = sums(matrix, plain_sums.target(1000))
    setting = Setting(plain_sums.model(max_context=8192), Workload())
    assert longest_context(known, setting) == 8192


def test_a_batch_is_never_larger_than_anybody_runs(matrix: Matrix) -> None:
    known = sums(matrix, plain_sums.target(4000))
    assert largest_batch(known, Setting(plain_sums.model(), Workload(context=16))) == MOST_SEQUENCES


def test_where_not_even_one_fits_there_is_no_number(matrix: Matrix) -> None:
    known = sums(matrix, plain_sums.target(8))
    setting = Setting(plain_sums.model(), Workload())
    assert largest_batch(known, setting) is None
    assert longest_context(known, setting) is None


def test_where_nobody_knows_what_is_free_there_is_no_number(matrix: Matrix) -> None:
    known = sums(matrix, Target("none"))
    setting = Setting(plain_sums.model(), Workload())
    assert largest_batch(known, setting) is None
    assert longest_context(known, setting) is None


def test_images_have_no_context(matrix: Matrix) -> None:
    known = sums(matrix, plain_sums.target(80))
    assert longest_context(known, Setting(plain_sums.model(kind="vision"), Workload())) is None


def test_a_prompt_never_exceeds_its_context() -> None:
    setting = Setting(plain_sums.model(), Workload(context=4096, prompt=2048))
    assert with_context(setting, 1024).workload.prompt == 1024
    assert with_context(setting, 8192).workload.prompt == 2048
    assert with_context(setting._replace(workload=Workload()), 1024).workload.prompt is None


def test_the_numbers_are_those_of_the_sum(matrix: Matrix) -> None:
    # 8e9 x 2 bytes of weights, 0.5 GiB of context; a prompt of one token passes almost nothing: the rest is cache.
    room = 24 * GIB
    known = sums(matrix, plain_sums.target(24))
    setting = Setting(plain_sums.model(), Workload(context=4096, prompt=1))
    context = longest_context(known, setting)
    assert context is not None
    free = (room / 1.1 - GIB / 2) / 1.05 - 16e9 - 4096 * 50
    assert context == pytest.approx(free / KV_TOKEN, abs=2)
