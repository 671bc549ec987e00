"""CD211: headers of glibc that this nvcc cannot compile."""

from __future__ import annotations

from typing import Optional

from cudadoctor.testing import Machine, fails, linux, passes, skips, unknown_when, windows

RULE = "CD211"


def build(nvcc: str, glibc: str, arch: str = "x86_64") -> Machine:
    return linux().set(
        {
            "toolkit.nvcc_on_path": "/usr/local/cuda/bin/nvcc",
            "toolkit.nvcc_on_path_version": nvcc,
            "system.glibc": glibc,
            "system.arch": arch,
        }
    )


def log(text: str, function: Optional[str] = None) -> dict[str, dict[str, str]]:
    caught = {"function": function} if function else {}
    return {"symptom.libc_headers_too_new": {"text": text, **caught}}


COSPI = log(
    'mathcalls.h(79): error: exception specification is incompatible with that of previous function "cospi"', "cospi"
)
RSQRT = log(
    'mathcalls.h(206): error: exception specification is incompatible with that of previous function "rsqrt"', "rsqrt"
)

CASES = [
    skips("nobody builds here", linux()),
    skips("Windows has no glibc", windows().set({"toolkit.nvcc_on_path_version": "12.4.131"})),
    passes("Ubuntu 24.04", build("12.4.131", "2.39")),
    passes("CUDA 13.0 has learnt it", build("13.0.88", "2.41")),
    passes("the vector headers of ARM are no matter on x86", build("12.4.131", "2.39", "x86_64")),
    fails(
        "Debian 13 with CUDA 12.8, and nobody builds: advice",
        build("12.8.93", "2.41"),
        says=["nvcc 12.8.93 cannot compile the headers of glibc 2.41", "CUDA 13.0", "running is not affected"],
        severity="info",
        fix="manual",
    ),
    fails("glibc 2.42 takes CUDA 13.2", build("13.1.115", "2.42"), says="CUDA 13.2 is the first"),
    fails("ARM's vector types", build("12.4.131", "2.39", "aarch64"), says="CUDA 12.5", severity="info"),
    fails(
        "a build failed over it",
        build("12.8.93", "2.41").set(COSPI),
        says=["glibc 2.41", "cospi", "CUDA 13.0 is the first"],
        severity="error",
        certainty="certain",
        blame="environment",
        fix="manual",
    ),
    fails(
        "a build log alone",
        linux().only().set({"examination.kind": "report", **RSQRT}),
        says=["rsqrt", "CUDA 13.2 is the first"],
        severity="error",
        certainty="certain",
    ),
    fails(
        "the words without the name of a function",
        linux().only().set({"examination.kind": "report", **log("exception specification is incompatible")}),
        certainty="likely",
        severity="error",
    ),
    unknown_when("glibc is not known", build("12.8.93", "2.41").unknown("system.glibc")),
    unknown_when("nothing is known", linux().only()),
]
