"""Every form of a plan, for many machines, through the real pip and the real uv: the right build arrives.

The indexes hold what the real ones hold, all builds side by side (`bench.releases`), and a plain `torch` on PyPI is
always another one than the plan wants. What is installed is told by torch's own version.py, and by the version under
which it is recorded, which PyPI's wheels give without their build.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Optional

import pytest
import yaml
from bench import releases, venvs
from bench.index import SIMPLE, WheelIndex
from bench.parts import clean_environ, find_python
from bench.releases import ARM
from bench.venvs import Venv, activated
from bench.wheels import LINUX, WINDOWS, companion_wheel, cuda_of, tiny_wheel, torch_wheel
from cli_runner import Run

# What it asks takes minutes, and no Python answers otherwise than another.
pytestmark = pytest.mark.once

try:
    import tomllib
except ModuleNotFoundError:
    import tomli as tomllib  # type: ignore[no-redef]


class Row(NamedTuple):
    """A machine and a wish, the Python there, and what has to be installed in the end."""

    title: str
    asked: str  # options of `fix --print`
    python: str
    torch: str
    beside: dict[str, str]

    @property
    def options(self) -> list[str]:
        words = [part.strip("'") for part in re.findall(r"'[^']*'|\S+", self.asked)]
        given = [] if "--os" in words else ["--os", "linux"]
        return [*words, *given, "--python", self.python, *([] if "--arch" in words else ["--arch", "x86_64"])]


def row(title: str, asked: str, python: str, torch: str, torchvision: str, **beside: str) -> Row:
    return Row(title, asked, python, torch, {"torchvision": torchvision, **beside})


ROWS = [
    row("Pascal on its last driver",
        "--gpu 'GTX 1080 Ti' --driver 580.95.05", "3.12", "2.14.1+cu126", "0.29.1+cu126"),
    row("Pascal on R470",
        "--gpu 'GTX 1080 Ti' --driver 470.223.02", "3.11", "2.7.1+cu118", "0.22.1+cu118"),
    row("Volta on R580",
        "--gpu V100 --driver 580.95.05", "3.13", "2.14.1+cu126", "0.29.1+cu126"),
    row("Turing on R470",
        "--gpu T4 --driver 470.256.02", "3.10", "2.7.1+cu118", "0.22.1+cu118"),
    row("Kepler on R418",
        "--gpu K80 --driver 418.87", "3.9", "1.8.1+cu101", "0.9.1+cu101"),
    row("eight A100 on R550",
        "--gpu A100 " * 8 + "--driver 550.54.15", "3.11", "2.14.1+cu126", "0.29.1+cu126"),
    row("Ada on R535",
        "--gpu 'RTX 4090' --driver 535.183.01", "3.10", "2.14.1+cu126", "0.29.1+cu126"),
    row("Ada on R550 with a Python that torch has left",
        "--gpu 'RTX 4090' --driver 550.54.14", "3.9", "2.8.0+cu128", "0.23.0+cu128"),
    row("Ada on R580",
        "--gpu 'RTX 4090' --driver 580.95.05", "3.11", "2.15.0+cu132", "0.29.2+cu132"),
    row("Blackwell on R570",
        "--gpu 'RTX 5090' --driver 570.124.06", "3.12", "2.13.0+cu129", "0.28.0+cu129"),
    row("Blackwell on R580",
        "--gpu 'RTX 5090' --driver 580.65.06", "3.13", "2.15.0+cu132", "0.29.2+cu132"),
    row("Blackwell on R580 with an old Python",
        "--gpu 'RTX 5090' --driver 580.95.05", "3.10", "2.14.1+cu132", "0.29.1+cu132"),
    row("WSL, which counts in the Windows driver's numbers",
        "--gpu 'RTX 4090' --driver 566.36 --os wsl", "3.12", "2.14.1+cu126", "0.29.1+cu126"),
    row("no GPU",
        "--gpu none", "3.12", "2.15.0+cpu", "0.29.2+cpu"),
    row("two generations that one build serves",
        "--gpu 'RTX 4090' --gpu 'GTX 1080 Ti' --driver 580.95.05", "3.12", "2.14.1+cu126", "0.29.1+cu126"),
    row("a release by its range",
        "--gpu 'RTX 4090' --driver 580.95.05 --torch 2.6.*", "3.12", "2.6.0+cu126", "0.21.0+cu126"),
    row("a build by its name",
        "--gpu 'RTX 4090' --driver 580.95.05 --torch 2.7.1+cu128", "3.13", "2.7.1+cu128", "0.22.1+cu128"),
    row("a torchaudio that names no build",
        "--gpu H100 --driver 580.95.05 --with torchaudio", "3.12", "2.15.0+cu132", "0.29.2+cu132", torchaudio="2.11.1"),
    row("xformers, which PyTorch's index has for this build",
        "--gpu 'RTX 4090' --driver 580.95.05 --with xformers", "3.12", "2.14.1+cu130", "0.29.1+cu130",
        xformers="0.0.35"),
    row("vLLM, which comes from PyPI and pins torch",
        "--gpu 'RTX 4090' --driver 580.95.05 --with vllm", "3.12", "2.14.0+cu130", "0.29.0+cu130",
        torchaudio="2.11.0+cu130", vllm="0.33.0"),
]  # fmt: skip

PYTHONS = sorted({one.python for one in ROWS}, key=lambda python: int(python.split(".")[1]))


class Shelf:
    """The index, the environment in which nothing else can be reached, and venvs that are used again and again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (folder / "index").mkdir()
        self.index = WheelIndex(folder / "index")
        self.environment = {**self.index.as_internet(), "PIP_NO_COMPILE": "1", "PIP_PROGRESS_BAR": "off"}
        self._venvs: dict[tuple[str, bool], tuple[Venv, frozenset[str]]] = {}

    def venv(self, python: str, pip: bool) -> Venv:
        """An environment that holds what a plain `pip install torch torchvision` brought this Python before."""
        if (python, pip) not in self._venvs:
            made = venvs.make(self._folder / f"venv{len(self._venvs)}", python=python, pip=pip)
            self._venvs[python, pip] = made, frozenset(path.name for path in made.site_packages.iterdir())
        venv, own = self._venvs[python, pip]
        for path in venv.site_packages.iterdir():
            if path.name not in own:
                subprocess.run(["rm", "-r", str(path)], check=True)
        newest = releases.newest_on_pypi(python)
        return venv.unpack(
            torch_wheel(newest.torch, newest.default, python=python, local=False),
            companion_wheel(
                "torchvision", newest.torchvision, newest.default, newest.torch, python=python, local=False
            ),
        )

    def run(self, command: Sequence[str], folder: Path, **overlay: str) -> str:
        done = subprocess.run(
            command,
            cwd=folder,
            env=clean_environ(self.environment, overlay),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"
        return done.stdout


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shelf]:
    shelf = Shelf(tmp_path_factory.mktemp("shelf"))
    releases.fill(shelf.index, [python for python in PYTHONS if find_python(python)])
    yield shelf
    shelf.index.close()


