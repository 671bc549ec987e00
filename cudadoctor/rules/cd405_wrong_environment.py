"""pip and python belong to different environments

What it checks
    Whether torch was installed somewhere else than where it is run: another environment at hand holds it, the pip on
    PATH installs into another interpreter, or several copies lie on the import path.

Why it matters
    "I installed torch, and it is not found" (or is still the old one) is nearly always this.

How to fix
    Call pip through the interpreter that runs your program: python -m pip install ... Activate the environment that has
    torch, or remove the second copy.

References
    https://packaging.python.org/en/latest/tutorials/installing-packages/
"""

from __future__ import annotations

from typing import Optional

from cudadoctor.derive.gpus import gpus
from cudadoctor.derive.surroundings import in_report
from cudadoctor.derive.wheel import MISSING, torch_build
from cudadoctor.rules.api import (
    CERTAIN,
    ENVIRONMENT,
    ERROR,
    INFO,
    LIKELY,
    POSSIBLE,
    WARNING,
    Case,
    Outcome,
    Remedy,
    Rule,
)
from cudadoctor.rules.gpu_code import knows_gpu

RULE = Rule(
    id="CD405",
    name="wrong-environment",
    title="pip and python belong to different environments",
    severity=WARNING,
    blame=ENVIRONMENT,
    precedence=35,
)


_NOT_FOUND = "symptom.torch_module_missing"


def judge(case: Case) -> Outcome:
    if case.fact("python.executable").is_absent:
        return case.skipped("no Python environment is looked at")
    reported = _reported(case)
    if reported is not None:
        return reported
    copies = case.value("torch.copies", [])
    # A venv that sees the system's packages covers them with its own on purpose.
    by_design = bool(copies) and _inside(case, copies[0]) and not any(_inside(case, copy) for copy in copies[1:])
    if len(copies) > 1 and not by_design:
        return case.failed(
            f"torch is installed {len(copies)} times on the import path; {copies[0]} wins",
            ("torch.copies", "torch.version"),
            certainty=CERTAIN,
            data={"copies": copies},
            fixes=(
                Remedy(
                    "manual",
                    {
                        "title": "Remove the other copy of torch",
                        "text": f"Keep one of: {', '.join(copies)}. A copy in the user's own site-packages is removed "
                        "with: python -m pip uninstall torch, run once more until pip finds none.",
                        "kind": "install",
                        "effect": {"torch.copies": copies[:1]},
                    },
                ),
            ),
        )
    if case.derived(torch_build).kind != MISSING:
        if case.fact("torch.version").is_unknown:
            return case.undecided("cannot tell which torch would be imported", ("torch.version", "torch.copies"))
        return case.passed("torch is in the environment that is looked at", ("torch.path",))
    others = case.value("python.others_with_torch", [])
    python = case.value("python.executable", "this Python")
    pip = case.value("python.pip_on_path") or {}
    if others:
        by_pip = [other for other in others if pip.get("interpreter") and other.get("executable") == pip["interpreter"]]
        other = (by_pip or others)[0]
        # Who has activated this environment, or named it, means it: then torch is to be installed here.
        chosen = case.value("python.chosen_by") in _ON_PURPOSE and not by_pip
        certainty, severity = (POSSIBLE, INFO) if chosen else (LIKELY, WARNING)
        return case.failed(
            f"torch {other.get('torch')} is in the environment of {other.get('executable')}, not in that of {python}",
            ("python.executable", "python.others_with_torch"),
            certainty=certainty,
            severity=severity,
            data={"others": others},
            fixes=(
                Remedy(
                    "manual",
                    {
                        "title": "Run your program with the Python that has torch",
                        "text": f"Use {other.get('executable')}, or activate its environment; to look at that one: "
                        f"cudadoctor check --python {other.get('executable')}",
                        "kind": "setting",
                        "effect": {"python.others_with_torch": []},
                    },
                ),
            ),
        )
    on_path = case.value("python.python_on_path")
    if on_path and pip.get("interpreter") and not _belong_together(pip, on_path, case):
        return case.failed(
            f"the pip on PATH installs for {pip['interpreter']}, and python is {on_path}",
            ("python.pip_on_path", "python.python_on_path"),
            certainty=LIKELY,
            # Advice: the commands that cudadoctor prints name the interpreter.
            severity=INFO,
            data={"pip": pip},
            fixes=(
                Remedy(
                    "manual",
                    {
                        "title": "Call pip through your interpreter",
                        "text": "Instead of pip install, use: python -m pip install",
                        "kind": "setting",
                        "effect": {"python.pip_on_path": None},
                    },
                ),
            ),
        )
    return case.passed("pip and python belong together", ("python.executable", "python.pip_on_path"))


