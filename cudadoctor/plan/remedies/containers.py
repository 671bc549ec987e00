"""What the host of containers needs: the NVIDIA Container Toolkit, its device descriptions, and images that fit."""

from __future__ import annotations

from typing import Optional

from cudadoctor.plan import validate
from cudadoctor.plan.context import Context
from cudadoctor.plan.draft import JOB, SYSTEM, Draft, draft
from cudadoctor.plan.remedies.setting import install_package

_GUIDE = "https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/install-guide.html"


def set_up_container_toolkit(context: Context) -> list[Draft]:
    """Docker learns to pass GPUs in. On the host, not in the container."""
    effect = {"symptom.container_toolkit_missing": None, "symptom.container_hook_failed": None}
    if context.os == "windows" and not context.is_wsl:
        return [
            draft(
                SYSTEM,
                "docker-with-wsl",
                "Let Docker Desktop use its WSL2 engine",
                "container",
                effect=effect,
                instructions="Docker Desktop, Settings, General: Use the WSL 2 based engine. Windows' own containers "
                "and the Hyper-V engine pass no GPU in.",
            )
        ]
    steps = install_package(context, "container-toolkit")
    return [
        *(step._replace(step=step.step._replace(effect={})) for step in steps),
        draft(
            SYSTEM,
            "configure-docker",
            "Tell Docker of the NVIDIA runtime",
            "container",
            context.root("nvidia-ctk", "runtime", "configure", "--runtime=docker"),
            needs=("root",),
            changes="adds the runtime nvidia to /etc/docker/daemon.json",
            undo="take it out of /etc/docker/daemon.json",
            instructions=f"On the host of the containers. Docker out of a snap cannot use it: install Docker's own "
            f"packages. The guide: {_GUIDE}",
        ),
        draft(
            SYSTEM,
            "restart-docker",
            "Restart Docker",
            "container",
            context.root("systemctl", "restart", "docker"),
            needs=("root",),
            effect=effect,
            changes="stops running containers that have no restart policy",
            undo="none needed",
            instructions="Then: docker run --rm --gpus all ubuntu nvidia-smi",
        ),
    ]


def generate_cdi_spec(context: Context) -> list[Draft]:
    """The description of the GPUs for podman, Docker and containerd is made anew."""
    return [
        draft(
            SYSTEM,
            "generate-cdi-spec",
            "Describe the GPUs to the container engine anew",
            "container",
            context.root("nvidia-ctk", "cdi", "generate", "--output=/etc/cdi/nvidia.yaml"),
            needs=("root",),
            effect={
                "symptom.cdi_unresolvable": None,
                "symptom.cdi_file_missing": None,
                "symptom.cdi_spec_unsupported": None,
                "symptom.cdi_driver_missing": None,
            },
            changes="writes /etc/cdi/nvidia.yaml",
            undo="delete /etc/cdi/nvidia.yaml",
            instructions="On the host of the containers; again after each driver update, and where MIG changes. "
            "`nvidia-ctk cdi list` shows what there is.",
        )
    ]


def run_image_all_the_same(context: Context, wanted: str = "") -> list[Draft]:
    """The image's own demand is passed over: within one CUDA major it mostly runs."""
    return [
        draft(
            JOB,
            "disable-require",
            "Run the image without its demand on the driver",
            "container",
            effect={"symptom.container_requires_cuda": None},
            changes="the container starts though the image asks for a newer driver",
            undo="start it without that option",
            instructions="Within one CUDA major, an older driver runs most of it:\n"
            "    docker run --gpus all -e NVIDIA_DISABLE_REQUIRE=1 IMAGE\n"
            "What is compiled at run time by this newer CUDA (PTX) may still fail.",
        )
    ]


def use_older_image(context: Context, cuda: Optional[str] = None) -> list[Draft]:
    """An image that this driver serves."""
    served = validate.version(cuda) if cuda else ""
    return [
        draft(
            JOB,
            "use-older-image",
            f"Take an image with CUDA {served or 'that this driver serves'}",
            "container",
            effect={"symptom.container_requires_cuda": None, "symptom.container_requires_driver": None},
            changes="the image",
            undo="the former image",
            instructions="Its tag names the CUDA version, as in nvidia/cuda:12.4.1-base-ubuntu22.04: take one that is "
            f"no newer than {served or 'what nvidia-smi shows as CUDA Version'}.",
        )
    ]
