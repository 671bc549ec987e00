"""The manifests: valid for the API, without needless rights, and their containers do what they say.

No cluster runs here. The API's own schemas judge the manifests; what the containers run is run, with a file in place
of the termination log.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Callable, NamedTuple

import pytest
import yaml
from bench import native
from bench.parts import CACHE, ROOT, clean_environ, missing_part

from cudadoctor.recipes import recipes

pytestmark = pytest.mark.once

MANIFESTS = {name: recipe.text for name, recipe in recipes().items() if name.startswith("kubernetes/")}
WITH_PODS = [name for name in MANIFESTS if name != "kubernetes/policy"]

Json = dict[str, Any]


# -- valid ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def validate() -> Callable[..., subprocess.CompletedProcess[str]]:
    """`validate("1.31", file, ...)`: kubernetes-validate, strictly."""
    part = CACHE / "kubernetes-validate"
    if not (part / "ready").exists():
        missing_part("kubernetes-validate", "scripts/install_test_parts.sh kubernetes-validate fetches it")

    def run(version: str, *files: Path) -> subprocess.CompletedProcess[str]:
        command = [part / "bin" / "kubernetes-validate", "--strict", "--quiet", "-k", version, *files]
        return subprocess.run(command, env=clean_environ(), capture_output=True, text=True, timeout=60)

    return run


def written(folder: Path, changes: dict[str, str], *names: str) -> list[Path]:
    """The manifests as files, changed; only these, where names are given."""
    files = []
    for name in names or MANIFESTS:
        text = MANIFESTS[name]
        for old, new in changes.items():
            text = text.replace(old, new)
        file = folder / f"{name.replace('/', '-')}.yaml"
        file.write_text(text)
        files.append(file)
    return files


@pytest.mark.parametrize("version", ["1.29", "1.33", "1.37"])
def test_the_manifests_are_valid(version: str, validate: Any, tmp_path: Path) -> None:
    done = validate(version, *written(tmp_path, {}))
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.mark.parametrize(
    "right, wrong",
    [
        ("initContainers:", "initContainer:"),
        ("terminationMessagePath:", "terminationMessagepath:"),
        ("readOnlyRootFilesystem: true", "readOnlyRootFilesystem: sometimes"),
        ("completionMode:", "completionmode:"),
        ("fieldRef:", "fieldref:"),
    ],
)
def test_a_misspelt_one_is_not(right: str, wrong: str, validate: Any, tmp_path: Path) -> None:
    name = next(name for name, text in MANIFESTS.items() if right in text)
    done = validate("1.37", *written(tmp_path, {right: wrong}, name))
    assert done.returncode == 1
    assert "did not validate" in done.stdout + done.stderr


# -- with few rights ------------------------------------------------------------------------------------------------


def pod(name: str) -> Json:
    """The pod of a manifest."""
    (manifest,) = yaml.safe_load_all(MANIFESTS[name])
    found: Json = manifest["spec"]["template"]["spec"]
    return found


class Ours(NamedTuple):
    """A container that runs the doctor."""

    manifest: str
    pod: Json
    container: Json


def ours(name: str) -> Ours:
    spec = pod(name)
    found = [
        container
        for container in [*spec.get("initContainers", []), *spec["containers"]]
        if "cudadoctor check" in " ".join(container["command"])
    ]
    assert len(found) == 1
    return Ours(name, spec, found[0])


@pytest.mark.parametrize("name", WITH_PODS)
def test_a_pod_has_no_more_rights_than_it_needs(name: str) -> None:
    spec = pod(name)
    assert spec["automountServiceAccountToken"] is False
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["runAsUser"] > 0  # an image whose user is root would not start
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not {"hostNetwork", "hostPID", "hostIPC", "hostUsers", "serviceAccountName"} & set(spec)
    assert all("hostPath" not in volume for volume in spec["volumes"])
    for container in [*spec.get("initContainers", []), *spec["containers"]]:
        rights = container["securityContext"]
        assert rights["allowPrivilegeEscalation"] is False and rights["capabilities"] == {"drop": ["ALL"]}
        assert not rights.get("privileged")


@pytest.mark.parametrize("name", WITH_PODS)
def test_the_doctors_container(name: str) -> None:
    found = ours(name)
    assert found.container["securityContext"]["readOnlyRootFilesystem"] is True
    assert {"cpu", "memory"} <= set(found.container["resources"]["requests"])
    assert "memory" in found.container["resources"]["limits"]
    # Capitals are no valid name of an image: whoever forgets to edit it is told so, and nothing is pulled.
    assert found.container["image"].startswith("EDIT-ME/")
    node = next(entry for entry in found.container["env"] if entry["name"] == "NODE_NAME")
    assert node["valueFrom"] == {"fieldRef": {"fieldPath": "spec.nodeName"}}
    assert {"key": "nvidia.com/gpu", "operator": "Exists"} in found.pod["tolerations"]
    # A policy that is not there must keep no pod from starting.
    (mount,) = found.container["volumeMounts"]
    (volume,) = [volume for volume in found.pod["volumes"] if volume["name"] == mount["name"]]
    assert (mount["mountPath"], volume["configMap"]["optional"]) == ("/etc/cudadoctor", True)


def test_gpus_are_asked_for_once_and_by_those_who_may_take_them() -> None:
    gpu = "nvidia.com/gpu"
    assert gpu not in ours("kubernetes/daemonset").container["resources"]["limits"]
    assert ours("kubernetes/job").container["resources"]["limits"][gpu] == 8
    train = pod("kubernetes/init-container")
    assert train["initContainers"][0]["resources"]["limits"][gpu] == train["containers"][0]["resources"]["limits"][gpu]


def test_the_policy_is_the_one_that_is_mounted() -> None:
    (manifest,) = yaml.safe_load_all(MANIFESTS["kubernetes/policy"])
    assert list(manifest["data"]) == ["policy.toml"]
    for name in WITH_PODS:
        (volume,) = pod(name)["volumes"]
        assert volume["configMap"]["name"] == manifest["metadata"]["name"]


def test_what_ends_a_job_at_once_is_what_no_other_node_mends() -> None:
    (manifest,) = yaml.safe_load_all(MANIFESTS["kubernetes/init-container"])
    (rule,) = manifest["spec"]["podFailurePolicy"]["rules"]
    assert rule["action"] == "FailJob" and rule["onExitCodes"]["values"] == [1]
    (init,) = manifest["spec"]["template"]["spec"]["initContainers"]
    assert rule["onExitCodes"]["containerName"] == init["name"]
    assert init["command"][init["command"].index("--retry-code") + 1] == "75"


# -- what the containers do -----------------------------------------------------------------------------------------


class Container:
    """Runs a container's command in an environment that looks like its own."""

    def __init__(self, found: Ours, folder: Path, scenario: str, doctor: str = "") -> None:
        self.log = folder / "termination-log"
        self.log.write_text("")  # it is there, and we may not make it
        (folder / "bin").mkdir()
        program = folder / "bin" / "cudadoctor"
        ours = f"PYTHONPATH={shlex.quote(str(ROOT))} exec {shlex.quote(sys.executable)} -m cudadoctor"
        program.write_text(f'#!/bin/sh\n{doctor or ours} "$@"\n')
        program.chmod(0o755)
        values = {"NODE_NAME": "node-7", "EVERY": "0.1"}
        values.update({entry["name"]: entry["value"] for entry in found.container["env"] if "value" in entry})
        self.environment = clean_environ(native.environment(scenario), {"PATH": str(folder / "bin")}, values)
        self.command = [word.replace("/dev/termination-log", str(self.log)) for word in found.container["command"]]
        self.folder = folder

    def start(self) -> subprocess.Popen[str]:
        """Its first process, in a session of its own, as in a pod."""
        return subprocess.Popen(
            self.command,
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self) -> tuple[int, str]:
        """Exit status, and what `kubectl logs` would show."""
        process = self.start()
        try:
            out, err = process.communicate(timeout=60)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
        return process.returncode, out + err


