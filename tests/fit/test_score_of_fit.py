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


@pytest.fixture(scope="module")
def answers(score_fit: ModuleType, matrix: Matrix) -> dict[str, dict[str, list[Any]]]:
    """The groups of answers, of the published figures that are handed to everybody and of those kept apart."""
    groups = {}
    for name in ("measurements", "measurements_apart"):
        scores, refused = score_fit.score(matrix, score_fit.read(ROOT / "tests" / "fit" / f"{name}.json"))
        assert not refused
        groups[name] = score_fit.groups(scores)
    return groups


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


def test_what_the_program_refuses_counts_as_refused(score_fit: ModuleType) -> None:
    # A card of 10 GB lies within the interval, but below what is expected: the program says that it does not fit.
    found = score_fit.decide([answered(score_fit, 9.5, 9.0, 10.5, 11.5)], said=True)
    assert (found.asked, found.wrong_refusals, found.tight) == (6, 1, 1)


def test_percentiles(score_fit: ModuleType) -> None:
    assert score_fit.percentile([1, 2, 3, 4, 5, 6, 7, 8, 9, 10], 0.9) == 9
    assert score_fit.percentile([7], 0.9) == 7


def test_rows_that_contradict_themselves_are_not_scored(score_fit: ModuleType) -> None:
    rows = json.loads((ROOT / "tests" / "fit" / "measurements.json").read_text("utf-8"))["vectors"]
    assert len(rows) - len(score_fit.read(ROOT / "tests" / "fit" / "measurements.json")) == 5


def test_a_missed_goal_is_said_and_is_an_exit_status(
    score_fit: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row = json.loads((ROOT / "tests" / "fit" / "measurements.json").read_text("utf-8"))["vectors"][0]
    path = tmp_path / "rows.json"
    path.write_text(json.dumps([row]), "utf-8")
    assert score_fit.main(["--apart", str(path)]) == 0
    path.write_text(json.dumps([{**row, "measured_bytes": row["measured_bytes"] // 2}]), "utf-8")
    assert score_fit.main(["--apart", str(path)]) == 1
    assert "inference: median" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["measurements", "measurements_apart"])
@pytest.mark.parametrize("number", range(12))  # of the script's goals
def test_goals(score_fit: ModuleType, answers: dict[str, dict[str, list[Any]]], name: str, number: int) -> None:
    goal = score_fit.GOALS[number]
    got = score_fit.reached(goal, answers[name])
    assert got is not None
    assert goal.is_met(got), f"{goal}: {got:.1f}"


def test_it_is_closer_than_the_other_estimators(
    score_fit: ModuleType, answers: dict[str, dict[str, list[Any]]]
) -> None:
    for group in ("inference", "training"):
        scores = answers["measurements"][group]
        ours = score_fit.figures(scores)["median"]
        for name, (_, median, _) in score_fit.others(scores).items():
            assert ours < median / 3, name
