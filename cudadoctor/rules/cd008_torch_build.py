"""PyTorch is not the build that the job needs

What it checks
    The version of torch in the environment and the CUDA that it was built with, against torch.version and torch.cuda of
    the policy. Read from torch's own files; it is not imported.

Why it matters
    A job that finds another torch than it was tried with fails late, or computes slightly different numbers. A build
    without CUDA runs on the CPU, a hundred times slower, without a word.

How to fix
    Install the build that is asked for into this very environment, or start the job in the right one: a job script that
    forgets to activate its environment finds the torch of another.

References
    https://pytorch.org/get-started/locally/
    https://pytorch.org/get-started/previous-versions/
"""

from __future__ import annotations

from cudadoctor.derive.policy import NOT_ASKED, in_range, plainly
from cudadoctor.model.pattern import pattern
from cudadoctor.rules.api import ENVIRONMENT, ERROR, Case, Fix, Outcome, Remedy, Rule

RULE = Rule(
    id="CD008",
    name="torch-build",
    title="PyTorch is not the build that the job needs",
    severity=ERROR,
    blame=ENVIRONMENT,
    chain=True,
    follows_from=("CD301", "CD302", "CD405"),
    precedence=30,
)

# A range that one CUDA alone lies in.
_ONE_CUDA = pattern(r"==(\d+)\.(\d+)\Z")
_VERSION, _CUDA = "policy.torch.version", "policy.torch.cuda"


def judge(case: Case) -> Outcome:
    asked = [name for name in (_VERSION, _CUDA) if case.fact(name).is_known]
    if not asked:
        return case.skipped(NOT_ASKED)
    torch = case.fact("torch.version")
    facts = (*asked, "torch.version")
    if torch.is_absent:
        wanted = plainly(str(case.value(_VERSION, ""))) or f"a build with CUDA {plainly(str(case.value(_CUDA)))}"
        return case.failed(
            f"there is no torch in this environment, {wanted} is asked for", facts, fixes=(_install(case),)
        )
    if not torch.is_known:
        return case.undecided(f"cannot tell the version of torch: {torch.reason}", facts)
    have = str(torch.get())
    for name, fact, what in ((_VERSION, torch, "torch"), (_CUDA, case.fact("torch.cuda"), "the CUDA of this torch")):
        wanted = str(case.value(name, ""))
        if not wanted:
            continue
        names = (name, "torch.version") if name == _VERSION else (name, "torch.version", "torch.cuda")
        if fact.is_absent:
            return case.failed(
                f"torch {have} is built without CUDA, CUDA {plainly(wanted)} is asked for",
                names,
                data={"value": None, "wanted": wanted},
                fixes=(_install(case),),
            )
        fine = in_range(fact.get(), wanted) if fact.is_known else None
        if fine is None:
            why = fact.reason or f"{fact.value!s} cannot be held against {wanted}"
            return case.undecided(f"cannot tell whether {what} is what is asked for: {why}", names)
        if not fine:
            return case.failed(
                f"{what} is {fact.get()}, {plainly(wanted)} is asked for",
                names,
                data={"value": fact.get(), "wanted": wanted},
                fixes=(_install(case),),
            )
    cuda = case.value("torch.cuda")
    with_cuda = f" with CUDA {cuda}" if cuda else ""
    return case.passed(f"torch {have}{with_cuda} is what is asked for", facts)


def _install(case: Case) -> Fix:
    """The resolver finds the build of a version, for one CUDA where one alone is named."""
    version, cuda = case.value(_VERSION), case.value(_CUDA)
    one = _ONE_CUDA.match(str(cuda))
    if cuda is None or one is not None:
        variant = {} if one is None else {"variant": f"cu{one.group(1)}{one.group(2)}"}
        return Remedy("install-torch", {"torch": str(version or ""), **variant})
    wanted = " and ".join(
        text for text in (version and f"torch {plainly(version)}", cuda and f"CUDA {plainly(cuda)}") if text
    )
    return Remedy(
        "manual",
        {
            "title": "Install the torch that is asked for",
            "text": f"The policy asks for {wanted}. `cudadoctor matrix query --cuda VERSION` tells which "
            "releases of torch are built with a CUDA.",
            "kind": "install",
        },
    )
