"""Questions in a process of their own, and the home that no directory service is asked for."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path
from typing import Any

import pytest

from cudadoctor.system import bounded, worker
from cudadoctor.system.home import home

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")


def soon(seconds: float = 30.0) -> float:
    return time.monotonic() + seconds


def test_an_answer_an_error_and_a_failure_come_back_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")
    assert bounded.read_file(str(path), 4, soon()) == b"0123"
    with pytest.raises(FileNotFoundError) as missing:
        bounded.read_file(str(tmp_path / "none"), 4, soon())
    assert (missing.value.errno, missing.value.strerror) == (errno.ENOENT, os.strerror(errno.ENOENT))
    with pytest.raises(OSError, match="KeyError"):
        bounded.ask(lambda: {}["nothing"], soon())


@pytest.mark.skipif(not worker.CAN_FORK, reason="this system cannot fork")
def test_who_is_asked_to_end_gently_cleans_up(tmp_path: Path) -> None:
    mark = tmp_path / "half"

    def writes() -> Any:
        mark.write_text("half")
        try:
            time.sleep(60)
        finally:
            mark.unlink()

    begun = time.monotonic()
    with pytest.raises(TimeoutError) as late:
        bounded.ask(writes, soon(1.0), gently=True)
    assert late.value.strerror == bounded.NO_ANSWER
    assert time.monotonic() - begun < 15
    assert not mark.exists()


def test_a_stream_is_read_to_its_end_or_to_the_end_of_its_time() -> None:
    reader, writer = os.pipe()
    os.write(writer, b"some")
    with pytest.raises(TimeoutError):
        bounded.read_stream(reader, 100, soon(0.2))
    os.write(writer, b"more")
    os.close(writer)
    assert bounded.read_stream(reader, 100, soon()) == b"more"
    os.close(reader)


@pytest.mark.skipif(os.name != "posix", reason="Windows has no such file")
def test_the_home_is_that_of_the_variable_or_of_the_local_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os.path, "expanduser", lambda path: pytest.fail("it asks the directory service"))
    monkeypatch.setenv("HOME", "/data/me/")
    assert home() == "/data/me"
    monkeypatch.delenv("HOME")
    rows = [line.split(":") for line in Path("/etc/passwd").read_text().splitlines()]
    assert home() == next((row[5] for row in rows if row[2] == str(os.getuid())), "").rstrip("/")
    monkeypatch.setattr(os, "getuid", lambda: 987654)  # a user of the directory alone
    assert home() == ""
