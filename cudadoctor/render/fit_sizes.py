"""Amounts of memory for people: GB (10^9 bytes) and GiB (2^30 bytes) side by side, each with its unit."""

from __future__ import annotations

from typing import Optional

GIB = 1 << 30
GB = 10**9
_MIB = 1 << 20
_MB = 10**6

# Below so much, thousandths of the unit read better than hundredths of it.
_SMALL = GIB // 4


def number(amount: int, unit: int) -> str:
    """How many `unit` (bytes) an amount is, with three digits that say something: 0.47, 15.6, 127, 1,340."""
    value = amount / unit
    size = abs(value)
    if size >= 99.95:
        return f"{value:,.0f}"
    if size >= 9.995:
        return f"{value:.1f}"
    if 0 < size < 0.005:
        return "<0.01"
    return f"{value:.2f}"


def fixed(amount: int, unit: int) -> str:
    """The same for a column of a table, whose points stand below each other: 0.47, 15.60, 127.31."""
    value = amount / unit
    return "<0.01" if 0 < value < 0.005 else f"{value:,.2f}"


def both(amount: int) -> str:
    """15.0 GiB (16.1 GB)."""
    if 0 < abs(amount) < _SMALL:
        return f"{_small(amount, _MIB)} MiB ({_small(amount, _MB)} MB)"
    return f"{number(amount, GIB)} GiB ({number(amount, GB)} GB)"


def span(low: int, high: int) -> str:
    """15.8 to 17.1 GiB (17.0 to 18.4 GB); one number where the two look the same."""
    if high < _SMALL:
        units = ((_MIB, "MiB", _small), (_MB, "MB", _small))
    else:
        units = ((GIB, "GiB", number), (GB, "GB", number))
    texts = []
    for unit, name, shown in units:
        least, most = shown(low, unit), shown(high, unit)
        texts.append(f"{least} {name}" if least == most else f"{least} to {most} {name}")
    return f"{texts[0]} ({texts[1]})"


def _small(amount: int, unit: int) -> str:
    """Of an amount that is known to be small: whole numbers, and no zero where there is something."""
    value = amount / unit
    return f"{value:.0f}" if abs(value) >= 0.5 or not amount else "<1"


def rate(bytes_a_second: Optional[float]) -> str:
    """1,008 GB/s, as makers give the bandwidth of their cards."""
    return "" if bytes_a_second is None else f"{bytes_a_second / GB:,.0f} GB/s"


def operations(a_second: Optional[float]) -> str:
    """165 TFLOP/s."""
    return "" if a_second is None else f"{a_second / 10**12:,.0f} TFLOP/s"


def seconds(low: float, high: float) -> str:
    """3 to 30 s, 2 to 4 min."""
    if low >= 90:
        low, high, unit = low / 60, high / 60, "min"
    else:
        unit = "s"
    texts = [f"{value:.0f}" if value >= 9.95 else f"{value:.1f}".replace(".0", "") for value in (low, high)]
    return f"{texts[0]} {unit}" if texts[0] == texts[1] else f"{texts[0]} to {texts[1]} {unit}"
