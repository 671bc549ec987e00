"""The fan-outs over ssh and MPI, as a person runs them: the real engines, three nodes, one of them sick."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from bench.parts import program
from ssh_nodes import UNREACHABLE, Nodes

from cudadoctor.recipes import recipes

pytestmark = [pytest.mark.once, pytest.mark.real_part("sshd")]

# As the shell of a node reads them: a word with blanks stays one.
OPTIONS = "--blame machine --ignore 'CD117=not asked for here'"


class Engine(NamedTuple):
    recipe: str
    program: str
    package: str  # Debian's
    arguments: Callable[[list[str], Path], list[str]] = lambda nodes, folder: []
    environment: Callable[[list[str]], dict[str, str]] = lambda nodes: {}


def in_environment(nodes: list[str]) -> dict[str, str]:
    return {"NODES": ",".join(nodes)}


def in_a_file(nodes: list[str], folder: Path) -> list[str]:
    (folder / "hosts").write_text("".join(f"{node}\n" for node in nodes))
    return ["hosts"]


def for_mpirun(nodes: list[str]) -> dict[str, str]:
    return {
        "MPIRUN": f"mpirun -H {','.join(nodes)} --map-by ppr:1:node",
        "EXPECT": ",".join(nodes),
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    }


def for_mpirun_alone(nodes: list[str]) -> dict[str, str]:
    return {**for_mpirun(nodes), "EXPECT": ""}


OVER_SSH = [
    Engine("ssh/fan-out", "ssh", "openssh-client", lambda nodes, folder: nodes),
    Engine("ssh/pdsh", "pdsh", "pdsh", environment=in_environment),
    Engine("ssh/clush", "clush", "clustershell", environment=in_environment),
    Engine("ssh/parallel-ssh", "parallel-ssh", "pssh", in_a_file),
]
MPI = Engine(
    "mpi/fan-out",
    "mpirun",
    "openmpi-bin",
    lambda nodes, folder: ["--blame", "machine", "--ignore", "CD117=not asked for here"],
    for_mpirun,
)


class Answer(NamedTuple):
    exit: int
    out: str
    err: str


Fan = Callable[..., Answer]


@pytest.fixture
def fan(nodes: Nodes, recipe: Callable[[str], str], tmp_path: Path) -> Fan:
    """Runs an engine's recipe over these nodes, each in the state that is named."""

    def out(engine: Engine, *unreachable: str, doctor: str = "", deadline: int = 0, **sick: str) -> Answer:
        program(engine.program, f"Debian: apt-get install {engine.package}")
        for name in nodes.names:
            nodes.plays(name, sick.get(name, "two_gpus"))
        names = [*nodes.names, *unreachable]
        command = [recipe(engine.recipe), *engine.arguments(names, tmp_path)]
        # Two words, as for the one file in a shared folder.
        environment = {"CUDADOCTOR": f"sh {doctor or nodes.doctor}", "CUDADOCTOR_OPTIONS": OPTIONS}
        environment.update(engine.environment(names))
        if deadline:
            environment["CUDADOCTOR_DEADLINE"] = str(deadline)
        done = nodes.run(command, tmp_path, environment)
        return Answer(done.returncode, done.stdout, done.stderr)

    return out


def test_every_recipe_over_ssh_is_tried() -> None:
    assert {engine.recipe for engine in OVER_SSH} == {name for name in recipes() if name.startswith("ssh/")}


@pytest.mark.parametrize("engine", [*OVER_SSH, MPI], ids=lambda engine: str(engine.recipe))
def test_fit_nodes_are_fit(engine: Engine, fan: Fan) -> None:
    answer = fan(engine)
    assert answer.exit == 0, answer
    assert "n[1-3]" in answer.out, answer


@pytest.mark.parametrize("engine", OVER_SSH, ids=lambda engine: str(engine.recipe))
def test_the_sick_node_and_the_unreachable_one_are_named(engine: Engine, fan: Fan) -> None:
    answer = fan(engine, UNREACHABLE, n2="one_gpu_lost")
    assert answer.exit == 1, answer
    assert "CD113" in answer.out and "n[1,3]" in answer.out, answer
    assert UNREACHABLE in answer.out, answer


def test_a_sick_node_of_an_mpi_job_does_not_end_the_others(fan: Fan) -> None:
    """One process that ends with another status than 0 would."""
    answer = fan(MPI, n1="one_gpu_lost")
    assert answer.exit == 1, answer
    assert "CD113" in answer.out and "n[2-3]" in answer.out, answer
    assert "aborted" not in answer.err and "no report" not in answer.err, answer


def test_an_mpirun_that_reaches_not_all_nodes_is_no_pass(fan: Fan) -> None:
    answer = fan(MPI, UNREACHABLE)
    assert answer.exit in (1, 2), answer


@pytest.mark.parametrize("engine", [OVER_SSH[0], OVER_SSH[1], MPI], ids=lambda engine: str(engine.recipe))
def test_a_node_whose_doctor_hangs_holds_nobody_up_for_long(engine: Engine, fan: Fan, nodes: Nodes) -> None:
    """It would do so for ten minutes, and does not listen to a polite end."""
    hanging = '[ "$(uname -n)" != n3 ] || { trap "" TERM; sleep 600; }'
    doctor = nodes.installs("hanging", f'#!/bin/sh\n{hanging}\nexec {nodes.doctor} "$@"\n')
    begun = time.monotonic()
    answer = fan(engine, doctor=str(doctor), deadline=2)
    assert time.monotonic() - begun < 60
    # On a busy machine the others may be too late, too, and where nobody says anything there is nothing to merge.
    assert answer.exit in (1, 2), answer
    assert re.search(r"n3: .*exit (code|status) 137", answer.err), answer


def test_a_node_of_an_mpi_job_without_the_doctor_is_no_pass(nodes: Nodes, fan: Fan) -> None:
    """Whether or not anybody has said who must answer."""
    some = nodes.installs("some", f'#!/bin/sh\n[ "$(uname -n)" != n3 ] || exit 127\nexec {nodes.doctor} "$@"\n')
    for engine, status in ((MPI, 1), (MPI._replace(environment=for_mpirun_alone), 2)):
        answer = fan(engine, doctor=str(some))
        assert answer.exit == status, answer
        assert "n3: no report (exit status 127)" in answer.err
