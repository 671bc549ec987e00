"""A recording gives back what was answered, is redacted, and is written whole or not at all."""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path
from typing import Any

import pytest

from cudadoctor.model.fact import Fact, Facts, known
from cudadoctor.probes.api import EVERYWHERE, Probe
from cudadoctor.probes.examine import examine, live_system
from cudadoctor.system import record
from cudadoctor.system.live import LiveSystem
from cudadoctor.system.port import Ended, System
from cudadoctor.system.record import RecordingSystem
from cudadoctor.system.recording import RecordingError, bytes_entry, bytes_of
from cudadoctor.system.redact import Redactor
from cudadoctor.system.replay import ReplaySystem

from .apart import python
from .test_replay import ANSWERS, BY_HAND, WINDOWS, WINDOWS_ANSWERS

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")

NOBODY = Redactor()


class Loud(ReplaySystem):
    """A machine written by hand that says it is live, so that what it answers is recorded as from one."""

    kind = "live"


@pytest.mark.parametrize(
    ("machine", "answers"), [(BY_HAND, ANSWERS), (WINDOWS, WINDOWS_ANSWERS)], ids=["linux", "windows"]
)
def test_each_answer_of_the_port_comes_back_from_the_recording(
    machine: dict[str, Any], answers: list[Any], tmp_path: Path
) -> None:
    recording = RecordingSystem(Loud.of(machine))
    # Shorter reads of a file come back from the longer one that is kept.
    asked = [(question, arguments, getattr(recording, question)(*arguments)) for question, arguments, _ in answers]
    recording.write(str(tmp_path / "recording"), NOBODY)
    replay = ReplaySystem(str(tmp_path / "recording"))
    for question, arguments, answer in asked:
        if arguments != ("notes.txt",):  # a relative path is another one where the working folder is unknown
            assert getattr(replay, question)(*arguments) == answer, (question, arguments)


def test_pieces_of_a_binary_file_come_back(tmp_path: Path) -> None:
    data = bytes(range(256)) * 100
    (tmp_path / "library.so").write_bytes(data)
    path = str(tmp_path / "library.so")
    recording = RecordingSystem(LiveSystem(time.monotonic() + 30))
    reader = recording.open_binary(path).get()
    asked = [(0, 64), (64, 64), (100, 200), (25_000, 10_000), (0, 16)]
    pieces = [reader.read_at(*piece) for piece in asked]
    document = recording.document(NOBODY)
    assert sorted(document["binaries"][path]["pieces"]) == ["0", "25000"]  # what touches is one piece
    replayed = ReplaySystem.of(document).open_binary(path).get()
    assert replayed.size == len(data)
    assert [replayed.read_at(*piece) for piece in asked] == pieces
    with pytest.raises(OSError, match="not in the recording"):
        replayed.read_at(10_000, 1)


CONTENTS = [
    b"",
    b"\n",
    b"one line\n",
    b"no end",
    b"two\nlines\n",
    b"\n\n\n",
    b"carriage\r\nreturn\r\n",
    "umlaut ä\n".encode(),
    b"latin \xe9\n",
    b"\xef\xbb\xbfmark\n",
    b"\x06\x00\x00\x00\x01",
    b"NVIDIA Jetson\0",
    "12.4".encode("utf-16"),
    bytes(range(256)),
]


@pytest.mark.parametrize("content", CONTENTS, ids=[repr(content)[:30] for content in CONTENTS])
def test_any_content_of_a_file_comes_back(content: bytes, tmp_path: Path) -> None:
    assert bytes_of(json.loads(json.dumps(bytes_entry(content)))) == content
    path = str(tmp_path / "file")
    Path(path).write_bytes(content)
    recording = RecordingSystem(LiveSystem(time.monotonic() + 30))
    text, data = recording.read_text(path), recording.read_bytes(path)
    replay = ReplaySystem.of(recording.document(NOBODY))
    assert (replay.read_text(path), replay.read_bytes(path)) == (text, data)
    assert data.get() == content


