"""Machines without an NVIDIA GPU, boards whose torch is not PyTorch's, and drivers whose GPU nobody named."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional

from cudadoctor.matrix import Matrix
from cudadoctor.resolve.blockers import nearest_python
from cudadoctor.resolve.drivers import family, product
from cudadoctor.resolve.judge import judge_all
from cudadoctor.resolve.need import (
    BY_GLIBC,
    BY_GPU,
    BY_PLATFORM,
    BY_PYTHON,
    CPU,
    NONE,
    Blocker,
    Gpu,
    Need,
    Objection,
    Resolution,
)
from cudadoctor.resolve.pick import is_installed, is_more_asked, pick
from cudadoctor.resolve.spell import spell, typical

ARM = "aarch64"


def for_cpu(need: Need, matrix: Matrix) -> Resolution:
    """The CPU index, spelled out: a plain `pip install torch` is a CUDA build on Linux."""
    plain = need._replace(gpus=(), variant=None)
    installed = need.installed
    if installed is not None and not installed.broken and not (need.variant or need.torch or is_more_asked(need)):
        # A CUDA build runs on the CPU as well: it is bigger than need be, and no fault.
        return Resolution(None, nothing_to_do=True, reasons=("torch is installed, and there is no GPU for it to use",))
    judged = judge_all(plain, matrix, None, cuda=False)
    best = pick(judged, plain)
    if best is None:
        nearest = typical(judged)
        objections = nearest.hard if nearest is not None else ()
        why = tuple(dict.fromkeys(o.reason for o in objections)) or (f"PyTorch has no wheels for {need.platform}",)
        return Resolution(None, (), _cpu_blockers(plain, matrix), why, objections=objections)
    choice = spell(best, plain, judged)
    why_cpu = "no NVIDIA GPU: the CPU build"
    if need.variant == CPU and need.gpu_state != NONE:
        why_cpu = "the CPU build was asked for"
    if best.release.default.get(need.platform, CPU) != CPU:
        why_cpu += ", which a plain `pip install torch` is not on this platform"
    return Resolution(
        choice._replace(reasons=(why_cpu, *choice.reasons)),
        nothing_to_do=is_installed(best, plain) and not is_more_asked(need),
    )


def _cpu_blockers(need: Need, matrix: Matrix) -> tuple[Blocker, ...]:
    if need.libc == "musl" and need.platform.startswith("linux"):
        changed = need._replace(libc="glibc", glibc=None)
        found = pick(judge_all(changed, matrix, None, cuda=False), changed)
        if found is not None:
            text = f"a system with glibc {found.build.glibc} or newer in place of musl"
            return (Blocker(BY_PLATFORM, found.build.glibc, text, spell(found, changed)),)
    if need.python is not None:
        changed = need._replace(python=None, free_threaded=False, python_bits=64, implementation="CPython")
        found = pick(judge_all(changed, matrix, None, cuda=False), changed)
        if found is not None:
            python = nearest_python(need.python, found.build.pythons)
            return (Blocker(BY_PYTHON, python, f"Python {python}", spell(found, changed)),)
    if need.glibc is not None:
        changed = need._replace(glibc=None)
        found = pick(judge_all(changed, matrix, None, cuda=False), changed)
        if found is not None:
            text = f"a system with glibc {found.build.glibc} or newer"
            return (Blocker(BY_GLIBC, found.build.glibc, text, spell(found, changed)),)
    return ()


# -- boards ---------------------------------------------------------------------------------------------------------


def is_embedded(need: Need, matrix: Matrix) -> bool:
    """Whether the GPU is one of a Jetson, whose driver is part of its system."""
    rows = [family(gpu.capability, matrix) for gpu in need.gpus]
    return need.jetson or any(row is not None and row.tegra for row in rows)


def embedded(need: Need, matrix: Matrix) -> Optional[Resolution]:
    """Boards: what is not for this processor, and Jetsons, whose wheels are not on PyTorch's index."""
    if not need.platform.endswith(ARM) and are_on_arm(need.gpus, matrix):
        reason = f"{need.gpus[0].label} has an ARM processor beside it: its wheels are for {ARM}, not {need.platform}"
        return Resolution(None, reasons=(reason,), objections=(Objection(BY_PLATFORM, reason),))
    if not is_embedded(need, matrix):
        return None
    # Thor takes the server builds: some build has its very own code.
    own = frozenset((gpu.capability or "").replace(".", "") for gpu in need.gpus)
    return None if own <= _targets(need.platform, matrix) else on_jetson()


def are_on_arm(gpus: Sequence[Gpu], matrix: Matrix) -> bool:
    """Whether these are GPUs that come beside ARM processors only."""
    return bool(gpus) and all(_is_arm_only(gpu, matrix) for gpu in gpus)


def _is_arm_only(gpu: Gpu, matrix: Matrix) -> bool:
    """Whether the GPU shares its chip or its board with an ARM processor, as in every Jetson, GB10 and GH200."""
    rows = product(gpu.label, matrix).rows
    return bool(rows) and all(row.arm_only for row in rows)


def _targets(platform: str, matrix: Matrix) -> frozenset[str]:
    """Every compiled target that some build of the platform has."""

    def make() -> frozenset[str]:
        return frozenset(
            target for release in matrix.torch_releases() for build in release.builds(platform) for target in build.sass
        )

    return matrix.once(f"targets {platform}", make)


def on_jetson() -> Resolution:
    reason = (
        "Jetson: its GPU driver comes with JetPack, and torch for it comes from NVIDIA's index for that JetPack, "
        "not from PyTorch's"
    )
    return Resolution(None, reasons=(reason,), objections=(Objection(BY_GPU, reason),))
