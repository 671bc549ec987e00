"""CD320: what Triton needs to compile its launchers."""

from __future__ import annotations

from cudadoctor.testing import GONE, Machine, container, fails, linux, passes, skips, unknown_when, windows

RULE = "CD320"


def triton(machine: Machine, compiler: bool = True, headers: bool = True) -> Machine:
    return machine.package("triton", "3.8.0").set(
        {"toolkit.c_compiler": "/usr/bin/gcc" if compiler else GONE, "python.headers": headers}
    )


def report(name: str, text: str, machine: Machine) -> Machine:
    return machine.only("system.os", "system.container", "system.distribution", "python.version").set(
        {"examination.kind": "report", f"symptom.{name}": {"text": text}}
    )


NO_CC = "RuntimeError: Failed to find C compiler. Please specify via CC environment variable."
NO_H = "/tmp/tmpab12/main.c:5:10: fatal error: Python.h: No such file or directory"

CASES = [
    passes("gcc and Python.h are there", triton(linux()), says="/usr/bin/gcc"),
    skips("no Triton", linux().set({"package.triton.version": GONE})),
    skips("no compiler, and nothing that asks for one", triton(linux(), compiler=False), says="not needed"),
    skips("no headers, and nothing that asks for them", triton(linux(), headers=False), says="not needed"),
    fails(
        "Triton says so",
        report("triton_no_compiler", NO_CC, linux()),
        says="Triton found no C compiler",
        severity="error",
        certainty="certain",
        blame="environment",
        fix="install-package",
    ),
    fails("in a container", report("triton_no_compiler", NO_CC, container()), fix="manual"),
    fails(
        "Python's headers",
        report("python_header_missing", NO_H, linux()),
        says="the headers of Python 3.12 (Python.h) are not installed",
        severity="error",
        certainty="certain",
        fix="install-package",
    ),
    fails(
        "torch.compile on Windows",
        report("triton_no_compiler", "RuntimeError: Compiler: cl is not found.", windows()),
        says="found no C++ compiler",
        fix="manual",
    ),
    fails(
        "a build on Windows",
        report("visual_cpp_missing", "error: Microsoft Visual C++ 14.0 or greater is required.", windows()),
        severity="error",
    ),
    fails(
        "no Triton on Windows",
        report("triton_missing", "Cannot find a working triton installation.", windows()),
        says="torch.compile found no Triton",
        severity="error",
        certainty="likely",
    ),
    fails(
        "xformers only mentions it",
        report("triton_not_installed", "ModuleNotFoundError: No module named 'triton'", windows()),
        severity="info",
    ),
    unknown_when("nobody looked", linux().package("triton", "3.8.0").unknown("toolkit.c_compiler", "python.headers")),
    unknown_when("half is known", triton(linux()).unknown("python.headers")),
    unknown_when("whether there is Triton is not known", linux().unknown("package.triton.version")),
]
