"""`check` with [fit] of a policy: the model that a job runs has to fit into the memory that is free (CD801)."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_runner import Run

import cudadoctor
from cudadoctor.cli import _checking
from cudadoctor.testing import GIB, Machine, linux, node

pytestmark = pytest.mark.once

FactsFile = Callable[[Machine], str]


@pytest.fixture(autouse=True)
def no_site(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whatever this machine's administrator wants is not asked for here."""
    monkeypatch.setattr(_checking, "SITE_FILE", str(tmp_path / "site.toml"))
    monkeypatch.delenv("CUDADOCTOR_POLICY", raising=False)


# What the command line requires, exit status.
REQUIRED = [
    ("fit.model=llama-3.1-8b", 0),
    ("fit.model=meta-llama/Llama-3.1-8B fit.train=qlora fit.batch=1 fit.context=1024 fit.checkpointing=full", 0),
    ("fit.model=llama-3.1-70b", 1),
    ("fit.model=llama-3.1-8b fit.train=full", 1),
    ("fit.model=llama-3.1-8b fit.train=full rules.CD801=warning", 0),
    ("fit.model=llama-3.1-8b fit.train=dora", 2),  # no word of the policy
    ("fit.model=llama-3.1-9b", 3),  # no model that is known
    ("fit.batch=8", 3),  # and which model?
]


@pytest.mark.parametrize(("required", "status"), REQUIRED)
def test_requirements_of_the_command_line(run: Run, facts_file: FactsFile, required: str, status: int) -> None:
    words = [word for requirement in required.split() for word in ("--require", requirement)]
    result = run("check", "--facts", facts_file(linux()), *words)
    assert result.exit == status, result.out + result.err


def test_a_file_asks_for_a_fit(run: Run, facts_file: FactsFile, tmp_path: Path) -> None:
    policy = tmp_path / "job.toml"
    policy.write_text('[fit]\nmodel = "llama-3.1-70b"\nengine = "vllm"\ngpus = 8\nsharding = "tp"\n', "utf-8")
    enough = run("check", "--facts", facts_file(node(8)), "--policy", str(policy))
    assert enough.exit == 0 and "all that is asked for is there" in " ".join(enough.out.split())
    fewer = run("check", "--facts", facts_file(node(4)), "--policy", str(policy))
    assert fewer.exit == 3 and "8 GPUs are to share the work, and 4 are seen here" in " ".join(fewer.out.split())


def test_the_finding_names_the_cheapest_changes(run: Run, facts_file: FactsFile) -> None:
    words = ("--require", "fit.model=llama-3.1-8b", "--require", "fit.train=full", "--require", "fit.context=2048")
    document = json.loads(run("check", "--facts", facts_file(linux()), *words, "--format", "json").out)
    (found,) = (outcome for outcome in document["outcomes"] if outcome["rule"] == "CD801")
    data = found["data"]
    assert (found["status"], data["verdict"]) == ("fail", "does-not-fit")
    assert data["need"]["low"] <= data["need"]["expected"] <= data["need"]["high"]
    assert data["need"]["low"] > data["available"] > 20 * GIB
    assert "CD801" in document["root_causes"]
    (step,) = (step for step in document["plan"]["steps"] if step["id"] == "need-less-memory")
    assert step["instructions"] if "instructions" in step else step["title"]


def test_what_the_policy_asks_is_explained(run: Run) -> None:
    words = ("--require", "fit.model=7b", "--require", "fit.train=lora", "--explain-policy")
    said = " ".join(run("check", *words).out.split())
    assert "fit.model 7b --require" in said and "fit.train lora --require" in said


def test_a_policy_that_asks_for_no_fit_imports_nothing_of_it() -> None:
    script = (
        "import sys\nfrom cudadoctor.diagnose import diagnose\nfrom cudadoctor.matrix import load_matrix\n"
        "from cudadoctor.testing import linux\n"
        "report = diagnose(linux().asks({'gpu.count': '==1'}).facts, load_matrix())\n"
        "print([outcome.status for outcome in report.outcomes if outcome.rule == 'CD801'])\n"
        "print([name for name in sys.modules if name.startswith('cudadoctor.fit')])"
    )
    root = Path(cudadoctor.__file__).parent.parent
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, cwd=root)
    assert (done.stdout, done.stderr) == ("['skip']\n[]\n", "")