def printed(run: Run, form: str, asked: Row, *options: str) -> str:
    result = run("fix", "--print", "--format", form, *asked.options, *options)
    assert result.exit == 0, result.err
    return result.out


def commands(text: str) -> list[str]:
    """The lines of the text form that a person pastes."""
    return re.findall(r"^   ((?:uv|python) .*)$", text, re.MULTILINE)


def assert_arrived(asked: Row, venv: Venv) -> None:
    installed = venv.installed()
    assert venv.torch_build() == (asked.torch, cuda_of(asked.torch.partition("+")[2]))
    assert {"torch": asked.torch, **asked.beside}.items() <= installed.items()
    if "xformers" in asked.beside:
        # PyPI has one under the same name, for one build of torch.
        variant = asked.torch.partition("+")[2]
        assert f"'{variant}'" in (venv.site_packages / "xformers" / "page.py").read_text()


@pytest.mark.parametrize("asked", ROWS, ids=[one.title for one in ROWS])
class TestInstalled:
    def test_the_command_of_pip(self, run: Run, shelf: Shelf, tmp_path: Path, asked: Row) -> None:
        venv = shelf.venv(asked.python, pip=True)
        lines = commands(printed(run, "shell", asked))
        assert lines and all(line.startswith("python -m pip install ") for line in lines)
        for line in lines:
            shelf.run(["sh", "-ec", line], tmp_path, **activated(venv))
        assert_arrived(asked, venv)

    def test_the_command_of_uv(self, run: Run, shelf: Shelf, real_uv: str, tmp_path: Path, asked: Row) -> None:
        venv = shelf.venv(asked.python, pip=False)
        lines = commands(printed(run, "shell", asked, "--installer", "uv"))
        assert lines and all(line.startswith("uv pip install ") for line in lines)
        for line in lines:
            shelf.run(["sh", "-ec", line], tmp_path, VIRTUAL_ENV=str(venv.root), PATH=str(Path(real_uv).parent))
        assert_arrived(asked, venv)

    def test_requirements_by_pip(self, run: Run, shelf: Shelf, tmp_path: Path, asked: Row) -> None:
        venv = shelf.venv(asked.python, pip=True)
        (tmp_path / "requirements.txt").write_text(printed(run, "requirements", asked))
        shelf.run([venv.python, "-m", "pip", "install", "-r", "requirements.txt"], tmp_path)
        assert_arrived(asked, venv)

    def test_requirements_by_uv(self, run: Run, shelf: Shelf, real_uv: str, tmp_path: Path, asked: Row) -> None:
        venv = shelf.venv(asked.python, pip=False)
        (tmp_path / "requirements.txt").write_text(printed(run, "requirements", asked))
        shelf.run([real_uv, "pip", "install", "--python", venv.python, "-r", "requirements.txt"], tmp_path)
        assert_arrived(asked, venv)

    def test_a_project_by_uv(
        self,
        run: Run,
        shelf: Shelf,
        real_uv: str,
        real_python: Callable[[str], str],
        tmp_path: Path,
        asked: Row,
    ) -> None:
        (tmp_path / "pyproject.toml").write_text(printed(run, "uv", asked))
        # UV_NO_CONFIG would leave out the project's own table, too.
        shelf.run([real_uv, "sync", "--python", real_python(asked.python)], tmp_path, UV_NO_CONFIG="0")
        assert_arrived(asked, Venv(tmp_path / ".venv"))

    def test_the_lines_of_a_dockerfile(
        self, run: Run, shelf: Shelf, fake_program: Any, tmp_path: Path, asked: Row
    ) -> None:
        text = printed(run, "dockerfile", asked)
        assert re.search(rf"^FROM python:{re.escape(asked.python)}-slim-\w+$", text, re.MULTILINE)
        venv = shelf.venv(asked.python, pip=True)
        # The image would have no torch, and Debian's packages are none of ours.
        path = f"{Path(venv.python).parent}:{fake_program('apt-get')}"
        for line in re.findall(r"^RUN (.*)$", text.replace("\\\n", ""), re.MULTILINE):
            if "apt-get" not in line:
                # What they require is there: the same words have installed it by pip's own command.
                shelf.run(["sh", "-ec", line], tmp_path, PATH=path, PIP_NO_DEPS="1")
        assert_arrived(asked, venv)

    def test_the_pip_section_of_a_conda_environment(
        self, run: Run, shelf: Shelf, real_uv: str, tmp_path: Path, asked: Row
    ) -> None:
        """What conda hands to pip is installed; packages of conda-forge's own are read for what they would bring."""
        *_, override = re.findall(r"CONDA_OVERRIDE_CUDA=(\S+)", out := printed(run, "conda", asked)) or [""]
        document = yaml.safe_load(out)
        assert document["channels"] == ["conda-forge", "nodefaults"]
        python, *packages = document["dependencies"]
        assert python == f"python={asked.python}"
        if isinstance(packages[-1], dict):
            venv = shelf.venv(asked.python, pip=False)
            (tmp_path / "requirements.txt").write_text("\n".join(packages[-1]["pip"]) + "\n")
            shelf.run([real_uv, "pip", "install", "--python", venv.python, "-r", "requirements.txt"], tmp_path)
            assert_arrived(asked, venv)
        elif asked.torch.endswith("+cpu"):
            assert packages == ["pytorch-cpu", "torchvision"]
        else:
            gpu, torch, *companions = packages
            (found,) = re.finditer(r"^pytorch=([\d.]+)=cuda(\d+)\*$", torch)
            release, cuda = found.groups()
            assert gpu == f"pytorch-gpu={release}"
            assert set(companions) == set(asked.beside)
            # The same CUDA as pip's build, where both have builds of one release; else of no newer major.
            assert int(cuda[:2]) <= int(asked.torch.partition("+cu")[2][:2])
            assert int(override.split(".")[0]) >= int(cuda[:2])
            if "--torch" in asked.options:
                assert release == asked.torch.partition("+")[0]

    def test_poetry_and_pixi(self, run: Run, asked: Row) -> None:
        variant = asked.torch.partition("+")[2]
        page = f"https://download.pytorch.org/whl/{variant}"
        poetry = tomllib.loads(printed(run, "poetry", asked))["tool"]["poetry"]
        pixi = tomllib.loads(printed(run, "pixi", asked))
        (source,) = poetry["source"]
        assert (source["url"], source["priority"]) == (page, "explicit")
        assert pixi["dependencies"]["python"] == f"{asked.python}.*"
        for name, version in {"torch": asked.torch, **asked.beside}.items():
            from_pypi = name == "vllm"
            wanted = {"version": f"=={version}"}
            assert poetry["dependencies"][name] == (wanted if from_pypi else {**wanted, "source": source["name"]})
            assert pixi["pypi-dependencies"][name] == (wanted if from_pypi else {**wanted, "index": page})


