"""CUDA_HOME points nowhere

What it checks
    Whether CUDA_HOME (else CUDA_PATH) names a folder that exists and holds nvcc.

Why it matters
    torch's extension builder, DeepSpeed and others take the toolkit from there. Running torch does not.

How to fix
    Set it to the folder of an installed toolkit, the one that has bin/nvcc, or unset it.

References
    https://pytorch.org/docs/stable/cpp_extension.html
"""

from __future__ import annotations

from cudadoctor.rules.api import ENVIRONMENT, ERROR, INFO, WARNING, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD203",
    name="cuda-home-wrong",
    title="CUDA_HOME points nowhere",
    severity=WARNING,
    blame=ENVIRONMENT,
    precedence=54,
)


def judge(case: Case) -> Outcome:
    home = case.fact("toolkit.cuda_home")
    if home.is_absent:
        return case.skipped("CUDA_HOME is not set: not needed to run")
    if not home.is_known:
        return case.undecided(f"cannot tell what CUDA_HOME says: {home.reason}", ("toolkit.cuda_home",))
    entry = home.get()
    variable, path = entry.get("variable", "CUDA_HOME"), entry.get("path", "")
    if entry.get("exists") and entry.get("has_nvcc"):
        return case.passed(f"{variable} is {path}", ("toolkit.cuda_home",))
    reported = case.fact("symptom.nvcc_missing").is_known
    what = "which holds no nvcc" if entry.get("exists") else "which does not exist"
    # Runtime images set the variable and bring no nvcc; that is how they are meant.
    severity = ERROR if reported else (INFO if entry.get("exists") else WARNING)
    real = [found for found in case.value("toolkit.found", []) if found.get("nvcc") and found.get("root") != path]
    if real:
        root = real[0]["root"]
        remedy = Remedy("change-variable", {"name": variable, "value": root, "effect": _good(variable, root)})
    else:
        remedy = Remedy("unset-variable", {"name": variable, "effect": {"toolkit.cuda_home": None}})
    return case.failed(
        f"{variable} is {path}, {what}; building extensions fails, running is not affected",
        ("toolkit.cuda_home", "toolkit.found"),
        severity=severity,
        fixes=(remedy,),
    )


def _good(variable: str, path: str) -> dict[str, object]:
    return {"toolkit.cuda_home": {"variable": variable, "path": path, "exists": True, "has_nvcc": True}}
