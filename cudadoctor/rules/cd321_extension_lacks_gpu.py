"""An extension has no code for this GPU, though torch has

What it checks
    Whether a program met "no kernel image is available" (or an extension's own words of that kind) on a GPU for which
    torch itself has code.

Why it matters
    flash-attn, xformers, bitsandbytes, mmcv and others bring compiled kernels of their own, for a list of GPUs of their
    own. torch works, and the extension's first call fails.

How to fix
    A release of the extension that has code for this GPU, or a build of it on this machine for this GPU. Some (of
    flash-attn: everything) need a newer GPU than this one: then switch the extension off.

References
    https://github.com/Dao-AILab/flash-attention
    https://docs.pytorch.org/docs/stable/cpp_extension.html
"""

from __future__ import annotations

import re
from typing import Any, Optional

from cudadoctor.derive.coverage import Coverage, coverage, visible_gpus
from cudadoctor.derive.gpus import Gpu
from cudadoctor.derive.symptoms import Symptom, symptom
from cudadoctor.derive.wheel import CUDA, torch_build
from cudadoctor.matrix import numbers
from cudadoctor.rules.api import CERTAIN, ENVIRONMENT, ERROR, LIKELY, Case, Fix, Outcome, Remedy, Rule

RULE = Rule(
    id="CD321",
    name="extension-lacks-gpu",
    title="An extension has no code for this GPU, though torch has",
    severity=ERROR,
    blame=ENVIRONMENT,
    follows_from=("CD304", "CD305", "CD303", "CD302"),
    precedence=39,
)

# The extension itself says which GPUs it is for.
_OWN_WORDS = (
    "flash_attention_needs_ampere",
    "extension_needs_newer_gpu",
    "operator_built_for_other_gpu",
    "extension_not_built_for_gpu",
)
_EXTENSIONS = (
    "flash-attn",
    "xformers",
    "bitsandbytes",
    "mamba-ssm",
    "causal-conv1d",
    "sageattention",
    "flashinfer-python",
    "vllm",
    "auto-gptq",
    "exllamav2",
    "deepspeed",
    "mmcv",
    "apex",
)


def judge(case: Case) -> Outcome:
    said = symptom(case, *_OWN_WORDS)
    if said is not None:
        return _own_words(case, said)
    said = symptom(case, "no_kernel_image")
    if said is None:
        return case.skipped("no program lacked code for a GPU")
    covered = case.derived(coverage)
    served = [entry for entry in covered if entry.answer in ("yes", "likely")]
    if any(entry.answer == "no" for entry in covered):
        return case.skipped("torch itself has no code for a GPU here")
    if not served or len(served) < len(covered):
        return case.undecided(
            "some program has no code for this GPU; whether torch or an extension is not known",
            (said.fact, "torch.version"),
        )
    return _failed(case, said, served[0].gpu, _likely_extension(case, said), LIKELY)


def _likely_extension(case: Case, said: Symptom) -> Optional[str]:
    """The extension that the text names, else the only one that is installed."""
    text = said.text.lower().replace("_", "-")
    named = [name for name in _EXTENSIONS if name.partition("-python")[0] in text]
    if named:
        return named[0]
    installed = [name for name in _EXTENSIONS if case.fact(f"package.{name}.version").is_known]
    return installed[0] if len(installed) == 1 else None


def _failed(case: Case, said: Symptom, gpu: Gpu, name: Optional[str], certainty: str) -> Outcome:
    build = case.derived(torch_build)
    capability = gpu.compute_capability.value
    target = f" (sm_{str(capability).replace('.', '')})" if capability else ""
    version = case.value(f"package.{name}.version") if name else None
    what = f"{name} {version}" if name and version else name or "an extension"
    evidence = (said.fact, *gpu.facts, "torch.version")
    return case.failed(
        f"{what} has no code for the {gpu.label}{target}, though torch {build.version} has",
        (*evidence, f"package.{name}.version") if name and version else evidence,
        certainty=certainty,
        data={"package": name, "gpu": gpu.label},
        fixes=_fixes(name, capability, {said.fact: None}),
        not_helping=(
            "another torch: this one has code for the GPU",
            "a newer driver: no driver brings code that a package was built without",
        ),
    )


