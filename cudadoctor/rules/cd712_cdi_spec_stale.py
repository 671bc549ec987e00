"""The description of the GPUs for containers (CDI) is missing, stale or too new

What it checks
    Whether a container engine reported that it knows no such device (nvidia.com/gpu), that a driver file or device
    which the description lists is not there any more, or that it does not understand the description's version.

Why it matters
    podman, Docker and containerd pass a GPU in by a list of files and device nodes that was written once, mostly to
    /etc/cdi/nvidia.yaml. After a driver update it names libraries that are gone; after a restart device numbers can
    have changed. A toolkit that is newer than the engine can write a version that the engine does not read.

How to fix
    Write it again: sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml, also after each driver update. Too new
    for the engine: update the engine, or let nvidia-ctk cdi transform write an older version.

References
    https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/cdi-support.html
    https://github.com/cncf-tags/container-device-interface
"""

from __future__ import annotations

from cudadoctor.rules.api import CERTAIN, ERROR, LIKELY, MACHINE, POSSIBLE, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD712",
    name="cdi-spec-stale",
    title="The description of the GPUs for containers (CDI) is missing, stale or too new",
    severity=ERROR,
    blame=MACHINE,
    follows_from=("CD101", "CD103", "CD105"),
    precedence=4,
)

_FILE, _DEVICE, _VERSION, _INVALID, _UNKNOWN, _NO_CDI = (
    "symptom.cdi_file_missing",
    "symptom.cdi_device_missing",
    "symptom.cdi_spec_unsupported",
    "symptom.cdi_spec_invalid",
    "symptom.cdi_unresolvable",
    "symptom.cdi_driver_missing",
)
_LISTED = "symptom.cdi_devices_listed"
_GONE = "symptom.container_device_gone"
_NOT_HELPING = ("another image or torch build: the container does not even start",)


def judge(case: Case) -> Outcome:
    for name in (_FILE, _DEVICE):
        if not case.fact(name).is_known:
            continue
        told = case.value(name)
        path = told.get("path") or told.get("device") or "a driver file"
        return _failed(
            case,
            f"a container is to be given {path}, which is not there any more: its description is older than the driver",
            name,
            LIKELY,
            Remedy("generate-cdi-spec"),
        )
    if case.fact(_GONE).is_known:
        device = str(case.value(_GONE).get("device", "a device file"))
        return _failed(
            case,
            f"Docker is to give the container {device}, which nothing has created since the machine started",
            _GONE,
            LIKELY,
            _create_nodes(),
        )
    for name in (_VERSION, _INVALID):
        if case.fact(name).is_known:
            return _failed(
                case,
                "the container engine does not understand this version of the GPUs' description: the toolkit is newer",
                name,
                LIKELY if name == _VERSION or "version" in str(case.value(name).get("text", "")).lower() else POSSIBLE,
                _transform(),
                Remedy("generate-cdi-spec"),
            )
    if case.fact(_UNKNOWN).is_known:
        device = str(case.value(_UNKNOWN).get("device", "nvidia.com/gpu")).rstrip(":.")
        if case.fact(_LISTED).is_known:
            return case.failed(
                f"nvidia-ctk finds a description of {device}, and the engine does not: it reads other folders",
                (_UNKNOWN, _LISTED),
                certainty=LIKELY,
                fixes=(_show_folder(),),
                not_helping=(*_NOT_HELPING, "writing the description again: it is there"),
            )
        return _failed(
            case,
            f"the container engine finds no description of {device}: it was never written, or lists other devices",
            _UNKNOWN,
            CERTAIN,
            Remedy("generate-cdi-spec"),
        )
    if case.fact(_NO_CDI).is_known:
        return _failed(
            case,
            "Docker was asked for a device by its description (CDI), and that is not switched on",
            _NO_CDI,
            POSSIBLE,
            Remedy("set-up-container-toolkit"),
            Remedy("generate-cdi-spec"),
        )
    return case.skipped("no container engine reported a missing or stale description of GPUs")


def _failed(case: Case, message: str, symptom: str, certainty: str, *fixes: Remedy) -> Outcome:
    return case.failed(message, (symptom,), certainty=certainty, fixes=fixes, not_helping=_NOT_HELPING)


def _show_folder() -> Remedy:
    return Remedy(
        "manual",
        {
            "title": "Let the container engine read the description",
            "text": "Name its folder:\n    podman --cdi-spec-dir=/etc/cdi run --device nvidia.com/gpu=all IMAGE\n(the "
            "description may lie in /var/run/cdi instead), or set cdi_spec_dirs in containers.conf. An engine that "
            "runs in a container or for another user must see the folder too, and be allowed to read the file. An old "
            "podman knows no CDI: update it.",
            "kind": "container",
            "id": "cdi-spec-dir",
            "effect": {_UNKNOWN: None},
        },
    )


def _create_nodes() -> Remedy:
    return Remedy(
        "manual",
        {
            "title": "Create the device files before the container starts",
            "text": "On the host, once after each start:\n    sudo nvidia-modprobe -c 0 -u\n(nvidia-smi as root does "
            "most of it). The service nvidia-persistenced does it at every start. A container that is run with "
            "--gpus needs no list of device files.",
            "kind": "container",
            "id": "create-device-files",
            "needs": ["root"],
            "effect": {_GONE: None},
        },
    )


def _transform() -> Remedy:
    return Remedy(
        "manual",
        {
            "title": "Bring container engine and device description to one version",
            "text": "Update the container engine. Where that cannot be, leave out what only newer versions know:\n"
            "    sudo nvidia-ctk cdi generate --disable-hook=enable-cuda-compat --output=/etc/cdi/nvidia.yaml\nOr "
            "install an older NVIDIA Container Toolkit.",
            "kind": "container",
            "id": "older-cdi-spec",
            "needs": ["root"],
            "effect": {_VERSION: None},
        },
    )
