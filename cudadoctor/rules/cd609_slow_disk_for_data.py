"""The data lies on a slow disk

What it checks
    What kind of disk lies under the working folder: a turning disk, a network, or inside WSL a folder of Windows. That
    a GPU has to wait for it is said only where somebody reports slow work.

Why it matters
    A data loader that reads many small files needs thousands of them a second. A turning disk gives some hundred, a
    network drive and WSL's /mnt/c hardly more: the GPU then waits, and its use goes up and down.

How to fix
    Copy the data to a local SSD (inside WSL: into its own file system, /home), or pack it into few large files. More
    DataLoader workers help against waiting for a network, and hardly with a turning disk.

References
    https://learn.microsoft.com/windows/wsl/filesystems
    https://pytorch.org/docs/stable/data.html
"""

from __future__ import annotations

from cudadoctor.derive.surroundings import in_wsl
from cudadoctor.rules.api import ENVIRONMENT, INFO, LIKELY, POSSIBLE, WARNING, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD609",
    name="slow-disk-for-data",
    title="The data lies on a slow disk",
    severity=WARNING,
    blame=ENVIRONMENT,
    precedence=82,
)

_KIND, _FILESYSTEM, _SLOW = "disk.kind", "disk.filesystem", "symptom.work_is_slow"
_SAYS = {"hdd": "a turning disk", "network": "a network drive"}
# How WSL shows Windows' drives.
_OF_WINDOWS = ("9p", "drvfs", "v9fs")


def judge(case: Case) -> Outcome:
    kind, filesystem = case.fact(_KIND), case.fact(_FILESYSTEM)
    slow = case.fact(_SLOW).is_known
    what = _SAYS.get(str(kind.value), "")
    if in_wsl(case) and filesystem.value in _OF_WINDOWS:
        what = "a drive of Windows, which WSL reaches slowly"
    elif kind.value == "network" and not slow:
        # The home of every cluster; most are fast enough.
        return case.passed("the working folder is on a network drive, and nobody reports slow work", (_KIND,))
    if what:
        # Where the data lies is not known, only where the program was started.
        return case.failed(
            f"the working folder is on {what}" + (": the GPU may wait for its data" if slow else ""),
            [name for name in (_KIND, _FILESYSTEM, _SLOW) if case.fact(name).is_known],
            certainty=LIKELY if slow else POSSIBLE,
            severity=WARNING if slow else INFO,
            fixes=(
                Remedy(
                    "manual",
                    {
                        "title": "Move the data to a fast disk",
                        "text": "Copy it to a local SSD (inside WSL: below /home), or pack it into few large files.",
                        "kind": "setting",
                        "id": "move-data",
                    },
                ),
            ),
        )
    if kind.is_known:
        return case.passed(f"the working folder is on {kind.get()}", (_KIND,))
    if not slow or kind.is_absent:
        return case.skipped("nothing tells on which disk the data lies")
    return case.undecided("the work is slow, and the kind of the disk under its data is not told", (_KIND, _SLOW))
