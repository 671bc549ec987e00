"""The fan-out over a real Ray cluster of two nodes, one of them sick."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from bench import native
from bench.parts import CACHE, ROOT, clean_environ, missing_part

pytestmark = pytest.mark.once

# Starts the cluster and runs a command in it. Both nodes are on this machine: each node's tasks get its own variables.
CLUSTER = """
import json, subprocess, sys
from ray.cluster_utils import Cluster
cluster = Cluster()
try:
    for name, variables in json.loads(sys.argv[1]).items():
        cluster.add_node(num_cpus=1, num_gpus=2, node_name=name, env_vars=variables, include_dashboard=False)
    done = subprocess.run(sys.argv[3:], env={**json.loads(sys.argv[2]), "RAY_ADDRESS": cluster.address}, timeout=100)
finally:
    cluster.shutdown()
sys.exit(done.returncode)
"""


def test_the_sick_node_is_named(recipe: Callable[[str], str], tmp_path: Path) -> None:
    part = CACHE / "ray"
    if not (part / "ready").exists():
        missing_part("Ray", "scripts/install_test_parts.sh ray fetches it")
    python = str(part / "bin" / "python")
    # Older releases of Ray hide all GPUs from a task that asks for none; this one does so when it is asked.
    machines = {
        name: {**native.environment(scenario), "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "1"}
        for name, scenario in {"n1": "two_gpus", "n2": "one_gpu_lost"}.items()
    }
    doctor = tmp_path / "cudadoctor"
    doctor.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m cudadoctor "$@"\n')
    doctor.chmod(0o755)
    head = clean_environ(CUDADOCTOR=str(doctor), OUT="reports.ndjson", RAY_USAGE_STATS_ENABLED="0")
    command = [python, recipe("ray/check"), "--ignore", "CD301=not asked for here"]
    cluster = [python, "-c", CLUSTER, json.dumps(machines), json.dumps(head), *command]
    process = subprocess.Popen(
        cluster,
        cwd=tmp_path,
        env=head,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=150)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 1, out + err
    assert "CD113" in out and "n2" in out, out + err
    reports = [json.loads(line) for line in (tmp_path / "reports.ndjson").read_text().splitlines()]
    causes = {report["facts"]["scheduler.node"]["value"]: report["root_causes"] for report in reports}
    # Nothing is said about GPUs that are hidden (CD706): that was Ray, for our task.
    assert causes == {"n1": [], "n2": ["CD113"]}