def test_the_longest_of_several_reads_is_kept(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("a long log\n")
    path = str(tmp_path / "log")
    recording = RecordingSystem(LiveSystem(time.monotonic() + 30))
    for limit in (4, 100, 6):
        recording.read_bytes(path, limit)
    replay = ReplaySystem.of(recording.document(NOBODY))
    assert [replay.read_bytes(path, limit).get() for limit in (4, 100)] == [b"a lo", b"a long log\n"]


# -- whole examinations ---------------------------------------------------------------------------------------------


def _without_kind(facts: Facts) -> Facts:
    return facts.without(["examination.kind"])


@pytest.mark.skipif(os.name != "posix", reason="the live machine is taken to be a POSIX one")
def test_a_replay_of_this_machine_gives_the_same_facts(tmp_path: Path) -> None:
    recording = RecordingSystem(live_system(60))
    live = examine(recording)
    assert live["examination.kind"].get() == "live" and len(live) > 100
    redactor = Redactor.of_this_machine()
    path = recording.write(str(tmp_path / "machine"), redactor)
    replayed = examine(ReplaySystem(str(tmp_path / "machine")))
    assert replayed["examination.kind"].get() == "replay"
    expected = _without_kind(redactor.facts(live))
    different = {
        name: (expected[name], replayed[name])
        for name in {*expected, *_without_kind(replayed)}
        if expected[name] != replayed[name]
    }
    assert different == {}
    assert path == str(tmp_path / "machine" / "machine.json")


RECORD = """
import sys
from cudadoctor.probes.examine import examine, live_system
from cudadoctor.system.record import RecordingSystem
import json
recording = RecordingSystem(live_system(20))
facts = examine(recording, ["device", "driver"])
recording.write(sys.argv[1])
print(json.dumps(facts.to_json()))
"""


@pytest.mark.parametrize("scenario", ["two_gpus", "one_gpu_lost", "mismatch_18", "missing_symbol", "mig"])
def test_a_replay_of_a_machine_with_gpus_gives_the_same_facts(
    scenario: str, tmp_path: Path, fake_nvml: Any, real_nvidia_smi: Any
) -> None:
    from bench.parts import clean_environ

    environment = clean_environ(fake_nvml(scenario), {"PATH": real_nvidia_smi("535")})
    done = python(RECORD, str(tmp_path / "machine"), environment=environment)
    assert done.returncode == 0, done.stderr
    live = Facts.from_json(json.loads(done.stdout))
    replayed = examine(ReplaySystem(str(tmp_path / "machine")), ["device", "driver"])
    assert _without_kind(replayed) == _without_kind(Redactor.of_this_machine().facts(live))
    text = (tmp_path / "machine" / "machine.json").read_text()
    assert not re.search(r"GPU-[0-9a-f]{8}|python3", text)  # no UUID, no process' name


def test_probes_in_processes_of_their_own_send_their_notes_back(tmp_path: Path) -> None:
    (tmp_path / "one").write_text("1")
    (tmp_path / "two").write_text("2")

    def reads(name: str) -> Probe:
        def look(system: System) -> dict[str, Fact[Any]]:
            text = system.read_text(str(tmp_path / name)).get()
            if name == "two":
                raise ValueError("after it had read")
            return {"torch.version": known(text, name)}

        return Probe(name, EVERYWHERE, (), look)

    recording = RecordingSystem(live_system(30))
    facts = examine(recording, [reads("one"), reads("two")])
    assert facts["examination.failed"].get() == [{"probe": "two", "reason": "ValueError: after it had read"}]
    files = recording.document(NOBODY)["files"]
    assert files == {str(tmp_path / "one"): "1", str(tmp_path / "two"): "2"}


def test_a_program_is_noted_when_its_answer_is_there() -> None:
    class Programs(Loud):
        def start(self, argv: Any, timeout: float, environment: Any = None) -> Any:
            return Ended(self.run(argv, timeout, environment))

    recording = RecordingSystem(Programs.of(BY_HAND))
    running = recording.start(["nvidia-smi"], 1)
    assert "programs" not in recording.document(NOBODY)
    assert running.result() is running.result(1.0)
    assert recording.document(NOBODY)["programs"] == [
        {"argv": ["nvidia-smi"], "exit_status": 9, "stdout": "has failed\n"}
    ]


# -- writing --------------------------------------------------------------------------------------------------------


@pytest.fixture
def recording() -> RecordingSystem:
    made = RecordingSystem(Loud.of(BY_HAND))
    made.machine()
    made.variable("PATH")
    return made


def test_what_is_written(recording: RecordingSystem, tmp_path: Path) -> None:
    path = recording.write(str(tmp_path / "new" / "folder"), NOBODY)
    assert Path(path).read_text() == (
        "{\n"
        ' "machine": "x86_64",\n'
        ' "platform": "linux",\n'
        ' "schema": "cudadoctor.recording/1",\n'
        ' "variables": {\n'
        '  "PATH": "/usr/local/cuda/bin:/usr/bin"\n'
        " }\n"
        "}\n"
    )
    assert os.listdir(tmp_path / "new" / "folder") == ["machine.json"]


def test_an_empty_folder_is_used_and_no_other(recording: RecordingSystem, tmp_path: Path) -> None:
    recording.write(str(tmp_path), NOBODY)
    before = (tmp_path / "machine.json").read_text()
    with pytest.raises(RecordingError) as caught:
        recording.write(str(tmp_path), NOBODY)
    assert str(caught.value) == f"{tmp_path}: this folder is not empty; a recording goes into a new or empty one"
    assert (tmp_path / "machine.json").read_text() == before
    with pytest.raises(RecordingError, match="a recording needs a folder, and this is a file"):
        recording.write(str(tmp_path / "machine.json"), NOBODY)


def test_nothing_is_left_behind_where_it_cannot_be_written(
    recording: RecordingSystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(record.os, "fsync", full)
    with pytest.raises(RecordingError) as caught:
        recording.write(str(tmp_path / "new"), NOBODY)
    assert str(caught.value) == f"{tmp_path / 'new'}: the recording cannot be written (no space left on device)"
    assert os.listdir(tmp_path) == []
    (tmp_path / "mine").mkdir()
    with pytest.raises(RecordingError):
        recording.write(str(tmp_path / "mine"), NOBODY)
    assert os.listdir(tmp_path) == ["mine"] and os.listdir(tmp_path / "mine") == []


def test_a_folder_below_a_file_is_refused(recording: RecordingSystem, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RecordingError, match="the recording cannot be written"):
        recording.write(str(tmp_path / "file" / "folder"), NOBODY)
