"""Reports that the GPU's memory did not suffice, as people paste them: each wording of torch since its first release,
and those of other programs; what is read of each, and what is said of the cause."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from cudadoctor.api import Diagnosis, diagnose_texts
from cudadoctor.testing import GIB

pytestmark = pytest.mark.once

MIB = GIB // 1024


class Told(NamedTuple):
    """A text; what of it is read (in GiB, or the word); the kind that CD612 says, "" where another rule is the cause;
    the id of its first step."""

    text: str
    facts: dict[str, Any]
    kind: str
    first: str = ""


TRAINING = (
    "Traceback (most recent call last):\n"
    '  File "/opt/project/train.py", line 88, in <module>\n'
    "    trainer.train()\n"
    "{frames}"
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB. GPU 0 has a total capacity of 23.65 GiB "
    "of which 306.81 MiB is free. Including non-PyTorch memory, this process has 23.34 GiB memory in use. Of the "
    "allocated memory 22.80 GiB is allocated by PyTorch, and 81.09 MiB is reserved by PyTorch but unallocated.\n"
)

TEXTS: dict[str, Told] = {
    # -- torch, by release
    "torch 1.1: cached is what is idle": Told(
        "RuntimeError: CUDA out of memory. Tried to allocate 146.88 MiB (GPU 2; 10.76 GiB total capacity; 9.78 GiB "
        "already allocated; 21.12 MiB free; 30.79 MiB cached)",
        {"tried": 0.14, "total": 10.76, "allocated": 9.78, "free": 0.02, "reserved": 9.81, "device": 2},
        "real",
    ),
    "torch 1.8: half of what is reserved is idle": Told(
        "RuntimeError: CUDA out of memory. Tried to allocate 1.95 GiB (GPU 0; 15.75 GiB total capacity; 7.02 GiB "
        "already allocated; 563.88 MiB free; 14.19 GiB reserved in total by PyTorch)",
        {"tried": 1.95, "allocated": 7.02, "reserved": 14.19},
        "fragmentation",
        "change-PYTORCH_CUDA_ALLOC_CONF",
    ),
    "torch 2.0: with its advice": Told(
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 64.00 MiB (GPU 0; 5.80 GiB total capacity; "
        "5.02 GiB already allocated; 35.12 MiB free; 5.17 GiB reserved in total by PyTorch) If reserved memory is >> "
        "allocated memory try setting max_split_size_mb to avoid fragmentation.  See documentation for Memory "
        "Management and PYTORCH_CUDA_ALLOC_CONF",
        {"tried": 0.06, "allocated": 5.02, "reserved": 5.17},
        "real",
    ),
    "torch 2.1: capacty": Told(
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 50.00 MiB. GPU 0 has a total capacty of "
        "23.65 GiB of which 36.81 MiB is free. Including non-PyTorch memory, this process has 23.60 GiB memory in use. "
        "Of the allocated memory 22.85 GiB is allocated by PyTorch, and 312.09 MiB is reserved by PyTorch but "
        "unallocated. If reserved but unallocated memory is large try setting max_split_size_mb to avoid "
        "fragmentation.",
        {"total": 23.65, "free": 0.04, "process": 23.6, "allocated": 22.85, "reserved": 23.15},
        "real",
    ),
    "torch 2.6, a rank of several": Told(
        "[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 764.00 MiB. GPU 0 has a total capacity "
        "of 47.37 GiB of which 442.88 MiB is free. Including non-PyTorch memory, this process has 46.92 GiB memory in "
        "use. Of the allocated memory 42.40 GiB is allocated by PyTorch, and 3.24 GiB is reserved by PyTorch but "
        "unallocated.",
        {"tried": 0.75, "allocated": 42.4, "reserved": 45.64},
        "real",
        "change-PYTORCH_CUDA_ALLOC_CONF",
    ),
    "torch 2.9: PYTORCH_ALLOC_CONF": Told(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 79.15 "
        "GiB of which 18.38 MiB is free. Including non-PyTorch memory, this process has 79.12 GiB memory in use. Of "
        "the allocated memory 61.34 GiB is allocated by PyTorch, and 17.02 GiB is reserved by PyTorch but unallocated. "
        "If reserved but unallocated memory is large try setting PYTORCH_ALLOC_CONF=expandable_segments:True to avoid "
        "fragmentation.",
        {"allocated": 61.34, "reserved": 78.36},
        "fragmentation",
        "change-PYTORCH_CUDA_ALLOC_CONF",
    ),
    # -- what else torch tells
    "a container lists the process by its number on the host": Told(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 256.00 MiB. GPU 0 has a total capacity of 47.53 "
        "GiB of which 16.88 MiB is free. Process 3652628 has 47.51 GiB memory in use. Of the allocated memory 47.14 "
        "GiB is allocated by PyTorch, and 57.79 MiB is reserved by PyTorch but unallocated.",
        {"others": None, "allocated": 47.14},
        "real",
    ),
    "a part of a card (MIG)": Told(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 9.50 "
        "GiB of which 12.50 MiB is free. Process 3140 has 9.48 GiB memory in use. Of the allocated memory 9.02 GiB is "
        "allocated by PyTorch, and 77.21 MiB is reserved by PyTorch but unallocated.",
        {"total": 9.5, "others": None},
        "real",
    ),
    "another process": Told(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total capacity of 31.84 "
        "GiB of which 1.02 GiB is free. Process 4242 has 15.50 GiB memory in use. Including non-PyTorch memory, this "
        "process has 15.00 GiB memory in use. Of the allocated memory 14.00 GiB is allocated by PyTorch, and 311.20 "
        "MiB is reserved by PyTorch but unallocated.",
        {"others": 15.5, "process": 15.0, "device": 1},
        "others",
    ),
    "pools of CUDA graphs": Told(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 "
        "GiB of which 1.02 GiB is free. Including non-PyTorch memory, this process has 78.12 GiB memory in use. Of the "
        "allocated memory 76.90 GiB is allocated by PyTorch, with 6.50 GiB allocated in private pools (e.g., CUDA "
        "Graphs), and 211.20 MiB is reserved by PyTorch but unallocated.",
        {"private_pools": 6.5, "reserved": 77.11},
        "real",
        "fewer-cuda-graphs",
    ),
    "a fraction that was set": Told(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 "
        "GiB of which 60.02 GiB is free. Including non-PyTorch memory, this process has 18.12 GiB memory in use. 19.78 "
        "GiB allowed; Of the allocated memory 17.90 GiB is allocated by PyTorch, and 11.20 MiB is reserved by PyTorch "
        "but unallocated.",
        {"allowed": 19.78, "free": 60.02},
        "limit",
        "lift-memory-fraction",
    ),
    "a fraction, in the older words": Told(
        "RuntimeError: CUDA out of memory. Tried to allocate 1.00 GiB (GPU 0; 23.69 GiB total capacity; 9.10 GiB "
        "already allocated; 12.00 GiB free; 10.00 GiB allowed; 9.80 GiB reserved in total by PyTorch)",
        {"allowed": 10, "free": 12},
        "limit",
    ),
    "more at once than the card has": Told(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 15.00 GiB. GPU 0 has a total capacity of 14.56 "
        "GiB of which 6.91 GiB is free. Including non-PyTorch memory, this process has 7.65 GiB memory in use. Of the "
        "allocated memory 7.23 GiB is allocated by PyTorch, and 301.94 MiB is reserved by PyTorch but unallocated.",
        {"tried": 15, "total": 14.56},
        "real",
        "one-tensor-too-large",
    ),
    "Windows lends memory of the machine": Told(
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of "
        "8.00 GiB of which 0 bytes is free. Of the allocated memory 14.51 GiB is allocated by PyTorch,\nand 15.90 MiB "
        "is reserved by PyTorch but unallocated.",
        {"free": 0, "allocated": 14.51},
        "",
    ),
    "cudaMallocAsync": Told(
        "torch.cuda.OutOfMemoryError: Allocation on device 0 would exceed allowed memory. (out of memory)\n"
        "Currently allocated     : 10.95 GiB\nRequested               : 512.00 MiB\n"
        "Device limit            : 11.99 GiB\nFree (according to CUDA): 0 bytes\n"
        "PyTorch limit (set by user-supplied memory fraction)\n                        : 17179869184.00 GiB",
        {"allocated": 10.95, "tried": 0.5, "total": 11.99, "free": 0, "allowed": None, "device": 0},
        "real",
    ),
    "cudaMallocAsync with a fraction": Told(
        "torch.OutOfMemoryError: Allocation on device 1 would exceed allowed memory. (out of memory)\n"
        "Currently allocated     : 5.60 GiB\nRequested               : 1.00 GiB\n"
        "Device limit            : 23.99 GiB\nFree (according to CUDA): 17.20 GiB\n"
        "PyTorch limit (set by user-supplied memory fraction)\n                        : 6.00 GiB",
        {"allowed": 6, "device": 1},
        "limit",
    ),
    # -- what the program was at
    "loading": Told(
        TRAINING.format(
            frames='  File "/venv/transformers/modeling_utils.py", line 4225, in from_pretrained\n'
            "    set_module_tensor_to_device(model, name, device, value)\n"
        ),
        {"phase": "loading"},
        "real",
        "need-less-loading",
    ),
    "attention": Told(
        TRAINING.format(
            frames='  File "/venv/transformers/models/llama/modeling_llama.py", line 388, in forward\n'
            "    attn_weights = nn.functional.softmax(attn_weights, dim=-1, "
            "dtype=torch.float32).to(query_states.dtype)\n"
        ),
        {"phase": "attention"},
        "real",
        "need-less-attention",
    ),
    "loss": Told(
        TRAINING.format(
            frames='  File "/venv/torch/nn/functional.py", line 3104, in cross_entropy\n'
            "    return torch._C._nn.cross_entropy_loss(input, target, weight)\n"
        ),
        {"phase": "loss"},
        "real",
        "need-less-loss",
    ),
    "backward, of the loss": Told(
        TRAINING.format(
            frames="    loss = criterion(out)\n    loss.backward()\n"
            '  File "/venv/torch/autograd/graph.py", line 769, in _engine_run_backward\n'
            "    return Variable._execution_engine.run_backward(\n"
        ),
        {"phase": "backward"},
        "real",
        "need-less-backward",
    ),
    "optimizer": Told(
        TRAINING.format(
            frames='  File "/venv/torch/optim/adamw.py", line 124, in _init_group\n'
            '    state["exp_avg_sq"] = torch.zeros_like(\n'
        ),
        {"phase": "optimizer"},
        "real",
        "need-less-optimizer",
    ),
    "cache": Told(
        TRAINING.format(
            frames='  File "/venv/transformers/cache_utils.py", line 451, in update\n'
            "    self.key_cache[layer_idx] = torch.cat([self.key_cache[layer_idx], key_states], dim=-2)\n"
        ),
        {"phase": "cache"},
        "real",
        "need-less-cache",
    ),
    "a traceback that tells nothing": Told(
        TRAINING.format(frames='  File "/opt/project/model.py", line 7, in forward\n    x = self.mlp(x)\n'),
        {"phase": None},
        "real",
        "need-less-memory",
    ),
    # -- others
    "JAX": Told(
        "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 8589934592 "
        "bytes.",
        {"tried": 8, "program": "jax"},
        "unclear",
        "framework-memory-fraction",
    ),
    "the allocator of JAX and TensorFlow": Told(
        "W external/xla/xla/tsl/framework/bfc_allocator.cc:482] Allocator (GPU_0_bfc) ran out of memory trying to "
        "allocate 2.50GiB (rounded to 2684354560)requested by op \n"
        "I tsl/framework/bfc_allocator.cc:1109] Stats: \nLimit:                     15703998464\n"
        "InUse:                     15365245952\nMaxInUse:                  15365245952\n"
        "NumAllocs:                        1235",
        {"tried": 2.5, "allowed": 14.63, "allocated": 14.31, "device": 0},
        "real",
    ),
    "TensorFlow names the tensor": Told(
        "tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when allocating tensor with "
        "shape[64,512,56,56] and type float on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc",
        {"tried": 64 * 512 * 56 * 56 * 4 / GIB, "program": "tensorflow"},
        "unclear",
        "framework-memory-fraction",
    ),
    "llama.cpp": Told(
        "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 18432.00 MiB on device 0: cudaMalloc failed: out of "
        "memory\nalloc_tensor_range: failed to allocate CUDA0 buffer of size 19327352832\n"
        "llama_model_load: error loading model: unable to allocate CUDA0 buffer",
        {"tried": 18, "program": "llama.cpp", "device": 0},
        "unclear",
        "need-less-llama-cpp",
    ),
    "ollama": Told(
        "Error: llama runner process has terminated: cudaMalloc failed: out of memory\n"
        "ggml_gallocr_reserve_n: failed to allocate CUDA0 buffer of size 2684354560",
        {"tried": 2.5, "program": "llama.cpp"},
        "unclear",
        "need-less-llama-cpp",
    ),
    "CuPy": Told(
        "cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 8,589,934,592 bytes (allocated so far: "
        "12,884,901,888 bytes).",
        {"tried": 8, "allocated": 12, "program": "cupy"},
        "unclear",
    ),
    "vLLM, its traceback": Told(
        TRAINING.format(
            frames='  File "/venv/site-packages/vllm/worker/model_runner.py", line 1243, in execute_model\n'
            "    hidden_states = model_executable(\n"
        ),
        {"program": "vllm", "phase": None},
        "real",
        "need-less-engine",
    ),
    "vLLM warms up": Told(
        "RuntimeError: CUDA out of memory occurred when warming up sampler with 1024 dummy requests. Please try "
        "lowering `max_num_seqs` or `gpu_memory_utilization` when initializing the engine.",
        {"program": "vllm"},
        "unclear",
        "need-less-engine",
    ),
    "TensorRT": Told(
        "[TRT] [E] Requested amount of GPU memory (8589934592 bytes) could not be allocated. There may not be enough "
        "free memory for allocation to succeed.",
        {"tried": 8, "program": "tensorrt"},
        "unclear",
    ),
    "ComfyUI": Told("Allocation on device \nThis error means you ran out of memory on your GPU.", {}, "unclear"),
    "CTranslate2": Told("RuntimeError: CUDA failed with error out of memory", {}, "unclear"),
    "PaddlePaddle": Told(
        "ResourceExhaustedError: \n\nOut of memory error on GPU 0. Cannot allocate 512.000000MB memory on GPU 0, "
        "10.500000GB memory has been allocated and available memory is only 256.000000MB.",
        {"tried": 0.5, "allocated": 10.5, "free": 0.25, "program": "paddle"},
        "unclear",
    ),
}


def facts_of(diagnosis: Diagnosis) -> dict[str, Any]:
    facts = diagnosis.view.report.facts
    return {name: facts[name].value for name in facts if name.startswith("oom.") and facts[name].is_known}


@pytest.mark.parametrize("name", TEXTS)
def test_what_a_report_says(name: str) -> None:
    told = TEXTS[name]
    diagnosis = diagnose_texts([told.text])
    facts = facts_of(diagnosis)
    for fact, value in told.facts.items():
        found = facts.get(f"oom.{fact}")
        if isinstance(value, (int, float)) and fact != "device":
            assert found == pytest.approx(value * GIB, abs=0.006 * GIB), fact
        else:
            assert found == value, fact
    assert diagnosis.exit == 1
    if told.kind:
        (outcome,) = (o for o in diagnosis.document["outcomes"] if o["rule"] == "CD612")
        assert outcome["status"] == "fail" and outcome["data"]["kind"] == told.kind, outcome["message"]
    else:
        assert "CD612" not in diagnosis.root_causes
    if told.first:
        assert diagnosis.document["plan"]["steps"][0]["id"] == told.first


def test_the_document_holds_the_numbers() -> None:
    diagnosis = diagnose_texts([TEXTS["torch 1.8: half of what is reserved is idle"].text])
    (outcome,) = (o for o in diagnosis.document["outcomes"] if o["rule"] == "CD612")
    assert {name: round(value / MIB) for name, value in outcome["data"].items() if name != "kind"} == {
        "requested": 1997,
        "allocated": 7188,
        "reserved": 14531,
        "total": 16128,
    }


def test_another_maker_s_gpu_is_not_read() -> None:
    text = "RuntimeError: MPS backend out of memory (MPS allocated: 17.9 GiB). Tried to allocate 256 MiB on its pool."
    assert facts_of(diagnose_texts([text])) == {}


def test_memory_of_the_machine_is_not_the_gpu_s() -> None:
    """TensorFlow says the same words where a tensor on the CPU has no room."""
    text = (
        "ResourceExhaustedError: OOM when allocating tensor with shape[1000000,10000] and type float on "
        "/job:localhost/replica:0/task:0/device:CPU:0 by allocator cpu"
    )
    diagnosis = diagnose_texts([text])
    assert facts_of(diagnosis) == {} and "CD612" not in diagnosis.root_causes


def test_of_many_reports_each_is_read_quickly() -> None:
    """A log of a job that tried again and again: the last report counts."""
    told = TRAINING.format(frames="    x = self.mlp(x)\n" * 300)
    last = told.replace("1.00 GiB. GPU", "3.00 GiB. GPU")
    facts = facts_of(diagnose_texts([told * 300 + last]))
    assert facts["oom.tried"] == 3 * GIB
