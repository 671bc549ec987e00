"""An extension was built for another torch

What it checks
    Whether packages with compiled parts for torch (xformers, flash-attn and others) say that they were built for the
    installed torch's release and CUDA major.

Why it matters
    Such parts are bound to one torch release: after torch was changed, import fails with an undefined symbol (mangled
    names with c10 or at in them), or the extension is silently switched off.

How to fix
    Install the release of the extension that was built for this torch, or put torch back to the one that it was built
    for. cudadoctor's matrix names both where it knows them.

References
    https://pytorch.org/docs/stable/cpp_extension.html
    https://github.com/Dao-AILab/flash-attention/releases
"""

from __future__ import annotations

from cudadoctor.derive.wheel import CPU, CUDA, torch_build
from cudadoctor.rules.api import CERTAIN, ENVIRONMENT, ERROR, LIKELY, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD308",
    name="extension-built-for-another-torch",
    title="An extension was built for another torch",
    severity=ERROR,
    blame=ENVIRONMENT,
    precedence=39,
)

# Companions have rules of their own.
_NOT_EXTENSIONS = ("torch", "torchvision", "torchaudio", "triton")


def judge(case: Case) -> Outcome:
    build = case.derived(torch_build)
    if build.kind not in (CUDA, CPU) or build.release is None:
        return case.skipped("torch is not installed, or its version is not known")
    stated = {
        name.rpartition(".")[0]: fact
        for name, fact in case.facts.under("package").items()
        if name.endswith(".built_for_torch") and name.rpartition(".")[0] not in _NOT_EXTENSIONS
    }
    names = sorted(name for name, fact in stated.items() if fact.is_known)
    symbol = case.fact("symptom.extension_symbol_missing")
    if not names and not symbol.is_known:
        unread = sorted(name for name, fact in stated.items() if fact.is_unknown)
        if unread:
            reason = f"cannot tell what {unread[0]} was built for"
            return case.undecided(reason, (f"package.{unread[0]}.built_for_torch",))
        return case.skipped("no extension says what it was built for")
    for name in names:
        built_for = case.value(f"package.{name}.built_for_torch")
        if _minor(built_for) != _minor(build.release):
            return _failed(case, name, f"torch {built_for}", build.version, f"package.{name}.built_for_torch")
        cuda = case.value(f"package.{name}.built_for_cuda")
        if cuda and build.cuda and cuda.partition(".")[0] != build.cuda.partition(".")[0]:
            return _failed(case, name, f"CUDA {cuda}", build.version, f"package.{name}.built_for_cuda")
    if symbol.is_known:
        return case.failed(
            "an extension misses a symbol of torch: it was built for another release",
            ("symptom.extension_symbol_missing", "torch.version"),
            certainty=LIKELY,
            fixes=(_rebuild("the extension", build.release, {"symptom.extension_symbol_missing": None}),),
        )
    facts = tuple(f"package.{name}.built_for_torch" for name in names)
    return case.passed(f"{', '.join(names)} fit torch {build.version}", facts)


def _minor(version: str) -> list[str]:
    return version.partition("+")[0].split(".")[:2]


def _failed(case: Case, name: str, built_for: str, torch: str | None, fact: str) -> Outcome:
    version = case.value(f"package.{name}.version", "")
    release = (torch or "").partition("+")[0]
    effect: dict[str, object] = {f"package.{name}.built_for_torch": release, f"package.{name}.built_for_cuda": None}
    fitting = [pin for pin in case.matrix.pins(name) if pin.torch == f"=={release}"]
    remedy = _rebuild(name, release, effect)
    if fitting:
        remedy = Remedy("reinstall-package", {"pins": {name: fitting[0].version}, "effect": effect})
    return case.failed(
        f"{name} {version} was built for {built_for}, and torch {torch} is installed",
        (fact, "torch.version"),
        certainty=CERTAIN,
        data={"package": name},
        fixes=(remedy,),
        not_helping=("another driver: the package does not fit torch",),
    )


def _rebuild(name: str, release: str, effect: dict[str, object]) -> Remedy:
    return Remedy(
        "manual",
        {
            "title": f"Install {name} for torch {release}",
            "text": f"Take the release of {name} that was built for torch {release} and its CUDA major from its own "
            "release page, or build it against the installed torch: pip install --no-build-isolation --no-cache-dir "
            "--force-reinstall --no-deps, which needs nvcc.",
            "kind": "install",
            "effect": effect,
        },
    )
