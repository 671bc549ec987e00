"""Days between dates, as Python's datetime counts them."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cudadoctor.parse.dates import day_number
from cudadoctor.parse.errors import ParseError


@pytest.mark.parametrize(
    "earlier, later, days",
    [
        ("2026-11-30", "2026-11-30", 0),
        ("2026-11-30", "2026-12-01", 1),
        ("2024-02-28", "2024-03-01", 2),
        ("2100-02-28", "2100-03-01", 1),
        ("2026-11-30", "2027-11-30", 365),
    ],
)
def test_days_between(earlier: str, later: str, days: int) -> None:
    assert day_number(later) - day_number(earlier) == days


@given(st.dates())
def test_as_datetime_counts(day: date) -> None:
    assert day_number(day.isoformat()) == day.toordinal()


@pytest.mark.parametrize(
    "text",
    ["", "soon", "2026-11-31", "2026-02-29", "2026-13-01", "2026-00-10", "2026-1-1", "0000-01-01", "２０２６-11-30"],
)
def test_no_date(text: str) -> None:
    with pytest.raises(ParseError):
        day_number(text)
