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
    variable, path = entry.get("variable", "CUDA_HOME"), str(entry.get("path", ""))
    if entry.get("exists") and entry.get("has_nvcc"):
        return case.passed(f"{variable} is {path}", ("toolkit.cuda_home",))
    reported = case.fact("symptom.nvcc_missing").is_known
    real = [found for found in case.value("toolkit.found", []) if found.get("nvcc") and found.get("root") != path]
    if entry.get("exists") and not real and not reported:
        # Runtime images are made like this, and libraries find their headers and libdevice by it.
        return case.passed(f"{variable} is {path}, without nvcc: enough to run", ("toolkit.cuda_home",))
    # A list as PATH has it, mostly of CUDA_HOME=$CUDA_HOME:/usr/local/cuda.
    listed = [part for part in path.split(":") if part] if case.value("system.os") != "windows" else []
    what = "which holds no nvcc" if entry.get("exists") else "which does not exist"
    if not entry.get("exists") and listed and listed != [path]:
        what = "a list, where one folder is wanted"
    severity = INFO if entry.get("exists") else WARNING
    if real:
        root = next((found["root"] for found in real if found["root"] in listed), real[0]["root"])
        remedy = Remedy("change-variable", {"name": variable, "value": root, "effect": _good(variable, root)})
    elif entry.get("exists"):
        remedy = Remedy("install-toolkit", {"effect": _good(variable, path)})
    else:
        remedy = Remedy(
            "unset-variable",
            {"name": variable, "effect": {"toolkit.cuda_home": None, "symptom.nvcc_missing": None}},
        )
    evidence = ("toolkit.cuda_home", "toolkit.found") if real else ("toolkit.cuda_home",)
    return case.failed(
        f"{variable} is {path}, {what}: building extensions fails, running is not affected",
        (*evidence, "symptom.nvcc_missing") if reported else evidence,
        severity=ERROR if reported else severity,
        fixes=(remedy,),
    )


def _good(variable: str, path: str) -> dict[str, object]:
    return {
        "toolkit.cuda_home": {"variable": variable, "path": path, "exists": True, "has_nvcc": True},
        "symptom.nvcc_missing": None,
    }