# -- plans for a machine that is not this one -------------------------------------------------------------------------


class Elsewhere(NamedTuple):
    """As a Row; the platform as uv names it, and the tags of its wheels as pip does."""

    title: str
    asked: str
    python: str
    torch: str
    torchvision: str
    uv: str
    pip: tuple[str, ...]


WINDOWS_UV, ARM_UV, OLD_UV = "x86_64-pc-windows-msvc", "aarch64-manylinux_2_28", "x86_64-manylinux2014"
OLD_PIP = ("manylinux2014_x86_64", "linux_x86_64")

ELSEWHERE = [
    Elsewhere("Ada on Windows", "--gpu 'RTX 4090' --driver 581.57 --os windows", "3.12",
              "2.14.1+cu132", "0.29.1+cu132", WINDOWS_UV, (WINDOWS,)),
    Elsewhere("Blackwell on Windows and R570", "--gpu 'RTX 5090' --driver 572.83 --os windows", "3.12",
              "2.11.0+cu128", "0.26.0+cu128", WINDOWS_UV, (WINDOWS,)),
    Elsewhere("Pascal on Windows", "--gpu 'GTX 1080 Ti' --driver 581.57 --os windows", "3.13",
              "2.14.1+cu126", "0.29.1+cu126", WINDOWS_UV, (WINDOWS,)),
    Elsewhere("Grace Hopper", "--gpu GH200 --driver 580.95.05 --arch aarch64", "3.12",
              "2.15.0+cu132", "0.29.2+cu132", ARM_UV, (ARM,)),
    Elsewhere("Grace Hopper on R550", "--gpu GH200 --driver 550.54.15 --arch aarch64", "3.12",
              "2.14.1+cu126", "0.29.1+cu126", ARM_UV, (ARM,)),
    Elsewhere("a glibc of 2017", "--gpu T4 --driver 550.54.14 --glibc 2.17", "3.12",
              "2.6.0+cu124", "0.21.0+cu124", OLD_UV, OLD_PIP),
    Elsewhere("a Python that is not here", "--gpu 'RTX 5090' --driver 580.95.05", "3.14",
              "2.15.0+cu132", "0.29.2+cu132", "x86_64-manylinux_2_28", (LINUX,)),
]  # fmt: skip


