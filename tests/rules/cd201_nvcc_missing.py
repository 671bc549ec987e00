"""CD201: no nvcc is no fault, unless something is to be built."""

from __future__ import annotations

from cudadoctor.testing import GONE, container, fails, linux, passes, skips, unknown_when, windows, wsl

RULE = "CD201"

ASKED = {"symptom.nvcc_missing": {"text": "flash_attn was requested, but nvcc was not found."}}
AT_USR_LOCAL = {"root": "/usr/local/cuda-13.0", "version": "13.0.88", "nvcc": "/usr/local/cuda-13.0/bin/nvcc"}
OF_CUDA_11 = {"root": "/usr/local/cuda-11.8", "version": "11.8.89", "nvcc": "/usr/local/cuda-11.8/bin/nvcc"}
RUNTIME_ONLY = {"root": "/usr/local/cuda-13.0", "version": "13.0.2", "nvcc": None, "found_by": "usr-local"}
ON_PATH = {"toolkit.nvcc_on_path": "/usr/bin/nvcc", "toolkit.nvcc_on_path_version": "12.0.140"}

CASES = [
    skips("torch runs without any toolkit", linux(), says="no nvcc: not needed, torch's wheels bring their own"),
    skips("a container image with the runtime libraries only", container().set({"toolkit.found": [RUNTIME_ONLY]})),
    skips("Windows without a toolkit", windows()),
    skips("WSL without a toolkit", wsl()),
    passes("Debian's nvcc", linux().set(ON_PATH), says="nvcc 12.0.140"),
    passes("a toolkit off PATH", linux().set({"toolkit.found": [AT_USR_LOCAL]}), says="/usr/local/cuda-13.0, not on"),
    passes("its version could not be asked", linux().set(ON_PATH).unknown("toolkit.nvcc_on_path_version")),
    fails(
        "a build of flash-attn asked for it",
        linux().set(ASKED),
        says="a build needs the CUDA toolkit's nvcc, and there is none",
        severity="error",
        certainty="certain",
        fix="install-toolkit",
    ),
    fails(
        "a build asked for it, and a folder could not be read",
        linux().set(ASKED).unknown("toolkit.found"),
        certainty="likely",
        fix="install-toolkit",
    ),
    fails(
        "a build did not find the toolkit that is there: no second one is to be installed",
        linux().set({**ASKED, "toolkit.found": [OF_CUDA_11, AT_USR_LOCAL]}),
        says="it is in /usr/local/cuda-13.0, and neither PATH nor CUDA_HOME leads there",
        severity="error",
        certainty="likely",
        fix="change-variable",
    ),
    passes("nvcc is on PATH, whatever the old error said", linux().set({**ASKED, **ON_PATH})),
    unknown_when("nobody looked", linux().unknown("toolkit.found", "toolkit.nvcc_on_path")),
    skips(
        "not on PATH, and the folders are unreadable",
        linux().unknown("toolkit.found").set({"toolkit.nvcc_on_path": GONE}),
    ),
    skips(
        "a person asked for nvcc, and no build did",
        linux().only().set({"symptom.shell_without_nvcc": {"text": "bash: nvcc: command not found"}}),
        says="not needed",
    ),
    passes("a report that shows nvcc's version", linux().only().set({"toolkit.nvcc_on_path_version": "12.4.131"})),
    fails(
        "a report that shows nvcc, and a build that did not find it",
        linux()
        .only()
        .set(
            {
                "toolkit.nvcc_on_path_version": "12.4.131",
                "symptom.nvcc_missing": {"text": "OSError: CUDA_HOME environment variable is not set."},
            }
        ),
        says="though nvcc 12.4.131 is on PATH",
        severity="error",
        certainty="likely",
        fix="manual",
    ),
]
