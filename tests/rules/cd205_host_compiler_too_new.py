"""CD205: a gcc, clang or Visual C++ that nvcc does not take."""

from __future__ import annotations

from typing import Optional

from cudadoctor.testing import GONE, Machine, fails, linux, passes, skips, unknown_when, windows

RULE = "CD205"


def build(nvcc: Optional[str], name: str, version: str, machine: Optional[Machine] = None) -> Machine:
    return (machine or linux()).set(
        {
            "toolkit.nvcc_on_path": "/usr/local/cuda/bin/nvcc",
            "toolkit.nvcc_on_path_version": nvcc if nvcc else GONE,
            "toolkit.host_compiler": {"name": name, "version": version, "path": f"/usr/bin/{name}"},
        }
    )


def report(text: str, **caught: str) -> Machine:
    """A pasted build log and nothing else."""
    machine = linux().only()
    return machine.set({"examination.kind": "report", "symptom.host_compiler_too_new": {"text": text, **caught}})


GNU = "error: #error -- unsupported GNU version! gcc versions later than 12 are not supported!"
PACKS = {
    "symptom.host_compiler_headers": {
        "text": "/usr/include/c++/11/bits/std_function.h:435:145: error: parameter packs not expanded with '...'"
    }
}

CASES = [
    skips("nobody builds here", linux()),
    passes("Ubuntu 24.04 with CUDA 12.4", build("12.4.131", "gcc", "13.3.0"), says="accepts gcc 13.3.0"),
    passes("clang within the range", build("13.0.88", "clang", "20.1.2")),
    passes("Visual Studio 2022 with CUDA 12.8", build("12.8.93", "msvc", "19.44.35211", windows())),
    fails(
        "gcc 13 with CUDA 12.1, and nobody builds: advice",
        build("12.1.105", "gcc", "13.2.0"),
        says=["nvcc 12.1.105 does not accept gcc 13.2.0", "up to gcc 12", "running is not affected"],
        severity="info",
        certainty="likely",
        fix=["install-package", "manual"],
    ),
    fails(
        "nvcc's own words, with the versions",
        build("12.1.105", "gcc", "13.2.0").set({"symptom.host_compiler_too_new": {"text": GNU, "newest": "12"}}),
        says=["nvcc 12.1.105 refuses gcc 13.2.0", "up to gcc 12"],
        severity="error",
        certainty="certain",
        blame="environment",
        fix=["install-package", "manual"],
    ),
    fails(
        "a build log alone",
        report(GNU, newest="12"),
        says="nvcc refuses gcc: it is newer than nvcc knows (it takes up to gcc 12)",
        severity="error",
        certainty="certain",
    ),
    fails(
        "clang",
        report(
            "error -- unsupported clang version! clang version must be less than 17 and greater than 3.2", below="17"
        ),
        says="up to clang 16",
        fix="manual",
    ),
    fails(
        "Visual Studio 2022 17.10 with CUDA 12.3",
        report("error -- unsupported Microsoft Visual Studio version! Only those between 2017 and 2022 are supported!"),
        says="nvcc refuses Visual C++",
        severity="error",
        fix="manual",
    ),
    fails(
        "gcc 11's headers, with the versions beside",
        build("11.3.109", "gcc", "11.4.0").set(PACKS),
        says="cannot compile the headers of gcc 11.4.0",
        severity="error",
        certainty="certain",
    ),
    fails(
        "gcc's headers, versions unknown",
        linux().only().set({"examination.kind": "report", **PACKS}),
        certainty="likely",
        severity="error",
    ),
    unknown_when("headers that fail with a gcc that nvcc accepts", build("12.4.131", "gcc", "12.3.0").set(PACKS)),
    unknown_when("the compiler did not answer", build("12.4.131", "gcc", "13.3.0").unknown("toolkit.host_compiler")),
    unknown_when("nothing but nvcc is known", linux().only().set({"toolkit.nvcc_on_path_version": "12.4.131"})),
    unknown_when("a toolkit that the matrix does not know", build("99.1.1", "gcc", "13.3.0")),
    skips("looked, and there is no compiler", build("12.4.131", "gcc", "13.3.0").set({"toolkit.host_compiler": GONE})),
]
