"""CD321: torch has code for the GPU, and an extension has not."""

from __future__ import annotations

from cudadoctor.testing import Machine, fails, linux, skips, unknown_when

RULE = "CD321"

NEVER_PASSES = "without an error text nobody knows which GPUs an extension has code for"

NO_IMAGE = {"symptom.no_kernel_image": {"text": "CUDA error: no kernel image is available for execution on the device"}}
AMPERE = {
    "symptom.flash_attention_needs_ampere": {"text": "RuntimeError: FlashAttention only supports Ampere GPUs or newer."}
}
XFORMERS = {
    "symptom.extension_needs_newer_gpu": {
        "text": "xformers: requires device with capability > (8, 0) but your GPU has capability (7, 5) (too old)",
        "needed": "8, 0",
        "capability": "7, 5",
    }
}
OTHER = {
    "symptom.operator_built_for_other_gpu": {
        "text": "FATAL: kernel `fmha_cutlassF_f32_aligned_64x64_rf_sm80` is for sm80-sm100, but was built for sm50",
        "wanted": "sm80-sm100",
        "built": "sm50",
    }
}


def report(symptom: dict[str, dict[str, str]]) -> Machine:
    return linux().only().set({"examination.kind": "report", **symptom})


RTX_5090 = linux().gpu("NVIDIA GeForce RTX 5090", "12.0", 32, device_id="2B85")
T4 = linux().gpu("Tesla T4", "7.5", 16, device_id="1EB8")

CASES = [
    skips("a healthy machine", linux()),
    skips("torch itself lacks it", T4.torch("2.11.0+cu130", sass=["sm_80", "sm_90"]).set(NO_IMAGE)),
    fails(
        "an extension that is not named",
        RTX_5090.set(NO_IMAGE),
        says="an extension has no code for the NVIDIA GeForce RTX 5090 (sm_120), though torch 2.14.1+cu130 has",
        certainty="likely",
        severity="error",
        blame="environment",
        fix="manual",
    ),
    fails(
        "the only extension that is there",
        RTX_5090.package("bitsandbytes", "0.43.0").set(NO_IMAGE),
        says="bitsandbytes 0.43.0 has no code",
    ),
    fails(
        "flash-attn on a T4",
        T4.package("flash-attn", "2.8.3").set(AMPERE),
        says="FlashAttention needs an Ampere GPU or a newer one, and the Tesla T4 is older",
        certainty="certain",
        fix="manual",
    ),
    fails("flash-attn's words alone", report(AMPERE), says="this GPU is older", certainty="likely"),
    fails(
        "xformers names both numbers",
        report(XFORMERS),
        says="xformers needs a GPU of compute capability 8.0, and this GPU has 7.5",
        certainty="certain",
    ),
    fails("an operator for other GPUs", report(OTHER), says="was built for sm50", certainty="likely"),
    unknown_when("neither GPU nor torch are known", report(NO_IMAGE)),
    unknown_when("torch's list could not be read", RTX_5090.torch("2.14.1.dev20261001+cu130").set(NO_IMAGE)),
]
