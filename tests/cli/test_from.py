"""`--from` and `--log`: what people paste, and what a run has left, through the command line."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from cli_runner import Run

import cudadoctor
from cudadoctor.model import Facts
from cudadoctor.testing import Machine, linux

REPORT = """\
It worked last week, maybe I have to reinstall CUDA?

```
(venv) alice@workbox:~/proj$ python train.py
RuntimeError: The NVIDIA driver on your system is too old (found version 11040). Please update your GPU driver
(venv) alice@workbox:~/proj$ python -m torch.utils.collect_env
Collecting environment information...
PyTorch version: 2.9.1+cu128
Is debug build: False
CUDA used to build PyTorch: 12.8
OS: Ubuntu 22.04.4 LTS (x86_64)
Libc version: glibc-2.35
Python version: 3.11.9 (64-bit runtime)
Python platform: Linux-5.15.0-105-generic-x86_64-with-glibc2.35
Is CUDA available: False
GPU models and configuration: GPU 0: NVIDIA GeForce RTX 3090
Nvidia driver version: 470.239.06
```
"""

NOTHING_KNOWN = "My model does not converge, the loss is NaN after some steps. What can I do?\n"


@pytest.fixture
def pasted(tmp_path: Path) -> Callable[..., str]:
    """A text as a file."""

    def written(text: str | bytes, name: str = "bug.txt") -> str:
        path = tmp_path / name
        path.write_bytes(text.encode("utf-8") if isinstance(text, str) else text)
        return str(path)

    return written


@pytest.fixture
def piped(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """A text as standard input."""

    def given(text: str) -> None:
        monkeypatch.setattr(
            sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text.encode("utf-8")), isatty=lambda: False)
        )

    return given


def test_the_cause_the_command_and_where_it_was_read(run: Run, pasted: Callable[..., str]) -> None:
    result = run("check", "--from", pasted(REPORT))
    first, *rest = result.out.splitlines()
    assert result.exit == 1
    assert first.startswith("FAIL  torch 2.9.1+cu128 needs CUDA 12, and driver 470.239.06 is too old for it")
    assert "470.239.06                         line 17 (torch collect_env)" in result.out
    assert "python -m pip install" in result.out and "+cu118" in result.out
    assert any(line.startswith("read  ") and "torch collect_env (lines 7-17)" in line for line in rest)
    assert not any(len(line) > 80 for line in rest if "pip install" not in line and "cudadoctor fix" not in line)


def test_standard_input_and_a_file_tell_the_same(
    run: Run, pasted: Callable[..., str], piped: Callable[[str], None]
) -> None:
    piped(REPORT)
    from_pipe = run("check", "--from", "-", "--format", "json")
    from_file = run("check", "--from", pasted(REPORT), "--format", "json")
    assert from_pipe == from_file and from_file.exit == 1


def test_several_texts_are_one_machine_and_sources_name_them(run: Run, pasted: Callable[..., str]) -> None:
    head, _, tail = REPORT.partition("Collecting")
    one = pasted(head, "error.txt")
    two = pasted("Collecting" + tail, "env.txt")
    result = run("check", "--from", one, "--from", two)
    assert result.out.startswith("FAIL  torch 2.9.1+cu128 needs CUDA 12")
    assert "env.txt, line 11 (torch" in result.out


@pytest.mark.parametrize("form", ["text", "markdown"])
def test_a_text_without_anything_of_ours_is_undecided(run: Run, pasted: Callable[..., str], form: str) -> None:
    result = run("check", "--from", pasted(NOTHING_KNOWN), "--format", form)
    assert result.exit == 3
    assert "nothing in the text is output that cudadoctor knows" in " ".join(result.out.split())
    assert "nvidia-smi" in result.out and "FAIL" not in result.out


def test_the_local_machine_is_never_blamed(run: Run, pasted: Callable[..., str]) -> None:
    """Whatever this machine lacks: a report's facts come from the report."""
    document = json.loads(run("check", "--from", pasted(NOTHING_KNOWN), "--format", "json").out)
    assert set(document["facts"]) == {"examination.kind"}
    assert document["root_causes"] == []


def test_what_to_paste_next_stands_in_the_json(run: Run, pasted: Callable[..., str]) -> None:
    told = json.loads(run("check", "--from", pasted(NOTHING_KNOWN), "--format", "json").out)["pasted"]
    assert [question["command"] for question in told["questions"]][:2] == [
        "python -m torch.utils.collect_env",
        "nvidia-smi",
    ]
    assert all(question["rules"] and question["tells"] for question in told["questions"])


def test_nothing_is_asked_where_the_cause_is_certain(run: Run, pasted: Callable[..., str]) -> None:
    told = json.loads(run("check", "--from", pasted(REPORT), "--format", "json").out)["pasted"]
    assert told["questions"] == [] and told["unexplained"] == []
    assert {"kind": "torch collect_env", "first": 7, "last": 17, "text": "", "used": True} in told["read"]


