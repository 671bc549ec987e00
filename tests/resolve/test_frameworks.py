"""Packages that are bound to CUDA and the driver, not to torch: which of their releases, and for which CUDA."""

from __future__ import annotations

from typing import Any, NamedTuple, Optional

import pytest
from needs import ARM, MATRIX, NEWEST, WINDOWS, answer, machine, planned, whole

from cudadoctor.parse.versions import satisfies
from cudadoctor.resolve import Framework, Need
from cudadoctor.resolve.need import NONE

R580: dict[str, Any] = {"driver": "580.95.05", "python": "3.12"}
R550: dict[str, Any] = {"driver": "550.54.14", "python": "3.12"}
R470: dict[str, Any] = {"driver": "470.223.02", "python": "3.9"}


class Row(NamedTuple):
    title: str
    need: Need
    requirement: Optional[str]  # what an installer is told; None: nothing serves
    says: tuple[str, ...] = ()
    certainty: str = "certain"


def row(
    title: str, package: str, need: Need, requirement: Optional[str], *says: str, certainty: str = "certain"
) -> Row:
    return Row(title, need._replace(partners=(package,)), requirement, says, certainty)


A4090 = planned("RTX 4090", **R580)

ROWS = [
    row("jax for torch's CUDA", "jax", A4090, "jax[cuda13]==0.12.0.1"),
    row("jax on a driver without CUDA 13", "jax", planned("RTX 4090", **R550), "jax[cuda12]==0.12.0.1"),
    row("jax for a card that CUDA 13 has dropped", "jax", planned("GTX 1080", **R580), "jax[cuda12]==0.12.0.1"),
    row(
        "jax and a driver that is too old for any",
        "jax",
        planned("GTX 1080", driver="470.223.02", python="3.12"),
        None,
        "jax for CUDA 12 needs driver 525.60.13 or newer on Linux, this is 470.223.02",
        "a driver of 525.60.13 or newer opens jax[cuda12]==0.12.0.1",
    ),
    row("jax and a card that is too old", "jax", planned("K80", **R470), None, "compute capability 5.2 or newer"),
    row(
        "an older Python takes an older jax",
        "jax",
        planned("RTX 4090", driver="580.95.05", python="3.11"),
        "jax[cuda13]==0.10.2",
        "Python >=3.12 opens jax[cuda13]==0.12.0.1",
    ),
    row("one release of it", "jax==0.4.38", A4090, "jax[cuda12]==0.4.38"),
    row("who names the extra has chosen", "jax[cuda12]", A4090, "jax[cuda12]==0.12.0.1"),
    row("a release that nobody knows", "jax<0.3", A4090, None, "no jax<0.3 is known"),
    row("jax in Windows", "jax", planned("RTX 4090", driver="581.57", **WINDOWS), None, "only inside WSL"),
    row("jax on musl", "jax", planned("RTX 4090", **R580, libc="musl"), None, "jax has wheels for glibc only"),
    row("cupy by its package for each CUDA", "cupy", A4090, "cupy-cuda13x[ctk]==14.2.0"),
    row("cupy on R550", "cupy", planned("RTX 4090", **R550), "cupy-cuda12x[ctk]==14.2.0"),
    row("cupy for a K80", "cupy", planned("K80", **R470), "cupy-cuda11x==13.6.0"),
    row("cupy by the name of one", "cupy-cuda12x", A4090, "cupy-cuda12x[ctk]==14.2.0"),
    row(
        "cupy for CUDA 12 and a K80",
        "cupy-cuda12x",
        planned("K80", **R470),
        None,
        "CUDA 12 does not compile for K80 (compute capability 3.7) any more: 11.8 was the last",
    ),
    row("cupy in Windows", "cupy", planned("RTX 4090", driver="581.57", **WINDOWS), "cupy-cuda13x[ctk]==14.2.0"),
    row("tensorflow has no CUDA 13", "tensorflow", A4090, "tensorflow[and-cuda]==2.21.0"),
    row("tensorflow for CUDA 11", "tensorflow", planned("K80", **R470), "tensorflow[and-cuda]==2.14.1"),
    row(
        "tensorflow and a card that came after its CUDA",
        "tensorflow",
        planned("RTX 5090", **R580),
        "tensorflow[and-cuda]==2.21.0",
        "it takes CUDA 12.5.82 and newer, and RTX 5090 came with 12.8",
        certainty="likely",
    ),
    row(
        "an older tensorflow brings a CUDA that does not know the card at all",
        "tensorflow==2.19.1",
        planned("RTX 5090", **R580),
        None,
        "tensorflow 2.19.1 brings CUDA 12.5.82, and RTX 5090 (compute capability 12.0) needs 12.8 or newer",
    ),
    row("onnxruntime for CUDA 13", "onnxruntime-gpu", A4090, "onnxruntime-gpu[cuda,cudnn]==1.31.1"),
    row(
        "onnxruntime for CUDA 12 is an older release",
        "onnxruntime-gpu",
        planned("RTX 4090", **R550),
        "onnxruntime-gpu[cuda,cudnn]==1.26.0",
        "a driver of 580.65.06 or newer opens onnxruntime-gpu[cuda,cudnn]==1.31.1",
    ),
    row(
        "tensorrt has a floor of its own", "tensorrt", planned("RTX 3090", driver="530.30.02"), None, "needs driver 535"
    ),
    row("tensorrt starts at Turing", "tensorrt", planned("V100", **R580), None, "compute capability 7.5 or newer"),
    row("faiss for CUDA 11", "faiss-gpu", planned("V100", driver="470.223.02"), "faiss-gpu-cu11==1.14.1.post1"),
    row("faiss has no ARM wheels", "faiss-gpu", planned("GH200 480GB", **R580, **ARM), None, "for linux-aarch64"),
    row("flashinfer by torch's CUDA", "flashinfer", A4090, "flashinfer-python[cu13]"),
    row("deepspeed goes with any torch", "deepspeed>=0.19", A4090, "deepspeed>=0.19"),
    row("flash-attn comes as source", "flash-attn", A4090, None, "--no-build-isolation"),
    row("flash-attn starts at Ampere", "flash-attn", planned("RTX 2080", **R580), None, "wants compute capability 8.0"),
    row("cuDNN comes with torch", "cudnn", A4090, None, "comes with torch"),
    row("no GPU", "jax", planned(gpu_state=NONE), None, "jax for a GPU was asked for, and there is none"),
    row("nobody knows it", "something", A4090, None, "what something needs is not known"),
    row(
        "a free-threaded Python",
        "jax",
        planned("RTX 4090", driver="580.95.05", python="3.14", free_threaded=True),
        "jax[cuda13]==0.12.0.1",
        "whether jax has a wheel for the free-threaded Python 3.14t is not known",
        certainty="likely",
    ),
    row("for two unlike cards", "jax", machine("GTX 1080", "RTX 3090", **R580), "jax[cuda12]==0.12.0.1"),
]


