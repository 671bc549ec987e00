"""conda's solver takes this machine for another one

What it checks
    Which CUDA conda's solver takes the machine to have (its virtual package __cuda): what conda info shows, what
    CONDA_OVERRIDE_CUDA says, and what the solver complained of, against the CUDA that the driver serves.

Why it matters
    __cuda is what the driver shows where conda runs. On a login node, in a container build or in CI there is none:
    conda then installs the CPU build without a word, or says "nothing provides __cuda". An override that promises more
    than the driver serves gives a build that cannot run.

How to fix
    Solve on a node with a GPU, or tell conda what that node has: CONDA_OVERRIDE_CUDA=12.8 conda install ... (the
    "CUDA Version" of nvidia-smi there). An override that is set for good is taken out again.

References
    https://docs.conda.io/projects/conda/en/stable/user-guide/tasks/manage-virtual.html
    https://conda-forge.org/docs/user/cuda/
"""

from __future__ import annotations

from typing import Optional

from cudadoctor.derive.driver import cuda_ceiling
from cudadoctor.derive.surroundings import in_report
from cudadoctor.derive.wheel import CPU, torch_build
from cudadoctor.matrix import numbers
from cudadoctor.rules.api import CERTAIN, ENVIRONMENT, ERROR, LIKELY, POSSIBLE, WARNING, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD408",
    name="conda-virtual-cuda",
    title="conda's solver takes this machine for another one",
    severity=WARNING,
    blame=ENVIRONMENT,
    precedence=30,
)

_OVERRIDE = "env.CONDA_OVERRIDE_CUDA"
_VIRTUAL = "conda.virtual_cuda"
_SAID = "symptom.conda_virtual_cuda"


def judge(case: Case) -> Outcome:
    override, virtual, said = case.fact(_OVERRIDE), case.fact(_VIRTUAL), case.fact(_SAID)
    build = case.derived(torch_build)
    pasted = in_report(case)
    from_conda = case.value("python.environment") == "conda" or build.is_from_conda
    from_conda = from_conda or virtual.is_known or (virtual.is_absent and pasted)
    if not from_conda and not said.is_known and not override.is_known:
        return case.skipped("conda is not in use here")
    ceiling = case.derived(cuda_ceiling)
    serves = str(ceiling.get()) if ceiling.is_known else None
    if said.is_known:
        return _complained(case, str(said.get().get("wanted") or ""), serves)
    if override.is_known:
        found = _overridden(case, str(override.get()).strip(), serves)
        if found is not None:
            return found
    if virtual.is_absent and pasted and build.kind == CPU and build.is_from_conda:
        return _failed(
            case,
            "conda saw no CUDA (no __cuda among its virtual packages), and installed torch's CPU build",
            (_VIRTUAL, "torch.version"),
            LIKELY,
            _hint(serves),
        )
    if virtual.is_absent and pasted and serves is not None:
        return _failed(
            case,
            f"the driver serves CUDA {serves}, and conda's solver sees none: it would install CPU builds",
            (_VIRTUAL, _ceiling_fact(case)),
            LIKELY,
            _hint(serves),
        )
    if build.kind == CPU and build.is_from_conda and case.fact("scheduler.kind").is_known:
        where = "a login node" if case.value("scheduler.in_job") is False else "a node"
        return _failed(
            case,
            f"conda installed torch's CPU build: was the environment made on {where} without a GPU?",
            ("torch.version", "scheduler.kind"),
            POSSIBLE,
            _hint(serves),
        )
    shown = virtual.value if virtual.is_known else serves
    if shown is None:
        return case.undecided("cannot tell which CUDA conda's solver sees", (_VIRTUAL, "driver.nvml_cuda"))
    return case.passed(f"conda's solver takes the machine to have CUDA {shown}", (_VIRTUAL, _OVERRIDE))


