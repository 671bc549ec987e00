"""What a rule says of an index of torch's builds: only of those that exist."""

from __future__ import annotations

from typing import Optional

import pytest

from cudadoctor.derive.case import Case
from cudadoctor.matrix import load_matrix
from cudadoctor.model import Remedy
from cudadoctor.rules.cd202_nvcc_differs_from_torch import judge
from cudadoctor.testing import linux

MATRIX = load_matrix()


@pytest.mark.parametrize(
    ("nvcc", "index"),
    [("12.2", "cu121"), ("12.8", "cu128"), ("11.2", "cu111"), ("10.0", "cu101"), ("9.0", "cu92"), ("7.5", None)],
)
def test_a_torch_for_an_nvcc_is_taken_from_an_index_that_exists(nvcc: str, index: Optional[str]) -> None:
    """torch was never built for most minors of CUDA: the nearest build of the same major is named, or none."""
    said = {"text": "The detected CUDA version mismatches", "toolkit": nvcc, "torch": "13.0"}
    facts = linux().only().set({"symptom.cuda_version_mismatch": said}).facts
    (fix,) = judge(Case(facts, MATRIX)).fixes
    assert isinstance(fix, Remedy)
    assert fix.parameters["why"].endswith(f"from the index {index}." if index else "the CUDA of this nvcc.")
