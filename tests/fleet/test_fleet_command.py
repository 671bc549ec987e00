"""`cudadoctor fleet` as people call it: files, folders, pipes, and what is wrong with these."""

from __future__ import annotations

import gzip
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from fleet_nodes import facts_line, node, outcome, report, report_line

Fleet = Callable[..., tuple[int, str, str]]

LOST = outcome()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three nodes, the second without its GPU, beside what jobs leave behind."""
    (tmp_path / "n1.json").write_text(json.dumps(report(None), indent=2), "utf-8")
    (tmp_path / "rack").mkdir()
    (tmp_path / "rack" / "n2.json").write_text(report_line(None, LOST), "utf-8")
    (tmp_path / "rack" / "n3.ndjson").write_text(facts_line(node("n3")), "utf-8")
    (tmp_path / "n1.out").write_text("FAIL  no driver\n", "utf-8")
    (tmp_path / ".n4.json.swp").write_bytes(b"\0\1")
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "n5.json").write_text("{}", "utf-8")
    return tmp_path


def nodes(text: str) -> dict[str, str]:
    return {entry["name"]: entry["state"] for entry in json.loads(text)["nodes"]}


def test_a_folder_of_snapshots(fleet: Fleet, folder: Path) -> None:
    status, out, err = fleet(str(folder), "--format", "json")
    assert (status, err) == (1, "")
    assert nodes(out) == {"n1": "fine", "n2": "fail", "n3": "fine"}
    assert fleet(str(folder))[1].startswith("FAIL  1 of 3 nodes cannot run CUDA: n2 gpu-lost (CD113)\n")


def test_files_and_standard_input_together(fleet: Fleet, folder: Path) -> None:
    lines = (report_line("n8") + report_line("n9", LOST)).encode()
    status, out, _ = fleet(str(folder / "n1.json"), "-", "--format", "json", stdin=lines)
    assert status == 1 and nodes(out) == {"n1": "fine", "n8": "fine", "n9": "fail"}


def test_what_gzip_has_packed(fleet: Fleet, folder: Path) -> None:
    lines = (json.dumps(report(None)) + "\n").encode()
    (folder / "n4.json.gz").write_bytes(gzip.compress(lines))
    (folder / "n5.json.gz").write_bytes(gzip.compress(report_line("n5").encode())[:-20])
    status, out, err = fleet(str(folder), "--format", "json")
    assert (status, err) == (1, "")
    assert nodes(out) == {"n1": "fine", "n2": "fail", "n3": "fine", "n4": "fine"}
    (unread,) = json.loads(out)["unreadable"]
    assert "n5.json.gz" in json.dumps(unread) and "cannot be unpacked" in json.dumps(unread)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32"])
def test_what_powershell_writes_can_be_read(fleet: Fleet, tmp_path: Path, encoding: str) -> None:
    file = tmp_path / "nodes.ndjson"
    file.write_bytes((report_line("n1") + report_line("n2", LOST)).replace("\n", "\r\n").encode(encoding))
    status, out, _ = fleet(str(file), "--format", "json")
    assert status == 1 and nodes(out) == {"n1": "fine", "n2": "fail"}


@pytest.mark.parametrize(
    "content, says",
    [
        (b"", "it is empty"),
        (b"\n\n", "it is empty"),
        (b"\x7fELF\x02\x01\x01\0\0\0", "no JSON"),
        (b"\xff\xfe", "it is empty"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"schema": "cudadoctor.facts/1", "fa', "ends too soon"),
        (b"[1]", "a number of JSON"),
    ],
)
def test_a_file_that_is_no_snapshot_is_named_and_the_rest_counts(
    fleet: Fleet, folder: Path, content: bytes, says: str
) -> None:
    bad = folder / "bad.json"
    bad.write_bytes(content)
    status, out, _ = fleet(str(folder / "n1.json"), str(bad), "--format", "json")
    assert status == 3
    assert [(entry["file"], entry["line"]) for entry in json.loads(out)["unreadable"]] == [(str(bad), 1)]
    assert says in json.loads(out)["unreadable"][0]["reason"]
    status, out, err = fleet(str(bad))
    assert (status, out) == (2, "") and says in err and f"{bad}:1" in err and err.count("\n") == 1


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_one_without_a_verdict(fleet: Fleet, folder: Path) -> None:
    (folder / "rack" / "n2.json").chmod(0)
    status, out, _ = fleet(str(folder))
    assert status == 3 and "cannot be read" in out


@pytest.mark.parametrize(
    "arguments, says",
    [
        ([], "Name files or folders"),
        (["gone.json"], "there is no file or folder 'gone.json'"),
        (["EMPTY"], "expected files that end in .json, .ndjson, .jsonl"),
        (["n1.json", "--expect", "n[1-2"], "--expect 'n[1-2'"),
        (["n1.json", "--expect", ""], "an empty list of nodes"),
        (["n1.json", "--format", "pdf"], "'pdf' is not one of"),
        (["n1.json", "--fail-on", "never"], "'never'"),
    ],
)
def test_mistakes_get_a_sentence(
    fleet: Fleet, folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], says: str
) -> None:
    (folder / "EMPTY").mkdir()
    monkeypatch.chdir(folder)
    status, out, err = fleet(*arguments)
    assert (status, out) == (2, "") and says in err and err.count("\n") == 1


def test_an_empty_folder_where_nodes_are_expected_is_that_all_are_missing(fleet: Fleet, tmp_path: Path) -> None:
    status, out, _ = fleet(str(tmp_path), "--expect", "n1,n2")
    assert status == 1 and out.startswith("FAIL  2 of 2 nodes are missing: n[1-2]\n")


def test_expected_nodes(fleet: Fleet, folder: Path) -> None:
    status, out, _ = fleet(str(folder), "--expect", "n[1-3]", "--expect", "m[1-2]", "--format", "bad-nodes")
    assert (status, out) == (1, "m[1-2],n2\n")


def test_without_the_library_brackets_get_the_command_that_brings_it(
    fleet: Fleet, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ClusterShell.NodeSet", None)
    status, _, err = fleet(str(folder), "--expect", "n[1-3]")
    assert status == 2 and "python -m pip install ClusterShell brings it" in err
    assert fleet(str(folder), "--expect", "n1\nn2\nn3\n", "--format", "good-nodes")[1] == "n[1,3]\n"


def test_lists_for_schedulers(fleet: Fleet, folder: Path) -> None:
    assert fleet(str(folder), "--format", "bad-nodes")[:2] == (1, "n2\n")
    assert fleet(str(folder), "--format", "good-nodes")[:2] == (1, "n[1,3]\n")
    assert fleet(str(folder / "n1.json"), "--format", "bad-nodes")[:2] == (0, "\n")


def test_a_name_that_no_scheduler_takes_is_left_out_of_its_list_and_said(fleet: Fleet) -> None:
    lines = (report_line("n1; reboot", LOST) + report_line("n2", LOST)).encode()
    status, out, err = fleet("-", "--format", "bad-nodes", stdin=lines)
    assert (status, out) == (1, "n2\n") and "n1; reboot" in err


def test_the_report_is_written_to_a_file_all_at_once(fleet: Fleet, folder: Path) -> None:
    file = folder / "report.html"
    assert fleet(str(folder), "--format", "html", "-o", str(file))[:2] == (1, "")
    assert file.read_text("utf-8").endswith("</html>\n")
    assert not list(folder.glob("*.tmp"))


@pytest.mark.parametrize(
    "options, status",
    [([], 1), (["--retry-code", "75"], 75), (["--fail-on", "warning"], 1), (["--unknown-ok"], 1)],
)
def test_exit_statuses(fleet: Fleet, folder: Path, options: list[str], status: int) -> None:
    assert fleet(str(folder), *options)[0] == status


def test_the_later_file_of_a_node_counts(fleet: Fleet, tmp_path: Path) -> None:
    for name, line, seconds in (("a", report_line("n1"), 2000), ("b", report_line("n1", LOST), 1000)):
        (tmp_path / f"{name}.json").write_text(line, "utf-8")
        os.utime(tmp_path / f"{name}.json", (seconds, seconds))
    status, out, _ = fleet(str(tmp_path))
    assert status == 0 and "a.json:1 counts" in out


def test_the_snapshots_that_check_writes_are_those_that_fleet_reads(
    fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cudadoctor.cli import main

    machine = str(Path(__file__).parent.parent / "machines" / "driver-library-mismatch")
    for form in ("json", "json-line"):
        file = str(tmp_path / f"{form}.json")
        arguments = ["check", "--replay", machine, "--node", f"n-{form}", "--format", form, "-o", file]
        monkeypatch.setattr(sys, "argv", ["cudadoctor", *arguments])
        with pytest.raises(SystemExit):
            main()
    status, out, _ = fleet(str(tmp_path))
    assert status == 1
    assert out.startswith("FAIL  all 2 nodes cannot run CUDA: n-json,n-json-line driver-library-mismatch\n")
