"""A companion of torch is of another build

What it checks
    Whether torchvision and torchaudio were built for the same thing as torch: CPU beside CUDA, or another CUDA major.

Why it matters
    A CPU torchvision beside a CUDA torch has no nms on the GPU ("Could not run 'torchvision::nms' with arguments from
    the 'CUDA' backend"); torchvision of another CUDA major refuses to load its extension.

How to fix
    Install the companion from the index that torch came from, with its local version (torchvision==0.21.0+cu126): pip
    takes an installed 0.21.0+cpu for a good 0.21.0.

References
    https://pytorch.org/get-started/previous-versions/
"""

from __future__ import annotations

import re
from typing import Optional

from cudadoctor.derive.wheel import CPU, CUDA, torch_build
from cudadoctor.matrix import COMPANIONS
from cudadoctor.model.pattern import pattern
from cudadoctor.parse.versions import cuda_from_tag
from cudadoctor.rules.api import CERTAIN, ENVIRONMENT, ERROR, LIKELY, Case, Outcome, Rule
from cudadoctor.rules.companions import remedy_for

RULE = Rule(
    id="CD307",
    name="companion-build-mismatch",
    title="A companion of torch is of another build",
    severity=ERROR,
    blame=ENVIRONMENT,
    follows_from=("CD302", "CD306"),
    precedence=38,
)


def judge(case: Case) -> Outcome:
    build = case.derived(torch_build)
    said = _by_words(case)
    if build.kind not in (CUDA, CPU):
        return said or case.skipped("torch is not installed, or its build is not known")
    installed = [name for name in COMPANIONS if case.fact(f"package.{name}.version").is_known]
    if not installed:
        return said or case.skipped("no companions are installed")
    undecided = []
    for name in installed:
        version: str = case.value(f"package.{name}.version")
        kind, cuda, certainty, fact = _build_of(case, name, version)
        if kind is None:
            undecided.append(name)
            continue
        evidence = ("torch.version", "torch.cuda", *dict.fromkeys((f"package.{name}.version", fact)))
        if kind != build.kind:
            words = {CPU: "a CPU build", CUDA: f"built for CUDA {cuda}" if cuda else "a CUDA build"}
            other = "a CPU build" if build.kind == CPU else f"built for CUDA {build.cuda}"
            message = f"{name} {version} is {words[kind]} and torch {build.version} is {other}"
            return _failed(case, name, message, certainty, evidence)
        if kind == CUDA and cuda and build.cuda and cuda.partition(".")[0] != build.cuda.partition(".")[0]:
            message = f"{name} {version} is built for CUDA {cuda}, and torch {build.version} for CUDA {build.cuda}"
            return _failed(case, name, message, certainty, evidence)
    facts = tuple(f"package.{name}.version" for name in installed)
    if said is not None and undecided:
        return said
    if len(undecided) == len(installed):
        if build.kind == CPU or build.is_own_build or build.is_from_conda:
            return case.skipped(f"{undecided[0]} does not say how it was built")
        return case.undecided(f"cannot tell how {undecided[0]} was built", facts)
    return case.passed("torch's companions are of the same build", ("torch.version", *facts))


_NO_BACKEND = "symptom.companion_operator_missing"
_DIFFERS = "symptom.companion_cuda_differs"


def _by_words(case: Case) -> Optional[Outcome]:
    """torchvision says that it has no code for CUDA, or was compiled for another one."""
    text = str(case.value(_NO_BACKEND, {}).get("text", ""))
    if "backend" in text.lower() and "torchvision" in text:
        return case.failed(
            "torchvision is a CPU build: its operators have no code for CUDA",
            (_NO_BACKEND,),
            certainty=LIKELY,
            data={"package": "torchvision"},
            fixes=(remedy_for(case, "torchvision", {_NO_BACKEND: None}),),
            not_helping=("another torch alone: it is torchvision that lacks CUDA",),
        )
    told = case.value(_DIFFERS)
    if told is not None:
        name = str(told.get("package") or "torchvision").lower()
        both = f" ({told['cuda']} and {told['torch_cuda']})" if told.get("cuda") and told.get("torch_cuda") else ""
        return case.failed(
            f"{name} and torch were built for different releases of CUDA{both}",
            (_DIFFERS,),
            data={"package": name},
            fixes=(remedy_for(case, name if name in COMPANIONS else "torchvision", {_DIFFERS: None}),),
        )
    return None


# conda's build strings: py310_cu121, cuda126py311hc2d9d9e_0, py310_cpu, cpu_py311h1234567_0.
_CONDA_CUDA = pattern(r"(?:^|_)cu(?:da)?_?([0-9]{2,3})(?![0-9])", re.ASCII)
_CONDA_CPU = pattern(r"(?:^|_)cpu(?![a-z])", re.ASCII)


def _build_of(case: Case, name: str, version: str) -> tuple[Optional[str], Optional[str], str, str]:
    """Kind of build, its CUDA, how sure that is, and the fact that says so."""
    local = version.partition("+")[2]
    built_for = case.fact(f"package.{name}.built_for_cuda")
    if built_for.is_known:
        return CUDA, str(built_for.get()), CERTAIN, f"package.{name}.built_for_cuda"
    fact = f"package.{name}.version"
    if local == "cpu":
        return CPU, None, CERTAIN, fact
    if cuda_from_tag(local) is not None:
        return CUDA, cuda_from_tag(local), CERTAIN, fact
    conda = f"package.{name}.conda_build"
    text = str(case.value(conda, ""))
    number = _CONDA_CUDA.search(text)
    if number is not None:
        return CUDA, f"{number.group(1)[:-1]}.{number.group(1)[-1]}", CERTAIN, conda
    if _CONDA_CPU.search(text):
        return CPU, None, CERTAIN, conda
    if built_for.is_absent:
        # Its own files name no CUDA, where a CUDA build's do.
        return CPU, None, LIKELY, f"package.{name}.built_for_cuda"
    return None, None, LIKELY, fact


def _failed(case: Case, name: str, message: str, certainty: str, evidence: tuple[str, ...]) -> Outcome:
    return case.failed(
        message,
        evidence,
        certainty=certainty,
        data={"package": name},
        fixes=(remedy_for(case, name, {f"package.{name}.conda_build": None}),),
        not_helping=(f"pip install -U {name} from the default index: it may bring yet another build",),
    )
