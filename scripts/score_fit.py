#!/usr/bin/env python3
"""Scores the memory estimator: every row of tests/fit/measurements.json against what was measured.

    .venv/bin/python scripts/score_fit.py                                        # by class, and by class and level
    .venv/bin/python scripts/score_fit.py --rows                                 # and every row
    .venv/bin/python scripts/score_fit.py --apart tests/fit/measurements_apart.json
    .venv/bin/python scripts/score_fit.py --json

Errors are percent of what was measured: median, 90th percentile and worst without their sign, and the mean with it.
`held` says how often the stated interval held the measurement (the goal is 90 %), `width` how wide it is at the median.
Decisions: each row against cards of 6 to 141 GB whose memory is half to twice what was measured. "expected": it is said
to fit where the expected need is no more than the card has. "said": as the program itself decides, with "tight" for
what it does not want to decide.
Left out: what the allocator keeps is calibrated. Each source is scored with that part scaled to the others alone.
The exit status is 1 where a goal is missed or a row is refused.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Optional

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from cudadoctor.fit.answer import FITS, TIGHT  # noqa: E402
from cudadoctor.fit.estimate import estimate  # noqa: E402
from cudadoctor.fit.need import CACHED, Interval, Need  # noqa: E402
from cudadoctor.fit.spec import FILE, Question, read_row  # noqa: E402
from cudadoctor.fit.sums import decide as verdict  # noqa: E402
from cudadoctor.fit.workload import ALLOCATED, RESERVED  # noqa: E402
from cudadoctor.matrix import Matrix, load_matrix  # noqa: E402
from cudadoctor.model.fact import ParseError  # noqa: E402

MEASUREMENTS = ROOT / "tests" / "fit" / "measurements.json"
CARDS_GB = (6, 8, 10, 11, 12, 16, 20, 24, 32, 40, 48, 80, 96, 141)
NEAR = 2.0
OTHERS = ("accelerate", "seed_rule", "gpu_poor", "eleuther", "unsloth_studio", "llamafactory_table")


class Goal(NamedTuple):
    """`figure` of a group of rows, in percent: at most `bound`, of `held` at least."""

    group: str
    figure: str
    bound: float

    def __str__(self) -> str:
        return f"{self.group}: {self.figure.replace('_', ' ')} {self.bound:g} %"

    def is_met(self, got: float) -> bool:
        return got >= self.bound if self.figure == "held" else got <= self.bound


GOALS = (
    Goal("inference", "median", 1.0),
    Goal("inference", "p90", 3.0),
    Goal("inference", "held", 90.0),
    Goal("inference", "wrong_fits", 1.0),
    Goal("inference", "wrong_refusals", 8.0),
    Goal("training, allocated", "median", 5.0),
    Goal("training, allocated", "p90", 12.0),
    Goal("training, reserved or nvidia-smi", "median", 10.0),
    Goal("training, reserved or nvidia-smi", "p90", 25.0),
    Goal("training", "held", 90.0),
    Goal("training", "wrong_fits", 3.0),
    Goal("training", "wrong_refusals", 8.0),
)


class Score(NamedTuple):
    """One row, answered. Bytes."""

    row: dict[str, Any]
    question: Question
    need: Need
    answer: Interval
    measured: int

    @property
    def error(self) -> float:
        """Percent; positive: too much."""
        return 100.0 * (self.answer.expected / self.measured - 1)

    @property
    def held(self) -> bool:
        return self.answer.low <= self.measured <= self.answer.high

    @property
    def width(self) -> float:
        return 100.0 * (self.answer.high - self.answer.low) / max(self.answer.expected, 1)

    @property
    def trains(self) -> bool:
        return self.question.workload.trains

    @property
    def level(self) -> str:
        return ALLOCATED if self.question.level in (ALLOCATED, FILE) else "reserved or nvidia-smi"


def answer_of(question: Question, need: Need) -> Interval:
    """The amount that the row is about: of one GPU, or of all together."""
    if question.level in (ALLOCATED, FILE):
        return need.allocated if question.per_gpu else need.all_gpus
    level = need.reserved if question.level == RESERVED else need.device
    return level if question.per_gpu else Interval(*(need.gpus * amount for amount in level))


def read(path: Path) -> list[dict[str, Any]]:
    data = json.loads(path.read_text("utf-8"))
    rows = data if isinstance(data, list) else data["vectors"]
    return [row for row in rows if not row.get("exclude") and row.get("scored", True)]


def score(matrix: Matrix, rows: Iterable[dict[str, Any]]) -> tuple[list[Score], list[str]]:
    """The answers, and a line for each row that was refused."""
    scores, refused = [], []
    for row in rows:
        try:
            question = read_row(matrix, row)
            need = estimate(matrix, question.model, question.workload)
        except ParseError as error:
            refused.append(f"{row.get('id', '?')} {row.get('model', '?')}: {error}")
            continue
        scores.append(Score(row, question, need, answer_of(question, need), row["measured_bytes"]))
    return scores, refused


def groups(scores: Sequence[Score]) -> dict[str, list[Score]]:
    found: dict[str, list[Score]] = {}
    for one in scores:
        kind = "training" if one.trains else "inference"
        names = [one.row.get("cls", kind), f"{one.row.get('cls', kind)}, {one.level}", kind]
        if one.trains:
            names.append(f"training, {one.level}")
        for name in names:
            found.setdefault(name, []).append(one)
    return dict(sorted(found.items()))


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that so large a share does not exceed."""
    ordered = sorted(values)
    # Of ten values nine are nine tenths, although 0.9 * 10 may be a little more than 9.
    return ordered[max(0, math.ceil(share * len(ordered) - 1e-9) - 1)]


