"""nvidia-smi works and CUDA does not: the UVM module is broken

What it checks
    Whether a program reported CUDA's "unknown error" (999) on a machine whose driver answers. The usual cause is
    nvidia_uvm, the module that CUDA needs and nvidia-smi does not: it is left broken by a suspend, or was not loaded.

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

from cudadoctor.derive.driver import NO, YES, answer
from cudadoctor.derive.surroundings import on_own_linux
from cudadoctor.rules.api import ERROR, LIKELY, MACHINE, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD112",
    name="uvm-broken",
    title="nvidia-smi works and CUDA does not: the UVM module is broken",
    severity=ERROR,
    blame=MACHINE,
    follows_from=("CD110", "CD111"),
    precedence=25,
)


def judge(case: Case) -> Outcome:
    if not on_own_linux(case):
        return case.skipped("nvidia_uvm is a module of Linux machines of their own")
    reported = case.fact("symptom.cuda_unknown_error")
    if not reported.is_known:
        return case.skipped("no program reported CUDA's unknown error")
    reply = case.derived(answer)
    if reply.state != YES:
        if reply.state == NO:
            return case.skipped("the driver does not answer at all")
        return case.undecided("CUDA reported an unknown error; whether the driver answers is not known", reply.evidence)
    loaded = case.fact("kernel.modules")
    missing = loaded.is_known and "nvidia" in loaded.get() and "nvidia_uvm" not in loaded.get()
    what = "the module nvidia_uvm is not loaded" if missing else "nvidia_uvm is broken, as it often is after a suspend"
    return case.failed(
        f"CUDA reports an unknown error while the driver answers: {what}",
        ("symptom.cuda_unknown_error", *reply.evidence, "kernel.modules"),
        certainty=LIKELY,
        fixes=(Remedy("load-uvm", {"reload": not missing, "effect": {"symptom.cuda_unknown_error": None}}),),
        not_helping=("installing torch again: the same build works once the module does",),
    )
