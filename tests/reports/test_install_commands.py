"""Install commands and conda's idea of the machine, as people paste them."""

from __future__ import annotations

from typing import Any

import pytest

from cudadoctor.matrix import load_matrix
from cudadoctor.model import Facts
from cudadoctor.reports import read_report

CU126 = "https://download.pytorch.org/whl/cu126"


def facts(text: str) -> Facts:
    return read_report([("paste", text)], load_matrix()).facts


@pytest.mark.parametrize(
    ("text", "program", "requirements", "index", "extra"),
    [
        (f"pip3 install torch torchvision --index-url {CU126}", "pip", ["torch", "torchvision"], CU126, []),
        (f"$ pip install torch==2.9.1 --extra-index-url={CU126}/", "pip", ["torch==2.9.1"], None, [CU126]),
        (f"> python -m pip install --pre -U torch -i {CU126}", "pip", ["torch"], CU126, []),
        (f"!pip install -q 'torch>=2.6' -f {CU126}", "pip", ["torch>=2.6"], None, [CU126]),
        (f"pip install \\\n  torch==2.6.0 \\\n  --index-url {CU126}", "pip", ["torch==2.6.0"], CU126, []),
        (f"I ran `uv pip install torch --index-url {CU126}` and then it failed", "uv", ["torch"], CU126, []),
        (
            "pip install torch --index-url https://me:secret@host.example/simple",
            "pip",
            ["torch"],
            "https://host.example/simple",
            [],
        ),
        ("RUN pip install vllm && rm -rf /root/.cache", "pip", ["vllm"], None, []),
    ],
)
def test_command(text: str, program: str, requirements: list[str], index: Any, extra: list[str]) -> None:
    found = facts(text)
    assert found.value("install.program") == program
    assert found.value("install.requirements") == requirements
    assert found.value("install.index_url") == index
    assert found.value("install.extra_index_urls") == extra


def test_conda_names_no_index() -> None:
    found = facts("conda install pytorch torchvision cudatoolkit=11.3 -c pytorch")
    assert found.value("install.program") == "conda"
    assert found.value("install.requirements") == ["pytorch", "torchvision", "cudatoolkit=11.3"]
    assert found["install.index_url"].is_unknown


def test_where_pip_looked_goes_before_what_was_typed() -> None:
    found = facts(f"pip install torch\nLooking in indexes: https://mirror.example/simple, {CU126}\n")
    assert found.value("install.index_url") == "https://mirror.example/simple"
    assert found.value("install.extra_index_urls") == [CU126]


@pytest.mark.parametrize("text", ["please pip install it", "pip install --help", "conda install -n base"])
def test_prose_is_no_index(text: str) -> None:
    found = facts(text)
    assert found.value("install.index_url") is None and not found.value("install.extra_index_urls")


INFO = """
     active environment : base
       virtual packages : __archspec=1=zen3
                          __conda=24.5.0=0
                          __cuda=12.4=0
                          __glibc=2.35=0
               base environment : /home/user/miniconda3  (writable)
"""


def test_conda_info() -> None:
    assert facts(INFO).value("conda.virtual_cuda") == "12.4"
    assert facts(INFO.replace("                          __cuda=12.4=0\n", ""))["conda.virtual_cuda"].is_absent
    assert facts("virtual packages : none")["conda.virtual_cuda"].is_unknown
