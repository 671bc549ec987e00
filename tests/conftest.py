"""Loads the test bench (tests/bench): its fixtures, the marker real_part and the strict mode."""

from __future__ import annotations

import sys
from pathlib import Path

# Before the plugins are imported, and in every import mode.
sys.path.insert(0, str(Path(__file__).resolve().parent))

pytest_plugins = ["bench.strict", "bench.fixtures"]
