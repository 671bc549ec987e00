"""CD404: a Python that pip may not install into."""

from __future__ import annotations

from cudadoctor.testing import GONE, container, fails, linux, passes, skips, unknown_when, windows

RULE = "CD404"

DEBIAN = {
    "python.externally_managed": True,
    "python.environment": "system",
    "python.executable": "/usr/bin/python3",
    "python.prefix": "/usr",
}
REFUSED = {"symptom.externally_managed": {"text": "error: externally-managed-environment"}}

CASES = [
    passes("a venv", linux().no_torch()),
    passes("Windows' Python", windows().no_torch()),
    fails(
        "Debian's Python before the installation: advice, since the plan makes an environment first",
        linux().no_torch().set(DEBIAN),
        says="the Python belongs to the system's package manager: pip refuses",
        severity="info",
        blame="environment",
        fix="make-venv",
    ),
    fails("in a container", container().no_torch().set(DEBIAN), says="the Python of the container"),
    fails("pip has refused", linux().no_torch().set({**DEBIAN, **REFUSED}), severity="error", fix="make-venv"),
    skips("Debian's own torch is there", linux().torch("2.6.0").set({**DEBIAN, "torch.origin": "system"})),
    skips("no Python", linux().no_torch().set({"python.externally_managed": GONE})),
    unknown_when("its folder is unreadable", linux().unknown("python.externally_managed")),
    unknown_when("whether torch is there", linux().set(DEBIAN).unknown("torch.version")),
]
