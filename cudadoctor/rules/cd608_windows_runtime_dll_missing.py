"""A DLL that torch needs is missing on Windows

What it checks
    Whether a program reported that a DLL could not be loaded (WinError 126, 127, 182, 193, 1114), which one, and on
    this machine whether the Visual C++ runtime is installed.

Why it matters
    torch's DLLs need Microsoft's C++ runtime, and one of them (fbgemm.dll of some releases) LLVM's OpenMP runtime,
    libomp140.x86_64.dll, which Windows does not have. The error names torch's DLL though another one is missing. A
    runtime that is older than the one that torch was built with fails at the start of c10.dll (1114).

How to fix
    Install the newest Visual C++ runtime. For libomp140.x86_64.dll: a release of torch that does not need it (the one
    after), or Visual Studio's OpenMP component. A DLL of CUDA or cuDNN that does not load: install torch again, and
    take foreign CUDA folders off PATH.

References
    https://learn.microsoft.com/cpp/windows/latest-supported-vc-redist
    https://pytorch.org/get-started/locally/
"""

from __future__ import annotations

import re

from cudadoctor.model.pattern import pattern
from cudadoctor.rules.api import (
    CERTAIN,
    ENVIRONMENT,
    ERROR,
    LIKELY,
    POSSIBLE,
    WARNING,
    Case,
    Fix,
    Outcome,
    Remedy,
    Rule,
)

RULE = Rule(
    id="CD608",
    name="windows-runtime-dll-missing",
    title="A DLL that torch needs is missing on Windows",
    severity=ERROR,
    blame=ENVIRONMENT,
    follows_from=("CD602",),
    precedence=40,
)

_MISSING, _WRONG, _RUNTIME = (
    "symptom.windows_dll_missing",
    "symptom.windows_dll_wrong",
    "symptom.windows_runtime_missing",
)
_VC = "windows.vc_runtime"
# What Windows' numbers say of a DLL that is there and is not fit.
_SAYS = {
    "127": "a DLL lacks a function that torch calls: DLLs of different versions are mixed",
    "182": "a DLL of torch lacks a function: DLLs of different versions are mixed",
    "193": "a DLL is not for 64-bit Windows, or damaged",
    "1114": "a DLL of torch fails when it starts: mostly the Visual C++ runtime is too old",
}
_RUNTIME_FILE = pattern(r"\b(VCRUNTIME140(_1)?|MSVCP140(_\w{1,20})?|vcomp140)\.dll", re.IGNORECASE)
_NUMBER = pattern(r"\bWinError (\d{2,4})\b")
_NOT_INSTALLED = pattern(r"Visual C\+\+ Redistributable is not installed", re.IGNORECASE)
_OF_CUDA = pattern(r"\A(cu(dart|blas|dnn|fft|rand|solver|sparse|pti)|nv|caffe2_nvrtc|zlibwapi)", re.IGNORECASE)


def judge(case: Case) -> Outcome:
    reported = [name for name in (_RUNTIME, _MISSING, _WRONG) if case.fact(name).is_known]
    runtime = case.fact(_VC)
    if case.value("system.os", "windows" if reported else "") != "windows":
        return case.skipped("DLLs are Windows' own")
    if case.fact("symptom.paging_file_too_small").is_known:
        return case.skipped("the DLL was not loaded for want of memory: CD602")
    if reported:
        return _reported(case, reported)
    if runtime.is_absent and case.fact("torch.version").is_known:
        return case.failed(
            "the Visual C++ runtime is not installed, which torch's DLLs need",
            (_VC, "torch.version"),
            certainty=LIKELY,
            severity=WARNING,
            fixes=(Remedy("install-package", {"role": "vc-runtime"}),),
        )
    if runtime.is_known:
        return case.passed(f"Visual C++ runtime {runtime.get()}", (_VC,))
    if runtime.is_absent:
        return case.skipped("no torch that would need the Visual C++ runtime")
    return case.undecided(f"cannot tell whether the Visual C++ runtime is installed: {runtime.reason}", (_VC,))


