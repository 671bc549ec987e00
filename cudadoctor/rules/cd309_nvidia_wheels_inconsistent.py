"""The nvidia-* packages are not those that torch requires

What it checks
    Whether the nvidia-* wheels beside torch (cuBLAS, cuDNN, NCCL, ...) have the versions that torch's metadata pins,
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

from cudadoctor.derive.wheel import CUDA, torch_build
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
    pins = _pins(case)
    missing = {name: pin for name, pin in pins.items() if case.fact(f"package.{name}.version").is_absent}
    if missing_libraries:
        return _broken(case, build.version, missing_libraries, missing)
    differing = {
        name: (case.value(f"package.{name}.version"), pin)
        for name, pin in pins.items()
        if case.fact(f"package.{name}.version").is_known and case.value(f"package.{name}.version") != pin
    }
    if differing:
        name, (have, wanted) = sorted(differing.items())[0]
        more = f" (and {len(differing) - 1} more)" if len(differing) > 1 else ""
        return case.failed(
            f"{name} {have} is installed, and torch {build.version} requires {wanted}{more}",
            (f"package.{name}.version", "package.torch.requires", "torch.version"),
            certainty=LIKELY,
            severity=WARNING,
            data={"differing": {key: list(value) for key, value in differing.items()}},
            fixes=(Remedy("reinstall-package", {"pins": {key: value[1] for key, value in differing.items()}}),),
        )
    if missing and case.fact("torch.missing_libraries").is_unknown:
        name = sorted(missing)[0]
        return case.failed(
            f"{name} is not installed, and torch {build.version} requires it",
            (f"package.{name}.version", "package.torch.requires"),
            certainty=LIKELY,
            data={"missing": sorted(missing)},
            fixes=(Remedy("reinstall-package", {"pins": missing}),),
        )
    if case.fact("package.torch.requires").is_unknown and case.fact("torch.missing_libraries").is_unknown:
        return case.undecided("cannot read what torch requires", ("package.torch.requires", "torch.missing_libraries"))
    return case.passed("torch has the libraries that it needs", ("package.torch.requires", "torch.missing_libraries"))


def _pins(case: Case) -> dict[str, str]:
    """The nvidia-* packages that torch's metadata pins exactly: name to version."""
    pins = {}
    for requirement in case.value("package.torch.requires", []):
        text = requirement.partition(";")[0].replace(" ", "")
        name, found, version = text.partition("==")
        if found and name.startswith("nvidia-") and "*" not in version and "," not in version:
            pins[name.partition("[")[0]] = version
    return pins


def _broken(case: Case, torch: str | None, libraries: list[str], missing: dict[str, str]) -> Outcome:
    first = libraries[0]
    more = f" (and {len(libraries) - 1} more)" if len(libraries) > 1 else ""
    remedy = Remedy("install-torch", {"effect": {"torch.missing_libraries": []}})
    if missing:
        remedy = Remedy("reinstall-package", {"pins": missing, "effect": {"torch.missing_libraries": []}})
    return case.failed(
        f"torch {torch} cannot be imported: {first} is nowhere that it looks{more}",
        ("torch.missing_libraries", "package.torch.requires"),
        certainty=CERTAIN if missing else LIKELY,
        data={"libraries": libraries, "missing": sorted(missing)},
        fixes=(remedy,),
        not_helping=("another driver: the library belongs to torch's own packages",),
    )
