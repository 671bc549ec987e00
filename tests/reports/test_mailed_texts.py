"""Texts that a mail or a terminal has broken, and reports that stand one below the other."""

from __future__ import annotations

import pytest
from report_reading import UNKNOWN, expect, reading_of

from cudadoctor import diagnose_text
from cudadoctor.reports.text import Text

WARNING = "NVIDIA GeForce RTX 5080 with CUDA capability sm_120 is not compatible with the current PyTorch installation."
LISTS = "The current PyTorch install supports CUDA capabilities"

WHOLE = {
    "in one line": f"{LISTS} sm_70 sm_75 sm_80 sm_86 sm_90.",
    "between two names": f"{LISTS} sm_70 sm_75\nsm_80 sm_86 sm_90.",
    "before the first name": f"{LISTS}\nsm_70 sm_75 sm_80 sm_86 sm_90.\nIf you want to use it",
    "within a name": f"{LISTS} sm_7\n0 sm_75 sm_80 sm_\n86 sm_90.",
    "quoted, over three lines": f"> {LISTS} sm_70\n> sm_75 sm_80\n> sm_86 sm_90.",
}
CUT = {
    "within a name": f"{LISTS} sm_70 sm_75 sm_8",
    "between two names": f"{LISTS} sm_70 sm_75\n\nWhat shall I do? Nothing helps.",
    "by dots": f"{LISTS} sm_70 sm_75 [...]",
}


@pytest.mark.parametrize("how", WHOLE)
def test_a_wrapped_list_of_capabilities_is_read_whole(how: str) -> None:
    expect(f"{WARNING}\n{WHOLE[how]}", {"torch.sass": ["sm_70", "sm_75", "sm_80", "sm_86", "sm_90"]})


@pytest.mark.parametrize("how", CUT)
def test_a_list_that_is_cut_tells_nothing_of_what_torch_lacks(how: str) -> None:
    text = f"{WARNING}\n{CUT[how]}"
    expect(text, {"torch.sass": UNKNOWN})
    assert any("is cut" in note for note in reading_of(text).notes)


BODY = """\
Since the new card came torch stops at once, whatever I start on this mach=
ine.  It prints:

torch 2.6.0+cu124, and os.environ["X"] =3D "1", K=C3=B6ln
NVIDIA GeForce RTX 5080 with CUDA capability sm_120 is not compatible wit=
h the current PyTorch installation.
"""
HEADER = "Subject: GPU; charset=utf-8\nContent-Transfer-Encoding: quoted-printable\n\n"


@pytest.mark.parametrize("header", ["", HEADER], ids=["body alone", "with its header"])
def test_a_quoted_printable_mail_is_decoded(header: str) -> None:
    text = Text("mail", header + BODY)
    lines = [line for _, line in text.lines(0, len(text))]
    assert WARNING in lines
    assert 'torch 2.6.0+cu124, and os.environ["X"] = "1", Köln' in lines
    place = lines.index(WARNING)
    assert text.number(place) == (header + BODY)[: (header + BODY).index("NVIDIA")].count("\n") + 1


@pytest.mark.parametrize(
    "text",
    [
        "=" * 72 + "\nA=1\n" + "=" * 72 + "\n",
        "export LD_LIBRARY_PATH=/usr/lib\nx=\ny=3D\n",
        BODY + "CUDA_HOME=/usr/local/cuda\n",
    ],
    ids=["rules", "variables", "an equals sign of its own"],
)
def test_other_equals_signs_are_left_alone(text: str) -> None:
    assert Text("text", text).whole.rstrip("\n") == text.rstrip("\n")


def report(torch: str, gpu: str, driver: str, available: bool) -> str:
    return (
        f"PyTorch version: {torch}\nCUDA used to build PyTorch: {torch[-3:-1]}.{torch[-1]}\n"
        f"OS: Ubuntu 24.04.1 LTS (x86_64)\nPython version: 3.12.3 (main) (64-bit runtime)\n"
        f"Is CUDA available: {available}\nGPU models and configuration: GPU 0: {gpu}\nNvidia driver version: {driver}\n"
    )


def test_two_reports_without_a_heading_are_two_machines() -> None:
    mine = report("2.9.1+cu130", "NVIDIA GeForce RTX 3090", "535.183.01", False)
    theirs = report("2.8.0+cu126", "NVIDIA L4", "560.35.05", True)
    text = f"{mine}\nI have the same:\n{theirs}"
    assert [block.used for block in reading_of(text).recognised] == [False, True]
    expect(text, {"torch.version": "2.8.0+cu126", "torch.cuda_available": True})


def test_that_cuda_is_not_available_is_no_clean_bill() -> None:
    found = diagnose_text(">>> import torch\n>>> torch.cuda.is_available()\nFalse\n")
    assert "shows no fault" not in found.verdict
    assert "CUDA is not available; the cause is not in the text" in found.verdict
