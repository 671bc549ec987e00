"""cudadoctor as one file: it runs on a bare node with any Python that we promise, says the same as the installed one,
and leaves nothing behind.

It is built by the oldest Python, so these run where the tests run on that.
"""

from __future__ import annotations

import ast
import fcntl
import importlib.util
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Union

import pytest
from bench.parts import FLOOR, ROOT, clean_environ, find_python, missing_part, pythons_at_hand
from bench.venvs import Venv
from bench.wheels import torch_wheel

import cudadoctor

MACHINES = ROOT / "tests" / "machines"
SCRIPT = ROOT / "scripts" / "build_zipapp.py"

# Pythons that cannot run it.
TOO_OLD = ("2.7", "3.5", "3.6", "3.7", "3.8")

NEWEST = pythons_at_hand()[-1]

if f"{sys.version_info[0]}.{sys.version_info[1]}" != FLOOR:
    pytest.skip(f"the one file is built by Python {FLOOR}, and tested there", allow_module_level=True)


def build(output: Path, **environment: str) -> None:
    """Compiled for the oldest and the newest Python at hand; those between compile it when they run it."""
    command = [sys.executable, str(SCRIPT), "-o", str(output), "--for", sys.executable]
    command += ["--for", str(find_python(NEWEST))]
    env = clean_environ(environment)
    done = subprocess.run(command, env=env, cwd=output.parent, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file, built once for all workers."""
    folder = tmp_path_factory.getbasetemp()
    folder = folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder
    file = folder / "one file" / "cudadoctor.pyz"
    with (folder / "zipapp.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not file.exists():
            file.parent.mkdir(exist_ok=True)
            build(file)
    return file


class Ran(subprocess.CompletedProcess):  # type: ignore[type-arg]
    @property
    def errors(self) -> list[str]:
        return list(self.stderr.splitlines())


def ran(*command: Union[str, Path], env: dict[str, str], cwd: Path, given: str = "") -> Ran:
    words = [str(word) for word in command]
    done = subprocess.run(words, env=env, cwd=cwd, input=given, capture_output=True, text=True, timeout=120)
    return Ran(words, done.returncode, done.stdout, done.stderr)


@pytest.fixture
def node(tmp_path: Path) -> dict[str, str]:
    """The environment of a bare node: its Python is the oldest. Compiled code may be written, if anything would."""
    for folder in ("home", "tmp", "bin"):
        (tmp_path / folder).mkdir()
    (tmp_path / "bin" / "python3").symlink_to(str(find_python(FLOOR)))
    env = clean_environ()
    del env["PYTHONDONTWRITEBYTECODE"]
    return {**env, "HOME": str(tmp_path / "home"), "TMPDIR": str(tmp_path / "tmp"), "PATH": f"{tmp_path}/bin:/usr/bin"}


def everything_below(folder: Path) -> set[tuple[str, int, int]]:
    return {(str(path), path.lstat().st_size, path.lstat().st_mtime_ns) for path in folder.rglob("*")}


# -- one Python or another --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [f"3.{minor}" for minor in range(9, 20) if find_python(f"3.{minor}")])
def test_every_python_that_we_promise_runs_it(version: str, built: Path, node: dict[str, str], tmp_path: Path) -> None:
    """Those that it is compiled for and those that it is not."""
    told = ran(str(find_python(version)), built, "check", "--format", "json", "--unknown-ok", env=node, cwd=tmp_path)
    document = json.loads(told.stdout)
    assert told.stderr == "" and document["exit"] == told.returncode != 2
    assert not [one for one in document["outcomes"] if one["status"] == "crash"]
    assert document["tool"]["version"] == cudadoctor.__version__


def old_python(version: str) -> str:
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    candidates = [*sorted(root.glob(f"{version}.*/bin/python{version}")), Path(f"/usr/bin/python{version}")]
    found = next((path for path in candidates if path.exists()), None)
    if found is None:
        pytest.skip(f"no Python {version} is at hand")
    return str(found)


@pytest.mark.parametrize("version", TOO_OLD)
def test_an_older_python_gets_one_sentence(version: str, built: Path, node: dict[str, str], tmp_path: Path) -> None:
    told = ran(old_python(version), built, "check", env=node, cwd=tmp_path)
    assert (told.returncode, told.stdout) == (2, "")
    (sentence,) = told.errors
    assert f"this is Python {version}, and cudadoctor needs {FLOOR} or newer" in sentence


def test_no_word_of_the_first_module_is_newer_than_the_oldest_pythons(built: Path) -> None:
    """Also where none of them is at hand."""
    source = zipfile.ZipFile(built).read("__main__.py").decode("ascii")
    tree = ast.parse(source, feature_version=(3, 4))
    refusal = next(place for place, node in enumerate(tree.body) if isinstance(node, ast.If))
    assert [type(node).__name__ for node in tree.body[:refusal]] == ["Import"]  # sys
    words = {type(node).__name__ for node in ast.walk(tree)}
    assert not words & {"JoinedStr", "AnnAssign", "arg", "Nonlocal", "YieldFrom", "Starred", "Bytes"}


# -- how it is called, and where it lies ------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [(), ("-I",), ("-S",), ("-E",), ("-I", "-S", "-B")], ids=" ".join)
def test_it_needs_nothing_of_the_python_that_runs_it(
    options: tuple[str, ...], built: Path, node: dict[str, str], tmp_path: Path
) -> None:
    """click too comes out of the file: site-packages are not looked at with -S."""
    told = ran(sys.executable, *options, built, "rules", env=node, cwd=tmp_path)
    assert (told.returncode, told.stderr) == (0, "") and "CD101" in told.stdout


def test_nothing_is_written_where_it_runs(built: Path, node: dict[str, str], tmp_path: Path, fake_nvml: Any) -> None:
    env = {**node, **fake_nvml("two_gpus")}
    before = everything_below(built.parent), everything_below(tmp_path)
    for words in (["check"], ["facts"], ["fix", "--print"], ["matrix", "show"]):
        assert ran(built, *words, env=env, cwd=tmp_path).returncode != 2
    assert (everything_below(built.parent), everything_below(tmp_path)) == before


def test_its_bytes_may_be_read_and_nothing_else(built: Path, node: dict[str, str], tmp_path: Path) -> None:
    """A shared folder that is mounted for reading, and without the right to execute."""
    folder = tmp_path / "read only"
    folder.mkdir()
    file = folder / "cudadoctor.pyz"
    file.write_bytes(built.read_bytes())
    file.chmod(0o444)
    folder.chmod(0o555)
    told = ran("python3", "cudadoctor.pyz", "check", "--replay", REPLAYED, env=node, cwd=folder)
    assert told.returncode == 1 and "  python3 cudadoctor.pyz explain CD303\n" in told.stdout
    folder.chmod(0o755)


def test_a_command_that_it_prints_can_be_pasted(built: Path, node: dict[str, str], tmp_path: Path) -> None:
    """By a path with a blank and through a link, from wherever it was called."""
    link = tmp_path / "on the path.pyz"
    link.symlink_to(built)
    for called in (built, link, "./on the path.pyz"):
        told = ran(called, "check", "--replay", REPLAYED, env=node, cwd=tmp_path)
        line = next(line for line in told.stdout.splitlines() if line.endswith(" explain CD303"))
        command = line.partition("more")[2]
        again = ran("sh", "-c", command, env=node, cwd=tmp_path)
        assert again.returncode == 0 and again.stdout.startswith("CD303"), command + again.stderr


def test_two_versions_side_by_side(built: Path, node: dict[str, str], tmp_path: Path) -> None:
    other = tmp_path / "cudadoctor-next.pyz"
    with zipfile.ZipFile(built) as source, zipfile.ZipFile(other, "w") as target:
        for name in source.namelist():
            content = source.read(name)
            if name == "cudadoctor/__init__.py":
                content = content.replace(b'__version__ = "', b'__version__ = "9.')
            target.writestr(name, content)
    for file, version in ((built, cudadoctor.__version__), (other, "9." + cudadoctor.__version__)):
        assert ran("python3", file, "--version", env=node, cwd=tmp_path).stdout == f"cudadoctor {version}\n"


def test_a_broken_package_of_the_node_is_not_ours(built: Path, node: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "click.py").write_text("raise RuntimeError('somebody else is click')\n")
    (tmp_path / "pynvml.py").write_text("raise RuntimeError('somebody else is pynvml')\n")
    told = ran("python3", built, "rules", env={**node, "PYTHONPATH": str(tmp_path)}, cwd=tmp_path)
    assert told.returncode == 0, told.stderr


# -- the same as when installed ---------------------------------------------------------------------------------------

REPLAYED = str(MACHINES / "old-driver-new-wheel")
REPORT = "RuntimeError: CUDA error: no kernel image is available for execution on the device\n"

COMMANDS: list[tuple[str, ...]] = [
    ("--help",),
    ("--version",),
    ("check", "--help"),
    ("check", "--replay", REPLAYED),
    ("check", "--replay", REPLAYED, "--verbose"),
    ("check", "--replay", REPLAYED, "--format", "json"),
    ("check", "--replay", REPLAYED, "--format", "termination-log"),
    ("check", "--from", "-"),
    ("check", "--select", "CD601"),
    ("check", "--format", "nagios"),
    ("explain", "CD303"),
    ("explain", "wsl-driver"),
    ("explain", "-"),
    ("facts", "--help"),
    ("fit", "--help"),
    ("fit", "llama-3.1-8b", "--train", "lora", "--gpu", "RTX 4090", "--explain"),
    ("fit", "mixtral-8x7b", "--vram", "24", "--engine", "llama.cpp", "--format", "json"),
    ("fit", "qwen3-8b", "--vram", "24", "--measure"),
    ("fix", "--print", "--replay", REPLAYED),
    ("fix", "--print", "--gpu", "RTX 5090", "--driver", "580.95", "--os", "linux", "--python", "3.12"),
    ("fleet", "--help"),
    ("fleet", "nowhere", "--expect", "node[001-512]"),
    ("matrix", "show"),
    ("matrix", "query", "--help"),
    ("matrix", "verify", "--help"),
    ("matrix", "update", "--help"),
    ("recipes",),
    ("recipes", "slurm/prolog"),
    ("rules",),
    ("rules", "--format", "json"),
    ("verify", "--help"),
    ("no-such-command",),
]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_it_says_what_the_installed_one_says(
    words: tuple[str, ...], built: Path, node: dict[str, str], tmp_path: Path
) -> None:
    env = {**node, "COLUMNS": "80", "VIRTUAL_ENV": os.path.dirname(os.path.dirname(sys.executable))}
    checkout = {**env, "PYTHONPATH": str(ROOT)}
    here = ran(sys.executable, "-m", "cudadoctor", *words, env=checkout, cwd=tmp_path, given=REPORT)
    there = ran(built, *words, env=env, cwd=tmp_path, given=REPORT)
    for program, told in ((f"{sys.executable} -m cudadoctor", here), (f'"{built}"', there)):
        told.stdout, told.stderr = (text.replace(program, "cudadoctor") for text in (told.stdout, told.stderr))
    assert (there.returncode, there.stdout, there.stderr) == (here.returncode, here.stdout, here.stderr)
    assert "Traceback" not in here.stderr and (here.stdout or here.returncode == 2)


def test_every_command_is_in_that_table() -> None:
    from cudadoctor.cli import _group

    names = set(_group.group.list_commands(None))  # type: ignore[arg-type]
    assert names == {words[0] for words in COMMANDS} - {"--help", "--version", "no-such-command"}


def test_two_gpus_are_asked_out_of_the_file(
    built: Path, node: dict[str, str], tmp_path: Path, fake_nvml: Callable[..., dict[str, str]]
) -> None:
    """nvidia-ml-py is imported in a forked child."""
    told = ran("python3", "-S", built, "facts", env={**node, **fake_nvml("two_gpus")}, cwd=tmp_path)
    facts = json.loads(told.stdout)["facts"]
    assert (facts["gpu.count"]["value"], facts["gpu.count"]["source"]) == (2, "nvml")


def test_certificates_are_unpacked_for_a_moment_only(built: Path, node: dict[str, str], tmp_path: Path) -> None:
    """`matrix update` asks the network, for which OpenSSL takes its certificates from a file."""
    nowhere = "https://127.0.0.1:9/simple"
    told = ran(
        "python3", built, "matrix", "update", "--timeout", "5", "--index-url", nowhere, "--mirror", nowhere,
        "--without", "drivers", env={**node, "CUDADOCTOR_DATA": str(tmp_path / "data")}, cwd=tmp_path,
    )  # fmt: skip
    assert told.returncode == 2 and len(told.errors) == 1 and "127.0.0.1" in told.stderr, told.stderr
    assert not list((tmp_path / "tmp").iterdir())


# -- whose environment it looks at ------------------------------------------------------------------------------------


@pytest.fixture
def project(venv_with: Callable[..., Venv]) -> Venv:
    return venv_with(torch_wheel("2.9.1", "cu126", local=False), python=FLOOR)


def patient(told: Ran) -> tuple[str, str]:
    facts = json.loads(told.stdout)["facts"]
    return facts["python.executable"]["value"], facts["python.chosen_by"]["value"]


def test_the_python_on_the_path_is_the_patient(
    built: Path, node: dict[str, str], tmp_path: Path, project: Venv
) -> None:
    """And not the interpreter that happens to run the file; nor is it where an environment is active."""
    base = str(find_python(FLOOR))
    on_path = {**node, "PATH": f"{Path(project.python).parent}:{node['PATH']}"}
    assert patient(ran(base, built, "facts", env=on_path, cwd=tmp_path)) == (project.python, "PATH")
    active = {**node, "VIRTUAL_ENV": str(project.root)}
    assert patient(ran(base, built, "facts", env=active, cwd=tmp_path)) == (project.python, "VIRTUAL_ENV")


def test_the_python_of_an_environment_that_runs_it_is_the_patient(
    built: Path, node: dict[str, str], tmp_path: Path, project: Venv
) -> None:
    assert patient(ran(project.python, built, "facts", env=node, cwd=tmp_path)) == (project.python, "own")


# -- what it is made of -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def builder() -> Iterator[ModuleType]:
    spec = importlib.util.spec_from_file_location("build_zipapp", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module


def test_the_same_inputs_make_the_same_bytes(built: Path, tmp_path: Path) -> None:
    again = tmp_path / "elsewhere" / "again.pyz"
    again.parent.mkdir()
    build(again, PYTHONHASHSEED="7", TZ="Asia/Tokyo", LC_ALL="C")
    assert again.read_bytes() == built.read_bytes()
    assert [path.name for path in again.parent.iterdir()] == ["again.pyz"]
    assert os.access(again, os.X_OK)


def test_every_package_in_it_brings_its_licence(built: Path, builder: ModuleType) -> None:
    names = zipfile.ZipFile(built).namelist()
    folders = {name.split("/")[1] for name in names if name.startswith("licenses/")}
    about = builder.project()
    required = [*about["dependencies"], *about["optional-dependencies"]["fleet"]]
    packages = {
        f"{builder.canonicalize_name(one.metadata['Name'])}-{one.version}" for one in builder.closure(required, (3, 9))
    }
    assert folders == {"cudadoctor", *packages} and len(packages) > 8


def test_no_code_of_one_machine_is_in_it(built: Path) -> None:
    names = zipfile.ZipFile(built).namelist()
    assert not [name for name in names if name.endswith((".so", ".pyd", ".pyc")) or "__pycache__" in name]
    tags = sorted(name for name in names if name.startswith("cudadoctor/compiled/"))
    assert len(tags) == len({FLOOR, NEWEST})


# -- where it cannot be made ------------------------------------------------------------------------------------------


def test_a_package_that_needs_a_newer_python_is_refused(builder: ModuleType) -> None:
    with pytest.raises(builder.Unfit, match=r"packaging .* needs Python >=3.*run this with .* Python 3\.6"):
        builder.closure(["packaging"], (3, 6))


def test_a_file_for_newer_pythons_alone_can_be_asked_for(builder: ModuleType) -> None:
    """Not everybody has the oldest one at hand."""
    assert builder.asked("3.11", (3, 9)) == (3, 11)
    for version in ("3.8", "2.7", "3", "3.11.4", "3.x", ""):
        with pytest.raises(builder.Unfit, match=r"--oldest takes 3\.9 or newer, not "):
            builder.asked(version, (3, 9))
    with pytest.raises(builder.Unfit, match=r"or, where no node has so old a one, with --oldest 3\."):
        builder.closure(["packaging"], (3, 6))


def test_a_package_that_is_not_there_is_named(builder: ModuleType) -> None:
    with pytest.raises(builder.Unfit, match=r"no-such-package>=2.* is not installed for"):
        builder.closure(['no-such-package>=2; python_version < "3.10"'], (3, 9))
    with pytest.raises(builder.Unfit, match="click>=99 is asked for"):
        builder.closure(["click>=99"], (3, 9))


def test_what_only_an_older_python_needs_is_in_it_and_what_only_another_system_needs_is_not(
    builder: ModuleType,
) -> None:
    wanted = ['tomli; python_version < "3.11"', 'colorama; platform_system == "Windows"', 'pytest; extra == "test"']
    assert [one.metadata["Name"] for one in builder.closure(wanted, (3, 9))] == ["tomli"]


def test_the_newest_python_is_another_one() -> None:
    """Or much of this file would prove less than it says."""
    if NEWEST == FLOOR:
        missing_part("a Python newer than 3.9", "uv python install 3.12")
