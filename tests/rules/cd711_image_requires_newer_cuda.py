"""CD711: the image asks for a newer driver."""

from __future__ import annotations

from cudadoctor.testing import Machine, fails, linux, passes, skips

RULE = "CD711"
NEVER_UNDECIDED = "without the toolkit's or the image's own words there is nothing to decide"


def asks(cuda: str, machine: Machine) -> Machine:
    return machine.set(
        {"symptom.container_requires_cuda": {"text": f"unsatisfied condition: cuda>={cuda}", "wanted": cuda}}
    )


def built_for(machine: Machine, **told: str) -> Machine:
    return machine.set({"symptom.container_requires_driver": {"text": "This container was built for", **told}})


ON_550 = linux().driver("550.144.03", "12.4")
REPORT = linux().only()

CASES = [
    passes("built for a driver that is older", built_for(linux(), wanted="550.54"), says="580.95.05"),
    fails(
        "cuda>=12.8 on a 550 driver: the major is equal",
        asks("12.8", ON_550),
        says=["asks for CUDA 12.8", "CUDA up to 12.4", "run all the same"],
        severity="error",
        certainty="certain",
        blame="machine",
        fix=["update-driver", "run-image-all-the-same", "use-older-image"],
    ),
    fails("cuda>=13.0 on a 550 driver: it is not", asks("13.0", ON_550), fix=["update-driver", "use-older-image"]),
    fails("the toolkit's words alone", asks("11.8", REPORT), certainty="certain", fix="run-image-all-the-same"),
    fails(
        "a driver that serves it: of another host", asks("12.8", linux()), says="another driver", certainty="possible"
    ),
    fails(
        "an image of NVIDIA's",
        built_for(REPORT, wanted="550.54", found="535.161.08"),
        says=["built for driver 550.54", "535.161.08"],
        certainty="certain",
        fix="update-driver",
    ),
    fails("the same without the driver's number", built_for(REPORT, wanted="570"), certainty="likely"),
    fails(
        "the whole condition",
        REPORT.set({"symptom.container_requires_cuda": {"text": "...", "condition": "cuda>=12.8"}}),
        says="asks for CUDA 12.8",
    ),
    skips("nobody refused an image", linux()),
]
