"""`check` by a policy: files of the site, of the job, and requirements of the command line."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_runner import Run

from cudadoctor.cli import _checking
from cudadoctor.testing import Machine, node

pytestmark = pytest.mark.once

Written = Callable[[str, str], str]


@pytest.fixture
def written(tmp_path: Path) -> Written:
    """A file of that name with that text."""

    def write(name: str, text: str) -> str:
        path = tmp_path / name
        path.write_text(text, "utf-8")
        return str(path)

    return write


@pytest.fixture(autouse=True)
def no_site(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whatever this machine's administrator wants is not asked for here."""
    monkeypatch.setattr(_checking, "SITE_FILE", str(tmp_path / "site.toml"))
    monkeypatch.delenv("CUDADOCTOR_POLICY", raising=False)


# -- this machine, by a file that the variable names --------------------------------------------------------------

# Text of the site's file, further words of the command line, exit status.
SITES = [
    ("[disk]\ntemporary = '1 KiB'", "--select CD010", 0),
    ("[disk]\ntemporary = '9 EiB'", "--select CD010", 2),  # more than anything holds
    ("[disk]\ntemporary = '4 EiB'", "--select CD010", 1),
    ("[disk]\ntemporary = '4 EiB'\n[check]\nretry_code = 75", "--select CD010", 75),
    ("[disk]\nworking = '4 EiB'\n[check]\nretry_code = 75", "--select CD010", 1),  # of the user's own choice
    ("[disk]\ntemporary = '4 EiB'\n[rules]\ndisk-room = 'warning'", "--select CD010", 0),
    ("[disk]\ntemporary = '4 EiB'\n[rules]\ndisk-room = 'warning'\n[check]\nfail_on = 'warning'", "--select CD010", 1),
    ("[disk]\ntemporary = '4 EiB'\n[check]\nblame = ['environment']", "--select CD010", 0),
    ("[limits]\nnofile = 1", "--select CD012 --assume limits.nofile=unknown", 3),
    ("[limits]\nnofile = 1\n[check]\nunknown_ok = true", "--select CD012 --assume limits.nofile=unknown", 0),
    ("[disk]\ntemporary = '4 EiB'", "--select CD010 --require disk.temporary=1KiB", 0),
    ("[disk]\ntemporary = '4 EiB'\n[check]\nfail_on = 'info'", "--select CD010 --ignore CD010=broken", 0),
]


@pytest.mark.parametrize(("text", "words", "status"), SITES)
def test_a_policy_of_the_site(
    run: Run, written: Written, monkeypatch: pytest.MonkeyPatch, text: str, words: str, status: int
) -> None:
    monkeypatch.setenv("CUDADOCTOR_POLICY", written("site-policy.toml", text))
    result = run("check", *words.split())
    assert result.exit == status, result.out + result.err


def test_the_administrators_file_stands_below_all_others(run: Run, written: Written) -> None:
    written("site.toml", "[disk]\ntemporary = '4 EiB'")
    assert run("check", "--select", "CD010").exit == 1
    job = written("job.toml", "[disk]\ntemporary = '1 KiB'")
    assert run("check", "--select", "CD010", "--policy", job).exit == 0


