"""A user in a job is told what they can do, and what to tell those who run the machine."""

from __future__ import annotations

from typing import Optional

import pytest

from cudadoctor.diagnose import diagnose
from cudadoctor.matrix import load_matrix
from cudadoctor.plan.hand_over import hand_over
from cudadoctor.testing import Machine, linux

MATRIX = load_matrix()
LOST = {"gpu.0.lost": True}
IN_JOB = {"scheduler.node": "n17", "env.SLURM_JOB_ID": "4711", "system.is_admin": False}

# machine, what the user can do (None: nobody is to be told)
TABLE = [
    ("in a Slurm job", linux().job(gpus=1).set({**LOST, **IN_JOB}), "sbatch --exclude=n17"),
    ("node unknown", linux().job(gpus=1).set({**LOST, "system.is_admin": False}), "submit again, so that"),
    (
        "a name that is no name",
        linux().job(gpus=1).set({**LOST, **IN_JOB, "scheduler.node": "$(id)"}),
        "submit again, so",
    ),
    ("root in a pod", linux().job("kubernetes", 1).set({**LOST, "system.is_admin": True}), "delete the pod"),
    ("the admin in a job", linux().job(gpus=1).set({**LOST, **IN_JOB, "system.is_admin": True}), None),
    ("who the user is, is not known", linux().job(gpus=1).set({**LOST, **IN_JOB}).unknown("system.is_admin"), None),
    ("no job", linux().set(LOST), None),
    ("the job's own fault", linux().no_devices().job(gpus=0).set(IN_JOB), None),
    ("the user's own fault", linux().job(gpus=1).torch("2.6.0+cpu").set(IN_JOB), None),
    ("nothing wrong", linux().job(gpus=1).set(IN_JOB), None),
]


@pytest.mark.parametrize(("title", "machine", "yours"), TABLE)
def test_who_is_told_what(title: str, machine: Machine, yours: Optional[str]) -> None:
    found = hand_over(diagnose(machine.facts, MATRIX))
    assert (found is None) == (yours is None)
    assert found is None or (yours is not None and yours in found.yours)


def test_the_message_names_node_job_rule_and_fault() -> None:
    found = hand_over(diagnose(linux().job(gpus=1).set({**LOST, **IN_JOB}).facts, MATRIX))
    assert found is not None
    assert found.message.startswith("node n17 (job 4711): CD113 gpu-lost: GPU 0 has fallen off the bus")
