"""Another cuDNN is loaded than the program was built with

What it checks
    Whether a program said that the cuDNN that it loaded is older than the one it was built with, or that cuDNN's parts
    are of different versions; and whether two cuDNN packages lie in one environment, where they share their files.

Why it matters
    cuDNN 9 is several libraries that must be of one release. Where another package, LD_LIBRARY_PATH or a conda
    environment puts an older one first, convolutions fail with CUDNN_STATUS_NOT_INITIALIZED, a version error, or a
    missing symbol.

How to fix
    Take the foreign folder out of LD_LIBRARY_PATH, and install the one cuDNN package that torch (or the program)
    requires anew. torch's wheels bring their own: a cuDNN of the system is not needed.

References
    https://docs.nvidia.com/deeplearning/cudnn/backend/latest/reference/support-matrix.html
    https://www.tensorflow.org/install/source#gpu
"""

from __future__ import annotations

import re
from typing import Any, Optional

from cudadoctor.derive.libraries import not_found
from cudadoctor.derive.symptoms import Symptom, symptom
from cudadoctor.derive.wheel import CUDA, required_packages, torch_build
from cudadoctor.matrix import numbers
from cudadoctor.rules.api import (
    CERTAIN,
    ENVIRONMENT,
    ERROR,
    LIKELY,
    POSSIBLE,
    WARNING,
    Case,
    Fix,
    Outcome,
    Remedy,
    Rule,
)

RULE = Rule(
    id="CD209",
    name="cudnn-conflict",
    title="Another cuDNN is loaded than the program was built with",
    severity=ERROR,
    blame=ENVIRONMENT,
    follows_from=("CD206", "CD309"),
    precedence=35,
)

_PACKAGES = ("nvidia-cudnn-cu11", "nvidia-cudnn-cu12", "nvidia-cudnn-cu13")


def judge(case: Case) -> Outcome:
    said = symptom(case, "cudnn_version_differs", "jax_cudnn_outdated")
    if said is not None:
        return _versions_differ(case, said)
    installed = [name for name in _PACKAGES if case.fact(f"package.{name}.version").is_known]
    if any(entry.component == "cuDNN" for entry in case.derived(not_found)):
        return case.skipped("cuDNN was not found at all, which is another matter")
    symbol = symptom(case, "library_symbol_missing")
    if symbol is not None and "cudnn" in (symbol.get("symbol") + symbol.get("file") + symbol.text).lower():
        return _failed(
            case,
            "cuDNN's libraries are not of one release: a symbol is missing in one of them",
            (symbol.fact, *(f"package.{name}.version" for name in installed)),
            LIKELY,
            {symbol.fact: None},
            installed,
        )
    if len(installed) > 1:
        return _two_packages(case, installed)
    silent = symptom(case, "cudnn_not_initialized")
    if silent is not None:
        return case.undecided(
            "cuDNN could not start: for want of GPU memory, or because its libraries are mixed", (silent.fact,)
        )
    if installed:
        version = case.value(f"package.{installed[0]}.version")
        return case.passed(f"one cuDNN: {installed[0]} {version}", (f"package.{installed[0]}.version",))
    return case.skipped("no cuDNN package, and no word of a conflict")


def _versions_differ(case: Case, said: Symptom) -> Outcome:
    # JAX names the least that it takes, too, where that is another than the one that it was built with.
    loaded, built = _version(said.get("loaded")), _version(said.get("minimum") or said.get("built"))
    installed = [name for name in _PACKAGES if case.fact(f"package.{name}.version").is_known]
    asker = "jax" if "jax" in said.fact + said.text.lower() else "the program"
    if loaded and built and said.get("minimum"):
        message = f"cuDNN {loaded} is loaded, and jax takes {built} or newer"
    elif loaded and built:
        message = f"cuDNN {loaded} is loaded, and {asker} was built with {built}"
    elif asker == "jax":
        message = "the cuDNN that jax loads is older than the one that it was built with"
    else:
        message = "cuDNN's libraries are not of one release, or not of the one that the program was built with"
    certainty = CERTAIN if loaded and built else LIKELY
    effect: dict[str, Any] = {said.fact: None}
    return _failed(case, message, (said.fact,), certainty, effect, installed, built)


def _version(text: str) -> str:
    """ "9.1.0" of "9.1.0", of "9.1.0.", of torch's "(9, 1, 0)", and of CUDNN_VERSION: 90100, up to cuDNN 8 (and in some
    programs later) with one digit less."""
    plain = re.fullmatch(r"\d{4,6}", text.strip())
    if plain:
        number = int(plain.group())
        major = number // (10000 if number >= 10000 else 1000)
        return f"{major}.{number // 100 % (100 if number >= 10000 else 10)}.{number % 100}"
    return ".".join(re.findall(r"\d+", text)[:3])


