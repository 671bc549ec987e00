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

from cudadoctor.derive.symptoms import Symptom, symptom
from cudadoctor.rules.api import CERTAIN, ENVIRONMENT, ERROR, INFO, LIKELY, WARNING, Case, Outcome, Remedy, Rule

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
    said = symptom(case, "cuda_home_wrong")
    if said is not None and not home.is_known:
        return _reported(case, said)
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


def _reported(case: Case, said: Symptom) -> Outcome:
    """A build's own words: it called an nvcc that does not exist."""
    home = said.get("path").rpartition("/bin/nvcc")[0]
    listed = [part for part in home.split(":") if part]
    # A list as PATH has it, mostly of CUDA_HOME=$CUDA_HOME:/usr/local/cuda.
    is_list = ":" in home and bool(listed)
    effect: dict[str, object] = {said.fact: None}
    if is_list:
        what = "a list, where one folder is wanted"
        remedy = Remedy("change-variable", {"name": "CUDA_HOME", "value": listed[-1], "effect": effect})
    else:
        what = "and there is no nvcc in it"
        remedy = Remedy(
            "manual",
            {
                "title": "Set CUDA_HOME to the folder of a toolkit",
                "text": "Find the toolkit (ls -d /usr/local/cuda*/bin/nvcc; command -v nvcc) and set CUDA_HOME to its "
                "folder, the one above bin. Where there is none: install the CUDA toolkit of torch's CUDA major.",
                "kind": "setting",
                "effect": effect,
            },
        )
    # Only a variable can be a list; one folder may also be what a build looks into where none is set.
    where = f"CUDA_HOME is {home}" if is_list else f"builds take the toolkit of {home} (CUDA_HOME, where that is set)"
    return case.failed(
        f"{where}, {what}: building extensions fails, running is not affected",
        (said.fact,),
        severity=ERROR,
        certainty=CERTAIN if is_list else LIKELY,
        fixes=(remedy,),
        not_helping=("another torch or driver: the build looks for nvcc where CUDA_HOME says",),
    )


def _good(variable: str, path: str) -> dict[str, object]:
    return {
        "toolkit.cuda_home": {"variable": variable, "path": path, "exists": True, "has_nvcc": True},
        "symptom.nvcc_missing": None,
    }