def figures(scores: Sequence[Score]) -> dict[str, float]:
    errors = [one.error for one in scores]
    sizes = [abs(error) for error in errors]
    return {
        "rows": len(scores),
        "median": statistics.median(sizes),
        "p90": percentile(sizes, 0.9),
        "worst": max(sizes),
        "bias": statistics.fmean(errors),
        "held": 100.0 * sum(one.held for one in scores) / len(scores),
        "width": statistics.median(one.width for one in scores),
    }


def others(scores: Sequence[Score]) -> dict[str, tuple[int, float, float]]:
    """Rows, median and 90th percentile of the estimators whose errors the rows carry."""
    found = {}
    for name in OTHERS:
        errors = [one.row.get("naive_error_pct", {}).get(name) for one in scores]
        sizes = [abs(error) for error in errors if error is not None]
        if sizes:
            found[name] = (len(sizes), statistics.median(sizes), percentile(sizes, 0.9))
    return found


class Decisions(NamedTuple):
    asked: int
    right: int
    wrong_fits: int
    wrong_refusals: int
    tight: int = 0

    def share(self, number: int) -> float:
        return 100.0 * number / max(self.asked, 1)


def decide(scores: Sequence[Score], said: bool) -> Decisions:
    """`said`: as the program answers (`cudadoctor.fit.sums.decide`); else by the expected need alone."""
    asked = right = wrong_fits = wrong_refusals = tight = 0
    for one in scores:
        for card in (gb * 10**9 for gb in CARDS_GB):
            if not one.measured / NEAR <= card <= one.measured * NEAR:
                continue
            asked += 1
            does_fit = one.measured <= card
            answer = one.answer if said else Interval(*(one.answer.expected,) * 3)
            found = verdict(answer, card)
            if found == TIGHT:
                tight += 1
            elif (found == FITS) == does_fit:
                right += 1
            elif does_fit:
                wrong_refusals += 1
            else:
                wrong_fits += 1
    return Decisions(asked, right, wrong_fits, wrong_refusals, tight)


def left_out(scores: Sequence[Score]) -> dict[str, tuple[int, float, float]]:
    """Errors of each source whose rows hold what the allocator keeps, where that is scaled by the other sources only:
    rows, median, 90th percentile."""
    held = [one for one in scores if one.trains and one.level != ALLOCATED]
    sources = sorted({str(one.row.get("source", ""))[:40] for one in held})

    def kept(one: Score) -> int:
        number = 1 if one.question.per_gpu else one.need.gpus
        return number * sum(term.bytes for term in one.need.terms if term.part == CACHED)

    found = {}
    for source in sources:
        mine = [one for one in held if str(one.row.get("source", "")).startswith(source)]
        rest = [one for one in held if not str(one.row.get("source", "")).startswith(source)]
        if not rest:
            continue
        factors = [(one.measured - one.answer.expected + kept(one)) / kept(one) for one in rest if kept(one)]
        factor = max(0.0, statistics.median(factors)) if factors else 1.0
        sizes = []
        for one in mine:
            guess = one.answer.expected + (factor - 1.0) * kept(one)
            sizes.append(abs(100.0 * (guess / one.measured - 1)))
        found[source] = (len(sizes), statistics.median(sizes), percentile(sizes, 0.9))
    return found


