#!/usr/bin/env python3
"""Scores the diagnosis of pasted reports: every text of tests/cases against what its public thread found.

    .venv/bin/python scripts/score_cases.py                      # the figures, by category, and every miss
    .venv/bin/python scripts/score_cases.py --json               # the same for programs
    .venv/bin/python scripts/score_cases.py driver_too_old xid   # cases whose id or category holds one of the words

Columns: `first` the first cause named is the right one; `three` it is among the first three; `false` errors and likely
warnings beside it; `sure` causes called certain where the thread confirmed none; `command` the step that mends it is
offered. The goals hold for confirmed cases: all first, all commands, nothing false; and nothing sure among the others.
The exit status is 1 below the goals.
"""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from cases.judging import Case, Verdict, judge_all, load_cases, load_kinds, misses  # noqa: E402

WIDTH = 80


class Figures:
    """Counts over some verdicts."""

    def __init__(self, verdicts: Iterable[Verdict]) -> None:
        self.verdicts = tuple(verdicts)
        asked = [v for v in self.verdicts if v.first is not None]
        commands = [v for v in self.verdicts if v.command is not None]
        self.cases = len(self.verdicts)
        self.asked = len(asked)
        self.first = sum(v.first is True for v in asked)
        self.three = sum(v.three is True for v in asked)
        self.false = sum(len(v.false) for v in self.verdicts)
        self.sure = sum(len(v.certain) for v in self.verdicts)
        self.commands = len(commands)
        self.offered = sum(v.command is True for v in commands)
        self.crashed = sum(len(v.crashed) for v in self.verdicts)

    def row(self, name: str) -> str:
        offered = f"{self.offered}/{self.commands}" if self.commands else "-"
        first = f"{self.first}/{self.asked}" if self.asked else "-"
        three = f"{self.three}/{self.asked}" if self.asked else "-"
        return f"{name:<36}{self.cases:>6}{first:>9}{three:>9}{self.false:>6}{self.sure:>6}{offered:>8}"

    def to_json(self) -> dict[str, int]:
        return {key: value for key, value in vars(self).items() if key != "verdicts"}


HEAD = f"{'':<36}{'cases':>6}{'first':>9}{'three':>9}{'false':>6}{'sure':>6}{'command':>8}"


def percent(part: int, whole: int) -> str:
    # Never rounded up to what was not reached.
    return f"{100 * part // whole} %" if whole else "-"


def reached(verdicts: Sequence[Verdict]) -> bool:
    confirmed = Figures(v for v in verdicts if v.case.confirmed)
    others = Figures(v for v in verdicts if not v.case.confirmed)
    return (
        confirmed.first == confirmed.asked
        and confirmed.offered == confirmed.commands
        and not confirmed.false
        and not others.sure
        and not confirmed.crashed + others.crashed
    )


def print_report(verdicts: Sequence[Verdict], kinds: Sequence[Verdict]) -> None:
    confirmed = Figures(v for v in verdicts if v.case.confirmed)
    print(
        f"{'OK  ' if reached(verdicts) else 'FAIL'}  first right {percent(confirmed.first, confirmed.asked)}, "
        f"among three {percent(confirmed.three, confirmed.asked)}, false {confirmed.false}, "
        f"commands {percent(confirmed.offered, confirmed.commands)}"
    )
    print("\n" + HEAD)
    print(confirmed.row("confirmed (high, medium)"))
    print(Figures(v for v in verdicts if not v.case.confirmed).row("not confirmed (low)"))
    print(Figures(verdicts).row("all"))
    if kinds:
        print(Figures(kinds).row("the same kinds in other words"))
    print()
    for category in sorted({v.case.category for v in verdicts}):
        print(Figures(v for v in verdicts if v.case.category == category).row(category))
    for title, chosen in (
        ("Misses", [v for v in verdicts if v.case.confirmed and not v.right]),
        ("Not confirmed, and not as hoped", [v for v in verdicts if not v.case.confirmed and not v.right]),
        ("The same kinds in other words", [v for v in kinds if not v.right]),
    ):
        if chosen:
            print(f"\n{title}")
        for verdict in chosen:
            print(f"\n  {verdict.case.id}  ({verdict.case.category}, {verdict.case.confidence})")
            for line in misses(verdict):
                print(textwrap.fill(line, WIDTH, initial_indent="    ", subsequent_indent="      "))


def document(verdicts: Sequence[Verdict], kinds: Sequence[Verdict]) -> dict[str, Any]:
    return {
        "reached": reached(verdicts),
        "confirmed": Figures(v for v in verdicts if v.case.confirmed).to_json(),
        "not_confirmed": Figures(v for v in verdicts if not v.case.confirmed).to_json(),
        "kinds": Figures(kinds).to_json(),
        "categories": {
            category: Figures(v for v in verdicts if v.case.category == category).to_json()
            for category in sorted({v.case.category for v in verdicts})
        },
        "cases": [
            {
                "id": v.case.id,
                "category": v.case.category,
                "confidence": v.case.confidence,
                "expected": list(v.case.expected),
                "said": [o.rule for o in v.said],
                "first": v.first,
                "three": v.three,
                "false": [o.rule for o in v.false],
                "sure": [o.rule for o in v.certain],
                "command": v.command,
                "right": v.right,
                "misses": misses(v),
            }
            for v in verdicts
        ],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="*", help="only cases whose id or category holds one of these")
    parser.add_argument("--json", action="store_true", help="one JSON document")
    options = parser.parse_args()

    def wanted(case: Case) -> bool:
        return not options.words or any(word in case.id or word in case.category for word in options.words)

    verdicts = judge_all([case for case in load_cases() if wanted(case)])
    kinds = judge_all([case for case in load_kinds() if wanted(case)])
    if options.json:
        print(json.dumps(document(verdicts, kinds), indent=1))
    else:
        print_report(verdicts, kinds)
    return 0 if reached(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
