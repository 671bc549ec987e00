"""CD409: Pythons without the global lock."""

from __future__ import annotations

from cudadoctor.testing import GONE, fails, linux, passes, skips, unknown_when, windows

RULE = "CD409"

FREE = {"python.free_threaded": True}
NONE_FOUND = {"symptom.no_matching_wheel": {"text": "(from versions: none)", "requirement": "xformers"}}
FRESH = linux().no_torch().set({"python.version": "3.13.2", **FREE})

CASES = [
    passes("the usual build", linux(), says="usual build"),
    passes("torch is there already", linux().set(FREE)),
    fails("torch has wheels, others may not: advice", FRESH, says="Python 3.13t is free-threaded", severity="info"),
    fails(
        "none for this one, and the usual one has them",
        FRESH.set({"python.version": "3.12.4"}),
        says="no wheel for the free-threaded Python 3.12t",
        severity="error",
        certainty="certain",
        fix="use-python",
    ),
    fails("pip found nothing for another package", FRESH.set(NONE_FOUND), severity="error", certainty="likely"),
    fails(
        "in a report, where no more than the banner tells",
        windows().only().set({"examination.kind": "report", **FREE, **NONE_FOUND}),
        certainty="likely",
        fix="use-python",
    ),
    skips("a platform without wheels", FRESH.set({"python.arch": "ppc64le", "system.arch": "ppc64le"}), says="ppc64le"),
    skips("no Python", linux().set({"python.free_threaded": GONE})),
    skips("a report that does not speak of it", linux().only("torch.version").set({"examination.kind": "report"})),
    unknown_when("the build could not be read", linux().unknown("python.free_threaded")),
]