def test_the_order_of_all_of_them(run: Run, written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    written("site.toml", "[gpu]\ncount = 1\nmig = false")
    monkeypatch.setenv("CUDADOCTOR_POLICY", written("variable.toml", "[gpu]\ncount = 2"))
    first, second = written("first.toml", "[gpu]\ncount = 3"), written("second.toml", "[gpu]\ncount = 4")
    words = ("--policy", first, "--policy", second, "--require", "gpu.count=5", "--timeout", "9")
    result = run("check", *words, "--explain-policy", "--format", "json")
    assert result.exit == 0
    document = json.loads(result.out)
    count = document["settings"][0]
    assert [os.path.basename(place["source"]) for place in (count, *count["overrode"])] == [
        "--require",
        "second.toml:2",
        "first.toml:2",
        "variable.toml:2",
        "site.toml:2",
    ]
    assert [setting["name"] for setting in document["settings"]] == ["gpu.count", "gpu.mig", "check.timeout"]


# -- other machines -------------------------------------------------------------------------------------------------


def test_the_sites_files_are_about_the_machine_itself(
    run: Run, written: Written, facts_file: Callable[[Machine], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDADOCTOR_POLICY", written("site-policy.toml", "[gpu]\ncount = 16"))
    machine = facts_file(node(8))
    assert run("check", "--facts", machine).exit == 0
    assert run("check", "--facts", machine, "--require", "gpu.count=16").exit == 1


def test_a_report_tells_what_was_asked_for_and_where(
    run: Run, written: Written, facts_file: Callable[[Machine], str]
) -> None:
    job = written("preflight.toml", "# of the job\n[gpu]\ncount = 8\n[ignore]\nCD115 = 'known'")
    result = run("check", "--facts", facts_file(node(4).job(gpus=4)), "--policy", job, "--format", "json")
    report = json.loads(result.out)
    assert result.exit == 1
    assert report["facts"]["policy.gpu.count"] == {"state": "known", "value": "==8", "source": f"{job}:3"}
    rows = {row["rule"]: row for row in report["outcomes"]}
    assert rows["CD001"]["blame"] == "allocation"
    assert rows["CD001"]["evidence"][0]["source"] == f"{job}:3"


def test_the_screen_names_the_need_the_lack_and_the_line(
    run: Run, written: Written, facts_file: Callable[[Machine], str]
) -> None:
    result = run("check", "--facts", facts_file(node(7)), "--require", "gpu.count=8")
    assert result.out.splitlines()[0].startswith("FAIL  7 GPUs are seen, 8 asked for")
    assert "--require" in result.out


def test_the_verdict_says_that_all_of_it_is_there(run: Run, facts_file: Callable[[Machine], str]) -> None:
    result = run("check", "--facts", facts_file(node(8)), "--require", "gpu.count=8", "--require", "gpu.names=H100")
    assert result.exit == 0
    assert "driver 580.95.05; all that is asked for is there" in " ".join(result.out.split())


def test_what_cannot_be_told_is_the_verdict(run: Run, facts_file: Callable[[Machine], str]) -> None:
    untold = facts_file(node(8).unknown("gpu.2.temperature"))
    result = run("check", "--facts", untold, "--require", "gpu.temperature=60")
    assert result.exit == 3
    assert result.out.startswith("????") and "CD014" in result.out


# -- what cannot be used --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[gpu]\n\ncuont = 8", "preflight.toml:3: [gpu] has no key 'cuont'; did you mean count?"),
        ("[gpu\n", "preflight.toml:1: not TOML: expected ']' at the end of a table declaration"),
    ],
)
def test_a_mistake_ends_the_run(run: Run, written: Written, text: str, sentence: str) -> None:
    path = written("preflight.toml", text)
    for words in ((), ("--explain-policy",), ("--facts", "nowhere.json")):
        result = run("check", "--policy", path, *words)
        folder = path[: -len("preflight.toml")]
        assert (result.exit, result.out, result.err) == (2, "", f"cudadoctor: error: {folder}{sentence}\n")


def test_a_file_that_is_not_there(run: Run, tmp_path: Path) -> None:
    result = run("check", "--policy", str(tmp_path / "none.toml"))
    assert result.exit == 2 and "cannot read the policy" in result.err and "No such file" in result.err


def test_a_variable_that_names_no_file_is_named_itself(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDADOCTOR_POLICY", "/nowhere.toml")
    result = run("check")
    assert (result.exit, result.err) == (
        2,
        "cudadoctor: error: cannot read the policy '/nowhere.toml', which CUDADOCTOR_POLICY names: No such file or "
        "directory\n",
    )


def test_a_file_that_is_no_text(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_bytes(b"[gpu]\ncount = \xff8\n")
    result = run("check", "--policy", str(path))
    assert result.exit == 2 and f"{path}:2: not text" in result.err


def test_a_form_that_explains_nothing(run: Run) -> None:
    result = run("check", "--explain-policy", "--format", "junit")
    assert result.exit == 2 and "--explain-policy prints text or json, not junit" in result.err


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="a file that never answers is a FIFO")
def test_a_path_that_never_answers_holds_nobody(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    os.mkfifo(path)
    result = run("check", "--policy", str(path), "--timeout", "0.5")
    assert result.exit == 2 and "did not answer in time" in result.err


def test_a_policy_through_a_pipe(run: Run) -> None:
    reader, writer = os.pipe()
    os.write(writer, b"[gpu]\ncount = 8\n")
    os.close(writer)
    try:
        result = run("check", "--policy", f"/dev/fd/{reader}", "--explain-policy")
    finally:
        os.close(reader)
    assert result.exit == 0 and f"/dev/fd/{reader}:2" in result.out


def test_what_this_run_asks_for_is_judged_whatever_is_selected(
    run: Run, written: Written, facts_file: Callable[[Machine], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seven = facts_file(node(7))
    job = written("job.toml", "[gpu]\ncount = 8\n[rules]\nCD115 = { required = true }")
    for words in (("--require", "gpu.count=8"), ("--policy", job)):
        result = run("check", "--facts", seven, "--select", "CD303", *words)
        assert result.exit == 1 and "8 asked for" in result.out
    shown = json.loads(run("check", "--facts", seven, "--select", "CD303", "--policy", job, "--format", "json").out)
    assert [row["rule"] for row in shown["outcomes"]] == ["CD001", "CD115", "CD303"]


def test_what_the_site_asks_for_is_left_out_by_a_selection(
    run: Run, written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDADOCTOR_POLICY", written("site-policy.toml", "[disk]\ntemporary = '4 EiB'"))
    assert run("check", "--select", "CD012").exit == 0


def test_what_is_ignored_is_not_said_to_be_there(run: Run, facts_file: Callable[[Machine], str]) -> None:
    words = ("--require", "gpu.count=8", "--require", "gpu.names=H100", "--ignore", "CD001=one is in repair")
    result = run("check", "--facts", facts_file(node(7)), *words)
    assert result.exit == 0
    assert "asked for is there" not in result.out and "CD001 ignored: one is in repair" in result.out
