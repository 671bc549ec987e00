"""How a companion of torch is mended: what CD306 (version) and CD307 (build) have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cudadoctor.derive.wheel import UNTOLD, torch_build
from cudadoctor.rules.api import Case, Remedy


def remedy_for(case: Case, name: str, effect: Mapping[str, Any]) -> Remedy:
    """The companion that belongs to the installed torch. Beside a torch that the matrix does not know (a nightly, a
    build of somebody's own, a later release) nobody here knows which that is, and another torch is no cure."""
    build = case.derived(torch_build)
    if build.row is not None:
        return Remedy("reinstall-companions", {"packages": [name], "effect": dict(effect)})
    if build.version is None or build.version == UNTOLD:
        return Remedy(
            "manual",
            {
                "title": f"Install torch and {name} anew, in one command",
                "text": f"First: python -m pip uninstall -y torch {name}\nthen both in one command and from one index, "
                f"that of a CUDA variant, so that they are of one build: python -m pip install torch {name} "
                "--index-url https://download.pytorch.org/whl/cuXXX, with the variant that `cudadoctor fix --print` "
                "gives for the GPU and driver.",
                "kind": "install",
                "effect": {f"package.{name}.version": None, **effect},
            },
        )
    return Remedy(
        "manual",
        {
            "title": f"Install the {name} that belongs to torch {build.version}",
            "text": "Take both from one place and in one command: the index, the night or the image that this torch "
            f"came from. cudadoctor does not know which {name} belongs to torch {build.version}.",
            "kind": "install",
            "effect": {f"package.{name}.version": None, **effect},
        },
    )
