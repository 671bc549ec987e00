"""A running container has lost its GPU

What it checks
    Whether NVML answers "Unknown Error" inside a container that was given a GPU: its device nodes are still there, and
    opening them is no longer allowed. Of a pasted report it is the likeliest reading where the host's own nvidia-smi is
    fine, or where the text is about a container.

Why it matters
    The container works for hours or days and then fails with "Failed to initialize NVML: Unknown Error", with nothing
    changed inside. Something on the host, as a rule systemctl daemon-reload, has written the control group of the
    container anew, and the devices that the NVIDIA runtime had let in are forgotten.

How to fix
    Start the container again: that helps at once. To keep it from coming back: let Docker manage control groups itself
    ("exec-opts": ["native.cgroupdriver=cgroupfs"] in /etc/docker/daemon.json), use CDI, or name the device nodes with
    --device; newer releases of the NVIDIA Container Toolkit make the links under /dev/char that systemd needs
    (nvidia-ctk system create-dev-char-symlinks --create-all).

References
    https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/troubleshooting.html
    https://github.com/NVIDIA/nvidia-container-toolkit
"""

from __future__ import annotations

from cudadoctor.derive.surroundings import in_container, in_report, in_wsl, nvidia_nodes, on_jetson
from cudadoctor.derive.xids import worst_xid
from cudadoctor.rules.api import ALLOCATION, ERROR, LIKELY, POSSIBLE, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD702",
    name="container-lost-gpu",
    title="A running container has lost its GPU",
    severity=ERROR,
    blame=ALLOCATION,
    follows_from=("CD113",),
    precedence=12,
)

_UNKNOWN_ERROR = 999  # NVML_ERROR_UNKNOWN
_SYMPTOM = "symptom.nvml_unknown_error"
# Somebody tells that the host still has its GPU, or what made the container lose it.
_TOLD = ("symptom.gpu_fine_on_host", "symptom.units_reloaded")
_SELDOM = ("apptainer", "singularity", "charliecloud")  # they make no control group of their own


def judge(case: Case) -> Outcome:
    said = tuple(
        name
        for name, hit in (
            ("driver.nvml_error", case.value("driver.nvml_error") == _UNKNOWN_ERROR),
            ("driver.smi_failure", case.value("driver.smi_failure") == "unknown-error"),
            (_SYMPTOM, case.fact(_SYMPTOM).is_known),
        )
        if hit
    )
    inside = in_container(case)
    if inside and (in_wsl(case) or on_jetson(case) or case.value("system.container") in _SELDOM):
        return case.skipped("this kind of container has no control group that could forget its devices")
    if not said:
        if inside:
            return _quiet(case)
        return case.skipped("not in a container" if not in_report(case) else "NVML has not failed with Unknown Error")
    if not inside:
        return _outside(case, said)
    if not in_report(case) and not nvidia_nodes(case):
        return case.skipped("the container was given no GPU that it could have lost")
    return _failed(case, (*said, "system.container"), LIKELY)


def _quiet(case: Case) -> Outcome:
    if case.fact("driver.nvml_version").is_known or case.fact("driver.smi_version").is_known:
        return case.passed("the container has its GPU", ("driver.nvml_version",))
    if case.fact("device.nodes").is_known and not nvidia_nodes(case):
        return case.skipped("the container was given no GPU that it could have lost")
    if case.fact("driver.nvml_error").is_unknown and case.fact("driver.smi_failure").is_unknown:
        return case.undecided("neither NVML nor nvidia-smi was asked", ("driver.nvml_error", "driver.smi_failure"))
    return case.skipped("NVML has not failed with Unknown Error")


def _outside(case: Case, said: tuple[str, ...]) -> Outcome:
    if not in_report(case):
        return case.skipped("not in a container")
    if worst_xid(case, "lost", "gsp", "hardware", "init", "memory") is not None:
        return case.skipped("the kernel log tells of a GPU that fails")
    if case.fact("system.container").is_absent:
        return case.skipped("not in a container")
    if case.value("torch.cuda_available") is True:
        return case.skipped("CUDA works, and a container that has lost its GPU has no CUDA either")
    # The host's own table in the same text: the failure must be from inside.
    host = tuple(name for name in ("driver.smi_version", "scheduler.kind") if case.fact(name).is_known)
    kubernetes = case.value("scheduler.kind") == "kubernetes"
    works = case.fact("driver.smi_version").is_known
    told = tuple(name for name in _TOLD if case.fact(name).is_known)
    return _failed(case, (*said, *host, *told), LIKELY if works or kubernetes or told else POSSIBLE)


def _failed(case: Case, evidence: tuple[str, ...], certainty: str) -> Outcome:
    effect = {
        name: None for name in evidence if name.startswith(("symptom.", "driver.nvml_error", "driver.smi_failure"))
    }
    return case.failed(
        "the container has lost its GPU: NVML answers Unknown Error, as after a systemctl daemon-reload on the host",
        evidence,
        certainty=certainty,
        fixes=(Remedy("restart-container", {"effect": effect}),),
        not_helping=(
            "another driver or torch build: host and image are as they were",
            "a reboot of the host helps no longer than starting the container again",
        ),
    )
