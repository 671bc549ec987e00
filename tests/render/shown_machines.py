"""Machines to be shown in the formats that schedulers and monitors read: recorded ones, and some that nobody recorded.

All are judged by the real rules, unless a test is about what no rule says today: a crash, or a text made to break a
format.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Optional

from reports import healthy, outcome, replaced, view

from cudadoctor.cli._diagnosis import exit_code, view_of_texts
from cudadoctor.diagnose import diagnose
from cudadoctor.matrix import load_matrix
from cudadoctor.model import Evidence, FixStep
from cudadoctor.plan import make_plan
from cudadoctor.probes.examine import examine
from cudadoctor.render.view import MatrixInfo, Pasted, Read, View
from cudadoctor.system.replay import ReplaySystem
from cudadoctor.testing import Machine, linux

XID = "[ 1.0] NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.\n"

MACHINES = Path(__file__).resolve().parent.parent / "machines"
RECORDED = sorted(path.parent.name for path in MACHINES.glob("*/machine.json"))


def judged(
    machine: Machine, *, fail_on: str = "error", unknown_ok: bool = False, retry_code: Optional[int] = None
) -> View:
    """What `check` would show of a machine, with these options."""
    matrix = load_matrix()
    report = diagnose(machine.facts, matrix)
    plan = make_plan(report, matrix)
    return View(
        report,
        exit_code(report, fail_on, unknown_ok, retry_code),
        plan.steps,
        plan.advice,
        MatrixInfo("2026.11.0", "2026-11-20"),
        fail_on,
        "1.2.3",
    )


@cache
def recorded(name: str) -> View:
    return judged(Machine(examine(ReplaySystem(str(MACHINES / name)))))


def eight_gpus() -> Machine:
    machine = linux()
    for index in range(8):
        machine = machine.gpu("NVIDIA H100 80GB HBM3", "9.0", 80, device_id="2330", index=index)
    return machine


def lost_gpu() -> Machine:
    """Of eight GPUs the second has fallen off the bus: of it nothing else is known."""
    gone = [name for name in eight_gpus().facts if name.startswith("gpu.1.") and name != "gpu.1.lost"]
    return eight_gpus().unknown(*gone, reason="NVML: GPU is lost").set({"gpu.1.lost": True})


def crashed() -> View:
    message = "cudadoctor's own rule CD303 failed: ValueError: no such version"
    return view(*replaced(outcome("CD303", "crash", message, blame="tool")))


def warned(fail_on: str = "error") -> View:
    """A machine that works and has no swap."""
    swap = outcome("CD601", "fail", "no swap: a loader that outgrows RAM gets killed", severity="warning")
    return view(*replaced(swap), roots=("CD601",), fail_on=fail_on)


def undecided(unknown_ok: bool = False) -> View:
    found = outcome("CD106", "unknown", "cannot tell whether the driver answers: NVML timed out", blame="machine")
    return view(*replaced(found, outcome("CD303", "unknown", "cannot tell the driver")), unknown_ok=unknown_ok)


def pasted_warning() -> View:
    """A pasted text that shows something to mend and does not tell whether the driver answers."""
    swap = outcome("CD601", "fail", "no swap", severity="warning")
    shown = view(swap, outcome("CD106", "unknown", "cannot tell"), roots=("CD601",))
    return shown._replace(pasted=Pasted((Read("", "free", 1, 3),)))


# What stands in a name, a message or a path, and means something to the reader of one of the formats.
NASTY = {
    "perfdata": "a | b=1;2;3",
    "quotes": 'it\'s "quoted" `cmd` $HOME \\n \\',
    "lines": "first\nsecond\r\n::error::third\n::endgroup::\n  ::set-output name=a::b",
    "the older commands": "see ##[error]x and ##vso[task.complete]y",
    "percent": "%0A%25 100%, a: b, c",
    "cdata": "<![CDATA[ x ]]> ]]&gt; <b>&amp;</b> --> <?pi?>",
    "controls": "\x00\x07\x1b[31mred\x1b[0m\x7f\x9b tab\there",
    "not of XML": "\ufffe\uffff \ud800 \udfff",
    "emoji and accents": "caf\u00e9 \u5e73\u548c \U0001f525 \u202egnp.exe",
    "very long": "long " * 2000,
    "very long word": "x" * 10000,
    "empty": "",
}


def nasty(text: str) -> View:
    """A report in which everything that can hold a text of others holds this one."""
    failed = outcome(
        "CD302",
        "fail",
        f"torch says: {text}",
        evidence=(Evidence("torch.version", text, text), Evidence("torch.cuda", None, text)),
        not_helping=(f"not {text}",),
        data={"text": text},
    )
    step = FixStep("a", f"Do {text}", "install", ("pip", "install", text), undo=text, mends=("CD302",))
    by_hand = FixStep("b", text, "manual", None, instructions=f"{text}\n    {text}", mends=("CD302",))
    open_link = outcome("CD106", "unknown", f"cannot tell: {text}", evidence=(Evidence("driver.smi_path", text, text),))
    skipped = outcome("CD303", "skip", f"not asked: {text}", because_of="CD302")
    hint = outcome("CD201", "fail", text, severity="info")
    machine = linux().set(
        {
            "gpu.0.name": text,
            "gpu.0.throttle_reasons": [text],
            "scheduler.node": text,
            "driver.module_version": text,
            "driver.module_flavour": text,
            "torch.version": text,
        }
    )
    shown = view(
        *replaced(failed, open_link, skipped, hint),
        machine=machine,
        roots=("CD302",),
        steps=(step, by_hand),
        ignored={"CD601": text},
    )
    return shown._replace(matrix=MatrixInfo(text, text))


@cache
def made() -> dict[str, View]:
    """Machines that nobody recorded, by what they are."""
    return {
        "a GPU of eight is lost": judged(lost_gpu()),
        "a GPU of eight is lost, another node may do": judged(lost_gpu(), retry_code=75),
        "a status for retries that means something else": judged(lost_gpu(), retry_code=3),
        "a check crashed": crashed(),
        "warned": warned(),
        "warned, and that counts": warned("warning"),
        "undecided": undecided(),
        "undecided, and accepted": undecided(unknown_ok=True),
        "pasted: nothing that is known": view_of_texts([("a.txt", "hello\n")]),
        "pasted: an Xid": view_of_texts([("a.txt", XID)]),
        "pasted: a warning, and little else": pasted_warning(),
        "healthy": view(*healthy()),
        "healthy, eight GPUs": judged(eight_gpus()),
        "nothing judged": view(),
        **{f"nasty: {what}": nasty(text) for what, text in NASTY.items()},
    }


@cache
def everything() -> dict[str, View]:
    return {**{name: recorded(name) for name in RECORDED}, **made()}
