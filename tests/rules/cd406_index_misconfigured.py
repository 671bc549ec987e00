"""CD406: indexes that do not exist, do not have what is asked for, or lose."""

from __future__ import annotations

from typing import Any

from cudadoctor.testing import Machine, fails, linux, passes, skips, unknown_when, windows

RULE = "CD406"

WHL = "https://download.pytorch.org/whl/"
PYPI = "https://pypi.example/simple"


def reported(machine: Machine, index: str = "", extra: str = "", **symptoms: str) -> Machine:
    """A report with a command and what pip said."""
    changes: dict[str, Any] = {"examination.kind": "report", "install.program": "pip"}
    if index:
        changes["install.index_url"] = index
    changes["install.extra_index_urls"] = [extra] if extra else []
    for name, requirement in symptoms.items():
        changes[f"symptom.{name}"] = {"text": f"... {requirement}", "requirement": requirement}
    kept = ("system.os", "system.arch", "python.version", "torch.version", "torch.cuda", "smi.gpus")
    return machine.only(*kept).set(changes)


CPU_ON_WINDOWS = windows().torch("2.15.0+cpu")

CASES = [
    passes("nothing is configured", linux()),
    passes("an index of PyTorch's", linux().set({"pip.index_url": WHL + "cu126"})),
    passes("a night's", linux().set({"pip.index_url": WHL + "nightly/cu140"})),
    passes("old times", linux().set({"pip.extra_index_urls": [WHL + "cu80", WHL + "torch_stable.html"]})),
    passes("an extra index that lost to nobody", linux().set({"pip.extra_index_urls": [WHL + "cu126"]})),
    fails(
        "there never was a cu125",
        linux().set({"pip.extra_index_urls": [WHL + "cu125"]}),
        says=["PyTorch has no index cu125", "the nearest is cu12"],
        severity="warning",
        certainty="certain",
        fix="install-torch",
    ),
    fails("in a command", reported(linux(), WHL + "cu125"), severity="error", certainty="certain"),
    fails("a name that people make up", reported(linux(), WHL + "cuda12.8"), says="the nearest is cu128"),
    fails("a number alone", reported(linux(), WHL + "126"), says="the nearest is cu126"),
    fails("one that may come", reported(linux(), WHL + "cu142"), says="that cudadoctor knows", certainty="likely"),
    fails(
        "pip says so itself",
        linux().set(
            {
                "symptom.index_unreachable": {
                    "text": f"ERROR: HTTP error 403 while getting {WHL}cu127/torch/",
                    "status": "403",
                }
            }
        ),
        says="no index cu127",
        severity="error",
        certainty="certain",
    ),
    fails(
        "a release that this variant does not have",
        reported(linux(), WHL + "cu121", version_not_on_index="torch==2.8.0"),
        says=["torch 2.8.0 was not built for cu121", "cu126"],
        severity="error",
        certainty="certain",
    ),
    fails(
        "the same by its local version",
        reported(linux(), WHL + "torch_stable.html", no_matching_wheel="torch==2.0.0+cu121"),
        says="torch 2.0.0 was not built for cu121",
    ),
    fails(
        "a local version without the index that has it",
        reported(linux(), version_not_on_index="torch==2.6.0+cu124"),
        says="lies on PyTorch's own index",
        certainty="likely",
    ),
    fails(
        "another package looked for there",
        reported(linux(), WHL + "cu126", no_matching_wheel="transformers"),
        says="transformers is looked for on PyTorch's index",
        severity="error",
        certainty="certain",
        fix="manual",
    ),
    fails(
        "PyPI's newer torch won",
        reported(CPU_ON_WINDOWS, extra=WHL + "cu128"),
        says="cu128 is an extra index only",
        severity="warning",
        certainty="likely",
    ),
    fails("a mirror of PyPI", reported(CPU_ON_WINDOWS, PYPI), says="which has PyPI's builds", certainty="likely"),
    fails("the CPU index", linux().torch("2.6.0+cpu").set({"pip.index_url": WHL + "cpu"}), says="CPU index"),
    fails("uv's backend", linux().torch("2.6.0+cpu").set({"uv.torch_backend": "cpu"}), says="uv is told"),
    passes(
        "the CPU index on a machine without a GPU",
        linux().no_gpu().torch("2.6.0+cpu").set({"pip.index_url": WHL + "cpu"}),
    ),
    skips("a report without an index", linux().only("torch.version").set({"examination.kind": "report"})),
    unknown_when("pip found nothing, and no index is shown", reported(linux(), no_matching_wheel="torch")),
    unknown_when("settings that could not be read", linux().unknown("pip.index_url")),
    fails(
        "a minor that never was",
        reported(linux(), version_not_on_index="torch==1.15.0"),
        says="there is no torch 1.15.0",
        certainty="likely",
    ),
]
