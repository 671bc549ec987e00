"""CD602: Windows refuses memory for want of a page file."""

from __future__ import annotations

from cudadoctor.testing import GIB, fails, linux, passes, skips, unknown_when, windows

RULE = "CD602"


def fixed(gib: float, path: str = "C:\\pagefile.sys") -> dict[str, object]:
    return {"path": path, "mode": "fixed", "initial": int(gib * GIB), "maximum": int(gib * GIB)}


REPORTED = {"symptom.paging_file_too_small": {"text": "[WinError 1455] The paging file is too small"}}

CASES = [
    passes("Windows manages it", windows()),
    passes("a large one", windows().set({"memory.page_file": [fixed(32)]}), says="32 GiB"),
    passes(
        "a small one beside one that Windows manages",
        windows().set({"memory.page_file": [fixed(2), {"path": "D:\\pagefile.sys", "mode": "system-managed"}]}),
    ),
    passes(
        "two that are large together", windows().set({"memory.page_file": [fixed(8), fixed(8, "D:\\pagefile.sys")]})
    ),
    fails(
        "a laptop with a small one",
        windows().set({"memory.page_file": [fixed(2)], "memory.total": 16 * GIB}),
        says="2.0 GiB",
        certainty="likely",
        severity="warning",
        blame="machine",
        fix="enlarge-page-file",
    ),
    fails(
        "none", windows().set({"memory.page_file": []}), says="no page file", certainty="certain", severity="warning"
    ),
    fails(
        "none beside 128 GiB of memory: advice",
        windows().set({"memory.page_file": [], "memory.total": 128 * GIB}),
        severity="info",
    ),
    fails(
        "a program reported it, whatever the setting",
        windows().set(REPORTED),
        says="WinError 1455",
        certainty="certain",
        severity="error",
        fix="enlarge-page-file",
    ),
    fails("a traceback alone", windows().only().set(REPORTED), certainty="certain", severity="error"),
    fails(
        "torch was refused memory on Windows",
        windows().only("system.os").set({"symptom.host_out_of_memory": {"text": "not enough memory"}}),
        certainty="likely",
        severity="error",
    ),
    fails(
        "torch's words on Windows, and nothing else tells of the system",
        windows()
        .only()
        .set({"symptom.host_out_of_memory": {"text": "DefaultCPUAllocator: not enough memory: you tried to allocate"}}),
        certainty="likely",
    ),
    skips(
        "torch's words on Linux",
        linux().only().set({"symptom.host_out_of_memory": {"text": "DefaultCPUAllocator: can't allocate memory"}}),
    ),
    skips("Linux", linux()),
    skips("neither system nor page file are known", linux().only("examination.kind")),
    unknown_when("the registry cannot be read", windows().unknown("memory.page_file")),
    unknown_when("its size cannot be read", windows().set({"memory.page_file": [{"path": "C:\\p", "mode": "fixed"}]})),
]
