"""Running `cudadoctor fleet` in this process, as the console script does."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable

import pytest

from cudadoctor.cli import main


@pytest.fixture
def fleet(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """`fleet("-", "--format", "json", stdin=b"...")`: exit status, standard output, standard error."""

    def running(*arguments: str, stdin: bytes = b"") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["cudadoctor", "fleet", *arguments])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), "utf-8"))
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return ended.value.code, captured.out, captured.err

    return running
