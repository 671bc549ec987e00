"""Running a piece of Python in a process of its own, with an environment of the test's own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any, Optional

from bench.parts import clean_environ

from cudadoctor.model.fact import Facts

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

EXAMINE = """
import json, sys
from cudadoctor.probes.examine import examine, live_system
probes = json.loads(sys.argv[2])
print(json.dumps(examine(live_system(float(sys.argv[1])), probes).to_json()))
"""


def python(
    code: str, *arguments: str, environment: Optional[Mapping[str, str]] = None, timeout: float = 60, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Runs `code`, with the project on the import path; `environment` is whole (clean_environ() by default)."""
    variables = dict(clean_environ() if environment is None else environment, PYTHONPATH=ROOT)
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=variables,
        capture_output=True,
        text=True,
        timeout=timeout,
        cwd=options.pop("cwd", ROOT),
        **options,
    )


def facts_of(
    environment: Mapping[str, str], seconds: float = 15.0, probes: Optional[list[str]] = None, **options: Any
) -> Facts:
    """The facts that these probes (device and driver) find in a process with this environment."""
    chosen = json.dumps(["device", "driver"] if probes is None else probes)
    done = python(EXAMINE, str(seconds), chosen, environment=environment, **options)
    assert done.returncode == 0, done.stderr
    return Facts.from_json(json.loads(done.stdout))
