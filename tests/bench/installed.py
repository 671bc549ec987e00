"""What an installer leaves in an environment: a tiny torch, and tiny packages for all that it requires."""

from __future__ import annotations

from packaging.requirements import Requirement

from .index import _version_for
from .wheels import Wheel, requirements_of, tiny_wheel, torch_wheel


def torch_as_installed(torch: str, python: str) -> list[Wheel]:
    """A torch ("2.9.1+cu128") with all that it requires, as pip would have left it."""
    version, _, variant = torch.partition("+")
    wheel = torch_wheel(version, variant, python=python)
    beside = []
    for text in requirements_of(wheel):
        requirement = Requirement(text)
        beside.append(tiny_wheel(requirement.name, _version_for(requirement), extras=sorted(requirement.extras)))
    return [wheel, *beside]
