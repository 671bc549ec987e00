"""CD308: compiled extensions against the torch that is installed."""

from __future__ import annotations

from cudadoctor.testing import fails, linux, passes, skips, unknown_when

RULE = "CD308"

T26 = linux().torch("2.6.0+cu124")
SYMBOL = {
    "symptom.extension_symbol_missing": {
        "text": "flash_attn_2_cuda.so: undefined symbol: _ZN3c105ErrorC2ENS_14SourceLocationESs"
    }
}

CUDART_11 = {
    "soname": "libcudart.so.11.0",
    "asked_by": "flash-attn",
    "text": "ImportError: libcudart.so.11.0: cannot open shared object file",
}

CASES = [
    passes(
        "xformers for this torch",
        T26.package("xformers", "0.0.29.post3", built_for_torch="2.6.0+cu124", built_for_cuda="12.4"),
    ),
    passes(
        "flash-attn names the minor and CUDA's major",
        T26.package("flash-attn", "2.7.4.post1", built_for_torch="2.6", built_for_cuda="12"),
    ),
    passes(
        "xformers of the stable ABI says that it takes every torch from 2.10 on",
        linux().package(
            "xformers", "0.0.35", built_for_torch="2.10.0+cu130", built_for_cuda="13.0", requires=["torch>=2.10"]
        ),
    ),
    passes(
        "the CPU build of torch is CD302's affair: xformers is the right one",
        linux().torch("2.2.0+cpu").package("xformers", "0.0.24", built_for_torch="2.2.0+cu121", built_for_cuda="12.1"),
    ),
    fails(
        "xformers for a newer torch",
        linux()
        .torch("2.1.0+cu121")
        .package("xformers", "0.0.26.post1", built_for_torch="2.3.0+cu121", built_for_cuda="12.1"),
        says="xformers 0.0.26.post1 was built for torch 2.3.0+cu121, and torch 2.1.0+cu121 is installed",
        severity="error",
        certainty="certain",
        blame="environment",
        fix="reinstall-package",
    ),
    fails(
        "the release that fits is known",
        linux()
        .torch("2.9.1+cu128")
        .package("xformers", "0.0.32.post2", built_for_torch="2.8.0+cu128", requires=["torch==2.8.0"]),
        fix="reinstall-package",
    ),
    fails(
        "an open requirement that any source package has is no promise of a stable ABI",
        T26.package("natten", "0.17.5", built_for_torch="2.5.0", requires=["torch>=2.0"]),
        fix="manual",
    ),
    fails(
        "another CUDA major",
        T26.package("flash-attn", "2.7.4.post1", built_for_torch="2.6", built_for_cuda="11"),
        says="was built for CUDA 11",
    ),
    fails(
        "the wheel of the new C++ ABI beside a torch of the old one",
        linux().torch("2.2.0+cu118").package("flash-attn", "2.5.5+cu118torch2.2cxx11abiTRUE", built_for_torch="2.2"),
        says="was built for the new C++ ABI",
    ),
    fails(
        "the old one beside 2.6.0 from cu126, which changed it: the same torch from cu124 would do",
        linux()
        .torch("2.6.0+cu126")
        .package("flash-attn", "2.7.4.post1+cu12torch2.6cxx11abifalse", built_for_torch="2.6"),
        says="was built for the old C++ ABI",
    ),
    passes(
        "and beside 2.6.0 from cu124",
        T26.package("flash-attn", "2.7.4.post1+cu12torch2.6cxx11abifalse", built_for_torch="2.6"),
    ),
    fails(
        "an undefined symbol of torch's, and no package tells",
        T26.set(SYMBOL),
        says="an extension misses a symbol of torch",
        certainty="likely",
        fix="manual",
    ),
    skips("no extensions", T26),
    skips("no torch", linux().no_torch().package("xformers", "0.0.29", built_for_torch="2.6.0")),
    unknown_when(
        "an extension that does not say",
        T26.package("flash-attn", "2.7.4").unknown("package.flash-attn.built_for_torch"),
    ),
    fails(
        "its CUDA runtime is not found, because torch has loaded another",
        T26.set({"libraries.not_found": [CUDART_11]}),
        says="flash-attn was built for CUDA 11: it looks for libcudart.so.11.0, and torch 2.6.0+cu124 brings CUDA 12.4",
        certainty="certain",
        fix="manual",
    ),
    fails(
        "the same in a text that does not tell torch's version",
        linux().only().set({"examination.kind": "report", "libraries.not_found": [CUDART_11]}),
        says="flash-attn was built for CUDA 11",
        certainty="likely",
    ),
    fails(
        "the missing symbol's file names the package",
        linux().set(
            {
                "symptom.extension_symbol_missing": {
                    "text": "flash_attn_2_cuda.so: undefined symbol: _ZN3c10...",
                    "file": "flash_attn_2_cuda.cpython-310-x86_64-linux-gnu.so",
                    "symbol": "_ZN3c10...",
                }
            }
        ),
        says="flash-attn misses a symbol of torch",
        certainty="likely",
    ),
    fails(
        "bitsandbytes without the library for this CUDA",
        linux().set(
            {"symptom.bitsandbytes_no_cuda": {"text": "Required library version not found", "library": "cuda118"}}
        ),
        says="no library for CUDA 118",
        certainty="likely",
    ),
    fails(
        "an extension of PyTorch Geometric: the folder bears its name",
        linux()
        .torch("2.4.0+cu118", "11.8")
        .set(
            {
                "symptom.extension_symbol_missing": {
                    "text": "torch_scatter/_version_cuda.so: undefined symbol: _ZN5torch3jit...",
                    "file": "torch_scatter/_version_cuda.so",
                    "symbol": "_ZN5torch3jit...",
                }
            }
        ),
        says="torch-scatter misses a symbol of torch",
        certainty="likely",
    ),
    fails(
        "a library of torch's that this torch has not",
        linux().set({"symptom.torch_library_missing": {"text": "libtorch_cpu.so: cannot open shared object file"}}),
        says="it was built for another release",
        certainty="likely",
    ),
    skips(
        "a companion's file",
        linux().set(
            {
                "symptom.extension_symbol_missing": {
                    "text": "torchaudio/lib/libtorchaudio.so: undefined symbol: _ZNK3c10...",
                    "file": "libtorchaudio.so",
                }
            }
        ),
        says="another matter",
    ),
    fails(
        "an extension without its compiled part",
        linux().set(
            {"symptom.extension_module_missing": {"text": "No module named 'mmcv._ext'", "module": "mmcv._ext"}}
        ),
        says="the compiled part of mmcv is not there",
        certainty="likely",
    ),
]
