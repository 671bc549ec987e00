"""`cudadoctor recipes`: finds whatever lies there, and gives it away unchanged."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from bench.parts import ROOT, clean_environ, find_python, pythons_at_hand

from cudadoctor.recipes import recipes

pytestmark = pytest.mark.once

RECIPES = ROOT / "cudadoctor" / "recipes"
FILES = sorted(file for file in RECIPES.glob("*/*") if file.is_file() and file.suffix != ".pyc")


def run(*arguments: str, cwd: Path = ROOT, home: str = "") -> subprocess.CompletedProcess[bytes]:
    """The command, out of the checkout or out of `home`."""
    environment = clean_environ(PYTHONPATH=home or str(ROOT))
    command = [sys.executable, "-m", "cudadoctor", "recipes", *arguments]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, timeout=60)


def test_the_list_has_every_file_with_a_line_about_it() -> None:
    lines = run().stdout.decode().splitlines()
    assert [line.split()[0] for line in lines if line[:1].isalpha()] == [
        str(file.relative_to(RECIPES).with_suffix("")) for file in FILES
    ]
    for expected in (
        "kubernetes/daemonset       DaemonSet that watches the health of all GPU nodes",
        "kubernetes/init-container  Init container that checks before training starts",
        "kubernetes/job             Job that checks free GPU nodes once",
        "kubernetes/policy          ConfigMap with the site's policy for checks in pods",
        "mpi/fan-out                Checks every node of an MPI job",
        "ray/check                  Checks every node of a Ray cluster",
        "ssh/clush                  Checks nodes with clush (ClusterShell)",
        "ssh/fan-out                Checks nodes over plain ssh",
        "ssh/parallel-ssh           Checks nodes with parallel-ssh (pssh)",
        "ssh/pdsh                   Checks nodes with pdsh",
    ):
        assert expected in lines
    assert lines[-1] == "`cudadoctor recipes NAME` prints one, `-o FILE` writes it to a file."
    assert all(len(line) <= 80 for line in lines)


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(RECIPES)))
def test_a_recipe_is_printed_as_it_is(file: Path) -> None:
    done = run(str(file.relative_to(RECIPES).with_suffix("")))
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == file.read_bytes()


def test_the_file_name_and_hyphens_mean_the_same() -> None:
    assert run("ssh/pdsh.sh").stdout == run("ssh/pdsh").stdout
    assert run("kubernetes/init_container").stdout == run("Kubernetes/Init-Container").stdout


@pytest.mark.parametrize("name, mode", [("ssh/pdsh", 0o755), ("ray/check", 0o755), ("kubernetes/job", 0o644)])
def test_a_script_is_written_so_that_it_can_be_run(name: str, mode: int, tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        done = run(name, "-o", "it", cwd=tmp_path)
    finally:
        os.umask(before)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert (tmp_path / "it").read_text() == recipes()[name].text
    assert (tmp_path / "it").stat().st_mode & 0o777 == mode


def test_what_somebody_has_edited_is_not_lost(tmp_path: Path) -> None:
    policy = tmp_path / "preflight.toml"
    again = ("policy/preflight", "-o", "preflight.toml")
    assert run(*again, cwd=tmp_path).returncode == run(*again, cwd=tmp_path).returncode == 0
    policy.write_text("[gpu]\ncount = 4\n")
    done = run(*again, cwd=tmp_path)
    assert (done.returncode, policy.read_text()) == (2, "[gpu]\ncount = 4\n")
    assert done.stderr.decode() == (
        "cudadoctor: error: 'preflight.toml' is there already, and another text; --force replaces it\n"
    )
    assert run(*again, "--force", cwd=tmp_path).returncode == 0
    assert policy.read_text() == recipes()["policy/preflight"].text


def test_what_is_no_file_stays_as_it_is() -> None:
    before = os.stat("/dev/null").st_mode
    assert run("ssh/pdsh", "-o", "/dev/null").returncode == 0
    assert os.stat("/dev/null").st_mode == before


@pytest.mark.parametrize(
    "name, says",
    [
        ("kubernetes/jobs", "there is no recipe 'kubernetes/jobs'; did you mean kubernetes/job"),
        ("pdsh", "there is no recipe 'pdsh'; did you mean ssh/pdsh?"),
        ("ray", "there is no recipe 'ray'; did you mean ray/check?"),
        ("../cli/recipes", "there is no recipe '../cli/recipes'; "),
        ("?!", "there is no recipe '?!'; `cudadoctor recipes` lists them"),
        ("", "there is no recipe ''; `cudadoctor recipes` lists them"),
    ],
)
def test_an_unknown_name_gets_the_nearest(name: str, says: str) -> None:
    done = run(name)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.decode().startswith(f"cudadoctor: error: {says}")
    assert done.stderr.count(b"\n") == 1


# -- wherever it is installed ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, as it is built for PyPI."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    done = subprocess.run(command, cwd=ROOT, env=clean_environ(), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return next(folder.glob("*.whl"))


def test_the_wheel_holds_every_recipe(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        inside = {name: archive.read(name) for name in archive.namelist() if name.startswith("cudadoctor/recipes/")}
    for file in FILES:
        assert inside[f"cudadoctor/{file.relative_to(ROOT / 'cudadoctor')}"] == file.read_bytes()


def test_installed_and_inside_a_zip_file_it_finds_the_same(wheel: Path, tmp_path: Path) -> None:
    installed = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(installed)
    expected = run().stdout
    for home in (str(installed), str(wheel)):
        assert run(cwd=tmp_path, home=home).stdout == expected
        assert run("ssh/pdsh", cwd=tmp_path, home=home).stdout == (RECIPES / "ssh" / "pdsh.sh").read_bytes()


@pytest.mark.parametrize("version", pythons_at_hand())
def test_inside_a_zip_file_with_every_python(version: str, wheel: Path) -> None:
    code = "import sys; sys.path.insert(0, sys.argv[1]); from cudadoctor.recipes import recipes; print(*recipes())"
    python = find_python(version)
    assert python is not None
    done = subprocess.run([python, "-I", "-c", code, str(wheel)], capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    assert done.stdout.split() == list(recipes())
