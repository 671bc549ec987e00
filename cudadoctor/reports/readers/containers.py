"""Commands that start containers, Dockerfiles and compose files: the image, and whether it is given the GPUs.

docker run --gpus all --shm-size=8g -it nvidia/cuda:12.8.0-base-ubuntu22.04 nvidia-smi
FROM nvidia/cuda:12.8.0-devel-ubuntu22.04
    image: vllm/vllm-openai:v0.9.0
apptainer exec --nv docker://pytorch/pytorch:2.7.0-cuda12.8-cudnn9-runtime python train.py
root@0123456789ab:/workspace#
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence

from cudadoctor.matrix import Matrix
from cudadoctor.model import ParseError
from cudadoctor.parse.sizes import parse_size
from cudadoctor.reports.blocks import LOG, TYPED, Block, Claim
from cudadoctor.reports.text import Text

TRIGGERS = (
    "docker run",
    "podman run",
    "nerdctl run",
    "nvidia-docker run",
    "docker container run",
    "docker create",
    "apptainer exec",
    "apptainer run",
    "apptainer shell",
    "singularity exec",
    "singularity run",
    "singularity shell",
    "from nvidia/",
    "from nvcr.io/",
    "from pytorch/",
    "from vllm/",
    "from tensorflow/",
    "image: ",
    "root@",
    "== cuda ==",
    "== pytorch ==",
    "capabilities: [gpu",
)

_RUN = re.compile(r"\b(?:(nvidia-)?docker|podman|nerdctl)(?: container)? (?:run|create)\s+(.*)")
_SINGULARITY = re.compile(r"\b(apptainer|singularity) (?:exec|run|shell)\s+(.*)")
_FROM = re.compile(r"\s*FROM\s+(?:--platform=\S+\s+)?(\S{3,200})", re.IGNORECASE)
_IMAGE_LINE = re.compile(r"\s*-?\s*[Ii]mage:\s+\"?([\w./:@-]{3,200})\"?\s*\Z")
_IMAGE = re.compile(r"(?:docker://)?((?:[\w.-]{1,60}(?::\d{2,5})?/){0,3}[\w.-]{1,80}(?::[\w.-]{1,100})?)\Z")
_GPU_IMAGE = re.compile(
    r"nvidia|cuda|torch|vllm|tensorflow|sglang|ollama|jax|triton|tgi|text-generation|deepspeed|comfy", re.IGNORECASE
)
_INSIDE = re.compile(r"\broot@[0-9a-f]{12}:")
# Options of docker run that are followed by a value of their own.
_WITH_VALUE = re.compile(
    r"(?:-[evpwumhlBH]|--(?:env|volume|publish|name|workdir|user|gpus|runtime|device|shm-size|ipc|network|net|mount"
    r"|entrypoint|ulimit|env-file|memory|cpus|hostname|restart|cap-add|security-opt|pid|platform|label|add-host|log-driver|log-opt"
    r"|cpuset-cpus|tmpfs|group-add|userns|dns|volumes-from|bind|pwd|home|overlay|pull|memory-swap|annotation|cgroupns"
    r"|uts|stop-timeout))\Z"
)
_PLACEHOLDERS = re.compile(r"\.\.\.|…|<[a-z][\w -]*>|\bYOUR_|\[OPTIONS\]|IMAGE\b")
_CONTINUED = 15


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    end = -1
    for hit in hits:
        if hit <= end:
            continue
        line = text[hit][:4000]
        if _INSIDE.search(line):
            # Docker gives a container without a name of its own twelve digits of its id.
            claim = Claim("system.container", "docker", hit)
            yield Block("prompt inside a container", hit, hit, (claim,), LOG)
            continue
        if line.strip() in ("== CUDA ==", "== PyTorch =="):
            yield Block(
                "banner of NVIDIA's image", hit, hit, (Claim("system.container", "docker", hit, trust=TYPED),), LOG
            )
            continue
        started = _RUN.search(line) or _SINGULARITY.search(line)
        if started:
            whole, end = _whole(text, hit, started.group(2))
            claims = list(_command(started, whole, hit))
            if claims:
                # Not TYPED: that is passed over where a program's output begins in the same line.
                yield Block("container's command", hit, end, tuple(claims), LOG)
            continue
        if "capabilities: [gpu" in line.lower():
            yield Block("compose file", hit, hit, (Claim("container.gpus_requested", True, hit),), TYPED)
            continue
        named = _FROM.match(line) or _IMAGE_LINE.match(line)
        image = _IMAGE.match(named.group(1)) if named else None
        if image and (":" in image.group(1) or "/" in image.group(1)) and _GPU_IMAGE.search(image.group(1)):
            yield Block("container's image", hit, hit, (Claim("container.image", image.group(1), hit),), TYPED)


def _whole(text: Text, first: int, command: str) -> tuple[str, int]:
    """A command that goes on behind a backslash."""
    last = first
    parts = [command]
    while parts[-1].rstrip().endswith("\\") and last - first < _CONTINUED and last + 1 < len(text):
        parts[-1] = parts[-1].rstrip()[:-1]
        last += 1
        parts.append(text[last].strip()[:2000])
    return " ".join(parts), last


def _engine(started: re.Match[str]) -> str:
    if started.re is _SINGULARITY:
        return "apptainer"
    return next((name for name in ("podman", "nerdctl") if started.group(0).startswith(name)), "docker")


def _command(started: re.Match[str], command: str, line: int) -> Iterator[Claim]:
    if _PLACEHOLDERS.search(command):
        return
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    nvidia_docker = started.re is _RUN and started.group(1) is not None
    asked = nvidia_docker
    options: dict[str, str] = {}
    image = ""
    at = 0
    while at < len(words) and at < 200:
        word = words[at]
        if not word.startswith("-"):
            image = word
            break
        name, sign, value = word.partition("=")
        if not sign and _WITH_VALUE.match(name) and at + 1 < len(words):
            at += 1
            value = words[at]
        if name == "--device" and "nvidia" not in value:
            value = options.get(name, "")
        options[name] = value
        at += 1
    found = _IMAGE.match(image)
    if not found:
        return
    asked = (
        asked
        or "--gpus" in options
        or "--nv" in options
        or "--nvccli" in options
        or "nvidia" in options.get("--runtime", "")
        or "nvidia" in options.get("--device", "")
    )
    yield Claim("container.engine", _engine(started), line)
    # Any image may be started without a GPU; of these it is told what it was not given. On a cluster, where Apptainer
    # runs, the image has a name of its own.
    if asked or _GPU_IMAGE.search(image) or started.re is _SINGULARITY:
        yield Claim("container.image", found.group(1), line)
        yield Claim("container.gpus_requested", asked, line)
        if options.get("--ipc") == "host":
            yield Claim("container.host_ipc", True, line)
        size = options.get("--shm-size", "")
        if size:
            try:
                yield Claim("container.shm_size", parse_size(size), line)
            except ParseError:
                return
