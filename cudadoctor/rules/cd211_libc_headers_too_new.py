"""nvcc cannot compile the headers of this C library

What it checks
    Whether glibc's headers are newer than nvcc can compile: by the compiler's words in a build log ("exception
    specification is incompatible with that of previous function "cospi""), else by the two versions.

Why it matters
    New releases of glibc declare functions that NVIDIA's headers have had for long (cospi, sinpi, rsqrt), in another
    way. Every compilation with nvcc then fails, whatever the host compiler is. Running torch is not affected.

How to fix
    A newer CUDA toolkit, or a build in a container or conda environment with older headers. Where neither will do,
    people add noexcept(true) to the named functions in crt/math_functions.h of the toolkit.

References
    https://docs.nvidia.com/cuda/cuda-toolkit-release-notes/
    https://sourceware.org/glibc/wiki/Release
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

from cudadoctor.derive.surroundings import in_report
from cudadoctor.derive.symptoms import Symptom, symptom
from cudadoctor.derive.toolkit import nvcc_of_a_build
from cudadoctor.rules.api import CERTAIN, ENVIRONMENT, ERROR, INFO, LIKELY, Case, Outcome, Remedy, Rule

if TYPE_CHECKING:
    from cudadoctor.matrix import HeaderClash

RULE = Rule(
    id="CD211",
    name="libc-headers-too-new",
    title="nvcc cannot compile the headers of this C library",
    severity=INFO,
    blame=ENVIRONMENT,
    precedence=34,
)


def judge(case: Case) -> Outcome:
    said = symptom(case, "libc_headers_too_new")
    nvcc = case.derived(nvcc_of_a_build)
    glibc = case.fact("system.glibc")
    evidence = ("system.glibc", *nvcc.evidence)
    clash = None
    if nvcc.version.is_known and glibc.is_known:
        clash = case.matrix.headers_too_new(glibc.get(), nvcc.version.get(), case.value("system.arch"))
    if said is not None:
        return _reported(case, said, clash, evidence)
    if (
        nvcc.version.is_absent
        or case.value("system.libc") == "musl"
        or case.value("system.os") in ("windows", "darwin")
    ):
        return case.skipped("no nvcc, or no glibc, to compile with")
    if in_report(case) and not (nvcc.version.is_known and glibc.is_known):
        return case.skipped("no build complains of headers")
    if not nvcc.version.is_known or not glibc.is_known:
        return case.undecided("cannot tell the versions of nvcc and glibc", evidence)
    if clash is None:
        return case.passed(f"nvcc {nvcc.version.get()} compiles the headers of glibc {glibc.get()}", evidence)
    return case.failed(
        f"nvcc {nvcc.version.get()} cannot compile the headers of glibc {glibc.get()} (CUDA {clash.cuda} is the first "
        "that can): building extensions fails, running is not affected",
        evidence,
        certainty=LIKELY,
        data={"glibc": glibc.get(), "first_cuda": clash.cuda},
        fixes=(_remedy(clash.cuda, clash.functions, {}),),
        not_helping=("an older gcc: the headers are the C library's",),
    )


def _reported(case: Case, said: Symptom, clash: Optional[HeaderClash], evidence: tuple[str, ...]) -> Outcome:
    named = said.get("function")
    rows = case.matrix.header_clashes()
    row = next((entry for entry in rows if named in entry.functions), clash)
    nvcc = case.derived(nvcc_of_a_build).version
    glibc = case.fact("system.glibc")
    first = f" (CUDA {row.cuda} is the first that can)" if row is not None else ""
    return case.failed(
        f"nvcc{' ' + nvcc.get() if nvcc.is_known else ''} cannot compile the headers of "
        f"glibc{' ' + glibc.get() if glibc.is_known else ''}, which declare {named or 'functions'} anew{first}",
        (said.fact, *(name for name in evidence if case.fact(name).is_known)),
        severity=ERROR,
        certainty=CERTAIN if named or clash is not None else LIKELY,
        data={"function": named, "first_cuda": row.cuda if row is not None else None},
        fixes=(_remedy(row.cuda if row is not None else "", (named,) if named else (), {said.fact: None}),),
        not_helping=(
            "an older gcc, or -allow-unsupported-compiler: the headers are the C library's and stay as they are",
            "another torch or driver: the build stops before either has a part in it",
        ),
    )


def _remedy(cuda: str, functions: tuple[str, ...], effect: dict[str, Any]) -> Remedy:
    names = ", ".join(name for name in functions if not name.startswith("__"))
    newer = f"Install CUDA toolkit {cuda} or newer and set CUDA_HOME to it" if cuda else "Install a newer CUDA toolkit"
    by_hand = (
        f" Where the toolkit has to stay: add noexcept(true) to the declarations of {names} in its "
        "targets/x86_64-linux/include/crt/math_functions.h (keep a copy)."
        if names
        else ""
    )
    return Remedy(
        "manual",
        {
            "title": f"Build with CUDA {cuda} or newer" if cuda else "Build with a newer CUDA toolkit",
            "text": f"{newer}; torch takes extensions of any toolkit of its own CUDA major. Or build in a container "
            f"whose system is older (nvidia/cuda:...-devel-ubuntu24.04).{by_hand}",
            "kind": "install",
            "effect": {**effect, "toolkit.nvcc_on_path_version": cuda or None, "toolkit.cuda_home": None},
        },
    )
