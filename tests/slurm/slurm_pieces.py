"""How the tests of this folder call the pieces, and how they wait for health checks."""

from __future__ import annotations

import shlex
import sys

from bench import slurm
from bench.parts import ROOT

PIECES = ROOT / "cudadoctor" / "recipes" / "slurm"

DOCTOR = f"env PYTHONPATH={ROOT} {sys.executable} -m cudadoctor"
"""The doctor under test, as the pieces' variable CUDADOCTOR names it."""


def piece(name: str, doctor: str = DOCTOR, **settings: str) -> str:
    """A shell line that runs a piece ("prolog") with these settings (CUDADOCTOR_...)."""
    # Slurm is asked at each look: nodes are drained by hand here, and nothing is left in /run.
    variables = {
        "CUDADOCTOR": doctor,
        "CUDADOCTOR_MEMORY": "no",
        **{f"CUDADOCTOR_{key}": value for key, value in settings.items()},
    }
    words = [f"{key}={shlex.quote(value)}" for key, value in variables.items()]
    return f"env {' '.join(words)} sh {PIECES / name}.sh"


def when_asked(cluster: slurm.Cluster, command: str) -> str:
    """The command as a health check that looks once each time `look_around` asks: tests wait for looks, not time."""
    here = f"{cluster.root}/jobs"
    # Taken by one: Slurm starts the next look while a slow one still runs.
    asked, looking = (f'{here}/{state}."$SLURMD_NODENAME"' for state in ("asked", "looking"))
    return f"mv {asked} {looking} 2>/dev/null || exit 0\n({command})\nrm {looking}"


def look_around(cluster: slurm.Cluster, *nodes: str, seconds: float = 60) -> None:
    """Waits until a health check that begins after now has ended on these nodes (none named: on all)."""
    here = cluster.root / "jobs"
    for name in nodes or cluster.nodes:
        (here / f"asked.{name}").touch()

    def ended() -> bool:
        # In this order: what is asked for turns into what is under way.
        return not list(here.glob("asked.*")) and not list(here.glob("looking.*"))

    slurm.wait_for(ended, seconds, "a round of health checks", cluster.logs)
