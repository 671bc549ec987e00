#!/usr/bin/env python3
# Checks every node of a Ray cluster
#
#   cudadoctor recipes ray/check -o check.py
#   python check.py [OPTION OF cudadoctor check ...] && python train.py
#
# Runs in your Ray environment, as a driver or by `ray job submit -- python
# check.py`. It asks Ray for no GPU and no CPU, so it need not wait until running
# tasks have ended.
#
#   CUDADOCTOR           the command, here and on the nodes, by its full path
#                        [cudadoctor]
#   CUDADOCTOR_DEADLINE  seconds for the doctor on a node [60]
#   OUT                  a file for the nodes' reports, one JSON document a line
#
# Exit status: that of `cudadoctor fleet` (0: all nodes are fit). A node that
# gives no report in time is missing there, and that is a fault.
from __future__ import annotations

import os
import shlex
import subprocess
import sys

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

DOCTOR = shlex.split(os.environ.get("CUDADOCTOR", "cudadoctor"))
DEADLINE = float(os.environ.get("CUDADOCTOR_DEADLINE", "60"))


def check(command: list[str], deadline: float) -> tuple[str, str]:
    """Runs on a node: the report as one line, and what was said besides."""
    environ = dict(os.environ)
    # Some releases of Ray hide all GPUs from a task that asks for none. That is
    # no finding: it is of our making.
    if not environ.get("CUDA_VISIBLE_DEVICES"):
        environ.pop("CUDA_VISIBLE_DEVICES", None)
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=deadline, env=environ
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return "", str(error)
    return done.stdout, done.stderr


def name_of(node: dict[str, str]) -> str:
    """The name that the node was started with, else the host's: Ray itself puts its address."""
    named = node.get("NodeName") or node["NodeManagerAddress"]
    return named if named != node["NodeManagerAddress"] else node["NodeManagerHostname"]


def main() -> int:
    ray.init(address=os.environ.get("RAY_ADDRESS", "auto"), log_to_driver=False)
    task = ray.remote(num_cpus=0, num_gpus=0, max_retries=0)(check)
    waiting = {}
    for node in ray.nodes():
        if node["Alive"]:
            there = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            command = [*DOCTOR, "check", "--timeout", "30", "--format", "json-line", "--node", name_of(node)]
            reference = task.options(scheduling_strategy=there).remote([*command, *sys.argv[1:]], DEADLINE)
            waiting[reference] = name_of(node)
    # They work at the same time; some seconds more for Ray to start its workers.
    ready, late = ray.wait(list(waiting), num_returns=len(waiting), timeout=DEADLINE + 30)
    lines = []
    for reference in ready:
        try:
            line, said = ray.get(reference)
        except ray.exceptions.RayError as error:  # the node went away
            line, said = "", str(error)
        if said or not line:
            sys.stderr.write(f"{waiting[reference]}: {said.strip() or 'no report'}\n")
        lines.append(line)
    for reference in late:
        sys.stderr.write(f"{waiting[reference]}: no report in time\n")
    if os.environ.get("OUT"):
        with open(os.environ["OUT"], "w", encoding="utf-8") as file:
            file.writelines(lines)
    everyone = ",".join(sorted(waiting.values()))
    return subprocess.run([*DOCTOR, "fleet", "-", "--expect", everyone], input="".join(lines), text=True).returncode


if __name__ == "__main__":
    sys.exit(main())