@pytest.fixture(scope="module")
def shelf_of_all_platforms(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shelf]:
    shelf = Shelf(tmp_path_factory.mktemp("everywhere"))
    releases.fill(shelf.index, {one.python for one in ELSEWHERE}, (LINUX, ARM, WINDOWS))
    yield shelf
    shelf.index.close()


def version_in(folder: Path) -> Optional[str]:
    found = re.search(r"^__version__ = '(.*)'$", (folder / "torch" / "version.py").read_text(), re.MULTILINE)
    return found and found.group(1)


@pytest.mark.parametrize("asked", ELSEWHERE, ids=[one.title for one in ELSEWHERE])
@pytest.mark.parametrize("installer", ["pip", "uv"])
def test_for_another_machine(
    run: Run,
    shelf_of_all_platforms: Shelf,
    venv_with: Callable[..., Venv],
    real_uv: str,
    tmp_path: Path,
    asked: Elsewhere,
    installer: str,
) -> None:
    """The printed requirements, installed into a folder by an installer that is told about the other platform."""
    given = Row(asked.title, asked.asked, asked.python, asked.torch, {})
    (tmp_path / "requirements.txt").write_text(printed(run, "requirements", given))
    options = ["install", "--target", "there", "--python-version", asked.python, "--only-binary", ":all:"]
    if installer == "uv":
        command = [real_uv, "pip", *options, "--python-platform", asked.uv]
    else:
        platforms = [word for tag in asked.pip for word in ("--platform", tag)]
        # pip takes markers for this machine's: what they ask for is on the index for every platform.
        command = [shelf_of_all_platforms.venv("3.12", pip=True).python, "-m", "pip", *options, *platforms]
    shelf_of_all_platforms.run([*command, "-r", "requirements.txt"], tmp_path)
    there = tmp_path / "there"
    assert version_in(there) == asked.torch
    assert (there / f"torch-{asked.torch}.dist-info").is_dir()
    assert (there / f"torchvision-{asked.torchvision}.dist-info").is_dir()


