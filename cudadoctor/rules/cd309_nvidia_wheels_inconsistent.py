"""The nvidia-* packages are not those that torch requires

What it checks
    Whether the nvidia-* wheels beside torch (cuBLAS, cuDNN, NCCL, ...) are within what torch's metadata requires,
    whether one is missing, and whether a library that torch's own libraries need is in none of its folders.

Why it matters
    A missing one breaks the import ("libcublas.so.12: cannot open shared object file"); another version can crash or
    compute wrongly. It happens when another package (tensorflow, jax, cupy) replaces them, or after an interrupted
    installation.

How to fix
    Install the pinned versions again.

References
    https://pytorch.org/get-started/locally/
"""

from __future__ import annotations

from typing import Any, Optional

from cudadoctor.derive.wheel import CUDA, required_packages, torch_build
from cudadoctor.parse.versions import satisfies
from cudadoctor.rules.api import CERTAIN, ENVIRONMENT, ERROR, LIKELY, WARNING, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD309",
    name="nvidia-wheels-inconsistent",
    title="The nvidia-* packages are not those that torch requires",
    severity=ERROR,
    blame=ENVIRONMENT,
    precedence=35,
)


def judge(case: Case) -> Outcome:
    build = case.derived(torch_build)
    if build.kind != CUDA:
        return case.skipped("no torch built with CUDA")
    missing_libraries = case.value("torch.missing_libraries", [])
    wanted = {
        name: specifier for name, specifier in case.derived(required_packages).items() if name.startswith("nvidia-")
    }
    missing = sorted(name for name in wanted if case.fact(f"package.{name}.version").is_absent)
    if missing_libraries:
        return _broken(case, missing_libraries, {name: wanted[name] for name in missing})
    differing = {
        name: (str(case.value(f"package.{name}.version")), specifier)
        for name, specifier in wanted.items()
        if case.fact(f"package.{name}.version").is_known
        and satisfies(str(case.value(f"package.{name}.version")), specifier) is False
    }
    if differing:
        name, (have, specifier) = sorted(differing.items())[0]
        more = f" (and {len(differing) - 1} more)" if len(differing) > 1 else ""
        return case.failed(
            f"{name} {have} is installed, and torch {build.version} requires {specifier}{more}",
            (f"package.{name}.version", *_owners(case), "torch.version"),
            certainty=LIKELY,
            severity=WARNING,
            data={"differing": {key: list(value) for key, value in differing.items()}},
            fixes=(_bring(case, {key: value[1] for key, value in differing.items()}, {}),),
            not_helping=("a CUDA toolkit or another driver: torch takes these libraries from its own packages",),
        )
    if missing and case.fact("torch.missing_libraries").is_unknown:
        more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
        return case.failed(
            f"{missing[0]} is not installed, and torch {build.version} requires it{more}",
            (f"package.{missing[0]}.version", *_owners(case)),
            certainty=LIKELY,
            data={"missing": missing},
            fixes=(_bring(case, {name: wanted[name] for name in missing}, {}),),
            not_helping=("a CUDA toolkit or another driver: torch takes these libraries from its own packages",),
        )
    if case.fact("package.torch.requires").is_unknown and case.fact("torch.missing_libraries").is_unknown:
        return case.undecided("cannot read what torch requires", ("package.torch.requires", "torch.missing_libraries"))
    return case.passed("torch has the libraries that it needs", (*_owners(case), "torch.missing_libraries"))


def _owners(case: Case) -> tuple[str, ...]:
    """The facts that hold torch's requirements."""
    return tuple(
        f"package.{owner}.requires"
        for owner in ("torch", "cuda-toolkit")
        if owner == "torch" or case.value(f"package.{owner}.requires")
    )


def _bring(case: Case, wanted: dict[str, str], effect: dict[str, Any]) -> Remedy:
    """The packages in the versions that torch wants: by exact pins where it pins them, else by a command with its own
    specifiers."""
    pins = {name: _exact(specifier) for name, specifier in wanted.items()}
    exact = {name: version for name, version in pins.items() if version is not None}
    if len(exact) == len(wanted):
        return Remedy("reinstall-package", {"pins": exact, "effect": effect})
    requirements = " ".join(f'"{name}{specifier}"' for name, specifier in sorted(wanted.items()))
    python = case.value("python.executable", "python")
    return Remedy(
        "manual",
        {
            "title": "Install the NVIDIA packages that torch requires",
            "text": f"{python} -m pip install --force-reinstall --no-deps {requirements}",
            "kind": "install",
            "needs": ["network"],
            "effect": {
                **{f"package.{name}.version": _least(specifier) for name, specifier in wanted.items()},
                **effect,
            },
        },
    )


def _exact(specifier: str) -> Optional[str]:
    if specifier.startswith("==") and "," not in specifier and "*" not in specifier:
        return specifier[2:]
    return None


def _least(specifier: str) -> str:
    return specifier.partition(",")[0].lstrip("<>=!~").replace(".*", "")


def _broken(case: Case, libraries: list[str], missing: dict[str, str]) -> Outcome:
    build = case.derived(torch_build)
    first = libraries[0]
    more = f" (and {len(libraries) - 1} more)" if len(libraries) > 1 else ""
    effect: dict[str, Any] = {"torch.missing_libraries": []}
    if missing:
        remedy = _bring(case, missing, effect)
    elif build.is_own_build or build.is_from_conda:
        # An index's wheel in its place would be another torch, which nobody asked for.
        remedy = Remedy(
            "manual",
            {
                "title": f"Bring back {first}",
                "text": "This torch is no wheel of PyTorch's index and takes its libraries from where its maker put "
                "them: install it again the way it came, or put the folder that holds the library into "
                "LD_LIBRARY_PATH.",
                "kind": "install",
                "effect": effect,
            },
        )
    else:
        remedy = Remedy("install-torch", {"effect": effect})
    return case.failed(
        f"torch {build.version} cannot be imported: {first} is nowhere that it looks{more}",
        ("torch.missing_libraries", *_owners(case)),
        certainty=CERTAIN if missing else LIKELY,
        data={"libraries": libraries, "missing": sorted(missing)},
        fixes=(remedy,),
        not_helping=("another driver: the library belongs to torch's own packages",),
    )
