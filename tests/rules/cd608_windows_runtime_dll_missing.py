"""CD608: a DLL that torch needs is missing on Windows."""

from __future__ import annotations

from cudadoctor.testing import GONE, Machine, fails, linux, passes, skips, unknown_when, windows

RULE = "CD608"

LIB = "C:\\demo\\venv\\Lib\\site-packages\\torch\\lib\\"
REPORT = windows().only("examination.kind")


def missing(dll: str, machine: Machine = REPORT) -> Machine:
    return machine.set({"symptom.windows_dll_missing": {"text": "[WinError 126]", "path": LIB + dll}})


def wrong(number: str, dll: str = "c10.dll", machine: Machine = REPORT) -> Machine:
    value = {"text": f"[WinError {number}]", "number": number, "path": LIB + dll}
    return machine.set({"symptom.windows_dll_wrong": value})


CASES = [
    passes("the runtime is there", windows(), says="14.44"),
    fails(
        "no runtime on a machine with torch",
        windows().set({"windows.vc_runtime": GONE}),
        severity="warning",
        certainty="likely",
        blame="environment",
        fix="install-package",
    ),
    fails(
        "fbgemm.dll: the OpenMP runtime",
        missing("fbgemm.dll"),
        says="libomp140",
        severity="error",
        certainty="likely",
        fix="manual",
    ),
    fails(
        "a tool names the OpenMP runtime",
        REPORT.set({"symptom.windows_dll_missing": {"text": "libomp140.x86_64.dll", "dll": "libomp140.x86_64.dll"}}),
        says="OpenMP",
        certainty="likely",
    ),
    fails("c10.dll in a report", missing("c10.dll"), says="Visual C++", certainty="likely", fix="install-package"),
    fails(
        "c10.dll where the runtime is missing",
        missing("c10.dll", windows().set({"windows.vc_runtime": GONE})),
        says="is not installed",
        certainty="certain",
    ),
    fails("c10.dll where the runtime is there", missing("c10.dll", windows()), certainty="possible"),
    fails("a library of cuDNN", missing("cudnn_adv64_9.dll"), says="not whole", certainty="possible"),
    fails(
        "an extension",
        REPORT.set({"symptom.windows_dll_missing": {"text": "DLL load failed", "module": "_C"}}),
        says="what _C needs",
        certainty="possible",
    ),
    fails(
        "torch itself says that the runtime is missing",
        REPORT.set({"symptom.windows_runtime_missing": {"text": "Redistributable is not installed"}}),
        certainty="certain",
        fix="install-package",
    ),
    fails("Windows' dialogue names it", REPORT.set({"symptom.windows_runtime_missing": {"dll": "MSVCP140.dll"}})),
    fails(
        "a DLL that fails at its start", wrong("1114"), says="WinError 1114", certainty="likely", fix="install-package"
    ),
    fails(
        "the same line read as a DLL that is missing",
        REPORT.set({"symptom.windows_dll_missing": {"text": "[WinError 1114] ...", "path": LIB + "c10.dll"}}),
        says="fails when it starts",
    ),
    fails("a function is missing", wrong("127", "nvfuser_codegen.dll"), says="mixed", certainty="possible"),
    fails("not for 64-bit Windows", wrong("193"), says="64-bit"),
    fails(
        "the words name a file of the runtime",
        REPORT.set({"symptom.windows_dll_missing": {"text": "because MSVCP140.dll was not found"}}),
        says="MSVCP140.dll is missing",
        certainty="certain",
    ),
    skips(
        "it is for want of memory",
        missing("shm.dll").set({"symptom.paging_file_too_small": {"text": "[WinError 1455]"}}),
    ),
    skips("Linux", linux()),
    skips("Windows without torch", windows().no_torch().set({"windows.vc_runtime": GONE})),
    skips("nothing is known", REPORT),
    unknown_when("the registry cannot be read", windows().unknown("windows.vc_runtime")),
]
