"""On a Jetson, a torch that was not built for Jetson

What it checks
    Whether the torch on a Jetson is NVIDIA's build for its JetPack, a CPU wheel of the default index, or a CUDA wheel
    for ARM servers.

Why it matters
    A Jetson's driver is part of its system image, and CUDA programs for it are built against JetPack. Wheels of the
    default index are CPU builds for ARM up to some release, and builds for ARM servers after it: torch installs, and
    finds no GPU. That nvidia-smi shows no driver version on a Jetson is normal.

How to fix
    Install the torch that NVIDIA offers for this JetPack and Python, or use a container that was made for it.

References
    https://docs.nvidia.com/deeplearning/frameworks/install-pytorch-jetson-platform/
    https://github.com/dusty-nv/jetson-containers
"""

from __future__ import annotations

from typing import Optional

from cudadoctor.derive.coverage import coverage
from cudadoctor.derive.surroundings import in_report, on_jetson
from cudadoctor.derive.symptoms import symptom
from cudadoctor.derive.wheel import CPU, CUDA, MISSING, UNCLEAR, torch_build
from cudadoctor.rules.api import CERTAIN, ENVIRONMENT, ERROR, LIKELY, POSSIBLE, WARNING, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD314",
    name="jetson-wrong-wheel",
    title="On a Jetson, a torch that was not built for Jetson",
    severity=ERROR,
    blame=ENVIRONMENT,
    precedence=27,
)

_SYMPTOMS = (
    "no_driver_found",
    "torch_not_compiled_with_cuda",
    "no_kernel_image",
    "no_cuda_device",
    "driver_insufficient",
)


def judge(case: Case) -> Outcome:
    if not on_jetson(case):
        return _by_words(case) or case.skipped("not a Jetson")
    build = case.derived(torch_build)
    shown = _sign(case)
    if build.kind == MISSING:
        return case.skipped("torch is not installed")
    if case.fact("torch.cuda").is_unknown and not build.is_own_build:
        told = _by_version(case, shown)
        if told is not None:
            return told
    if build.kind == UNCLEAR:
        return case.undecided("cannot tell which build of torch this Jetson has", ("torch.version", *shown))
    evidence = ("torch.version", "torch.cuda", *shown)
    said = symptom(case, *_SYMPTOMS)
    if said is not None:
        evidence = (*evidence, said.fact)
    if build.kind == CPU:
        return _failed(
            case,
            f"torch {build.version} is a build without CUDA, as of pip's default index: it finds no GPU of a Jetson",
            evidence,
            LIKELY if in_report(case) else CERTAIN,
            None,
        )
    if build.kind != CUDA:
        return case.skipped("no torch built with CUDA")
    if build.is_own_build:
        return case.passed(f"torch {build.version} is no wheel of PyTorch's index, as is right on a Jetson", evidence)
    covered = case.derived(coverage)
    if case.value("torch.cuda_available") or (covered and all(entry.answer == "yes" for entry in covered)):
        return case.passed(f"torch {build.version} has code for this Jetson", evidence)
    fails = said is not None or case.value("torch.cuda_available") is False
    return _failed(
        case,
        f"torch {build.version} is a wheel for ARM servers, and not of NVIDIA's for this Jetson"
        + (": it finds no GPU that it can use" if fails else ""),
        evidence,
        LIKELY if fails else POSSIBLE,
        None if fails else WARNING,
    )


_NAMED = "symptom.unified_memory_named"
_SAID = ("cuda_said_unavailable", "cpu_build_said", "cuda_not_available", *_SYMPTOMS)


def _by_words(case: Case) -> Optional[Outcome]:
    """A report of somebody who writes that it is a Jetson, and that torch finds no GPU there."""
    if not in_report(case) or "jetson" not in str(case.value(_NAMED, {}).get("text")).lower():
        return None
    if case.value("system.arch", "aarch64") != "aarch64" or case.value("system.os", "linux") != "linux":
        return None
    build = case.derived(torch_build)
    said = symptom(case, *_SAID)
    unavailable = case.value("torch.cuda_available") is False
    if build.is_own_build or case.value("torch.cuda_available") or not (unavailable or said is not None):
        return None
    which = f"torch {build.version}" if build.kind in (CPU, CUDA) and build.version else "this torch"
    return _failed(
        case,
        f"{which} is hardly NVIDIA's build for the Jetson: it finds no GPU",
        (_NAMED, *((said.fact,) if said is not None else ("torch.cuda_available",))),
        LIKELY if build.kind in (CPU, CUDA) else POSSIBLE,
        None,
    )


def _by_version(case: Case, shown: tuple[str, ...]) -> Optional[Outcome]:
    """A text that tells torch's version alone: what pip's default index gives an ARM machine in that version."""
    version = str(case.value("torch.version") or "")
    release = case.matrix.torch_release(version) if version and "+" not in version else None
    if release is None or case.value("torch.cuda_available"):
        return None
    evidence = ("torch.version", *shown)
    fails = case.value("torch.cuda_available") is False
    if fails:
        evidence = (*evidence, "torch.cuda_available")
    what = "a build without CUDA" if release.default.get("linux-aarch64") == CPU else "a build for ARM servers"
    return _failed(
        case,
        f"torch {version} is, of pip's default index, {what}" + (": it finds no GPU of a Jetson" if fails else ""),
        evidence,
        LIKELY if fails else POSSIBLE,
        None if fails else WARNING,
    )


def _sign(case: Case) -> tuple[str, ...]:
    """The facts that show that it is a Jetson."""
    named = any("(nvgpu)" in str(entry.get("name")) for entry in case.value("smi.gpus", []))
    for fact in ("system.jetson", "system.kernel_release", "device.nodes"):
        if case.fact(fact).is_known:
            return (fact, "smi.gpus") if named else (fact,)
    return ("smi.gpus",)


def _failed(case: Case, message: str, evidence: tuple[str, ...], certainty: str, severity: Optional[str]) -> Outcome:
    release = case.value("system.jetson")
    jetpack = f"this Jetson Linux ({release})" if release else "your JetPack (cat /etc/nv_tegra_release tells it)"
    python = case.value("python.version")
    shown = f" and Python {'.'.join(python.split('.')[:2])}" if python else ""
    effect = {
        "torch.cuda": "12.6",
        "torch.version": "2.8.0a0+nv",
        "torch.origin": "system",
        "torch.cuda_available": True,
    }
    return case.failed(
        message,
        evidence,
        certainty=certainty,
        severity=severity,
        data={"jetson": release},
        fixes=(
            Remedy(
                "manual",
                {
                    "title": "Install NVIDIA's torch for this Jetson",
                    "text": f"Take the wheel for {jetpack}{shown} from NVIDIA's page (References of this rule): first "
                    "python -m pip uninstall torch torchvision torchaudio, then python -m pip install --no-cache-dir "
                    "FILE_OR_URL of that page. Or start a container that was made for it: jetson-containers run "
                    "$(autotag l4t-pytorch).",
                    "kind": "install",
                    "needs": ["network"],
                    "effect": {**effect, **dict.fromkeys(f"symptom.{name}" for name in _SAID)},
                },
            ),
        ),
        not_helping=(
            "a desktop driver or CUDA toolkit for ARM servers: a Jetson's driver comes with JetPack alone",
            "another index of PyTorch's: its ARM wheels are for servers",
        ),
    )
