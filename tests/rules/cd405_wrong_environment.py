"""CD405: torch is installed in another place than where it is run."""

from __future__ import annotations

from typing import Any

from cudadoctor.testing import GONE, fails, linux, passes, skips, unknown_when, windows

RULE = "CD405"

VENV = "/home/user/proj/.venv/lib/python3.12/site-packages/torch"
USER = "/home/user/.local/lib/python3.12/site-packages/torch"
SYSTEM = "/usr/local/lib/python3.12/dist-packages/torch"
FRESH = linux().no_torch()
BY_PATH: dict[str, Any] = {
    "python.chosen_by": "PATH",
    "python.executable": "/usr/bin/python3",
    "python.prefix": "/usr",
    "python.environment": "system",
    "python.python_on_path": "/usr/bin/python3",
    "python.pip_on_path": {"path": "/usr/bin/pip", "interpreter": "/usr/bin/python3"},
}
CONDA = [{"executable": "/home/user/miniconda3/bin/python", "torch": "2.9.1"}]
CONDAS_PIP = {
    "python.pip_on_path": {
        "path": "/home/user/miniconda3/bin/pip",
        "interpreter": "/home/user/miniconda3/bin/python",
    }
}

CASES = [
    passes("torch is where it is looked for", linux()),
    passes("a fresh venv", FRESH, says="pip and python belong together"),
    passes("Windows", windows()),
    passes(
        "a venv that sees the system's packages covers them on purpose",
        linux().set({"torch.copies": [VENV, SYSTEM]}),
    ),
    passes(
        "pyenv's shims lie side by side",
        FRESH.set(
            {
                "python.python_on_path": "/home/user/.pyenv/shims/python",
                "python.pip_on_path": {
                    "path": "/home/user/.pyenv/shims/pip",
                    "interpreter": "/home/user/.pyenv/versions/3.12.1/bin/python",
                },
            }
        ),
    ),
    passes("no pip on PATH", FRESH.set({"python.pip_on_path": GONE})),
    fails(
        "a copy in the user's own folder wins over the environment's",
        linux().set({"torch.copies": [USER, VENV]}),
        says=["torch is installed 2 times on the import path", USER],
        severity="warning",
        certainty="certain",
        fix="manual",
    ),
    fails(
        "Debian's torch and one of pip's in the same Python",
        linux().set({**BY_PATH, "torch.copies": [SYSTEM, "/usr/lib/python3/dist-packages/torch"]}),
        severity="warning",
    ),
    fails(
        "nobody chose this Python, and another environment has torch",
        FRESH.set({**BY_PATH, "python.others_with_torch": CONDA}),
        says="torch 2.9.1 is in the environment of /home/user/miniconda3/bin/python, not in that of /usr/bin/python3",
        severity="warning",
        certainty="likely",
        blame="environment",
        fix="manual",
    ),
    fails(
        "a fresh venv was activated, and conda has torch as well: advice, torch is to be installed here",
        FRESH.set({"python.others_with_torch": CONDA}),
        severity="info",
        certainty="possible",
    ),
    fails(
        "the pip on PATH has put it into conda's",
        FRESH.set({"python.others_with_torch": CONDA, **CONDAS_PIP}),
        says="/home/user/miniconda3/bin/python",
        severity="warning",
        certainty="likely",
    ),
    fails(
        "the pip on PATH would install elsewhere: advice, printed commands name the interpreter",
        FRESH.set(CONDAS_PIP),
        says="the pip on PATH installs for /home/user/miniconda3/bin/python",
        severity="info",
    ),
    skips("no Python", FRESH.set({"python.executable": GONE})),
    unknown_when("which torch would be imported", linux().unknown("torch.version")),
    fails(
        "pip has it and python does not find it",
        linux()
        .only("torch.metadata_version")
        .set(
            {
                "examination.kind": "report",
                "symptom.torch_module_missing": {"text": "ModuleNotFoundError: No module named 'torch'"},
            }
        ),
        says="the Python that runs does not find it",
        severity="error",
        certainty="likely",
        fix="manual",
    ),
]