def test_fix_prints_the_plan_for_that_machine(run: Run, pasted: Callable[..., str]) -> None:
    result = run("fix", "--print", "--from", pasted(REPORT), "--format", "json")
    plan = json.loads(result.out)
    assert result.exit == 1
    assert plan["choice"]["variant"] == "cu118" and plan["choice"]["python"] == "3.11"


def test_fix_never_acts_on_what_was_pasted(run: Run, pasted: Callable[..., str]) -> None:
    result = run("fix", "--apply", "--from", pasted(REPORT))
    assert (result.exit, result.out) == (2, "") and "another one" in result.err


def test_facts_of_a_text(run: Run, pasted: Callable[..., str]) -> None:
    facts = json.loads(run("facts", "--from", pasted(REPORT)).out)["facts"]
    assert facts["torch.version"] == {
        "state": "known",
        "value": "2.9.1+cu128",
        "source": "line 8 (torch collect_env)",
    }


# -- the log of a run ---------------------------------------------------------------------------------------------

LOG = "step 120 loss 2.31\nRuntimeError: The NVIDIA driver on your system is too old (found version 11040).\n"


def test_a_log_is_weighed_with_what_the_machine_shows(
    run: Run, pasted: Callable[..., str], facts_file: Callable[[Machine | Facts], str]
) -> None:
    machine = facts_file(linux())
    healthy = json.loads(run("check", "--facts", machine, "--format", "json").out)
    with_log = json.loads(run("check", "--facts", machine, "--log", pasted(LOG, "run.log"), "--format", "json").out)
    symptoms = {name for name in with_log["facts"] if name.startswith("symptom.")}
    assert symptoms and set(with_log["facts"]) == set(healthy["facts"]) | symptoms
    assert all(with_log["facts"][name]["source"].startswith("run.log, line 2 ") for name in symptoms)
    # A driver that serves the wheel does not fail because a log says so.
    assert "CD303" not in with_log["root_causes"]


def test_a_log_leaves_the_facts_of_the_machine_alone(
    run: Run, pasted: Callable[..., str], facts_file: Callable[[Machine | Facts], str]
) -> None:
    result = run("check", "--facts", facts_file(linux()), "--log", pasted(REPORT, "run.log"), "--format", "json")
    facts = json.loads(result.out)["facts"]
    assert facts["torch.version"]["value"] == linux().facts.value("torch.version")


# -- bad input ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content, says",
    [
        (b"\x89PNG\r\n\x1a\n...", "is a picture, and not a text"),
        (b"PK\x03\x04...", "is an archive"),
        (b"\x1f\x8b\x08...", "is a compressed file"),
        (b"%PDF-1.7", "is a PDF document"),
        (b"", "is empty; expected what a program printed"),
        (b" \r\n\t\n", "is empty"),
        (b"\xff\xfe\r\x00\n\x00", "is empty"),
        (b'{"schema": "cudadoctor.facts/1", "facts": {}}', "give it with --facts"),
    ],
)
def test_what_is_no_text_is_said_in_one_sentence(
    run: Run, pasted: Callable[..., str], content: bytes, says: str
) -> None:
    result = run("check", "--from", pasted(content, "x.bin"))
    assert (result.exit, result.out) == (2, "")
    assert says in result.err and result.err.count("\n") == 1


@pytest.mark.parametrize(
    "options, says",
    [
        (("--from", "no-such-file"), "cannot read 'no-such-file': No such file"),
        (("--from", "/"), "cannot read '/': Is a directory"),
        (("--log", "no-such-file"), "cannot read 'no-such-file'"),
        (("--from", "-", "--from", "-"), "can be read once only"),
        (("--from", "x", "--python", "3.12"), "--python is about another one"),
        (("--from", "x", "--replay", "d"), "--replay is about another one"),
        (("--from", "x", "--facts", "f"), "--facts is about another one"),
    ],
)
def test_options_that_do_not_go_together(run: Run, options: tuple[str, ...], says: str) -> None:
    result = run("check", *options)
    assert (result.exit, result.out) == (2, "")
    assert says in result.err and result.err.count("\n") == 1


# -- markdown -----------------------------------------------------------------------------------------------------


def test_markdown_is_fit_to_be_posted(run: Run, pasted: Callable[..., str]) -> None:
    out = run("check", "--from", pasted(REPORT), "--format", "markdown").out
    assert out.startswith("**FAIL:** torch 2.9.1+cu128 needs CUDA 12")
    assert "\n   ```sh\n   python -m pip install" in out
    rows = [line for line in out.splitlines() if line.startswith("|")]
    assert rows[1] == "|---|---|---|" and all(row.count("|") - row.count("\\|") == 4 for row in rows)
    assert out.count("```") % 2 == 0