def _fixes(name: Optional[str], capability: Optional[str], effect: dict[str, Any]) -> tuple[Fix, ...]:
    package = name or "PACKAGE"
    list_ = f'TORCH_CUDA_ARCH_LIST="{capability}" ' if capability else ""
    return (
        Remedy(
            "manual",
            {
                "title": f"Install {name or 'the extension'} with code for this GPU",
                "text": f"Try its newest release: python -m pip install --upgrade {package}. Else build it here, which "
                f"needs nvcc of torch's CUDA major: {list_}python -m pip install --no-build-isolation --no-cache-dir "
                f"--force-reinstall --no-deps --no-binary {package} {package}",
                "kind": "install",
                "effect": effect,
            },
        ),
    )


def _own_words(case: Case, said: Symptom) -> Outcome:
    gpu = _gpu_of(case, said)
    name = _likely_extension(case, said)
    if said.fact == "symptom.flash_attention_needs_ampere":
        name = "flash-attn"
    label = f"the {gpu.label}" if gpu is not None else "this GPU"
    what = {"flash-attn": "FlashAttention"}.get(name or "", name) or "an extension"
    certainty = LIKELY
    needed = _capability(said.get("needed"))
    have = _capability(said.get("capability"))
    if said.fact == "symptom.operator_built_for_other_gpu" and said.get("wanted"):
        message = f"{what} was built for {said.get('built')}, and is used where {said.get('wanted')} is wanted"
    elif needed and have:
        message = f"{what} needs a GPU of compute capability {needed}, and {label} has {have}"
        certainty = CERTAIN
    else:
        message = f"{what} has no code for {label}: it is for newer GPUs or was built without it"
        if said.fact == "symptom.flash_attention_needs_ampere":
            message = f"{what} needs an Ampere GPU or a newer one, and {label} is older"
            certainty = CERTAIN if gpu is not None and _is_older_than_ampere(case, gpu) else LIKELY
    too_old = said.fact == "symptom.flash_attention_needs_ampere" or bool(needed)
    evidence = (said.fact, *gpu.facts) if gpu is not None else (said.fact,)
    return case.failed(
        message,
        evidence,
        certainty=certainty,
        data={"package": name},
        fixes=(_without(name, {said.fact: None}),)
        if too_old
        else _fixes(name, gpu.compute_capability.value if gpu is not None else None, {said.fact: None}),
        not_helping=("another torch, driver or CUDA toolkit: the extension itself has no code for this GPU",),
    )


def _capability(text: str) -> str:
    digits = re.findall(r"\d+", text)
    if len(digits) == 1 and len(digits[0]) >= 2:
        return f"{digits[0][:-1]}.{digits[0][-1]}"
    return ".".join(digits[:2])


def _gpu_of(case: Case, said: Symptom) -> Optional[Gpu]:
    covered: tuple[Coverage, ...] = case.derived(coverage)
    if case.derived(torch_build).kind != CUDA or not covered:
        found = visible_gpus(case)
        return found[0] if found else None
    return covered[0].gpu


def _is_older_than_ampere(case: Case, gpu: Gpu) -> bool:
    """By the framework's own least capability in the matrix."""
    framework = case.matrix.framework("flash-attn")
    least = min(framework.capability.values(), default="") if framework is not None else ""
    own = gpu.compute_capability.value
    return bool(least and own and (numbers(own) or ()) < (numbers(least) or ()))


def _without(name: Optional[str], effect: dict[str, Any]) -> Remedy:
    package = name or "the extension"
    return Remedy(
        "manual",
        {
            "title": f"Do without {package} on this GPU",
            "text": 'Let the program use torch\'s own attention: attn_implementation="sdpa" in transformers, '
            f"--attention-backend or the like elsewhere, or uninstall {package}. Only a newer GPU runs it.",
            "kind": "setting",
            "effect": effect,
        },
    )