def framework(need: Need) -> Framework:
    (found,) = answer(need).frameworks
    return found


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.title)
def test_frameworks(row: Row) -> None:
    found = framework(row.need)
    text = "\n".join((*found.reasons, *found.better))
    assert (found.requirement, found.certainty) == (row.requirement, row.certainty), text
    assert found.reasons
    for phrase in row.says:
        assert phrase in text


def test_torch_is_chosen_as_without_them() -> None:
    alone = answer(A4090).choice
    assert alone == answer(A4090._replace(partners=("jax", "cupy"))).choice


def test_they_are_answered_beside_packages_that_are_bound_to_torch() -> None:
    found = answer(A4090._replace(partners=("vllm", "jax")))
    assert found.choice is not None and dict(found.choice.partners) == {"vllm": "0.33.0"}
    assert [one.requirement for one in found.frameworks] == ["jax[cuda13]==0.12.0.1"]
    assert "vllm" in whole(found)


@pytest.mark.parametrize("name", [one.name for one in MATRIX.frameworks() if not one.tied_to_torch])
@pytest.mark.parametrize("card", ["K80", "GTX 1080", "V100", "RTX 2080", "A100", "RTX 4090", "H100", "RTX 5090"])
@pytest.mark.parametrize("driver", ["470.223.02", "535.183.01", "570.124.06", "580.95.05"])
def test_what_is_named_runs(name: str, card: str, driver: str) -> None:
    """The release exists, comes for that CUDA and that Python, and driver and card are not too old for it."""
    need = machine(card, driver=driver, python="3.11", partners=(name,))
    found = framework(need)
    row = MATRIX.framework(name)
    assert row is not None
    if found.requirement is None:
        assert found.reasons
        return
    version = found.requirement.rpartition("==")[2]
    (release,) = [one for one in MATRIX.framework_releases(name) if one.version == version]
    assert found.cuda in release.cuda
    assert release.install[found.cuda or ""] == found.requirement
    assert release.python is None or satisfies("3.11", release.python)
    assert satisfies(driver, f">={row.linux[found.cuda or '']}")
    capability = need.gpus[0].capability or ""
    assert satisfies(capability, f">={row.capability.get(found.cuda or '', '0')}")
    family = MATRIX.architecture(capability)
    assert family is not None and int((family.last_cuda or "99").partition(".")[0]) >= int(found.cuda or 0)


def test_partners_of_one_cuda_and_torch_of_another_do_not_meet() -> None:
    """NVIDIA's cudnn and nccl of two CUDA majors are the same files."""
    for partner, torch in (
        ("tensorflow", "2.14.1+cu126"),
        ("jax[cuda12]", "2.14.1+cu126"),
        ("jax", NEWEST),
        ("cupy-cuda12x", NEWEST),
    ):
        found = answer(planned("RTX 4090", driver="580.95.05", partners=(partner,)))
        assert found.choice is not None and found.choice.version == torch, partner
        assert found.frameworks[0].requirement is not None
    found = answer(planned("RTX 5090", driver="580.95.05", torch="2.15.0", partners=("tensorflow",)))
    assert found.choice is not None and found.choice.version == NEWEST
    assert found.frameworks[0].requirement is None
    assert "an environment of its own" in found.frameworks[0].reasons[0]
