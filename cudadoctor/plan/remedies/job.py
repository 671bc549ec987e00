"""What a container or a job has to ask for to be given a GPU. Steps by hand: nobody can grant itself one."""

from __future__ import annotations

from cudadoctor.plan.context import Context
from cudadoctor.plan.draft import JOB, Draft, draft

# A line that begins with four blanks is a command, which is shown in one piece.
_CONTAINERS = {
    "docker": (
        "Start it with the GPUs:\n"
        "    docker run --gpus all IMAGE\n"
        "In a compose file, under deploy.resources.reservations.devices: driver nvidia, count all, capabilities [gpu]. "
        "The host needs the NVIDIA Container Toolkit:\n"
        "https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/install-guide.html"
    ),
    "podman": (
        "Start it with the GPUs:\n"
        "    podman run --device nvidia.com/gpu=all IMAGE\n"
        "The host needs the NVIDIA Container Toolkit and its device description:\n"
        "    sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml"
    ),
    "apptainer": "Start it with --nv:\n    apptainer exec --nv IMAGE PROGRAM",
    "kubernetes": (
        "Ask for a GPU in the pod: resources, limits, nvidia.com/gpu: 1. The node needs NVIDIA's device plugin, and "
        "where it is not the default the pod needs runtimeClassName: nvidia."
    ),
    "lxc": (
        "Pass the devices through in the container's configuration, with nvidia.runtime=true:\n"
        "    lxc config device add NAME gpu gpu"
    ),
}
_CONTAINERS["singularity"] = _CONTAINERS["apptainer"].replace("apptainer exec", "singularity exec")

_SCHEDULERS = {
    "slurm": (
        "Ask for GPUs: sbatch or srun with --gres=gpu:{count} (or --gpus={count}). On a login node:\n"
        "    srun --gres=gpu:{count} --pty bash"
    ),
    "kubernetes": "Ask for a GPU in the pod: resources, limits, nvidia.com/gpu: {count}",
    "lsf": 'Ask for GPUs:\n    bsub -gpu "num={count}" ...',
    "pbs": "Ask for GPUs:\n    qsub -l select=1:ngpus={count} ...",
    "sge": "Ask for GPUs (the name of the resource is your site's own):\n    qsub -l gpu={count} ...",
}


def run_container_with_gpu(context: Context, runtime: str = "") -> list[Draft]:
    kind = runtime or context.container or "docker"
    text = _CONTAINERS.get(kind, _CONTAINERS["docker"])
    return [
        draft(
            JOB,
            "container-with-gpu",
            "Start the container with the GPU",
            "container",
            changes="the container gets the host's GPUs and driver libraries",
            undo="start it without that option",
            instructions=text,
        )
    ]


def request_gpu(context: Context, scheduler: str = "", count: int = 1) -> list[Draft]:
    kind = scheduler or str(context.facts.value("scheduler.kind", "slurm"))
    text = _SCHEDULERS.get(kind, _SCHEDULERS["slurm"]).format(count=int(count))
    return [
        draft(
            JOB,
            "request-gpu",
            "Ask the scheduler for a GPU" if count == 1 else f"Ask the scheduler for {int(count)} GPUs",
            "job",
            effect={"scheduler.gpus_allocated": int(count), "scheduler.in_job": True},
            changes="the job gets a GPU of its own" if count == 1 else f"the job gets {int(count)} GPUs",
            undo="submit it without that option",
            instructions=text,
        )
    ]


_AGAIN = {
    "docker": "    docker restart CONTAINER",
    "podman": "    podman restart CONTAINER",
    "kubernetes": "    kubectl delete pod POD\nIts controller makes it anew.",
}


def restart_container(context: Context) -> list[Draft]:
    """Started again, a container is let at its devices again."""
    kind = context.container or str(context.facts.value("scheduler.kind", "docker"))
    text = (
        f"On the host:\n{_AGAIN.get(kind, _AGAIN['docker'])}\n"
        "To keep it from coming back, where Docker leaves control groups to systemd:\n"
        "    sudo nvidia-ctk system create-dev-char-symlinks --create-all\n"
        'or "exec-opts": ["native.cgroupdriver=cgroupfs"] in /etc/docker/daemon.json, or CDI.'
    )
    return [
        draft(
            JOB,
            "restart-container",
            "Start the container again",
            "container",
            changes="ends what runs in the container",
            undo="",
            instructions=text,
        )
    ]


def prepare_kubernetes_node(context: Context) -> list[Draft]:
    """What a node needs to offer its GPUs."""
    text = (
        "See whether the node offers GPUs (nvidia.com/gpu under Allocatable):\n"
        "    kubectl describe node NODE\n"
        "If it does not, on the node (containerd; or docker, crio):\n"
        "    sudo nvidia-ctk runtime configure --runtime=containerd --set-as-default\n"
        "    sudo systemctl restart containerd\n"
        "and NVIDIA's device plugin or the GPU operator in the cluster. Without a default runtime, give the pod "
        "runtimeClassName: nvidia."
    )
    return [
        draft(
            JOB,
            "prepare-kubernetes-node",
            "Let the node offer its GPUs",
            "container",
            changes="pods on the node can be given GPUs",
            undo="set the runtime back in its configuration",
            instructions=text,
        )
    ]
