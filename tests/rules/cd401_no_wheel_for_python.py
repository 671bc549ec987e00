"""CD401: Pythons that no torch release has a wheel for."""

from __future__ import annotations

from cudadoctor.testing import GONE, Machine, fails, linux, passes, skips, unknown_when, windows

RULE = "CD401"

FRESH = linux().no_torch()
MAC = FRESH.set({"system.os": "darwin", "system.arch": "arm64", "system.libc": GONE, "system.glibc": GONE})


def free_threaded(version: str, machine: Machine = FRESH) -> Machine:
    return machine.python(version).set({"python.free_threaded": True})


def pip_said(symptom: str, requirement: str, **more: str) -> Machine:
    """A report with pip's error and nothing else."""
    shown = more.get("versions", "none")
    said = {"text": f"requirement {requirement} (from versions: {shown})", "requirement": requirement, **more}
    return linux().only("examination.kind").set({"examination.kind": "report", f"symptom.{symptom}": said})


CASES = [
    passes("torch is there", linux()),
    passes("torch is there, for a Python that the matrix does not know", linux().python("3.19.0")),
    passes("Python 3.12", FRESH, says="has wheels for Python 3.12"),
    passes("an old one has old releases", FRESH.python("3.8.18"), says="has wheels for Python 3.8"),
    passes("and one that is older still", FRESH.python("3.6.9"), says="torch 1.10.2 has wheels for Python 3.6"),
    passes("the newest that has any", FRESH.python("3.15.0")),
    passes("free-threaded 3.14", free_threaded("3.14.0"), says="Python 3.14t"),
    passes("Windows", windows().no_torch()),
    passes("ARM", FRESH.set({"system.arch": "aarch64"})),
    passes("macOS", MAC),
    fails(
        "older than every wheel",
        FRESH.python("3.5.2"),
        says=["no torch release has a wheel for Python 3.5 on linux-x86_64", "only for 3.6 to 3.15"],
        severity="error",
        certainty="certain",
        blame="environment",
        fix="use-python",
    ),
    fails(
        "newer than the matrix: there may be wheels by now",
        FRESH.python("3.16.0"),
        says="no torch release that cudadoctor knows has a wheel for Python 3.16",
        certainty="likely",
        fix="use-python",
    ),
    fails("a free-threaded one that never had any", free_threaded("3.12.0"), says="Python 3.12t"),
    fails("a new Python on an old kind of Mac", MAC.set({"system.arch": "x86_64"}).python("3.13.1")),
    fails(
        "PyPy",
        FRESH.set({"python.implementation": "PyPy", "python.version": "3.10.14"}),
        says="PyPy has no torch wheels: they are for CPython",
        certainty="certain",
        fix="use-python",
    ),
    skips("no Python at all", FRESH.set({"python.version": GONE, "python.executable": GONE})),
    unknown_when("which Python it is", FRESH.unknown("python.version")),
    unknown_when(
        "a platform without any wheels in the matrix", FRESH.set({"system.arch": "riscv64"}), says="linux-riscv64"
    ),
    unknown_when("whether torch is there, with a Python of no wheel", FRESH.python("3.16.0").unknown("torch.version")),
    fails(
        "pip found nothing on the first days of a Python",
        linux()
        .only("system.arch")
        .set(
            {
                "examination.kind": "report",
                "python.version": "3.12.0",
                "symptom.no_matching_wheel": {"text": "(from versions: none)", "requirement": "torch"},
            }
        ),
        says="Python 3.12.0, the first of its kind",
        certainty="likely",
        fix="use-python",
    ),
    fails(
        "an index of PyTorch's has nothing for this Python, which is not told",
        linux()
        .only()
        .set(
            {
                "examination.kind": "report",
                "install.index_url": "https://download.pytorch.org/whl/cu126",
                "symptom.no_matching_wheel": {"text": "?", "requirement": "torch", "versions": "none"},
            }
        ),
        says="no torch at all on the index of cu126 for this Python",
        certainty="possible",
    ),
    unknown_when(
        "an index of somebody's own has none",
        linux()
        .only()
        .set(
            {
                "examination.kind": "report",
                "install.index_url": "https://wheels.example/simple",
                "symptom.no_matching_wheel": {"text": "?", "requirement": "torch", "versions": "none"},
            }
        ),
    ),
    fails(
        "one release of torch that is older than this Python",
        linux()
        .only("system.arch")
        .set(
            {
                "examination.kind": "report",
                "python.version": "3.13.2",
                "symptom.version_not_on_index": {"text": "(from versions: 2.5.0)", "requirement": "torch==2.2.2"},
            }
        ),
        says="torch 2.2.2 has no wheel for Python 3.13",
        certainty="certain",
    ),
    fails(
        "pip's list begins after the release that is asked for",
        pip_said("version_not_on_index", "torch==1.10.0", versions="1.13.0, 1.13.1, 2.0.0"),
        says="pip finds torch from 1.13.0 on for this Python: torch 1.10.0 is older",
        certainty="likely",
        fix="use-python",
    ),
    fails(
        "a long-term release, of a minor that is known",
        pip_said("version_not_on_index", "torch==1.8.2+cu111", versions="2.0.0, 2.0.1"),
        says="torch 1.8.2 is older",
    ),
    fails(
        "nothing but the source packages of 2017",
        pip_said("version_not_on_index", "torch>=1.9", versions="0.1.2, 0.1.2.post1, 0.1.2.post2"),
        says="pip finds no wheel of torch for this Python",
        certainty="likely",
    ),
    fails(
        "no versions at all",
        pip_said("no_matching_wheel", "torch", versions="none"),
        says="finds no torch at all",
        certainty="possible",
    ),
    unknown_when(
        "no versions on an index that is named",
        pip_said("no_matching_wheel", "torch", versions="none").set(
            {"install.index_url": "https://download.pytorch.org/whl/cu999"}
        ),
    ),
    unknown_when(
        "the list of a CUDA variant's index begins with that variant",
        pip_said("version_not_on_index", "torch==1.10.0", versions="2.1.0+cu121, 2.1.1+cu121"),
    ),
    fails(
        "pip's list ends before the release that is asked for",
        pip_said("version_not_on_index", "torch==2.5.1", versions="2.4.0+cu124, 2.4.1+cu124"),
        says="it is too old for torch 2.5.1",
        certainty="likely",
    ),
    unknown_when(
        "a release that this variant has not",
        pip_said("version_not_on_index", "torch==2.9.1", versions="2.4.0+cu124, 2.4.1+cu124, 2.6.0+cu124"),
    ),
]
