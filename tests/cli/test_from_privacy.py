"""Pasted texts hold secrets and names: no format that is passed on shows any of them."""

from __future__ import annotations

import json
from typing import NamedTuple

import pytest

import cudadoctor
from cudadoctor.render.formats import FORMATS, render
from cudadoctor.system import Redactor


class Planted(NamedTuple):
    """A line as people paste it, and what of it must not be passed on."""

    line: str
    secret: str


# Each stands in a place from which facts, sources or symptoms are read.
PLANTED = {
    "a user's home in a traceback": Planted(
        '  File "/home/winifred/train.py", line 3, in <module>\nRuntimeError: No CUDA GPUs are available', "winifred"
    ),
    "a user's home in the error itself": Planted(
        "OSError: /home/winifred/venv/lib/libcudart.so.11.0: cannot open shared object file: No such file or directory",
        "winifred",
    ),
    "a home of Windows": Planted(
        'OSError: [WinError 126] The specified module could not be found: "C:\\Users\\Winifred\\v\\c10.dll"',
        "Winifred",
    ),
    "a home of macOS": Planted(
        "/Users/winifred/x.py: AssertionError: Torch not compiled with CUDA enabled", "winifred"
    ),
    "a user outside of /home": Planted(
        "winifred@workbox:~$ ls /scratch/winifred\n"
        "OSError: /scratch/winifred/env/libcudnn.so.8: cannot open shared object file: No such file or directory",
        "/scratch/winifred",
    ),
    "the host in a prompt": Planted(
        "winifred@quartzbox:~$ ./run quartzbox\nquartzbox: RuntimeError: No CUDA GPUs are available", "quartzbox"
    ),
    "the host in the kernel's log": Planted(
        "Mar 10 09:15:02 quartzbox kernel: NVRM: Xid (PCI:0000:65:00): 79, pid=1234, GPU has fallen off the bus.",
        "quartzbox",
    ),
    "the host of uname": Planted("Linux quartzbox 5.15.0-105-generic #115-Ubuntu SMP x86_64 GNU/Linux", "quartzbox"),
    "the host of systeminfo": Planted("Host Name:                 QUARTZBOX\nOS Name: Windows 11", "QUARTZBOX"),
    "a GPU's UUID": Planted(
        "GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-8932f937-d72c-4106-c12f-20bd9faed9f6)", "8932f937-d72c-4106"
    ),
    "a MIG device's UUID": Planted("export CUDA_VISIBLE_DEVICES=MIG-1f2e3d4c-5b6a-7988-9a0b-1c2d3e4f5a6b", "1f2e3d4c"),
    "a serial": Planted("    Serial Number                         : 1563221034887", "1563221034887"),
    "a token of Hugging Face": Planted("export HF_TOKEN=hf_QwErTyUiOpAsDfGhJkLz", "hf_QwErTyUiOpAsDfGhJkLz"),
    "a token of GitHub": Planted(
        "RuntimeError: No CUDA GPUs are available (ghp_abcdefghijklmnopqrstuvwxyz0123456789)", "ghp_abcdefghij"
    ),
    "a key of AWS": Planted("AWS_ACCESS_KEY_ID=AKIAIOSFODNN7EXAMPLQ", "AKIAIOSFODNN7EXAMPLQ"),
    "a key of OpenAI": Planted("OPENAI_API_KEY=sk-abcdefghijklmnopqrstuvwxyz123456", "sk-abcdefghij"),
    "a password in an index": Planted(
        "Looking in indexes: https://winifred:s3cr3tpw@pypi.example.org/simple\n"
        "ERROR: No matching distribution found for torch==2.99",
        "s3cr3tpw",
    ),
    "a token in a query": Planted(
        "pip install torch --index-url https://example.org/simple?token=t0ps3cr3t1234", "t0ps3cr3t1234"
    ),
    "a MAC address": Planted("RuntimeError: NCCL error: unhandled system error 52:54:00:ab:cd:ef", "52:54:00:ab:cd:ef"),
    "an address": Planted(
        "torch.distributed.DistNetworkError: connection to tcp://10.31.7.99:29500 failed, No CUDA GPUs are available",
        "10.31.7.99",
    ),
    "a password beside an error": Planted(
        "RuntimeError: No CUDA GPUs are available (login with password=hunter2hunter)", "hunter2hunter"
    ),
    "a header with a token": Planted(
        "Authorization: Bearer abcdef0123456789\nRuntimeError: No CUDA GPUs are available", "abcdef0123456789"
    ),
    "a key in JSON": Planted('{"api_key": "zq98zq98zq98", "error": "No CUDA GPUs are available"}', "zq98zq98zq98"),
    "the node in srun's line": Planted(
        "srun: error: quartznode17: task 0: Exited with exit code 1\nquartznode17: No CUDA GPUs are available",
        "quartznode17",
    ),
    "the node in NCCL's lines": Planted(
        "quartznode18:4242:4242 [0] NCCL INFO Bootstrap : Using eth0\n"
        "quartznode18:4242:4242 [0] misc/socket.cc:50 NCCL WARN socketStartConnect: Connect failed",
        "quartznode18",
    ),
    "the program of an Xid": Planted(
        "[ 12.3] NVRM: Xid (PCI:0000:65:00): 31, pid=1234, name=winifreds-job, Ch 00000008, MMU Fault", "winifreds-job"
    ),
    "an address of Ray's": Planted(
        "(worker pid=77, ip=10.31.7.98) RuntimeError: No CUDA GPUs are available", "10.31.7.98"
    ),
    "a mail address": Planted(
        "RuntimeError: No CUDA GPUs are available (ask winifred.q@lab.example.edu)", "winifred.q@lab.example.edu"
    ),
    "a variable that is a secret by its name": Planted(
        "export WANDB_API_KEY=0123456789abcdef0123", "0123456789abcdef0123"
    ),
    "a library path into a home": Planted(
        "export LD_LIBRARY_PATH=/home/winifred/lib:/usr/local/cuda/lib64", "winifred"
    ),
}

