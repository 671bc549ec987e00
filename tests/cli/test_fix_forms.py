"""The forms of `fix` that other programs read: the real pip and uv install them, the rest is read as what it is."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from bench.index import WheelIndex
from bench.parts import clean_environ
from bench.venvs import Venv
from bench.wheels import tiny_wheel, torch_wheel
from cli_runner import Run
from fix_bench import Doctor, facts_of, on_pypi_too, paste, plan, run_doctor, stock

from cudadoctor.cli.fix import command
from cudadoctor.render.plan import FORMS
from cudadoctor.testing import linux

try:
    import tomllib
except ModuleNotFoundError:
    import tomli as tomllib  # type: ignore[no-redef]

MakeVenv = Callable[..., Venv]

OLD_DRIVER = ["--gpu", "RTX 4090", "--driver", "550.54.14", "--os", "linux", "--arch", "x86_64", "--python", "3.12"]
NEW_DRIVER = ["--gpu", "RTX 5090", "--driver", "580.95.05", "--os", "linux", "--arch", "x86_64", "--python", "3.12"]

MACHINES = [
    ("an old driver", OLD_DRIVER, ("2.14.1+cu126", "12.6")),
    ("a new card", NEW_DRIVER, ("2.15.0+cu132", "13.2")),
    ("no GPU", ["--gpu", "none", *OLD_DRIVER[4:], "--torch", "2.14.1"], ("2.14.1+cpu", None)),
]


@pytest.fixture
def index(wheel_index: WheelIndex) -> WheelIndex:
    return stock(wheel_index)


def uv(real_uv: str, environment: Mapping[str, str], folder: Path, *arguments: str) -> str:
    ended = subprocess.run(
        [real_uv, *arguments],
        cwd=folder,
        env=clean_environ(environment),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.parametrize(("options", "build"), [row[1:] for row in MACHINES], ids=[row[0] for row in MACHINES])
class TestInstalled:
    def test_requirements_by_pip(
        self, doctor: Doctor, index: WheelIndex, venv_with: MakeVenv, tmp_path: Path, options: list[str], build: Any
    ) -> None:
        venv = venv_with(torch_wheel("2.14.1", "cu130", python="3.12", local=False), python="3.12", pip=True)
        file = tmp_path / "requirements.txt"
        file.write_text(run_doctor(doctor, "--format", "requirements", *options))
        ended = venv.run("-m", "pip", "install", "-r", str(file), env=index.as_internet())
        assert ended.returncode == 0, ended.stderr
        assert venv.torch_build() == build

    def test_requirements_by_uv(
        self,
        doctor: Doctor,
        index: WheelIndex,
        venv_with: MakeVenv,
        real_uv: str,
        tmp_path: Path,
        options: list[str],
        build: Any,
    ) -> None:
        venv = venv_with(python="3.12")
        (tmp_path / "requirements.txt").write_text(run_doctor(doctor, "--format", "requirements", *options))
        uv(real_uv, index.as_internet(), tmp_path, "pip", "install", "--python", venv.python, "-r", "requirements.txt")
        assert venv.torch_build() == build

    def test_a_project_by_uv(
        self,
        doctor: Doctor,
        index: WheelIndex,
        real_uv: str,
        real_python: Callable[[str], str],
        tmp_path: Path,
        options: list[str],
        build: Any,
    ) -> None:
        (tmp_path / "pyproject.toml").write_text(run_doctor(doctor, "--format", "uv", *options))
        environment = index.as_internet()
        del environment["UV_NO_CONFIG"]  # it would leave out the project's own table too
        uv(real_uv, environment, tmp_path, "sync", "--python", real_python("3.12"))
        assert Venv(tmp_path / ".venv").torch_build() == build
        # Macs take what the default index has for them.
        assert "sys_platform == 'darwin'" in (tmp_path / "uv.lock").read_text()


LAYOUTS = [
    ("a base address", "{mirror}", []),
    ("with a slash at its end", "{mirror}/", []),
    ("the address of one variant", "{mirror}/cu118", []),
    ("with the place of the variant", "{mirror}/{{variant}}", []),
    ("one page for all wheels", "{flat}", ["--mirror-layout", "flat"]),
    ("one page for all wheels, with the place of the variant", "{flat}/{{variant}}/", ["--mirror-layout", "flat"]),
]


@pytest.mark.parametrize(("address", "layout"), [row[1:] for row in LAYOUTS], ids=[row[0] for row in LAYOUTS])
class TestMirror:
    def options(self, index: WheelIndex, address: str, layout: list[str]) -> list[str]:
        return ["--mirror", address.format(mirror=index.mirror, flat=index.flat_mirror), *layout]

    def test_pip(
        self, doctor: Doctor, index: WheelIndex, venv_with: MakeVenv, tmp_path: Path, address: str, layout: list[str]
    ) -> None:
        venv = venv_with(torch_wheel("2.6.0", "cpu", python="3.12"), python="3.12", pip=True)
        facts = facts_of(venv, linux().driver("550.54.14", "12.4"))
        paste(plan(doctor, facts, tmp_path, *self.options(index, address, layout)), index.pip_environment())
        assert venv.torch_build() == ("2.6.0+cu126", "12.6")
        assert not any("download.pytorch.org" in request for request in index.requests)

    def test_uv(
        self,
        doctor: Doctor,
        index: WheelIndex,
        venv_with: MakeVenv,
        real_uv: str,
        tmp_path: Path,
        address: str,
        layout: list[str],
    ) -> None:
        venv = venv_with(torch_wheel("2.6.0", "cpu", python="3.12"), python="3.12")
        facts = facts_of(venv, linux().driver("550.54.14", "12.4"))
        options = [*self.options(index, address, layout), "--installer", "uv"]
        environment = {**index.pip_environment(), "PATH": f"{real_uv.rpartition('/')[0]}:/usr/bin:/bin"}
        paste(plan(doctor, facts, tmp_path, *options), environment)
        assert venv.torch_build() == ("2.6.0+cu126", "12.6")

    def test_a_project(
        self,
        doctor: Doctor,
        index: WheelIndex,
        real_uv: str,
        real_python: Callable[[str], str],
        tmp_path: Path,
        address: str,
        layout: list[str],
    ) -> None:
        text = run_doctor(doctor, "--format", "uv", *OLD_DRIVER, *self.options(index, address, layout))
        (tmp_path / "pyproject.toml").write_text(text)
        environment = index.pip_environment()
        del environment["UV_NO_CONFIG"]
        uv(real_uv, environment, tmp_path, "sync", "--python", real_python("3.12"))
        assert Venv(tmp_path / ".venv").torch_build() == ("2.14.1+cu126", "12.6")

    def test_every_other_form_names_it(self, run: Run, index: WheelIndex, address: str, layout: list[str]) -> None:
        for form in ("requirements", "dockerfile", "poetry", "pixi"):
            out = run("fix", "--print", "--format", form, *OLD_DRIVER, *self.options(index, address, layout)).out
            assert f"{index.flat_mirror if layout else index.mirror}/cu126" in out
            assert "download.pytorch.org" not in out


# -- forms that are read --------------------------------------------------------------------------------------------


def read_toml(run: Run, form: str, *options: str) -> dict[str, Any]:
    result = run("fix", "--print", "--format", form, *options)
    assert result.exit == 0
    document: dict[str, Any] = tomllib.loads(result.out)
    return document


def test_poetry(run: Run) -> None:
    document = read_toml(run, "poetry", *OLD_DRIVER)
    tool = document["tool"]["poetry"]
    assert tool["dependencies"]["torch"] == {"version": "==2.14.1+cu126", "source": "pytorch-cu126"}
    assert tool["dependencies"]["python"] == ">=3.12,<3.13"
    (source,) = tool["source"]
    assert source == {
        "name": "pytorch-cu126",
        "url": "https://download.pytorch.org/whl/cu126",
        "priority": "explicit",
    }


def test_pixi(run: Run) -> None:
    document = read_toml(run, "pixi", *OLD_DRIVER)
    assert document["workspace"]["platforms"] == ["linux-64"]
    assert document["dependencies"] == {"python": "3.12.*"}
    assert document["pypi-dependencies"]["torch"] == {
        "version": "==2.14.1+cu126",
        "index": "https://download.pytorch.org/whl/cu126",
    }
    windows = ["--gpu", "RTX 4090", "--driver", "581.57", "--os", "windows"]
    assert read_toml(run, "pixi", *windows)["workspace"]["platforms"] == ["win-64"]


def environment(run: Run, *options: str) -> tuple[str, dict[str, Any]]:
    result = run("fix", "--print", "--format", "conda", *options)
    assert result.exit == 0
    document: dict[str, Any] = yaml.safe_load(result.out)
    return result.out, document


def test_conda_forge(run: Run) -> None:
    out, document = environment(run, *OLD_DRIVER)
    assert document["channels"][0] == "conda-forge"
    python, gpu, torch, *rest = document["dependencies"]
    assert python == "python=3.12"
    name, version = gpu.split("=")
    assert name == "pytorch-gpu"
    # CUDA 12 on this driver; a build of this very release and CUDA, and no CPU one.
    assert torch.startswith(f"pytorch={version}=cuda12")
    assert rest == ["torchvision"]
    # What the driver of the machine shows, not what the package was built with.
    assert "CONDA_OVERRIDE_CUDA=12.4 conda env create -f environment.yml" in out


def test_conda_without_a_fitting_build_is_pip_in_a_conda_environment(run: Run) -> None:
    """conda-forge has no free-threaded Python with torch."""
    options = ["--gpu", "RTX 4090", "--driver", "580.95.05", "--os", "linux", "--python", "3.13t"]
    out, document = environment(run, *options)
    *_, pip = document["dependencies"]
    assert pip["pip"] == [
        "--index-url https://download.pytorch.org/whl/cu130",
        "torch==2.12.0+cu130",
        "torchvision==0.27.0+cu130",
    ]
    assert "no CUDA build of conda-forge is known" in out


def test_conda_with_a_package_of_pypi_is_pip_too(run: Run) -> None:
    _, document = environment(run, *NEW_DRIVER, "--with", "vllm")
    *_, pip = document["dependencies"]
    assert pip["pip"][0].startswith("--extra-index-url")
    assert any(line.startswith("vllm==") for line in pip["pip"])


def test_conda_without_a_gpu(run: Run) -> None:
    _, document = environment(run, "--gpu", "none", "--os", "linux", "--python", "3.12")
    assert "pytorch-cpu" in document["dependencies"]


def lines_of(run: Run, *options: str) -> list[str]:
    result = run("fix", "--print", "--format", "dockerfile", *options)
    assert result.exit == 0
    return [line for line in result.out.splitlines() if not line.startswith("#")]


def test_dockerfile(run: Run) -> None:
    assert lines_of(run, *OLD_DRIVER) == [
        "FROM python:3.12-slim-trixie",
        "ENV NVIDIA_VISIBLE_DEVICES=all \\",
        "    NVIDIA_DRIVER_CAPABILITIES=compute,utility",
        'RUN python -m pip install --no-cache-dir "torch==2.14.1+cu126" "torchvision==0.29.1+cu126" '
        "--index-url https://download.pytorch.org/whl/cu126",
    ]


def test_dockerfile_without_a_gpu_asks_for_none(run: Run) -> None:
    assert not any("NVIDIA" in line for line in lines_of(run, "--gpu", "none", "--os", "linux"))


def test_dockerfile_for_arm(run: Run) -> None:
    result = run("fix", "--print", "--format", "dockerfile", "--gpu", "GH200", "--arch", "aarch64", "--os", "linux")
    assert "docker build --platform linux/arm64" in result.out


def test_dockerfile_of_an_old_wheel_has_an_older_glibc(run: Run) -> None:
    """Old wheels ask for an executable stack, which the newest glibc refuses."""
    options = ["--gpu", "A100", "--driver", "550.54.14", "--os", "linux", "--python", "3.11", "--torch", "2.1.*"]
    assert lines_of(run, *options)[0] == "FROM python:3.11-slim-bookworm"


def test_dockerfile_with_what_compiles_at_run_time(run: Run) -> None:
    lines = lines_of(run, *NEW_DRIVER, "--with", "vllm")
    assert any("gcc" in line for line in lines)
    assert lines[-1].startswith('RUN python -m pip install --no-cache-dir "vllm==')


def test_a_container_on_windows_is_linux(run: Run) -> None:
    result = run(
        "fix", "--print", "--format", "dockerfile", "--gpu", "RTX 4090", "--driver", "581.57", "--os", "windows"
    )
    assert "--os wsl" in result.out


@pytest.mark.parametrize("form", ["requirements", "uv", "conda", "dockerfile", "poetry", "pixi"])
def test_without_a_choice_a_form_is_a_comment(run: Run, form: str) -> None:
    options = ["--gpu", "RTX 5090", "--gpu", "GTX 1080 Ti", "--driver", "580.95.05", "--os", "linux"]
    result = run("fix", "--print", "--format", form, *options)
    assert result.exit == 1
    assert result.out
    assert all(line.startswith("#") for line in result.out.splitlines())


@pytest.mark.once
def test_each_kind_of_gpu_gets_an_environment_of_its_own(
    doctor: Doctor,
    index: WheelIndex,
    real_python: Callable[[str], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    options = ["--gpu", "RTX 5090", "--gpu", "GTX 1080 Ti", "--driver", "580.95.05", "--os", "linux"]
    document = json.loads(run_doctor(doctor, "--format", "json", *options, "--python", real_python("3.12")))
    monkeypatch.chdir(tmp_path)
    paste(document, index.as_internet())
    builds = {Venv(folder).torch_build() for folder in tmp_path.glob(".venv-*")}
    assert builds == {("2.15.0+cu132", "13.2"), ("2.14.1+cu126", "12.6")}
    runs = [step["instructions"] for step in document["steps"] if step["id"].startswith("run-on-")]
    assert all("CUDA_VISIBLE_DEVICES=" in text for text in runs) and len(runs) == 2


def test_what_lies_beside_torch_comes_from_its_index(
    doctor: Doctor, index: WheelIndex, venv_with: MakeVenv, tmp_path: Path
) -> None:
    """xformers on PyPI is built for one variant; that of the variant's index belongs to this torch."""
    index.add("cu126", tiny_wheel("xformers", "0.0.35", requires=["torch>=2.10"], files={"xformers/v.py": "right = 1"}))
    index.add(
        "simple", tiny_wheel("xformers", "0.0.35", requires=["torch>=2.10"], files={"xformers/v.py": "right = 0"})
    )
    on_pypi_too(index)
    venv = venv_with(python="3.12", pip=True)
    facts = facts_of(venv, linux().driver("550.54.14", "12.4"))
    paste(plan(doctor, facts, tmp_path, "--with", "xformers==0.0.35"), index.as_internet())
    assert (venv.site_packages / "xformers" / "v.py").read_text() == "right = 1"
    assert venv.torch_build() == ("2.14.1+cu126", "12.6")


def test_the_command_line_offers_every_form() -> None:
    (form,) = (option for option in command.params if option.name == "form")
    assert isinstance(form.type, click.Choice)
    assert list(form.type.choices) == list(FORMS)
