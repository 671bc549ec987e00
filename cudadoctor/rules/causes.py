"""Which rules stand before others: the one place that says what follows from a GPU, driver or job that is not there."""

from __future__ import annotations

# A driver that does not serve this process, the narrowest and likeliest explanation first. Whoever needs an answering
# driver is skipped because of the first of these that fails.
NO_ANSWERING_DRIVER = (
    "CD705",
    "CD701",
    "CD702",
    "CD708",
    "CD704",
    "CD703",
    "CD113",
    "CD102",
    "CD104",
    "CD103",
    "CD105",
    "CD111",
    "CD107",
    "CD108",
    "CD110",
    "CD109",
    "CD101",
    "CD106",
    "CD501",
)