HOSTILE = REPORT.replace("RTX 3090", "RTX 3090 <img src=x> @everyone [a](http://x) | `x`")


def test_markdown_holds_nothing_that_a_text_smuggled_in(run: Run, pasted: Callable[..., str]) -> None:
    out = run("check", "--from", pasted(HOSTILE), "--format", "markdown").out
    assert "<img" not in out and "@everyone" not in out and "[a](" not in out


# -- what may reach a command -------------------------------------------------------------------------------------

INJECTIONS = {
    "a version with a command": REPORT.replace("2.9.1+cu128", "2.9.1+cu128;touch /tmp/x"),
    "a Python with a command": REPORT.replace("3.11.9", "3.11.9$(touch /tmp/x)"),
    "a kernel with a command": REPORT.replace("5.15.0-105-generic", "5.15.0-`touch /tmp/x`"),
    "a GPU with a command": REPORT.replace("RTX 3090", "RTX 3090'; touch /tmp/x; '"),
    "a driver with a command": REPORT.replace("470.239.06", "470.239.06 && touch /tmp/x"),
    "a package with a command": REPORT + "[pip3] torch==2.9.1+cu128\n[pip3] xformers;touch==0.0.1\n",
    "a prompt with a command": REPORT + "$ which python\n/home/alice/$(touch /tmp/x)/bin/python\n",
    "an escape sequence": REPORT.replace("Ubuntu", "\x1b]0;touch /tmp/x\x07Ubuntu"),
}


@pytest.mark.parametrize("text", INJECTIONS.values(), ids=INJECTIONS)
def test_no_text_puts_a_command_of_its_own_into_the_plan(text: str) -> None:
    diagnosis = cudadoctor.diagnose_text(text)
    for command in diagnosis.commands:
        outside_of_quotes = "".join(part for number, part in enumerate(command.split("'")) if number % 2 == 0)
        assert "touch" not in outside_of_quotes, command
    assert "\x1b" not in str(diagnosis)


# -- from Python --------------------------------------------------------------------------------------------------


def test_from_python(run: Run, pasted: Callable[..., str]) -> None:
    diagnosis = cudadoctor.diagnose_text(REPORT)
    assert diagnosis.root_causes == ("CD303",) and diagnosis.exit == 1
    assert diagnosis.verdict.startswith("FAIL  torch 2.9.1+cu128")
    assert diagnosis.commands[0].startswith("python -m pip install ")
    assert diagnosis.document == json.loads(run("check", "--from", pasted(REPORT), "--format", "json").out)
    assert str(diagnosis).startswith("FAIL  torch") and diagnosis.text("markdown").startswith("**FAIL:**")


@pytest.mark.parametrize("text", ["", "\x00\xff", b"\xff\xfe\x00", b"\x89PNG", "x" * 100_000, "\n" * 1000])
def test_from_python_any_text_gets_an_answer(text: str | bytes) -> None:
    diagnosis = cudadoctor.diagnose_text(text)
    assert diagnosis.exit == 3 and diagnosis.root_causes == ()


# -- what is shown ------------------------------------------------------------------------------------------------

PAGE_FILE = (
    'Traceback (most recent call last):\n  File "C:\\x\\train.py", line 3, in <module>\n    import torch\n'
    "OSError: [WinError 1455] The paging file is too small for this operation to complete. Error loading "
    '"C:\\x\\torch\\lib\\cublas64_12.dll" or one of its dependencies.\n'
)


def test_what_a_program_said_is_quoted_and_what_is_not_told_is_one_line(run: Run, pasted: Callable[..., str]) -> None:
    lines = run("check", "--from", pasted(PAGE_FILE)).out.splitlines()
    assert lines[0].startswith("FAIL  Windows refused memory")
    assert any('"OSError: [WinError 1455] The paging file is too small' in line for line in lines)
    assert [line.strip() for line in lines if "not in the text" in line] == [
        "????  rest    not in the text: GPU, driver, CUDA, wheel, GPU code"
    ]


HAGS = """Training on Windows 11 is very slow and uneven, it stutters every few seconds.

HKEY_LOCAL_MACHINE\\SYSTEM\\CurrentControlSet\\Control\\GraphicsDrivers
    HwSchMode    REG_DWORD    0x2
"""


def test_a_likely_warning_is_the_answer_where_there_is_no_error(run: Run, pasted: Callable[..., str]) -> None:
    """Of a machine that nobody can touch, "no fault" would be no answer."""
    result = run("check", "--from", pasted(HAGS))
    assert result.out.startswith("warn  ") and "scheduling" in result.out.splitlines()[0]
    assert result.exit == 3
