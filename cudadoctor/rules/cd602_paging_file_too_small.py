"""The Windows page file is too small

What it checks
    Whether Windows has a page file, and whether one of fixed size leaves room: Windows promises every process the
    memory that it asks for (commit), and refuses when memory and page files together cannot cover it.

Why it matters
    Each Python process that imports torch reserves several GB for the CUDA libraries. With a small page file, data
    loader workers fail with "The paging file is too small for this operation to complete" (WinError 1455), while
    memory is free. A machine with much memory meets the limit late: there it is advice.

How to fix
    Let Windows manage the page file, or give it a generous maximum. It takes a reboot. Fewer workers help meanwhile.

References
    https://learn.microsoft.com/windows/client-management/introduction-page-file
"""

from __future__ import annotations

from cudadoctor.rules.api import CERTAIN, ERROR, INFO, LIKELY, MACHINE, WARNING, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD602",
    name="paging-file-too-small",
    title="The Windows page file is too small",
    severity=WARNING,
    blame=MACHINE,
    precedence=62,
)

_GIB = 1 << 30
# Four workers of 3 to 4 GB each: below this a plain DataLoader meets the limit. A rule of thumb.
_ROOM = 16 * _GIB
# Memory and page files together that carry a dozen such workers. A rule of thumb, too.
_AMPLE = 64 * _GIB

_REFUSED = "symptom.host_out_of_memory"


def judge(case: Case) -> Outcome:
    files = case.fact("memory.page_file")
    reported = case.fact("symptom.paging_file_too_small").is_known
    refused = str(case.value(_REFUSED, {}).get("text", ""))
    # torch's words on Windows; on Linux it "can't allocate memory".
    meant = reported or files.is_known or "DefaultCPUAllocator: not enough memory" in refused
    if case.value("system.os", "windows" if meant else "") != "windows":
        return case.skipped("page files are Windows' own")
    if reported:
        return _failed(
            case,
            "Windows refused memory: the page file is too small (WinError 1455)",
            ("symptom.paging_file_too_small", "memory.page_file"),
            CERTAIN,
            ERROR,
        )
    if case.fact(_REFUSED).is_known:
        return _failed(
            case,
            "Windows refused a program memory: mostly because the page file is too small",
            (_REFUSED, "memory.page_file"),
            LIKELY,
            ERROR,
        )
    if not files.is_known:
        return case.undecided(f"cannot read how the page file is set: {files.reason}", ("memory.page_file",))
    evidence = ("memory.page_file", "memory.total", "memory.commit_limit")
    if any(entry.get("mode") != "fixed" for entry in files.get()):
        return case.passed("Windows manages the page file", ("memory.page_file",))
    sizes = [entry.get("maximum") for entry in files.get()]
    if any(size is None for size in sizes):
        return case.undecided("the page file's maximum cannot be read", ("memory.page_file",))
    total = sum(sizes)
    if total >= _ROOM:
        return case.passed(f"the page file may grow to {total / _GIB:.0f} GiB", ("memory.page_file",))
    severity = INFO if case.value("memory.total", 0) + total >= _AMPLE else WARNING
    if not sizes:
        what = "there is no page file: programs may be refused memory while some is free"
        return _failed(case, what, evidence, CERTAIN, severity)
    what = f"the page file is fixed at {total / _GIB:.1f} GiB: torch's processes may be refused memory"
    return _failed(case, what, evidence, LIKELY, severity)


def _failed(case: Case, message: str, evidence: tuple[str, ...], certainty: str, severity: str = WARNING) -> Outcome:
    return case.failed(
        message,
        evidence,
        certainty=certainty,
        severity=severity,
        fixes=(Remedy("enlarge-page-file", {"effect": {"symptom.paging_file_too_small": None}}),),
        not_helping=("installing torch again: Windows refuses the memory, not torch",),
    )
