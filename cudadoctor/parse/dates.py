"""Days between dates. Python's own datetime takes longer to import than all rules take to run."""

from __future__ import annotations

from cudadoctor.parse.errors import unlike

_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def day_number(text: str) -> int:
    """The number of a day, "2026-11-30", such that numbers differ by the days between; or ParseError."""
    parts = text.split("-")
    if [len(part) for part in parts] != [4, 2, 2] or not all(part.isascii() and part.isdigit() for part in parts):
        raise unlike("a date such as 2026-11-30", text)
    year, month, day = map(int, parts)
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if not (year and 1 <= month <= 12 and 1 <= day <= _DAYS[month - 1] + (leap and month == 2)):
        raise unlike("a day that there is", text)
    before = year - 1
    leap_days = before // 4 - before // 100 + before // 400 + (leap and month > 2)
    return before * 365 + leap_days + sum(_DAYS[: month - 1]) + day
