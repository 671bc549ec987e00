"""Triton or a build finds no C compiler, or no Python.h

What it checks
    Whether Triton (torch.compile, vLLM, Unsloth, ...) or the build of an extension said that it found no C compiler, no
    Python.h, or no Triton at all. Without such a word the lack of them is no fault.

Why it matters
    Triton compiles a small C launcher for each kind of kernel when it first runs. Without a compiler or without
    Python's headers torch.compile fails. torch without torch.compile needs neither.

How to fix
    Install gcc (in a container: in its image) and the headers that belong to this Python; a Python of uv's, conda's or
    python.org's brings its headers itself. On Windows install Visual Studio's Build Tools, and triton-windows.

References
    https://github.com/triton-lang/triton
    https://docs.pytorch.org/docs/stable/torch.compiler.html
"""

from __future__ import annotations

from typing import Any

from cudadoctor.derive.surroundings import in_container, in_report
from cudadoctor.derive.symptoms import Symptom, symptom
from cudadoctor.rules.api import CERTAIN, ENVIRONMENT, ERROR, INFO, LIKELY, Case, Fix, Outcome, Remedy, Rule

RULE = Rule(
    id="CD320",
    name="triton-toolchain-missing",
    title="Triton or a build finds no C compiler, or no Python.h",
    severity=INFO,
    blame=ENVIRONMENT,
    precedence=40,
)

_COMPILER = "toolkit.c_compiler"
_HEADERS = "python.headers"


def judge(case: Case) -> Outcome:
    compiler = symptom(case, "triton_no_compiler", "visual_cpp_missing")
    if compiler is not None:
        return _no_compiler(case, compiler)
    header = symptom(case, "python_header_missing")
    if header is not None:
        return _no_headers(case, header)
    missing = symptom(case, "triton_missing")
    if missing is not None:
        return _no_triton(case, missing, ERROR)
    mentioned = symptom(case, "triton_not_installed")
    if mentioned is not None:
        return _no_triton(case, mentioned, INFO)
    triton = case.fact("package.triton.version")
    if triton.is_absent:
        return case.skipped("no Triton: nothing compiles kernels at run time")
    found, headers = case.fact(_COMPILER), case.fact(_HEADERS)
    if in_report(case):
        return case.skipped("no error speaks of a compiler or of headers")
    if not triton.is_known or (found.is_unknown and headers.is_unknown):
        return case.undecided("cannot tell whether Triton has a C compiler and Python.h", (_COMPILER, _HEADERS))
    if found.is_absent:
        return case.skipped("no C compiler: not needed, unless torch.compile or a build asks for one")
    if headers.value is False:
        return case.skipped("no Python.h: not needed, unless torch.compile or a build asks for it")
    if found.is_unknown or headers.is_unknown:
        return case.undecided("cannot tell whether Triton has a C compiler and Python.h", (_COMPILER, _HEADERS))
    return case.passed(f"Triton has a C compiler ({found.get()}) and Python.h", (_COMPILER, _HEADERS))


def _no_compiler(case: Case, said: Symptom) -> Outcome:
    is_windows = case.value("system.os") == "windows" or "cl is not" in said.text or "visual_cpp" in said.fact
    what = "torch.compile or a build" if is_windows else "Triton"
    return case.failed(
        f"{what} found no C++ compiler" if is_windows else f"{what} found no C compiler",
        (said.fact,) if case.fact(_COMPILER).is_unknown else (said.fact, _COMPILER),
        severity=ERROR,
        certainty=CERTAIN,
        fixes=(_build_tools(said),) if is_windows else _compiler_fixes(case, {said.fact: None}),
        not_helping=(
            "a CUDA toolkit: Triton brings its own assembler, and looks for the system's C compiler",
            "another torch or driver: neither brings a C compiler",
        ),
    )


def _no_headers(case: Case, said: Symptom) -> Outcome:
    version = case.value("python.version")
    shown = f" {'.'.join(version.split('.')[:2])}" if version else ""
    return case.failed(
        f"the headers of Python{shown} (Python.h) are not installed, and something is to be compiled with them",
        (said.fact, "python.version") if version else (said.fact,),
        severity=ERROR,
        certainty=CERTAIN,
        fixes=_header_fixes(case, {said.fact: None}),
        not_helping=("installing torch or Triton again: the headers belong to Python",),
    )


def _no_triton(case: Case, said: Symptom, severity: str) -> Outcome:
    is_windows = case.value("system.os") == "windows"
    version = case.value("torch.version")
    text = (
        "There is no official Triton for Windows. The community's build: python -m pip install triton-windows, in the "
        "version that belongs to this torch (its page has the table). Or leave torch.compile out."
        if is_windows
        else "torch's CUDA wheels for Linux bring the Triton that belongs to them: install torch anew with its "
        "dependencies (a CPU build, or one installed with --no-deps, has none)."
    )
    message = (
        "torch.compile found no Triton" if severity == ERROR else "there is no Triton: only what uses it is slower"
    )
    return case.failed(
        message,
        (said.fact, "torch.version") if version else (said.fact,),
        severity=severity,
        certainty=LIKELY,
        fixes=(
            Remedy(
                "manual",
                {"title": "Bring a Triton", "text": text, "kind": "install", "effect": {said.fact: None}},
            ),
        ),
        not_helping=("a CUDA toolkit or a driver: Triton is a Python package",),
    )


def _compiler_fixes(case: Case, effect: dict[str, Any]) -> tuple[Fix, ...]:
    effect = {_COMPILER: "/usr/bin/gcc", **effect}
    if in_container(case):
        text = (
            "In the Dockerfile: RUN apt-get update && apt-get install -y gcc libc6-dev python3-dev (or start from the "
            "devel image). In a running container the same commands without RUN, as root."
        )
        return (
            Remedy("manual", {"title": "Put gcc into the image", "text": text, "kind": "container", "effect": effect}),
        )
    return (Remedy("install-package", {"role": "compiler", "effect": effect}),)


def _header_fixes(case: Case, effect: dict[str, Any]) -> tuple[Fix, ...]:
    effect = {_HEADERS: True, **effect}
    return (
        Remedy(
            "install-package",
            {
                "role": "python-headers",
                "why": "They must be of the Python that runs the program: another one than the system's "
                "(deadsnakes, a self-built one) has its own package, as python3.12-dev",
                "effect": effect,
            },
        ),
    )


def _build_tools(said: Symptom) -> Remedy:
    return Remedy(
        "manual",
        {
            "title": "Install Visual Studio's Build Tools",
            "text": "winget install --id Microsoft.VisualStudio.2022.BuildTools -e, and in its installer choose "
            "Desktop development with C++. Then work in the x64 Native Tools prompt, in which cl is on PATH.",
            "kind": "install",
            "needs": ["admin", "network"],
            "effect": {said.fact: None},
        },
    )