Make = Callable[..., Container]


@pytest.fixture
def container(tmp_path: Path) -> Iterator[Make]:
    """`container("kubernetes/job", "two_gpus")`: the doctor's container on a machine (tests/native/scenarios)."""

    def make(name: str, scenario: str, doctor: str = "") -> Container:
        return Container(ours(name), tmp_path, scenario, doctor)

    yield make


def test_a_pod_of_the_job_gives_its_report_and_ends_well_whatever_it_finds(container: Make) -> None:
    """Its log is what `fleet` reads; a pod that fails would end the others."""
    sick = container("kubernetes/job", "one_gpu_lost")
    status, log = sick.run()
    assert status == 0
    (line,) = log.splitlines()
    report = json.loads(line)
    assert report["root_causes"] == ["CD113"]
    assert report["facts"]["scheduler.node"]["value"] == "node-7"
    assert "GPU 1 has fallen off the bus" in sick.log.read_text().splitlines()[0]


def test_a_pod_of_the_job_without_a_report_fails(container: Make) -> None:
    assert container("kubernetes/job", "two_gpus", doctor="exit 2;").run()[0] == 1


def test_the_daemonset_ends_with_1_on_a_sick_node_and_says_why(container: Make) -> None:
    sick = container("kubernetes/daemonset", "one_gpu_lost")
    status, log = sick.run()
    assert status == 1
    assert json.loads(log.splitlines()[-1])["root_causes"] == ["CD113"]
    assert "GPU 1 has fallen off the bus" in sick.log.read_text().splitlines()[0]