def reached(goal: Goal, found: dict[str, list[Score]]) -> Optional[float]:
    """The figure that the goal is about; None where no row is."""
    scores = found.get(goal.group)
    if not scores:
        return None
    if goal.figure in Decisions._fields:
        made = decide(scores, said=True)
        return made.share(getattr(made, goal.figure))
    return figures(scores)[goal.figure]


def misses(found: dict[str, list[Score]]) -> list[str]:
    """The goals that are missed, as sentences."""
    said = []
    for goal in GOALS:
        got = reached(goal, found)
        if got is not None and not goal.is_met(got):
            said.append(f"{goal.group}: {goal.figure.replace('_', ' ')} {got:.1f} %, the goal is {goal.bound:g} %")
    return said


def table(found: dict[str, list[Score]]) -> Iterable[str]:
    yield f"{'':<34}{'rows':>5}{'median':>8}{'p90':>7}{'worst':>7}{'bias':>7}{'held':>6}{'width':>6}"
    for name, scores in found.items():
        got = figures(scores)
        yield (
            f"{name:<34}{got['rows']:>5}{got['median']:>8.1f}{got['p90']:>7.1f}{got['worst']:>7.1f}"
            f"{got['bias']:>+7.1f}{got['held']:>6.0f}{got['width']:>6.0f}"
        )


def beside(found: dict[str, list[Score]]) -> Iterable[str]:
    yield ""
    yield "Others, median / 90th percentile:"
    for name, scores in found.items():
        if "," in name:
            continue
        said = [f"{who} {median:.0f}/{p90:.0f}" for who, (_, median, p90) in others(scores).items()]
        if said:
            yield f"  {name}: {', '.join(said)}"


def decisions(found: dict[str, list[Score]]) -> Iterable[str]:
    yield ""
    yield f"{'Decisions, percent':<34}{'asked':>6}{'right':>7}{'wrong fits':>12}{'refused':>9}{'tight':>7}"
    for name in ("inference", "training"):
        for how, said in (("expected", False), ("said", True)):
            if name in found:
                made = decide(found[name], said)
                shares = [made.share(number) for number in made[1:]]
                yield (
                    f"{name + ', ' + how:<34}{made.asked:>6}{shares[0]:>7.1f}{shares[1]:>12.1f}{shares[2]:>9.1f}"
                    f"{shares[3]:>7.1f}"
                )


def row_line(one: Score) -> str:
    what = f"{one.row.get('id', '')} {one.row.get('cls', '')} {one.row.get('model', '')}"
    gb = [amount / 1e9 for amount in (one.measured, one.answer.expected, one.answer.low, one.answer.high)]
    held = "" if one.held else "  outside"
    return f"{what:<40.40}{gb[0]:>8.2f}{gb[1]:>8.2f}  [{gb[2]:.2f}, {gb[3]:.2f}]{one.error:>+7.1f} %{held}"


def main(arguments: Optional[Sequence[str]] = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--apart", metavar="FILE", type=Path, help="score the rows of another file")
    parser.add_argument("--rows", action="store_true", help="and every row")
    parser.add_argument("--json", action="store_true", help="figures for programs")
    chosen = parser.parse_args(arguments)
    scores, refused = score(load_matrix(), read(chosen.apart or MEASUREMENTS))
    found = groups(scores)
    missed = misses(found)
    if chosen.json:
        made = {name: decide(found[name], True)._asdict() for name in ("inference", "training") if name in found}
        print(
            json.dumps(
                {
                    "groups": {name: figures(rows) for name, rows in found.items()},
                    "others": {name: others(rows) for name, rows in found.items()},
                    "decisions": made,
                    "left_out": left_out(scores),
                    "refused": refused,
                    "missed": missed,
                },
                indent=1,
            )
        )
        return 1 if missed or refused else 0
    if chosen.rows:
        for one in scores:
            print(row_line(one))
        print()
    for line in (*table(found), *beside(found), *decisions(found)):
        print(line)
    apart = left_out(scores)
    if apart:
        print("\nLeft out, what the allocator keeps scaled by the others: median / 90th percentile")
        for source, (number, median, p90) in apart.items():
            print(f"  {source:<42}{number:>4} rows{median:>7.1f} /{p90:>5.1f}")
    if refused:
        print(f"\n{len(refused)} rows were refused:")
        reasons = dict.fromkeys(line.partition(" ")[2] for line in refused)
        print("\n".join("  " + reason for reason in reasons))
    print()
    print("\n".join(missed) if missed else "All goals are met.")
    return 1 if missed or refused else 0


if __name__ == "__main__":
    sys.exit(main())
