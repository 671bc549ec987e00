"""CD402: 32-bit Pythons."""

from __future__ import annotations

from cudadoctor.testing import GONE, fails, linux, passes, skips, unknown_when, windows

RULE = "CD402"

OLD = windows().no_torch().set({"python.bits": 32, "python.version": "3.7.9"})

CASES = [
    passes("64 bits", linux()),
    passes("64 bits on Windows", windows()),
    fails(
        "the 32-bit installer of Windows: the version alone looks right",
        OLD,
        says="Python 3.7.9 is a 32-bit build, and torch has 64-bit wheels only",
        severity="error",
        certainty="certain",
        blame="environment",
        fix="use-python",
    ),
    fails("its version is not known", OLD.unknown("python.version"), says="Python is a 32-bit build"),
    skips("somebody built torch for it", linux().set({"python.bits": 32})),
    skips("no Python", linux().no_torch().set({"python.bits": GONE})),
    unknown_when("nobody could ask it", linux().unknown("python.bits")),
]
