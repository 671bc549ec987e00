"""CD301: no torch in the environment that is looked at."""

from __future__ import annotations

from cudadoctor.testing import GONE, fails, linux, passes, unknown_when, windows

RULE = "CD301"

OTHER = [{"executable": "/home/user/miniconda3/bin/python", "torch": "2.9.1"}]
NO_PYTHON = {"python.executable": GONE, "python.version": GONE, "python.environment": GONE}

CASES = [
    passes("a CUDA build", linux(), says="torch 2.14.1+cu130"),
    passes("a CPU build is torch too", linux().torch("2.14.1+cpu")),
    passes("torch of NVIDIA's container", linux().torch("2.9.0a0+145a3a7bda.nv25.10", "13.0")),
    fails(
        "a fresh environment: no error, since such a machine can be in perfect health",
        linux().no_torch(),
        says="torch is not installed in ~/proj/.venv",
        severity="warning",
        certainty="certain",
        blame="environment",
        fix="install-torch",
    ),
    fails(
        "another environment has it",
        linux().no_torch().set({"python.others_with_torch": OTHER}),
        says="/home/user/miniconda3/bin/python has torch 2.9.1",
    ),
    fails(
        "nobody said which environment, and cudadoctor looks at its own",
        linux().no_torch().set({"python.chosen_by": "own"}),
        says="cudadoctor's own environment: activate yours, or name it with --python",
    ),
    fails("Windows", windows().no_torch(), fix="install-torch"),
    fails("no Python at all", linux().no_torch().set(NO_PYTHON), says="no Python was found", fix="install-torch"),
    unknown_when(
        "the environment is unreadable", linux().no_torch().unknown("torch.version"), says="permission denied"
    ),
]
