"""On ARM, the default index gave a CPU wheel

What it checks
    Whether an ARM (aarch64) machine with an NVIDIA GPU has a CPU build of torch from a release whose default wheel for
    ARM was CPU only.

Why it matters
    On a GH200, GB10 or another ARM server, pip install torch gave a build without CUDA for a long time, while the same
    command on x86_64 gave one with it.

How to fix
    Install from the index of a CUDA variant, or a release whose default ARM wheel has CUDA.

References
    https://pytorch.org/get-started/locally/
"""

from __future__ import annotations

from cudadoctor.derive.gpus import NONE, PRESENT, presence
from cudadoctor.derive.surroundings import on_jetson
from cudadoctor.derive.wheel import CPU, CUDA, torch_build
from cudadoctor.rules.api import ENVIRONMENT, ERROR, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD313",
    name="arm-cpu-wheel",
    title="On ARM, the default index gave a CPU wheel",
    severity=ERROR,
    blame=ENVIRONMENT,
    precedence=28,
)


def judge(case: Case) -> Outcome:
    arch = case.fact("system.arch")
    if arch.is_unknown:
        return case.undecided(f"cannot tell the architecture: {arch.reason}", ("system.arch",))
    if arch.value != "aarch64" or case.value("system.os") != "linux":
        return case.skipped("not an ARM machine with Linux")
    if on_jetson(case):
        return case.skipped("a Jetson takes its torch from NVIDIA's JetPack feeds")
    build = case.derived(torch_build)
    if build.kind == CUDA:
        return case.passed(f"torch {build.version} is a CUDA build for ARM", ("torch.version", "torch.cuda"))
    if build.kind != CPU or build.release is None:
        return case.skipped("no CPU build of torch")
    seen = case.derived(presence)
    if seen.state == NONE:
        return case.skipped("a CPU build suits a machine without an NVIDIA GPU")
    if seen.state != PRESENT:
        return case.undecided("torch is a CPU build; whether there is a GPU is not known", seen.evidence)
    release = case.matrix.torch_release(build.release)
    default = release.default.get("linux-aarch64") if release is not None else None
    if default != CPU:
        return case.skipped("this release's default wheel for ARM is no CPU build")
    return case.failed(
        f"torch {build.version} is a CPU build: for ARM, the default index had no other at that release",
        ("torch.version", "torch.cuda", "system.arch", *seen.evidence),
        fixes=(Remedy("install-torch", {}),),
        not_helping=("a CUDA toolkit or a driver update: a CPU build never looks for a GPU",),
    )
