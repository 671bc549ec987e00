"""nvidia-smi works and CUDA does not: the UVM module is broken

What it checks
    Whether a program reported CUDA's "unknown error" (999) on a machine whose driver answers. The usual cause is
    nvidia_uvm, the module that CUDA needs and nvidia-smi does not: it is left broken by a suspend, was not loaded, or
    stumbles over the kernel's HMM (heterogeneous memory management), which shows as no CUDA device at all.

Why it matters
    torch.cuda.is_available() turns False on a laptop that slept, and nvidia-smi shows a healthy card.

How to fix
    Load the module anew: sudo rmmod nvidia_uvm; sudo modprobe nvidia_uvm. If programs hold it, end them first; a
    reboot does it too. Where it comes back after every suspend, enable the driver's own suspend services. Where it
    never works on a new kernel, switch off its use of the kernel's HMM: a line "options nvidia_uvm uvm_disable_hmm=1"
    in a file under /etc/modprobe.d, and load it anew.

References
    https://download.nvidia.com/XFree86/Linux-x86_64/latest/README/powermanagement.html
    https://docs.nvidia.com/cuda/cuda-runtime-api/
"""

from __future__ import annotations

from typing import Optional

from cudadoctor.derive.driver import NO, YES, answer
from cudadoctor.derive.gpus import gpus
from cudadoctor.derive.left_out import flavour_needed
from cudadoctor.derive.surroundings import in_container, in_report, maybe_own_linux
from cudadoctor.rules.api import ERROR, LIKELY, MACHINE, POSSIBLE, Case, Fix, Outcome, Remedy, Rule

RULE = Rule(
    id="CD112",
    name="uvm-broken",
    title="nvidia-smi works and CUDA does not: the UVM module is broken",
    severity=ERROR,
    blame=MACHINE,
    follows_from=("CD110", "CD111", "CD105", "CD706"),
    precedence=25,
)

_UNKNOWN_ERROR = "symptom.cuda_unknown_error"
_SAID = "symptom.uvm_broken"
_SLEPT = "symptom.machine_slept"
_INIT_FAILED = "symptom.cuda_init_failed"
_OTHER_WORKS = "symptom.other_module_works"
# How programs name error 3.
_ERROR_3 = ("CUDA_ERROR_NOT_INITIALIZED", "driver initialization failed")
# What a program says that finds no GPU.
_IN_VAIN = (_UNKNOWN_ERROR, "symptom.no_cuda_device", "symptom.no_cuda_gpus", "symptom.cuda_init_failed")
_NOT_HELPING = ("installing torch again: the same build works once the module does",)


def judge(case: Case) -> Outcome:
    told_in_container = in_report(case) and in_container(case) and case.fact(_SLEPT).is_known
    if not maybe_own_linux(case) and not told_in_container:
        return case.skipped("nvidia_uvm is a module of Linux machines of their own")
    hmm = _hmm(case)
    if hmm is not None:
        return hmm
    reported = case.fact(_UNKNOWN_ERROR)
    if not reported.is_known:
        return case.skipped("no program reported CUDA's unknown error")
    reply = case.derived(answer)
    if reply.state == NO:
        return case.skipped("the driver does not answer at all")
    slept = case.fact(_SLEPT).is_known
    if reply.state != YES and not slept and not case.fact(_SAID).is_known:
        return case.undecided("CUDA reported an unknown error; whether the driver answers is not known", reply.evidence)
    loaded = case.fact("kernel.modules")
    missing = loaded.is_known and "nvidia" in loaded.get() and "nvidia_uvm" not in loaded.get()
    what = "the module nvidia_uvm is not loaded" if missing else "nvidia_uvm is broken, as it often is after a suspend"
    # Of a text nothing rules out the other causes, unless it speaks of a suspend.
    sure = not in_report(case) or missing or slept
    facts = [_UNKNOWN_ERROR, *((_SLEPT,) if slept else ()), *(reply.evidence if reply.state == YES else ())]
    return case.failed(
        f"CUDA reports an unknown error{' while the driver answers' if reply.state == YES else ''}: {what}",
        (*facts, "kernel.modules"),
        certainty=LIKELY if sure else POSSIBLE,
        fixes=_reload(case, missing),
        not_helping=_NOT_HELPING,
    )


def _reload(case: Case, missing: bool) -> tuple[Fix, ...]:
    return (Remedy("load-uvm", {"reload": not missing, "effect": {_UNKNOWN_ERROR: None}}),)


def _with_the_open_module(case: Case) -> Optional[Outcome]:
    """Error 3 from the first call, where the open module is loaded: it is the one that serves HMM."""
    words = str((case.value(_INIT_FAILED) or {}).get("text", ""))
    code = (case.value(_INIT_FAILED) or {}).get("code")
    first_call = code == "3" or any(name in words for name in _ERROR_3)
    if not in_report(case) or not first_call or case.derived(answer).state == NO:
        return None
    other = case.fact(_OTHER_WORKS).is_known
    is_open = case.value("driver.module_flavour") == "open" or any(
        flavour_needed(case, gpu) == "open" for gpu in case.derived(gpus)
    )
    if not other and not is_open:
        return None
    facts = (_INIT_FAILED, *((_OTHER_WORKS,) if other else ()), "driver.module_flavour")
    return case.failed(
        "CUDA does not start with the open kernel module (error 3): nvidia_uvm may stumble over the kernel's HMM",
        facts,
        certainty=LIKELY if other else POSSIBLE,
        fixes=(Remedy("disable-uvm-hmm", {"effect": {_INIT_FAILED: None}}),),
        not_helping=_NOT_HELPING,
    )


def _hmm(case: Case) -> Optional[Outcome]:
    """A text that speaks of the module's HMM option, and of a program that finds no GPU."""
    said = str((case.value(_SAID) or {}).get("text", ""))
    failing = next((name for name in _IN_VAIN if case.fact(name).is_known), None)
    if failing is None and case.value("torch.cuda_available") is False:
        failing = "torch.cuda_available"
    if "hmm" not in said.lower() or failing is None or case.derived(answer).state == NO:
        return _with_the_open_module(case)
    return case.failed(
        "CUDA finds no GPU while nvidia-smi does: nvidia_uvm stumbles over the kernel's HMM",
        (_SAID, failing),
        certainty=LIKELY,
        fixes=(Remedy("disable-uvm-hmm", {"effect": {_SAID: None, failing: None}}),),
        not_helping=_NOT_HELPING,
    )
