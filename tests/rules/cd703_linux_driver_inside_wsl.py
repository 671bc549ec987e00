"""CD703: WSL uses the driver of Windows; a Linux one is in its way."""

from __future__ import annotations

from cudadoctor.testing import container, device_nodes, fails, linux, passes, skips, unknown_when, wsl

RULE = "CD703"

PACKAGES = {"driver.packages": [{"name": "libnvidia-compute-535", "version": None}]}
WINDOWS = wsl().facts.value("driver.libcuda")
LINUX = [
    {
        "path": "/usr/lib/x86_64-linux-gnu/libcuda.so.1",
        "real_path": "/usr/lib/x86_64-linux-gnu/libcuda.so.535.183.01",
        "found_by": "ld.so.cache",
        "kind": "driver",
        "version": "535.183.01",
    }
]
STUB = [dict(LINUX[0], path="/usr/local/cuda/lib64/stubs/libcuda.so.1", kind="stub", version=None)]
DESKTOP = container().set({"system.wsl": 2, "device.nodes": device_nodes("/dev/dxg")})

CASES = [
    passes("only Windows' library", wsl()),
    passes("a stub of the toolkit is no driver", wsl().set({"driver.libcuda": [*STUB, *WINDOWS]})),
    passes("Docker Desktop mounts Windows' library at a place of its own", DESKTOP),
    fails(
        "a Linux libcuda comes first, and nvidia-smi does not answer",
        wsl().driver_fails(9, "no-driver", 9).set({**PACKAGES, "driver.libcuda": [*LINUX, *WINDOWS]}),
        says="/usr/lib/x86_64-linux-gnu/libcuda.so.1 is found before",
        certainty="certain",
        severity="error",
        blame="machine",
        fix="remove-linux-driver-from-wsl",
    ),
    fails(
        "a Linux libcuda comes first, and Windows' nvidia-smi answers all the same",
        wsl().set({**PACKAGES, "driver.libcuda": [*LINUX, *WINDOWS]}),
        certainty="likely",
        severity="error",
    ),
    fails(
        "a folder in LD_LIBRARY_PATH brings one: the folder goes, no package is purged",
        wsl().set(
            {
                "env.LD_LIBRARY_PATH": "/opt/old/lib",
                "driver.libcuda": [
                    {
                        "path": "/opt/old/lib/libcuda.so.1",
                        "real_path": "/opt/old/lib/libcuda.so.1",
                        "found_by": "LD_LIBRARY_PATH",
                        "kind": "driver",
                        "version": None,
                    },
                    *WINDOWS,
                ],
            }
        ),
        says="/opt/old/lib/libcuda.so.1",
        fix="change-variable",
    ),
    fails("a driver of a .run file, without packages", wsl().set({"driver.libcuda": LINUX}), severity="error"),
    fails(
        "packages that Windows' library hides: nothing is broken yet",
        wsl().set({**PACKAGES, "driver.libcuda": [*WINDOWS, *LINUX]}),
        says="libnvidia-compute-535",
        certainty="possible",
        severity="warning",
    ),
    fails(
        "packages, and the driver does not answer",
        wsl().driver_fails(9, "no-driver", 9).set({**PACKAGES, "driver.libcuda": [*WINDOWS, *LINUX]}),
        certainty="likely",
        severity="error",
    ),
    fails(
        "an image with a driver of its own, in Docker Desktop",
        DESKTOP.driver_fails(9, "no-driver", 9).set({"driver.libcuda": LINUX}),
        severity="error",
    ),
    skips("a machine of its own", linux()),
    skips(
        "Docker Desktop without --gpus: for CD701",
        DESKTOP.driver_fails(9, "no-driver", 9).set({"driver.libcuda": LINUX, "device.nodes": []}),
    ),
    unknown_when("whether this is WSL", linux().unknown("system.wsl")),
    unknown_when("the libraries could not be looked for", wsl().unknown("driver.libcuda")),
    fails(
        "somebody tells of the command that brought it",
        linux()
        .only()
        .set(
            {
                "symptom.wsl_named": {"text": "in WSL2"},
                "symptom.gpu_access_blocked": {"text": "GPU access blocked by the operating system"},
                "symptom.linux_driver_installed_by_hand": {"text": "apt install", "package": "nvidia-utils-535"},
            }
        ),
        says="inside WSL (nvidia-utils-535)",
        certainty="likely",
        severity="error",
        fix="remove-linux-driver-from-wsl",
    ),
]