def _complained(case: Case, wanted: str, serves: Optional[str]) -> Outcome:
    least = numbers(wanted.strip("<>=! ").strip()) if wanted.startswith((">", "=")) else None
    if serves is not None and least is not None and (numbers(serves) or ()) < least:
        return case.failed(
            f"the package wants CUDA {wanted} of the driver (__cuda), and this one serves {serves}",
            (_SAID, _ceiling_fact(case)),
            severity=ERROR,
            fixes=(
                Remedy(
                    "manual",
                    {
                        "title": "Ask for a build that this driver serves, or update the driver",
                        "text": f"With conda-forge: conda install -c conda-forge pytorch-gpu cuda-version="
                        f"{serves.partition('.')[0]}. An override would bring a build that cannot run here.",
                        "kind": "install",
                        "effect": {_SAID: None},
                    },
                ),
            ),
            not_helping=("CONDA_OVERRIDE_CUDA with a larger number: the driver stays what it is",),
        )
    return _failed(
        case,
        "conda's solver sees no CUDA on this machine, and the package wants one (__cuda)"
        if not wanted
        else f"conda's solver does not see the CUDA that the package wants (__cuda {wanted})",
        (_SAID,),
        LIKELY,
        _hint(serves or (".".join(map(str, least[:2])) if least and len(least) > 1 else None)),
        severity=ERROR,
    )


def _overridden(case: Case, value: str, serves: Optional[str]) -> Optional[Outcome]:
    if not value:
        return case.failed(
            "CONDA_OVERRIDE_CUDA is set to nothing: conda's solver sees no CUDA and installs CPU builds",
            (_OVERRIDE,),
            certainty=CERTAIN,
            fixes=(_unset(),),
        )
    asked = numbers(value)
    if asked is None:
        return case.failed(
            f"CONDA_OVERRIDE_CUDA is {value[:20]!r}, which is no version",
            (_OVERRIDE,),
            fixes=(_unset(),),
        )
    if serves is None:
        return case.undecided(
            f"CONDA_OVERRIDE_CUDA is {value}; which CUDA the driver serves is not known", (_OVERRIDE,)
        )
    if asked[:1] > (numbers(serves) or ())[:1]:
        return case.failed(
            f"CONDA_OVERRIDE_CUDA promises CUDA {value}, and the driver serves {serves}: such builds cannot run here",
            (_OVERRIDE, _ceiling_fact(case)),
            fixes=(_unset(),),
        )
    return None


def _ceiling_fact(case: Case) -> str:
    return next((name for name in ("driver.nvml_cuda", "driver.smi_cuda") if case.fact(name).is_known), _VIRTUAL)


def _unset() -> Remedy:
    return Remedy("unset-variable", {"name": "CONDA_OVERRIDE_CUDA"})


def _hint(serves: Optional[str]) -> str:
    """What to set the override to."""
    if serves is not None:
        return f"CONDA_OVERRIDE_CUDA={serves}"
    return "CONDA_OVERRIDE_CUDA=VERSION, with the CUDA Version that nvidia-smi shows on the node with the GPU"


def _failed(
    case: Case,
    message: str,
    evidence: tuple[str, ...],
    certainty: str,
    override: str,
    severity: Optional[str] = None,
) -> Outcome:
    windows = case.value("system.os") == "windows"
    setting = f"$env:{override.replace('=', ' = ', 1)}" if windows else f"export {override}"
    return case.failed(
        message,
        evidence,
        certainty=certainty,
        severity=severity,
        fixes=(
            Remedy(
                "manual",
                {
                    "title": "Make the environment where the GPU is, or tell conda what is there",
                    "text": f"Run conda on a node with a GPU, or in the shell in which you install: {setting}",
                    "kind": "install",
                    "effect": {_SAID: None, _VIRTUAL: "13.0", "scheduler.kind": None},
                },
            ),
        ),
        not_helping=("installing a CUDA toolkit: conda asks the driver",),
    )
