"""CD904: what a file or a report does not tell, and what to ask for."""

from __future__ import annotations

from cudadoctor.testing import Machine, fails, linux, passes, skips

RULE = "CD904"


def told(machine: Machine, kind: str = "report") -> Machine:
    return machine.set({"examination.kind": kind})


CASES = [
    passes("a whole report", told(linux())),
    passes("a machine without a card says so", told(linux().no_gpu(), "replay")),
    fails(
        "only nvidia-smi was pasted",
        told(linux().unknown("torch.version", "system.os")),
        says=["torch's build", "operating system"],
        severity="info",
        blame="tool",
    ),
    fails(
        "only torch's part was pasted",
        told(linux().only("system.os", "torch.version", "torch.cuda")),
        says=["the GPU", "the driver"],
    ),
    skips("the machine itself was looked at", told(linux().unknown("torch.version"), "live")),
    skips("nobody says where the facts come from", linux().unknown("examination.kind")),
]

NEVER_UNDECIDED = "that something is unknown is what it tells"