@pytest.mark.parametrize(
    "doctor",
    [
        pytest.param("", id="a fit node"),
        pytest.param("echo; exit 2;", id="a doctor that fails"),
        pytest.param("echo; exit 3;", id="a doctor that cannot decide"),
    ],
)
def test_the_daemonset_goes_on_where_the_machine_is_not_at_fault(doctor: str, container: Make) -> None:
    process = container("kubernetes/daemonset", "two_gpus", doctor).start()
    try:
        assert process.stdout is not None
        for _ in range(2):  # two rounds
            assert process.stdout.readline()
        begun = time.monotonic()
        process.terminate()  # a pod that is deleted
        assert process.wait(20) == 0
        assert time.monotonic() - begun < 15  # Kubernetes kills after thirty
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=20)


@pytest.mark.parametrize("scenario, expected", [("two_gpus", 0), ("one_gpu_lost", 75)])
def test_training_starts_on_a_fit_node_and_tries_another_than_a_sick_one(
    scenario: str, expected: int, container: Make
) -> None:
    init = container("kubernetes/init-container", scenario)
    status, log = init.run()
    assert status == expected, log
    first = init.log.read_text().splitlines()[0]
    assert ("GPU 1 has fallen off the bus" in first) == (expected == 75)
    assert len(init.log.read_bytes()) <= 4096


@pytest.mark.parametrize("name, ends", [("kubernetes/job", 0), ("kubernetes/daemonset", 1)])
def test_a_retry_code_of_the_site_hides_no_sick_node(name: str, ends: int, container: Make, tmp_path: Path) -> None:
    """The policy that the pods mount may say what a fault of the machine ends with: that is for job scripts."""
    policy = tmp_path / "policy.toml"
    policy.write_text("[check]\nretry_code = 99\n")
    sick = container(name, "one_gpu_lost")
    sick.environment["CUDADOCTOR_POLICY"] = str(policy)
    status, log = sick.run()
    assert status == ends
    assert json.loads(log.splitlines()[-1])["root_causes"] == ["CD113"]


def test_the_doctor_takes_the_policy(tmp_path: Path) -> None:
    (manifest,) = yaml.safe_load_all(MANIFESTS["kubernetes/policy"])
    file = tmp_path / "policy.toml"
    file.write_text(manifest["data"]["policy.toml"])
    command = [sys.executable, "-m", "cudadoctor", "check", "--policy", str(file), "--explain-policy"]
    done = subprocess.run(
        command, cwd=tmp_path, env=clean_environ(PYTHONPATH=str(ROOT)), capture_output=True, text=True, timeout=60
    )
    assert done.stderr == ""
    assert "gpu.count" in done.stdout and "driver.version" in done.stdout
