"""torch came from conda and from pip into one environment

What it checks
    Whether one environment holds torch, or torch and its companions, from both conda and pip.

Why it matters
    Each installer overwrites and removes files of the other without knowing. What is then imported is a mixture of two
    builds, with libraries of two CUDA releases side by side.

How to fix
    Remove torch with both installers until neither finds it, then install it with one. A fresh environment is the
    surest. conda's CUDA libraries beside pip's torch: remove those.

References
    https://docs.conda.io/projects/conda/en/latest/user-guide/tasks/manage-environments.html
"""

from __future__ import annotations

from typing import Optional

from cudadoctor.derive.symptoms import symptom
from cudadoctor.matrix import COMPANIONS
from cudadoctor.rules.api import CERTAIN, ENVIRONMENT, ERROR, LIKELY, WARNING, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD310",
    name="mixed-conda-and-pip",
    title="torch came from conda and from pip into one environment",
    severity=WARNING,
    blame=ENVIRONMENT,
    precedence=41,
)

# Where pip's wheels of NVIDIA's libraries lie; conda has none there.
_OF_PIP = "-packages/nvidia/"
_PIP_LIKE = ("pip", "uv", "poetry", "pdm")


def judge(case: Case) -> Outcome:
    if case.fact("torch.version").is_absent:
        return case.skipped("torch is not installed")
    environment = case.fact("python.environment")
    if not environment.is_known:
        return case.undecided("cannot tell what kind of environment this is", ("python.environment",))
    if environment.get() != "conda":
        return case.passed("not a conda environment", ("python.environment",))
    installer = case.value("package.torch.installer")
    if installer in _PIP_LIKE and case.fact("package.torch.conda_build").is_known:
        return _failed(
            case,
            f"torch was installed by conda and by {installer} into the same environment",
            ("package.torch.installer", "package.torch.conda_build"),
            CERTAIN,
            {"package.torch.conda_build": None, "package.torch.installer": "pip"},
        )
    symbol = symptom(case, "library_symbol_missing")
    came = _came_by(case, "torch")
    told_by = "package.torch.installer"
    if came is None and symbol is not None and _OF_PIP in symbol.text.replace("\\", "/"):
        came, told_by = "pip", symbol.fact
    for name in COMPANIONS:
        other = _came_by(case, name)
        if came and other and (came in _PIP_LIKE) != (other in _PIP_LIKE):
            return _failed(
                case,
                f"torch was installed by {came} and {name} by {other}",
                ("package.torch.installer", f"package.{name}.installer"),
                LIKELY,
                {f"package.{name}.installer": came, f"package.{name}.conda_build": None},
            )
    beside = case.value("package.cudatoolkit.version") or case.value("package.cuda-cudart.version")
    if came in _PIP_LIKE and beside and symbol is not None:
        # Side by side they do no harm as a rule: only an error makes it a suspect.
        name = "cudatoolkit" if case.value("package.cudatoolkit.version") else "cuda-cudart"
        return case.failed(
            f"conda's CUDA libraries ({name} {beside}) lie beside those of torch from {came}, and a symbol is missing",
            tuple(dict.fromkeys((told_by, f"package.{name}.version", symbol.fact))),
            certainty=LIKELY,
            severity=ERROR,
            fixes=(Remedy("remove-conda-package", {"package": name, "effect": {symbol.fact: None}}),),
            not_helping=("installing torch again into this environment: conda's libraries stay beside it",),
        )
    if came is None:
        return case.undecided("cannot tell which installer brought torch", ("package.torch.installer",))
    return case.passed("torch and its companions came from one installer", ("package.torch.installer",))


def _came_by(case: Case, name: str) -> Optional[str]:
    """The installer of a package, None where nothing tells. Packages of conda's that have no INSTALLER file are known
    by conda's own record."""
    installer = case.value(f"package.{name}.installer")
    if installer:
        return str(installer)
    return "conda" if case.fact(f"package.{name}.conda_build").is_known else None


def _failed(
    case: Case,
    message: str,
    evidence: tuple[str, ...],
    certainty: str,
    effect: dict[str, object],
) -> Outcome:
    return case.failed(
        message,
        evidence,
        certainty=certainty,
        fixes=(
            Remedy(
                "manual",
                {
                    "title": "Make a fresh environment with one installer",
                    "text": "Create a new conda environment with Python alone and install torch into it with pip, as "
                    "cudadoctor fix prints; the conda channel for torch is no longer updated.",
                    "kind": "install",
                    "effect": effect,
                },
            ),
        ),
        not_helping=("installing torch again into this environment: the other installer's files stay",),
    )