# -- no single build ------------------------------------------------------------------------------------------------

UNLIKE = ["--gpu", "RTX 5090", "--gpu", "GTX 1080 Ti", "--driver", "580.95.05", "--os", "linux", "--arch", "x86_64"]


def test_each_of_two_generations_gets_its_build(
    run: Run, shelf: Shelf, real_uv: str, real_python: Callable[[str], str], tmp_path: Path
) -> None:
    """By uv, which takes the Python that was asked for, and not the first that it finds."""
    result = run("fix", "--print", *UNLIKE, "--python", "3.12", "--installer", "uv")
    assert result.exit == 1
    # The two cannot even be driven at the same time, which no environment mends.
    assert "the other card stays idle" in " ".join(result.out.split())
    lines = commands(result.out)
    assert [line.split()[:2] for line in lines] == [["uv", "venv"], ["uv", "pip"]] * 2
    shelf.index.add(SIMPLE, tiny_wheel("pip", "26.0"))  # for --seed
    pythons = [Path(real_python(version)).parent for version in ("3.9", "3.12")]
    for line in lines:
        path = ":".join(map(str, [Path(real_uv).parent, *pythons]))
        shelf.run(["sh", "-ec", line], tmp_path, PATH=path)
    found = {folder.name: Venv(folder).torch_build() for folder in tmp_path.glob(".venv-*")}
    assert found == {".venv-cu132": ("2.15.0+cu132", "13.2"), ".venv-cu126": ("2.14.1+cu126", "12.6")}


@pytest.mark.parametrize("named", ["the interpreter", "the folder of its environment"])
def test_a_python_that_is_named_by_its_path_is_looked_at(
    run: Run, shelf: Shelf, real_uv: str, tmp_path: Path, named: str
) -> None:
    """The newest torch has no wheel for it, which only a look can tell."""
    venv = shelf.venv("3.9", pip=False)
    path = venv.python if named == "the interpreter" else str(venv.root)
    options = ["--gpu", "RTX 4090", "--driver", "580.95.05", "--installer", "uv", "--python", path]
    (line,) = commands(run("fix", "--print", *options).out)
    assert f"uv pip install --python {venv.python} " in line
    shelf.run(["sh", "-ec", line], tmp_path, PATH=str(Path(real_uv).parent))
    assert venv.torch_build() == ("2.8.0+cu128", "12.8")
