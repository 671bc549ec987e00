"""scripts/score_fit.py: its arithmetic on rows made by hand, and the goals on the published measurements."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from cudadoctor.fit.need import Interval, Need
from cudadoctor.fit.spec import Question
from cudadoctor.fit.workload import LORA, Workload
from cudadoctor.matrix import Matrix, load_matrix

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parents[2]
GB = 10**9


@pytest.fixture(scope="module")
def score_fit() -> ModuleType:
    spec = importlib.util.spec_from_file_location("score_fit", ROOT / "scripts" / "score_fit.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["score_fit"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def matrix() -> Matrix:
    return load_matrix()


def answered(score_fit: ModuleType, measured: float, low: float, expected: float, high: float, **row: Any) -> Any:
    amount = Interval(round(low * GB), round(expected * GB), round(high * GB))
    need = Need((), amount, amount, amount, amount, amount, 1, "loss", ())
    question = Question(None, Workload(method=LORA))  # type: ignore[arg-type]
    return score_fit.Score({"cls": "lora", **row}, question, need, amount, round(measured * GB))


def test_errors_are_percent_of_what_was_measured(score_fit: ModuleType) -> None:
    rows = [answered(score_fit, 10, 9, 11, 12), answered(score_fit, 20, 15, 18, 19)]
    found = score_fit.figures(rows)
    assert found["median"] == pytest.approx(10)
    assert found["bias"] == pytest.approx(0)
    assert found["held"] == 50


def test_decisions(score_fit: ModuleType) -> None:
    # Measured 10.5 GB: cards of 6, 8, 10 (too small), 11, 12, 16 and 20 GB lie within half and twice of it.
    found = score_fit.decide([answered(score_fit, 10.5, 9.0, 9.5, 11.5)], said=False)
    assert (found.asked, found.right, found.wrong_fits, found.wrong_refusals) == (7, 6, 1, 0)
    found = score_fit.decide([answered(score_fit, 10.5, 9.0, 9.5, 11.5)], said=True)
    assert (found.right, found.wrong_fits, found.wrong_refusals, found.tight) == (5, 0, 0, 2)


def test_percentiles(score_fit: ModuleType) -> None:
    assert score_fit.percentile([1, 2, 3, 4, 5, 6, 7, 8, 9, 10], 0.9) == 9
    assert score_fit.percentile([7], 0.9) == 7


def test_rows_that_contradict_themselves_are_not_scored(score_fit: ModuleType) -> None:
    rows = json.loads((ROOT / "tests" / "fit" / "measurements.json").read_text("utf-8"))["vectors"]
    assert len(rows) - len(score_fit.read(ROOT / "tests" / "fit" / "measurements.json")) == 5


def test_training_meets_its_goals(score_fit: ModuleType, matrix: Matrix) -> None:
    rows = [row for row in score_fit.read(score_fit.MEASUREMENTS) if row["method"] in ("full", "lora")]
    scores, refused = score_fit.score(matrix, rows)
    assert not refused
    assert not score_fit.misses(score_fit.groups(scores))


def test_training_is_closer_than_the_other_estimators(score_fit: ModuleType, matrix: Matrix) -> None:
    rows = [row for row in score_fit.read(score_fit.MEASUREMENTS) if row["method"] in ("full", "lora")]
    scores, _ = score_fit.score(matrix, rows)
    ours = score_fit.figures(scores)["median"]
    for name, (_, median, _) in score_fit.others(scores).items():
        assert ours < median / 3, name