COLLECT_ENV = """\
Collecting environment information...
PyTorch version: 2.9.1+cu128
CUDA used to build PyTorch: 12.8
OS: Ubuntu 22.04.4 LTS (x86_64)
Python version: 3.11.9 (64-bit runtime)
Is CUDA available: False
GPU models and configuration: GPU 0: NVIDIA GeForce RTX 3090
Nvidia driver version: 470.239.06
"""


# Lines whose secret is known by the name of its variable: facts are redacted with it, a line of text is not.
BY_VARIABLE = {"a variable that is a secret by its name"}


@pytest.mark.parametrize(
    "planted",
    [row for name, row in PLANTED.items() if name not in BY_VARIABLE],
    ids=[name for name in PLANTED if name not in BY_VARIABLE],
)
def test_the_line_itself_is_redacted(planted: Planted) -> None:
    """So that it does not matter which words of it some reader keeps."""
    assert planted.secret.lower() not in Redactor.of_texts([planted.line]).text(planted.line).lower()


@pytest.mark.parametrize("form", list(FORMATS))
@pytest.mark.parametrize("planted", PLANTED.values(), ids=PLANTED)
def test_no_format_shows_it(planted: Planted, form: str) -> None:
    for text in (planted.line, f"{COLLECT_ENV}\n{planted.line}\n"):
        view = cudadoctor.diagnose_text(text).view
        shown = render(form, view._replace(style=view.style._replace(verbose=True)))
        assert planted.secret.lower() not in shown.lower()


def test_all_of_them_in_one_text() -> None:
    text = COLLECT_ENV + "\n\n".join(planted.line for planted in PLANTED.values())
    diagnosis = cudadoctor.diagnose_text(text)
    shown = "\n".join((json.dumps(diagnosis.document), str(diagnosis), diagnosis.text("markdown"))).lower()
    assert [name for name, planted in PLANTED.items() if planted.secret.lower() in shown] == []


def test_the_planted_lines_are_read_at_all() -> None:
    """A line from which nothing is read could not show anything."""
    silent = [
        name
        for name, planted in PLANTED.items()
        if not cudadoctor.diagnose_text(planted.line).document["pasted"]["read"]
    ]
    assert len(silent) <= len(PLANTED) // 2, silent
