"""nvcc does not accept this C++ compiler

What it checks
    Whether the gcc, clang or Visual C++ that nvcc calls is newer than this nvcc accepts: by nvcc's own words in a build
    log, else by the two versions.

Why it matters
    It matters for building extensions only. nvcc stops with "unsupported GNU version! gcc versions later than ... are
    not supported", or trips over the compiler's own headers. Running torch needs neither.

How to fix
    Install an older compiler beside the present one and name it to nvcc, or take a toolkit that knows the present one.
    -allow-unsupported-compiler only moves the error.

References
    https://docs.nvidia.com/cuda/cuda-installation-guide-linux/
    https://docs.nvidia.com/cuda/cuda-compiler-driver-nvcc/
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

from cudadoctor.derive.surroundings import in_report
from cudadoctor.derive.symptoms import Symptom, symptom
from cudadoctor.derive.toolkit import nvcc_of_a_build
from cudadoctor.matrix import numbers
from cudadoctor.rules.api import CERTAIN, ENVIRONMENT, ERROR, INFO, LIKELY, Case, Fix, Outcome, Remedy, Rule

if TYPE_CHECKING:
    from cudadoctor.matrix import HostCompiler

RULE = Rule(
    id="CD205",
    name="host-compiler-too-new",
    title="nvcc does not accept this C++ compiler",
    severity=INFO,
    blame=ENVIRONMENT,
    precedence=33,
)

_SYMPTOMS = ("host_compiler_too_new", "host_compiler_headers")
_TITLES = {"gcc": "gcc", "clang": "clang", "msvc": "Visual C++"}


def judge(case: Case) -> Outcome:
    said = symptom(case, *_SYMPTOMS)
    nvcc = case.derived(nvcc_of_a_build)
    compiler = case.value("toolkit.host_compiler") or {}
    evidence = ("toolkit.host_compiler", *nvcc.evidence)
    row = case.matrix.host_compiler(str(nvcc.version.value)) if nvcc.version.is_known else None
    fits = _fits(row, compiler)
    if said is not None:
        return _reported(case, said, row, compiler, fits, evidence)
    if nvcc.version.is_absent or case.fact("toolkit.host_compiler").is_absent:
        return case.skipped("no nvcc, or no compiler for it: not needed to run")
    if in_report(case) and fits is None:
        return case.skipped("no build complains of a compiler")
    if fits is None or row is None:
        return case.undecided("cannot tell whether nvcc accepts the C++ compiler", evidence)
    shown = f"{_TITLES.get(compiler['name'], compiler['name'])} {compiler['version']}"
    if fits:
        return case.passed(f"nvcc {nvcc.version.value} accepts {shown}", evidence)
    newest = _newest(row, compiler)
    return case.failed(
        f"nvcc {nvcc.version.value} does not accept {shown} (it takes up to {newest}): building extensions fails, "
        "running is not affected",
        evidence,
        certainty=LIKELY,
        data={"nvcc": nvcc.version.value, "compiler": dict(compiler)},
        fixes=_fixes(case, str(compiler["name"]), row.gcc_max, compiler, ()),
        not_helping=("-allow-unsupported-compiler: it switches the check off, and the errors come later",),
    )


def _fits(row: Optional[HostCompiler], compiler: dict[str, Any]) -> Optional[bool]:
    """Whether nvcc accepts the compiler; None where either is not known."""
    have = numbers(str(compiler.get("version") or ""))
    if row is None or row.guessed or not have:
        return None
    if compiler["name"] == "gcc":
        return have[0] <= row.gcc_max
    if compiler["name"] == "clang":
        return have[0] <= row.clang_max
    if compiler["name"] == "msvc" and len(have) > 1:
        return have[0] * 100 + have[1] < row.msvc_below  # 19.44 is _MSC_VER 1944
    return None


def _newest(row: HostCompiler, compiler: dict[str, Any]) -> str:
    if compiler["name"] == "gcc":
        return f"gcc {row.gcc_max}"
    if compiler["name"] == "clang":
        return f"clang {row.clang_max}"
    return f"Visual Studio {row.visual_studio.rpartition('-')[2]}"


def _reported(
    case: Case,
    said: Symptom,
    row: Optional[HostCompiler],
    compiler: dict[str, Any],
    fits: Optional[bool],
    evidence: tuple[str, ...],
) -> Outcome:
    lowered = said.text.lower()
    family = "clang" if "clang" in lowered else "msvc" if "visual studio" in lowered or "stl1002" in lowered else "gcc"
    newest = int(said.get("newest")) if said.get("newest").isdigit() else None
    if family == "clang" and said.get("below").isdigit():
        newest = int(said.get("below")) - 1
    if newest is None and row is not None:
        newest = {"gcc": row.gcc_max, "clang": row.clang_max}.get(family)
    version = case.value("toolkit.nvcc_on_path_version")
    own = f" {compiler['version']}" if compiler.get("name") == family and compiler.get("version") else ""
    nvcc = f"nvcc {version}" if version else "nvcc"
    limit = f" (it takes up to {_TITLES[family]} {newest})" if newest is not None else ""
    if said.fact == "symptom.host_compiler_headers":
        if fits:
            return case.undecided(
                f"{nvcc} stumbled over C++ headers, and accepts {family}{own}", (said.fact, *evidence)
            )
        message = f"{nvcc} cannot compile the headers of {_TITLES[family]}{own}, which is newer than it knows{limit}"
        certainty = CERTAIN if fits is False else LIKELY
    else:
        message = f"{nvcc} refuses {_TITLES[family]}{own}: it is newer than nvcc knows{limit}"
        certainty = CERTAIN  # nvcc's own check says so
    return case.failed(
        message,
        (said.fact, *(name for name in evidence if case.fact(name).is_known)),
        severity=ERROR,
        certainty=certainty,
        data={"newest": newest, "compiler": family},
        fixes=_fixes(case, family, newest, compiler, (said.fact,)),
        not_helping=(
            "-allow-unsupported-compiler: it switches the check off, and the errors come later",
            "another driver or torch: the build stops before either has a part in it",
        ),
    )


def _fixes(
    case: Case, family: str, newest: Optional[int], compiler: dict[str, Any], symptoms: tuple[str, ...]
) -> tuple[Fix, ...]:
    effect: dict[str, Any] = dict.fromkeys(symptoms)
    if newest is not None and family in ("gcc", "clang"):
        effect["toolkit.host_compiler"] = {"name": family, "version": f"{newest}.0.0", "path": compiler.get("path")}
    else:
        effect["toolkit.host_compiler"] = None
    if family == "msvc":
        return (_visual_studio(case, effect),)
    if newest is None:
        return (_newer_toolkit(case, compiler, effect),)
    name, plus = ("gcc", "g++") if family == "gcc" else ("clang", "clang++")
    flags = f"CC={name}-{newest} CXX={plus}-{newest} CUDAHOSTCXX={plus}-{newest}"
    text = (
        f'In the shell that builds: export {flags} NVCC_PREPEND_FLAGS="-ccbin {plus}-{newest}", and build anew from '
        f"an empty build folder. In conda: conda install -c conda-forge gxx={newest}. {_other_way(case, compiler)}"
    ).strip()
    naming = Remedy(
        "manual",
        {"title": f"Name {plus}-{newest} to nvcc", "text": text, "kind": "setting", "effect": effect},
    )
    if family == "clang":
        return (naming,)
    return (Remedy("install-package", {"role": "compiler", "version": str(newest)}), naming)


def _other_way(case: Case, compiler: dict[str, Any]) -> str:
    """The oldest toolkit that accepts the present compiler, in words."""
    fitting = [row for row in case.matrix.host_compilers() if _fits(row, compiler)]
    if not fitting:
        return ""
    return f"The other way: CUDA {fitting[-1].cuda} is the first toolkit that takes {compiler['version']}."


def _newer_toolkit(case: Case, compiler: dict[str, Any], effect: dict[str, Any]) -> Remedy:
    text = (
        "Install a compiler that this nvcc accepts (the table of host compilers is in NVIDIA's installation guide for "
        f"its release) and name it to nvcc with -ccbin. {_other_way(case, compiler)}"
    ).strip()
    return Remedy(
        "manual", {"title": "Give nvcc a compiler that it accepts", "text": text, "kind": "setting", "effect": effect}
    )


def _visual_studio(case: Case, effect: dict[str, Any]) -> Remedy:
    version = case.value("toolkit.nvcc_on_path_version")
    row = case.matrix.host_compiler(version) if version else None
    years = f"Visual Studio {row.visual_studio}" if row is not None else "the Visual Studio that this CUDA supports"
    return Remedy(
        "manual",
        {
            "title": "Give nvcc a Visual C++ that it accepts",
            "text": f"In the Visual Studio Installer, under Individual components, add an older MSVC toolset: {years} "
            "is what this nvcc takes. Then build in the x64 Native Tools prompt of that toolset (vcvarsall.bat x64 "
            "-vcvars_ver=VERSION). The other way: a newer CUDA toolkit.",
            "kind": "setting",
            "effect": effect,
        },
    )