def _failed(
    case: Case,
    message: str,
    evidence: tuple[str, ...],
    certainty: str,
    effect: dict[str, Any],
    installed: list[str],
    built: str = "",
) -> Outcome:
    path = str(case.value("env.LD_LIBRARY_PATH") or "")
    if path:
        evidence = (*evidence, "env.LD_LIBRARY_PATH")
    return case.failed(
        message,
        evidence,
        certainty=certainty,
        data={"built_with": built or None},
        fixes=_fixes(case, effect, installed, built, path),
        not_helping=(
            "a newer driver: cuDNN does not come with it",
            "a cuDNN installed into the system beside torch's own: it is one more to be mixed up",
        ),
    )


def _fixes(case: Case, effect: dict[str, Any], installed: list[str], built: str, path: str) -> tuple[Fix, ...]:
    build = case.derived(torch_build)
    folders = [folder for folder in path.split(":") if "cuda" in folder.lower() or "cudnn" in folder.lower()]
    fixes: list[Fix] = []
    if folders:
        fixes.append(Remedy("change-variable", {"name": "LD_LIBRARY_PATH", "without": folders, "effect": effect}))
    pins = {
        name: specifier[2:]
        for name, specifier in case.derived(required_packages).items()
        if name in _PACKAGES and specifier.startswith("==") and "*" not in specifier
    }
    if build.kind == CUDA and pins:
        others = [name for name in installed if name not in pins]
        if others:
            fixes.append(Remedy("uninstall-package", {"packages": others}))
        return (*fixes, Remedy("reinstall-package", {"pins": pins, "effect": effect}))
    requirement = _requirement(case, built)
    if requirement is not None and not folders:
        fixes.append(Remedy("install-libraries", {"requirements": [requirement], "effect": effect}))
    if not fixes:
        fixes.append(_by_hand(case, built, effect))
    return tuple(fixes)


def _requirement(case: Case, built: str) -> Optional[str]:
    """The package with a cuDNN of that release or newer, of the same major; None where no wheel has it."""
    parts = numbers(built) or ()
    if len(parts) < 2:
        return None
    library = case.matrix.library(f"libcudnn.so.{parts[0]}")
    cuda = case.derived(torch_build).cuda
    names = library.packages if library is not None else ()
    if cuda is not None:
        names = tuple(name for name in names if name.endswith("-cu" + cuda.partition(".")[0]))
    here = [name for name in names if case.fact(f"package.{name}.version").is_known]
    chosen = here or (list(names) if len(names) == 1 else [])
    return f"{chosen[0]}>={parts[0]}.{parts[1]},<{parts[0] + 1}" if chosen else None


def _by_hand(case: Case, built: str, effect: dict[str, Any]) -> Remedy:
    wanted = f"cuDNN {built} or a newer one of the same major" if built else "the cuDNN that the program was built with"
    versions = ".".join(built.split(".")[:2])
    conda = f"conda install -c conda-forge cudnn={versions}; " if built else ""
    return Remedy(
        "manual",
        {
            "title": f"Load {wanted}",
            "text": f"See what is loaded (ldconfig -p | grep cudnn, echo $LD_LIBRARY_PATH); put {wanted} in its place: "
            f"{conda}with pip the package nvidia-cudnn-cu11, -cu12 or -cu13 of the program's CUDA. Take older cuDNN "
            "folders out of LD_LIBRARY_PATH.",
            "kind": "install",
            "effect": effect,
        },
    )


def _two_packages(case: Case, installed: list[str]) -> Outcome:
    versions = {name: str(case.value(f"package.{name}.version")) for name in installed}
    wanted = [name for name in installed if name in case.derived(required_packages)]
    differ = len({version.partition(".")[0] for version in versions.values()}) > 1
    shown = " and ".join(f"{name} {version}" for name, version in versions.items())
    others = [name for name in installed if name not in wanted]
    fixes: tuple[Fix, ...] = ()
    if wanted and others:
        pins = {name: versions[name] for name in wanted}
        fixes = (Remedy("uninstall-package", {"packages": others}), Remedy("reinstall-package", {"pins": pins}))
    return case.failed(
        f"{shown} are installed together and write the same files: whichever came last is loaded",
        tuple(f"package.{name}.version" for name in installed),
        severity=WARNING,
        certainty=LIKELY if differ else POSSIBLE,
        data={"packages": versions},
        fixes=fixes,
        not_helping=("a newer driver: cuDNN does not come with it",),
    )