def _reported(case: Case) -> Optional[Outcome]:
    """What a run has said against what pip, or another session, shows."""
    if case.fact(_NOT_FOUND).is_known:
        told = "torch.metadata_version" if case.fact("torch.metadata_version").is_known else "torch.version"
        if case.fact(told).is_known or case.fact("symptom.already_installed").is_known:
            shown = told if case.fact(told).is_known else "symptom.already_installed"
            version = f" {case.value(told)}" if case.fact(told).is_known else ""
            return _elsewhere(
                case, f"torch{version} is installed, and the Python that runs does not find it", (_NOT_FOUND, shown)
            )
        if in_report(case):
            return case.undecided("torch is not found; whether it is installed elsewhere is not shown", (_NOT_FOUND,))
    capability = next((gpu.compute_capability for gpu in case.derived(gpus) if gpu.compute_capability.is_known), None)
    failed = (
        case.fact("symptom.no_kernel_image").is_known and not case.fact("symptom.capability_not_compatible").is_known
    )
    # Where torch itself names the GPU as too old, it is this torch that failed.
    failed = failed and not case.fact("symptom.gpu_too_old_for_torch").is_known
    if failed and capability is not None and knows_gpu(case, capability.get()) and not case.fact("torch.sass").is_known:
        row = case.derived(torch_build).row
        if row is None or case.matrix.build_runs_on(row, capability.get()).answer == "yes":
            return _elsewhere(
                case,
                f"torch {case.derived(torch_build).version} knows this GPU, and the program that failed does not: it "
                "seems to run with another torch",
                ("symptom.no_kernel_image", "torch.version"),
                WARNING,
            )
    return None


def _elsewhere(case: Case, message: str, evidence: tuple[str, ...], severity: str = ERROR) -> Outcome:
    windows = case.value("system.os") == "windows"
    python = "python" if windows else "python3"
    return case.failed(
        message,
        evidence,
        certainty=LIKELY,
        severity=severity,
        fixes=(
            Remedy(
                "manual",
                {
                    "title": "Look which Python runs, and install for that one",
                    "text": "With the very Python that starts your program (in a notebook: %pip and its kernel):\n"
                    f'    {python} -c "import sys; print(sys.executable)"\n    {python} -m pip show torch\n'
                    f"and install with {python} -m pip install, never with a bare pip.",
                    "kind": "setting",
                    "effect": {_NOT_FOUND: None, "symptom.no_kernel_image": None},
                },
            ),
        ),
        not_helping=("installing torch once more with the same pip: it goes where it is already",),
    )


# How an environment was chosen when a person chose it.
_ON_PURPOSE = ("--python", "VIRTUAL_ENV", "CONDA_PREFIX")


def _inside(case: Case, path: str) -> bool:
    prefix = _plain(str(case.value("python.prefix", ""))).rstrip("/")
    return bool(prefix) and _plain(path).startswith(prefix + "/")


def _belong_together(pip: dict[str, str], python: str, case: Case) -> bool:
    """Whether the pip and the python that PATH finds serve one environment: they lie in one folder (pyenv's shims, a
    venv's bin), pip's interpreter is that python, or both are in the environment that is looked at."""
    interpreter = _plain(pip["interpreter"])
    if _folder(_plain(pip.get("path", ""))) == _folder(_plain(python)) or interpreter == _plain(python):
        return True
    prefix = _plain(str(case.value("python.prefix", ""))).rstrip("/")
    return bool(prefix) and interpreter.startswith(prefix + "/") and _plain(python).startswith(prefix + "/")


def _plain(path: str) -> str:
    return path.replace("\\", "/").lower()


def _folder(path: str) -> str:
    return path.rpartition("/")[0]
