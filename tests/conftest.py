"""Loads the test bench (tests/bench): its fixtures, the marker real_part and the strict mode."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from hypothesis import settings

# Before the plugins are imported, and in every import mode.
sys.path.insert(0, str(Path(__file__).resolve().parent))

# What the developer's own `cudadoctor matrix update` brought is no part of any test.
os.environ["CUDADOCTOR_DATA"] = "shipped"

# How long an example takes is a matter of the machine and of what else runs on it.
settings.register_profile("search", deadline=None)
# CI judges a change by the same examples each time; whoever works on the code lets them be searched anew.
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "search")

pytest_plugins = ["bench.strict", "bench.fixtures"]
