"""`cudadoctor check` on machines made by hand: its exit status, its options, its documents."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path
from typing import Any, Callable

import pytest
from cli_runner import Run

from cudadoctor.cli import _diagnosis
from cudadoctor.model import Facts, Outcome
from cudadoctor.model.report import Report
from cudadoctor.testing import GONE, Machine, linux

FactsFile = Callable[[Machine], str]

CPU = linux().torch("2.6.0+cpu")


def test_a_healthy_machine_ends_with_0(run: Run, facts_file: FactsFile) -> None:
    result = run("check", "--facts", facts_file(linux()))
    assert (result.exit, result.err) == (0, "")
    assert result.out.startswith("OK    torch 2.14.1+cu130 runs on NVIDIA GeForce RTX 4090")


def test_a_finding_ends_with_1(run: Run, facts_file: FactsFile) -> None:
    result = run("check", "--facts", facts_file(CPU))
    assert result.exit == 1
    assert result.out.startswith("FAIL  ")


def test_an_undecided_chain_ends_with_3_unless_that_is_accepted(run: Run, facts_file: FactsFile) -> None:
    path = facts_file(Machine(Facts()))
    assert run("check", "--facts", path).exit == 3
    assert run("check", "--facts", path, "--unknown-ok").exit == 0


def test_the_format_never_changes_the_verdict(run: Run, facts_file: FactsFile) -> None:
    for machine, status in ((linux(), 0), (CPU, 1), (Machine(Facts()), 3)):
        path = facts_file(machine)
        assert run("check", "--facts", path, "--format", "text").exit == status
        document = run("check", "--facts", path, "--format", "json")
        assert document.exit == status == json.loads(document.out)["exit"]


def test_one_run_writes_several_formats(run: Run, facts_file: FactsFile, tmp_path: Path) -> None:
    report, page = tmp_path / "report.json", tmp_path / "report.md"
    result = run(
        "check",
        "--facts",
        facts_file(CPU),
        "--color",
        "always",
        "--also",
        f"json={report}",
        "--also",
        f"markdown={page}",
    )
    assert result.exit == 1 and "FAIL" in result.out
    assert json.loads(report.read_text("utf-8"))["root_causes"] == ["CD302"]
    assert page.read_text("utf-8").startswith("**FAIL:** ")


def test_a_file_that_cannot_be_written_is_no_verdict(run: Run, facts_file: FactsFile, tmp_path: Path) -> None:
    result = run("check", "--facts", facts_file(linux()), "--also", f"json={tmp_path}/no/report.json")
    assert result.exit == 2 and "cannot write" in result.err
    # What was seen is told all the same, and in all other files; a plugin's line has to be that of its exit status.
    assert result.out.startswith("OK    torch")
    other = tmp_path / "report.md"
    words = ("--also", f"json={tmp_path}/no/report.json", "--also", f"markdown={other}", "--format", "nagios")
    result = run("check", "--facts", facts_file(linux()), *words)
    assert (result.exit, result.out.startswith("CUDA UNKNOWN - cudadoctor: error: cannot write")) == (3, True)
    assert other.read_text("utf-8").startswith("**OK:** ")


@pytest.mark.parametrize("words", [("--also", "junit=a"), ("-o", "a")])
def test_a_file_takes_one_report(run: Run, tmp_path: Path, words: tuple[str, str]) -> None:
    result = run("check", "--also", "json=a", *words)
    assert (result.exit, result.out) == (2, "")
    assert result.err == "cudadoctor: error: --also and -o name 'a' more than once\n"


def test_who_only_has_a_job_on_the_machine_is_not_told_to_reboot_it(run: Run, facts_file: FactsFile) -> None:
    sick = linux().no_driver()
    guest = {"scheduler.node": "n7", "system.is_admin": False}
    alone = run("check", "--facts", facts_file(sick))
    job = run("check", "--facts", facts_file(sick.job(gpus=1).set(guest)))
    assert alone.exit == job.exit == 1
    assert "\nfix   # " in alone.out and "sudo " in alone.out
    assert "\nyou   submit again without this node: sbatch --exclude=n7 ...\nsend  to your admins: node n7: " in job.out
    assert "\nfix " not in job.out and "sudo " not in job.out and " fix" not in job.out.splitlines()[-1]


def test_only_the_machine_s_own_faults_count_where_that_is_asked_for(run: Run, facts_file: FactsFile) -> None:
    path = facts_file(CPU)
    assert run("check", "--facts", path).exit == 1
    result = run("check", "--facts", path, "--blame", "machine")
    assert result.exit == 0
    assert result.out.startswith("OK    nothing found that the machine is to blame for")


def test_a_fault_of_the_machine_with_what_follows_from_it_is_a_reason_to_try_another(
    run: Run, facts_file: FactsFile
) -> None:
    assert run("check", "--facts", facts_file(linux().hangs()), "--retry-code", "75").exit == 75
    assert run("check", "--facts", facts_file(CPU), "--retry-code", "75").exit == 1


def test_json_names_the_root_cause(run: Run, facts_file: FactsFile) -> None:
    document = json.loads(run("check", "--facts", facts_file(CPU), "--format", "json").out)
    assert document["root_causes"][0] == "CD302"
    failed = next(entry for entry in document["outcomes"] if entry["rule"] == "CD302")
    assert failed["status"] == "fail" and failed["evidence"]
    assert document["facts"]["torch.version"]["value"] == "2.6.0+cpu"


def test_a_report_can_be_judged_again(run: Run, facts_file: FactsFile, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    assert run("check", "--facts", facts_file(CPU), "--format", "json", "-o", str(report)).exit == 1
    assert run("check", "--facts", str(report)).exit == 1


def test_facts_from_standard_input(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    data = json.dumps(CPU.facts.to_json()).encode("utf-8-sig")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert run("check", "--facts", "-").exit == 1


@pytest.mark.parametrize("words", [["302"], ["cd302,CD303"], ["cpu-only-torch", "--select", "CD501"]])
def test_select(run: Run, facts_file: FactsFile, words: list[str]) -> None:
    result = run("check", "--facts", facts_file(CPU), "--format", "json", "--select", *words)
    judged = [entry["rule"] for entry in json.loads(result.out)["outcomes"]]
    assert "CD302" in judged and len(judged) <= 2
    assert result.exit == 1


def test_what_is_ignored_is_shown_with_its_reason(run: Run, facts_file: FactsFile) -> None:
    arguments = ("check", "--facts", facts_file(CPU), "--ignore", "cpu-only-torch=CPU jobs run here")
    assert run(*arguments).exit == 0
    assert "CD302 ignored: CPU jobs run here" in run(*arguments).out
    assert json.loads(run(*arguments, "--format", "json").out)["ignored"] == {"CD302": "CPU jobs run here"}


def test_fail_on(run: Run, facts_file: FactsFile) -> None:
    no_torch = linux().set({"torch.version": GONE, "torch.cuda": GONE, "package.torch.version": GONE})
    path = facts_file(no_torch)
    assert run("check", "--facts", path, "--select", "CD301").exit == 0
    assert run("check", "--facts", path, "--select", "CD301", "--fail-on", "warning").exit == 1


def test_assume(run: Run, facts_file: FactsFile) -> None:
    path = facts_file(linux())
    assert (
        run("check", "--facts", path, "--assume", "torch.version=2.6.0+cpu", "--assume", "torch.cuda=absent").exit == 1
    )
    document = json.loads(run("check", "--facts", path, "--assume", "gpu.count=unknown", "--format", "json").out)
    assert document["facts"]["gpu.count"] == {"state": "unknown", "source": "--assume", "reason": "assumed"}


def test_the_nodes_name_only_where_it_is_asked_for(run: Run, facts_file: FactsFile) -> None:
    path = facts_file(linux())
    named = json.loads(run("check", "--facts", path, "--format", "json", "--node", "gpu017").out)
    assert named["facts"]["scheduler.node"] == {"state": "known", "value": "gpu017", "source": "--node"}
    assert "value" not in json.loads(run("check", "--facts", path, "--format", "json").out)["facts"].get(
        "scheduler.node", {}
    )


def test_to_a_file_all_at_once(run: Run, facts_file: FactsFile, tmp_path: Path) -> None:
    path = tmp_path / "report.txt"
    path.write_text("old")
    result = run("check", "--facts", facts_file(CPU), "-o", str(path), "--color", "never")
    assert (result.exit, result.out, result.err) == (1, "", "")
    assert path.read_text("utf-8").startswith("FAIL  ")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["facts.json", "report.txt"]


def test_colour_is_for_terminals_and_who_asks(run: Run, facts_file: FactsFile) -> None:
    path = facts_file(CPU)
    assert "\x1b" not in run("check", "--facts", path).out
    assert "\x1b[" in run("check", "--facts", path, "--color", "always").out
    assert "\x1b" not in run("check", "--facts", path, "--color", "always", "--format", "json").out


def test_what_to_do_next_is_about_the_same_machine(run: Run, facts_file: FactsFile) -> None:
    path = facts_file(CPU)
    text = run("check", "--facts", path, "--assume", "system.is_admin=true").out
    assert f"cudadoctor fix --facts {path} --assume system.is_admin=true" in text.replace('"', "")


def report(*failures: tuple[str, str]) -> Report:
    """Failing outcomes by severity and blame."""
    outcomes = [
        Outcome(f"CD10{number}", "x", "fail", severity, "certain", blame, "m")
        for number, (severity, blame) in enumerate(failures)
    ]
    return Report(Facts(), tuple(outcomes), (), "")


@pytest.mark.parametrize(
    "failures, fail_on, status",
    [
        ([("error", "machine")], "error", 75),
        ([("error", "machine"), ("error", "machine")], "error", 75),
        ([("error", "machine"), ("error", "environment")], "error", 1),
        ([("error", "machine"), ("error", "allocation")], "error", 1),
        # What is below the threshold has no say.
        ([("error", "machine"), ("warning", "environment")], "error", 75),
        ([("error", "machine"), ("warning", "environment")], "warning", 1),
        ([("warning", "machine")], "error", 0),
        ([], "error", 0),
    ],
)
def test_another_node_may_do_where_only_the_machine_is_at_fault(
    failures: list[tuple[str, str]], fail_on: str, status: int
) -> None:
    assert _diagnosis.exit_code(report(*failures), fail_on, False, 75) == status
    without = _diagnosis.exit_code(report(*failures), fail_on, False, None)
    assert without == (1 if status == 75 else status)


MISTAKES: list[tuple[list[str], str]] = [
    (["--select", "CD999"], "there is no rule 'CD999'"),
    (["--select", "cpu-only"], "did you mean cpu-only-torch"),
    (["--ignore", "CD302"], "--ignore takes ID=REASON, and the reason is shown in the report, not 'CD302'"),
    (["--ignore", "CD302="], "--ignore takes ID=REASON"),
    (["--ignore", "nonsense=x"], "there is no rule 'nonsense'; `cudadoctor rules` lists them"),
    (["--assume", "torch.version"], "--assume takes FACT=VALUE, not 'torch.version'"),
    (["--assume", "torch.verison=2"], "--assume: there is no fact 'torch.verison'; did you mean torch.version"),
    (["--assume", "gpu.count=two"], "--assume: fact 'gpu.count' is a number, not 'two'"),
    (["--assume", "pci.gpus={"], "--assume: fact 'pci.gpus' is written as JSON"),
    (["--node", "a\nb"], "--node takes the name of a machine"),
    (["--python", "3.12"], "--python looks at a machine, and --facts gives what was seen on one"),
    (["--replay", "x"], "--replay looks at a machine, and --facts gives what was seen on one"),
    (["-o", "no/such/folder/x.txt"], "cannot write 'no/such/folder/x.txt': No such file or directory"),
]


@pytest.mark.parametrize("arguments, says", MISTAKES)
def test_bad_input_is_one_sentence(run: Run, facts_file: FactsFile, arguments: list[str], says: str) -> None:
    result = run("check", "--facts", facts_file(linux()), *arguments)
    assert (result.exit, result.out) == (2, "")
    assert result.err.startswith("cudadoctor: error: ") and result.err.count("\n") == 1
    assert says in result.err


BROKEN: list[tuple[Any, str]] = [
    (None, "cannot read '{path}': No such file or directory"),
    (b"", "is not JSON: line 1, column 1"),
    (b'{"schema": "cudadoctor.facts/1",\n "facts": {,}}', "is not JSON: line 2, column 12"),
    (b"\xff\xfe\x00broken\xff", "is not "),
    (b"[" * 200_000, "is not JSON"),
    (b'{"schema": "cudadoctor.facts/1", "facts": {"gpu.0.power": {"state": "known", "value": NaN}}}', "is not JSON"),
    (b'"text"', "facts must be a JSON object"),
    (b'{"schema": "something/1"}', "not a facts document: 'schema' is 'something/1', expected 'cudadoctor.facts/1'"),
    (b'{"schema": "cudadoctor.facts/2", "facts": {}}', "this cudadoctor reads 'cudadoctor.facts/1'"),
    (b'{"schema": "cudadoctor.facts/1", "facts": []}', "'facts' must be an object"),
    (b'{"schema": "cudadoctor.report/1"}', "'facts' must be an object"),
    (
        b'{"schema": "cudadoctor.facts/1", "facts": {"a": {"state": "maybe"}}}',
        "'state' is one of known, absent, unknown",
    ),
    (b'{"schema": "cudadoctor.facts/1", "facts": {"gpu.count": {"state": "known"}}}', "is known and has no 'value'"),
    (
        b'{"schema": "cudadoctor.facts/1", "facts": {"gpu.count": {"state": "known", "value": "2"}}}',
        "fact 'gpu.count' must be a int, not '2'",
    ),
    (
        b'{"schema": "cudadoctor.facts/1", "facts": {"gpu.count": {"state": "known", "value": ' + b"9" * 400 + b"}}}",
        "fact 'gpu.count' must be a int, not 999",
    ),
    (
        b'{"schema": "cudadoctor.facts/1", "facts": {"pci.gpus": {"state": "known", "value": [{"device_id": 5}]}}}',
        "fact 'pci.gpus' must be a list[dict], not [",
    ),
]


@pytest.mark.parametrize("content, says", BROKEN, ids=range(len(BROKEN)))
def test_a_broken_facts_file_is_one_sentence(run: Run, tmp_path: Path, content: Any, says: str) -> None:
    path = tmp_path / "facts.json"
    if content is not None:
        path.write_bytes(content)
    result = run("check", "--facts", str(path))
    assert (result.exit, result.out) == (2, "")
    assert result.err.startswith("cudadoctor: error: ") and result.err.count("\n") == 1
    assert says.format(path=path) in result.err


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such names")
def test_a_facts_file_whose_name_no_command_can_repeat(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "line\nbreak.json"
    path.write_text(json.dumps(linux().facts.to_json()), "utf-8")
    result = run("check", "--facts", str(path))
    assert (result.exit, result.out) == (2, "")
    assert "a command cannot carry a line break" in result.err and result.err.count("\n") == 1


def test_facts_of_a_later_version_are_passed_over(run: Run, facts_file: FactsFile, tmp_path: Path) -> None:
    document = linux().facts.to_json()
    document["facts"]["torch.telepathy"] = {"state": "known", "value": 1, "added": True}
    document["later"] = {}
    path = tmp_path / "later.json"
    path.write_text(json.dumps(document), "utf-8")
    assert run("check", "--facts", str(path)).exit == 0
