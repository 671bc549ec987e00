"""What an install downloads, against the room that there is: said first where it cannot fit."""

from __future__ import annotations

from typing import Optional

import pytest

from cudadoctor.diagnose import diagnose
from cudadoctor.matrix import load_matrix
from cudadoctor.plan import Options, make_plan
from cudadoctor.plan.context import Context
from cudadoctor.plan.remedies.room import Room, download_of, make_room, needs, note, room_for
from cudadoctor.testing import GIB, MIB, Machine, linux, windows

MATRIX = load_matrix()
SICK = linux().torch("2.14.1+cpu")
# A build whose whole download is known.
KNOWN = Options(torch="2.14.1+cu130")


def with_room(machine: Machine, environment: int, temporary: int, cache: int = 100 * GIB) -> Machine:
    return machine.set(
        {
            "disk.environment_free": environment,
            "disk.temporary_free": temporary,
            "disk.temporary_path": "/tmp",
            "disk.cache_free": cache,
            "disk.cache_path": "/home/user/.cache/pip",
            "disk.working_free": 500 * GIB,
        }
    )


def context(machine: Machine, options: Optional[Options] = None) -> Context:
    return Context(machine.facts, MATRIX, options or KNOWN)


def download() -> int:
    resolution = context(SICK).resolved()
    assert resolution.choice is not None
    found = download_of(context(SICK), resolution.choice)
    assert found is not None and found > GIB
    return found


def first(machine: Machine, options: Options = KNOWN) -> str:
    return make_plan(diagnose(machine.facts, MATRIX), MATRIX, options).steps[0].id


def test_a_plan_says_what_it_downloads() -> None:
    plan = make_plan(diagnose(with_room(SICK, 100 * GIB, 100 * GIB).facts, MATRIX), MATRIX, KNOWN)
    (step,) = plan.steps
    assert f"download:{download()}" in step.needs
    assert plan.download == download()
    assert "room: 100.0 GiB free in the environment" in step.instructions


# Free in the environment, for temporary files; whether room comes first.
TABLE = [
    ("room enough", 100 * GIB, 100 * GIB, False),
    ("a full environment", GIB, 100 * GIB, True),
    ("a small /tmp", 100 * GIB, GIB, True),
    ("neither", 0, 0, True),
]


@pytest.mark.parametrize(
    ("environment", "temporary", "is_short"), [row[1:] for row in TABLE], ids=[r[0] for r in TABLE]
)
def test_what_cannot_fit_is_said_first(environment: int, temporary: int, is_short: bool) -> None:
    assert (first(with_room(SICK, environment, temporary)) == "make-room") is is_short


def test_what_is_not_known_is_no_lack_of_room() -> None:
    assert first(SICK.unknown("disk.environment_free", "disk.temporary_free")) == "install-torch"
    machine = with_room(SICK, 1, 1)
    resolution = context(machine).resolved()
    assert resolution.choice is not None
    room = room_for(context(machine), resolution.choice)._replace(download=None)
    assert not room.is_short
    assert needs(room) == ("network",)
    assert note(room) == ""


def test_where_room_is() -> None:
    small = context(with_room(SICK, GIB, GIB))
    (step,) = make_room(small, Room(3 * GIB, GIB, 512 * MIB, 100 * GIB))
    text = step.step.instructions
    assert step.step.title == (
        "Make room first: 3.0 GiB to download, 1.0 GiB free in the environment and 512 MiB free in the folder for "
        "temporary files"
    )
    assert "/home/user/proj/.venv/bin/python -m pip cache purge" in text
    assert "The working folder's disk has 500.0 GiB free" in text
    assert "    mkdir -p ~/tmp && export TMPDIR=~/tmp" in text


def test_a_home_without_room_is_not_where_temporary_files_go() -> None:
    (step,) = make_room(context(SICK), Room(3 * GIB, 100 * GIB, GIB, GIB))
    assert "~/tmp" not in step.step.instructions
    assert "TMPDIR=/path/with/room/tmp" in step.step.instructions


def test_windows_has_other_words() -> None:
    (step,) = make_room(context(windows().torch("2.14.1+cpu")), Room(3 * GIB, 100 * GIB, GIB, GIB))
    assert "$env:TEMP" in step.step.instructions


def test_a_cache_without_room_is_left_alone() -> None:
    """pip keeps what it downloads; where that fills the disk it need not."""
    plan = make_plan(diagnose(with_room(SICK, 100 * GIB, 100 * GIB, GIB).facts, MATRIX), MATRIX, KNOWN)
    assert "--no-cache-dir" in (plan.steps[0].argv or ())


def test_uv_unpacks_in_its_cache_and_not_in_tmp() -> None:
    assert first(with_room(SICK, 100 * GIB, GIB), KNOWN._replace(installer="uv")) == "install-torch"
