"""Error wordings: every row of compat/messages.toml is shown by a sample, and gives the symptom and the captures there.

samples/wordings.txt holds blocks like this; a line in brackets is a symptom that the text below it must be, with what
it must capture, and no other:

    [driver_too_old] found=11080
        UserWarning: CUDA initialization: The NVIDIA driver on your system is too old (found version 11080). ...
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest
from report_reading import facts_of

from cudadoctor.matrix import Matrix, load_matrix
from cudadoctor.model.catalogue import spec_of
from cudadoctor.reports import read_report

SAMPLES = Path(__file__).parent / "samples" / "wordings.txt"


class Sample(NamedTuple):
    symptoms: dict[str, dict[str, str]]
    text: str


def _samples() -> list[Sample]:
    found = []
    for block in SAMPLES.read_text(encoding="utf-8").strip().split("\n\n"):
        heads = [line for line in block.split("\n") if not line.startswith("    ")]
        text = "\n".join(line[4:] for line in block.split("\n") if line.startswith("    "))
        symptoms = {}
        for head in heads:
            match = re.fullmatch(r"\[([a-z0-9_]+)\](?: (.*))?", head)
            assert match, head
            pairs = (pair.partition("=") for pair in (match.group(2) or "").split("; ") if pair)
            symptoms[match.group(1)] = {name: value for name, _, value in pairs}
        found.append(Sample(symptoms, text))
    return found


ALL = _samples()


@pytest.fixture(scope="module")
def matrix() -> Matrix:
    return load_matrix()


@pytest.mark.parametrize("sample", ALL, ids=[sample.text[:60] for sample in ALL])
def test_a_wording_is_its_symptoms_with_their_captures(matrix: Matrix, sample: Sample) -> None:
    facts = read_report([("r", f"a line before\n\n{sample.text}\n")], matrix).facts
    found = {name[len("symptom.") :]: dict(facts[name].get()) for name in facts if name.startswith("symptom.")}
    for value in found.values():
        assert value.pop("text")
    assert found == sample.symptoms


def test_every_row_is_shown(matrix: Matrix) -> None:
    shown = [(sample.text.split("\n")[0].lower(), " ".join(map(str.strip, sample.text.split("\n")))) for sample in ALL]
    missing = [
        (row.name, row.anchor)
        for row in matrix.messages()
        if not any(row.anchor in first and re.search(row.pattern, whole, re.IGNORECASE) for first, whole in shown)
    ]
    assert missing == []


def test_rows_are_sound(matrix: Matrix) -> None:
    rules = _rule_ids()
    for row in matrix.messages():
        assert spec_of(f"symptom.{row.name}") is not None
        assert "text" not in re.compile(row.pattern).groupindex, row.name
        # A digit of an anchor stands for any digit: without letters it would be found everywhere.
        assert re.search(r"[^\d\W]", row.anchor), row
        assert set(row.causes) <= rules | NOT_WRITTEN_YET, row
        assert len(set(row.causes)) == len(row.causes), row


# Rules of the design that wordings name and that do not exist yet. Must become empty.
NOT_WRITTEN_YET = frozenset(("CD801",))


def _rule_ids() -> set[str]:
    folder = Path(__file__).parents[2] / "cudadoctor" / "rules"
    return {f"CD{path.name[2:5]}" for path in folder.glob("cd[0-9][0-9][0-9]_*.py")}


SOURCE = (
    '    raise RuntimeError("Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU")',
    '--> 239         raise AssertionError("Torch not compiled with CUDA enabled")',
    '    239         raise AssertionError("Torch not compiled with CUDA enabled")',
    'src/demo/device.py:77:        raise RuntimeError("No CUDA GPUs are available")',
    '+    if "CUDA out of memory" in str(error):',
    '    print("CUDA error: out of memory")',
    '    logger.warning("CUDA is not available: error, no kernel image is available")',
    '    TORCH_CHECK(false, "no kernel image is available for execution on the device");',
    '    message = "No CUDA GPUs are available"',
    "    assert torch.cuda.is_available(), 'RuntimeError: CUDA is not available'",
    "grep 'no kernel image is available' run.log",
)


@pytest.mark.parametrize("line", SOURCE)
def test_code_that_could_say_it_has_not_said_it(matrix: Matrix, line: str) -> None:
    facts = read_report([("r", line)], matrix).facts
    assert [name for name in facts if name.startswith("symptom.")] == []


def test_what_is_logged_as_a_value_is_said(matrix: Matrix) -> None:
    text = 'time=2026-02-01T10:00:00Z msg="CUDA error: out of memory"\n{"message": "No CUDA GPUs are available"}'
    facts = read_report([("r", text)], matrix).facts
    assert "symptom.cuda_out_of_memory" in facts and "symptom.no_cuda_gpus" in facts


def test_of_one_symptom_the_last_report_counts_unless_it_says_less(matrix: Matrix) -> None:
    first = "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 8.00 GiB of which 0 bytes is"
    first += " free."
    text = f"{first}\n{first.replace('2.00', '3.00')}\nRuntimeError: CUDA error: out of memory\n"
    facts = read_report([("r", text)], matrix).facts
    fact = facts["symptom.cuda_out_of_memory"]
    assert fact.get()["tried"] == "3.00 GiB" and fact.source == "line 2 (error message)"


def test_typographic_quotation_marks_and_hard_blanks_are_plain_ones(matrix: Matrix) -> None:
    facts = read_report([("r", "it couldn\u2019t communicate with the\u00a0NVIDIA driver")], matrix).facts
    assert "symptom.smi_no_driver" in facts


ABOUT_OTHERS = (
    "A friend of mine got 'CUDA error: out of memory' once.",
    "If you see 'Torch not compiled with CUDA enabled', you have a CPU build.",
    "When users encounter CUDA error: out of memory they open an issue.",
    "I no longer get CUDA error: out of memory since the update.",
    "I don't see RuntimeError: No CUDA GPUs are available any more.",
)


@pytest.mark.parametrize("line", ABOUT_OTHERS)
def test_a_sentence_about_an_error_is_no_error(line: str) -> None:
    assert not [name for name in facts_of(line) if name.startswith("symptom.")]


OF_THEIR_OWN = (
    "I get RuntimeError: CUDA error: out of memory when I start it.",
    "After the update I see: RuntimeError: No CUDA GPUs are available",
    "It does not work: AssertionError: Torch not compiled with CUDA enabled",
)


@pytest.mark.parametrize("line", OF_THEIR_OWN)
def test_an_error_in_a_sentence_about_oneself_is_one(line: str) -> None:
    assert [name for name in facts_of(line) if name.startswith("symptom.")]