def _reported(case: Case, reported: list[str]) -> Outcome:
    runtime = case.fact(_VC)
    evidence = (*reported, *((_VC,) if runtime.is_known or runtime.is_absent else ()))
    effect = dict.fromkeys(reported)
    install = Remedy("install-package", {"role": "vc-runtime", "effect": effect})
    told = case.value(reported[0], {})
    dll = _name(case.value(_MISSING, {}).get("path") or case.value(_WRONG, {}).get("path") or "")
    words = " ".join(str(case.value(name).get("text", "")) for name in reported)
    named = told.get("dll") or (found.group(0) if (found := _RUNTIME_FILE.search(words)) else None)
    if _RUNTIME in reported or (named and not named.lower().startswith("libomp")) or _NOT_INSTALLED.search(words):
        what = f"{named} is missing" if named else "the Visual C++ runtime is missing"
        return _failed(
            case, f"{what}: Microsoft's C++ runtime is not installed, or too old", evidence, CERTAIN, install
        )
    openmp = "libomp140" in words.lower()
    if openmp or "fbgemm" in words.lower() or dll.lower().startswith("fbgemm"):
        what = (
            "libomp140.x86_64.dll is missing" if openmp else "fbgemm.dll does not load: libomp140.x86_64.dll is missing"
        )
        return _failed(
            case,
            f"{what}, LLVM's OpenMP runtime, which Windows does not bring",
            evidence,
            LIKELY,
            _openmp(effect),
            not_helping=("a newer GPU driver: the DLL is not of CUDA",),
        )
    numbers = [found for found in _NUMBER.findall(words) if found in _SAYS]
    if _MISSING not in reported or numbers:
        number = numbers[0] if numbers else str(case.value(_WRONG, {}).get("number", ""))
        shown = f" ({dll}, WinError {number})" if dll else f" (WinError {number})"
        return _failed(
            case,
            _SAYS.get(number, "a DLL of torch cannot be loaded") + shown,
            evidence,
            LIKELY if number == "1114" and not runtime.is_known else POSSIBLE,
            *((install, _again()) if number == "1114" else (_again(), install)),
        )
    if _OF_CUDA.match(dll):
        message = f"{dll} or a DLL that it needs is missing (WinError 126): the installation of torch is not whole"
        return _failed(case, message, evidence, POSSIBLE, _again(), install)
    module = case.value(_MISSING, {}).get("module")
    shown = dll or (f"what {module} needs" if module else "a DLL that torch needs")
    if runtime.is_absent:
        message = f"{shown} cannot be loaded: the Visual C++ runtime is not installed"
        return _failed(case, message, evidence, CERTAIN, install)
    return _failed(
        case,
        f"{shown} cannot be loaded (WinError 126): mostly the Visual C++ runtime is missing or too old",
        evidence,
        LIKELY
        if dll.lower().startswith(("c10", "torch", "shm", "asmjit", "uv")) and not runtime.is_known
        else POSSIBLE,
        install,
        _again(),
    )


def _failed(
    case: Case,
    message: str,
    evidence: tuple[str, ...],
    certainty: str,
    *fixes: Fix,
    not_helping: tuple[str, ...] = (),
) -> Outcome:
    return case.failed(message, evidence, certainty=certainty, fixes=fixes, not_helping=not_helping)


def _openmp(effect: dict[str, None]) -> Remedy:
    return Remedy(
        "manual",
        {
            "title": "Bring LLVM's OpenMP runtime, or a torch that does not need it",
            "text": "Update torch to the next release, which does without it. To keep this one: the Visual Studio "
            "Installer's C++ build tools bring libomp140.x86_64.dll into C:\\Windows\\System32. Take no DLL from "
            "download pages. The Visual C++ runtime does not hold it; where that is not installed either: winget "
            "install --id Microsoft.VCRedist.2015+.x64 -e",
            "kind": "install",
            "id": "openmp-runtime",
            "effect": effect,
        },
    )


def _again() -> Remedy:
    return Remedy(
        "manual",
        {
            "title": "Install torch again, without foreign CUDA folders on PATH",
            "text": "Take folders of CUDA, cuDNN and other programs off PATH for a try, and install torch anew with "
            "--force-reinstall: a file may be missing or of another version.",
            "kind": "install",
            "id": "torch-again",
        },
    )


def _name(path: str) -> str:
    return path.replace("/", "\\").rpartition("\\")[2]
