"""CD403: the C library against what the wheels need."""

from __future__ import annotations

from typing import Any

from cudadoctor.testing import GONE, Machine, fails, linux, passes, skips, unknown_when, windows

RULE = "CD403"


def glibc(version: str, machine: Machine) -> Machine:
    return machine.set({"system.glibc": version})


FRESH = linux().no_torch()
ALPINE: dict[str, Any] = {"system.libc": "musl", "system.glibc": GONE, "system.distribution": "alpine"}
LOADER = {"symptom.glibc_version_missing": {"text": "version `GLIBC_2.34' not found", "needed": "2.34"}}

CASES = [
    passes("a current system", linux()),
    passes("CentOS 7 with an old torch that runs there", glibc("2.17", linux().torch("2.4.1+cu121"))),
    passes("RHEL 8 has just enough", glibc("2.28", linux())),
    passes(
        "conda's torch has needs of its own",
        glibc("2.17", linux().torch("2.5.1", "12.4").set({"torch.origin": "conda"})),
    ),
    passes("a source build runs where it was built", glibc("2.17", linux().torch("2.9.0a0+git1234567", "12.8"))),
    passes("nothing installed yet, on a current system", FRESH),
    fails(
        "a wheel that was copied in by force",
        glibc("2.17", linux().torch("2.9.1+cu128")),
        says="torch 2.9.1+cu128 needs glibc 2.28, and this system has 2.17",
        severity="error",
        certainty="likely",
        fix="manual",
    ),
    fails(
        "CentOS 7 before the installation: older releases run, so this is advice",
        glibc("2.17", FRESH),
        says="the current torch needs glibc 2.28",
        severity="info",
    ),
    fails(
        "older than every wheel",
        glibc("2.12", FRESH),
        says="every torch wheel needs glibc 2.17, and this system has 2.12",
        severity="error",
        certainty="certain",
    ),
    fails("Alpine", FRESH.set(ALPINE), says="uses musl instead of glibc", severity="error", certainty="certain"),
    fails(
        "the loader names the version that it misses, whatever the wheel's tag promises",
        glibc("2.31", linux().torch("2.9.1+cu129")).set(LOADER),
        says="a library needs glibc 2.34, and this system has 2.31",
        severity="error",
        certainty="certain",
    ),
    passes("an old complaint, and the system has it by now", glibc("2.39", linux()).set(LOADER)),
    skips("Alpine with a torch of its own", linux().torch("2.9.1", None).set(ALPINE)),
    skips("Windows", windows()),
    skips("macOS", FRESH.set({"system.os": "darwin"})),
    unknown_when("which C library it is", linux().unknown("system.glibc")),
    unknown_when("a platform without wheels in the matrix", FRESH.set({"system.arch": "riscv64"})),
]
