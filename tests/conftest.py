"""Loads the test bench (tests/bench): its fixtures, the marker real_part and the strict mode."""

from __future__ import annotations

import sys
from pathlib import Path

from hypothesis import settings

# Before the plugins are imported, and in every import mode.
sys.path.insert(0, str(Path(__file__).resolve().parent))

# How long an example takes is a matter of the machine and of what else runs on it.
settings.register_profile("no-deadline", deadline=None)
settings.load_profile("no-deadline")

pytest_plugins = ["bench.strict", "bench.fixtures"]
