r"""Environment variables that matter: env, export, set, Dockerfile and compose lines, Python's os.environ.

CUDA_VISIBLE_DEVICES=0,1
export PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True"
set CUDA_PATH=C:\Program Files\NVIDIA GPU Computing Toolkit\CUDA\v12.4
$ CUDA_VISIBLE_DEVICES=1 python train.py
$ echo $CUDA_VISIBLE_DEVICES
os.environ["CUDA_VISIBLE_DEVICES"] = "1"
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from cudadoctor.matrix import Matrix
from cudadoctor.reports.blocks import LOG, TYPED, Block, Claim
from cudadoctor.reports.readers._variables import unset_claims, variable_claims
from cudadoctor.reports.text import Text

TRIGGERS = (
    "cuda_",
    "cudnn_",
    "nccl_",
    "pytorch_",
    "torch_",
    "triton_",
    "xla_python",
    "nvidia_visible",
    "nvidia_driver_cap",
    "nvidia_require",
    "nvidia_disable_req",
    "ld_preload",
    "slurm_job_",
    "slurm_step_g",
    "slurm_gpus",
    "conda_override",
    "hip_visible",
    "rocr_visible",
)

_NAME = r"[A-Z][A-Z0-9_]{3,60}"
# At the start of the line, after a prompt, and after what sets a variable in a shell, a Dockerfile or a compose file.
_SET = re.compile(
    rf"\s*(?:[\w.@~:/()\[\] \\-]{{0,80}}[$#%>]\s+)?"
    r"(export\s+|declare -x\s+|set\s+|SET\s+|setenv\s+|ENV\s+|-e\s+|-\s+|\$env:)?"
    rf"({_NAME})(?:\s?=\s?|:\s|\s(?<=\bENV\s))"
)
_VALUE = re.compile(r"\"([^\"\n]*)\"|'([^'\n]*)'|(\S*)")
_COMMAND = re.compile(r"(?:[$#%>]\s|^)\s*((?:[A-Z][A-Z0-9_]{3,60}=\S*\s+)+)(?=[\w./])")
_OPTION = re.compile(rf"(?:-e|--env)[ =]\"?({_NAME})=([^\s\"]*)")
_ECHO = re.compile(rf"\becho\s+\"?\$\{{?({_NAME})\}}?\"?\s*\Z|\becho\s+%({_NAME})%\s*\Z|\bprintenv\s+({_NAME})\s*\Z")
_PYTHON = re.compile(rf"os\.environ(?:\.get\(|\[)[\"']({_NAME})[\"'](?:\]|\))\s?(=|:)\s?[\"']?([^\"'\n]{{0,400}})")
_NO_VALUE = re.compile(r"[<>$`{}*|;]|\.\.\.|…")
_LONGEST = 8000


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    for hit in hits:
        line = text[hit][:_LONGEST]
        if "_" not in line:
            continue
        claims = list(_claims(text, line, hit))
        if claims:
            yield Block("environment variables", hit, max(claim.line for claim in claims), tuple(claims), _trust(line))


def _trust(line: str) -> int:
    """`env` prints bare lines; the rest a person or a file says."""
    return LOG if re.match(rf"\s*(?:declare -x )?{_NAME}=", line) else TYPED


def _claims(text: Text, line: str, hit: int) -> Iterator[Claim]:
    asked = _ECHO.search(line)
    if asked:
        name = asked.group(1) or asked.group(2) or asked.group(3)
        answer = text[hit + 1].strip() if hit + 1 < len(text) else ""
        if re.fullmatch(r"[\w,:./-]{1,200}", answer):
            yield from variable_claims(name, answer, hit + 1)
        return
    python = _PYTHON.search(line)
    if python:
        if python.group(3).strip() == "None":
            yield from unset_claims(python.group(1), hit)
        elif not _NO_VALUE.search(python.group(3)) and not (python.group(2) == "=" and python.group(3)[:1] == "="):
            yield from variable_claims(python.group(1), python.group(3), hit)
        return
    command = _COMMAND.search(line)
    if command:
        for pair in command.group(1).split():
            name, _, value = pair.partition("=")
            if not _NO_VALUE.search(value):
                yield from variable_claims(name, value.strip("\"'"), hit)
        return
    for name, value in _OPTION.findall(line):
        if not _NO_VALUE.search(value):
            yield from variable_claims(name, value, hit)
    match = _SET.match(line)
    if not match:
        return
    # A Windows path has blanks, so a line of `set` is taken whole.
    rest = line[match.end() :].strip()
    quoted = _VALUE.match(rest)
    value = rest
    if quoted and (quoted.group(1) is not None or quoted.group(2) is not None):
        value = quoted.group(1) if quoted.group(1) is not None else quoted.group(2)
    elif not re.match(r"[A-Za-z]:\\", rest):
        value = rest.split()[0] if rest.split() else ""
    if not _NO_VALUE.search(value) and not value.endswith((".", ",")):
        yield from variable_claims(match.group(2), value, hit)
