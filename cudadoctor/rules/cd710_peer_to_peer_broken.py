"""GPUs cannot transfer directly to each other (P2P)

What it checks
    Whether work on several GPUs was reported to hang or to time out, and what speaks for broken direct transfers: PCIe
    bridges with access control (ACS) on, faults of the IOMMU, GeForce cards, that NCCL_P2P_DISABLE=1 is named as a
    cure, or an error that says so.

Why it matters
    NCCL lets GPUs write into each other's memory through the PCIe bus. With ACS on, bridges send such a transfer up to
    the IOMMU, where it is lost; GeForce cards of late do not do it at all, and some drivers said that they do. No error
    appears: all GPUs show 100 % and nothing moves, until a time limit of ten minutes is over.

How to fix
    At once: NCCL_P2P_DISABLE=1 (NCCL goes through the machine's memory, somewhat slower). For good on a machine of its
    own: ACS and IOMMU off in the firmware, or iommu=pt on the kernel's command line. In a virtual machine ACS has to
    stay.

References
    https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
"""

from __future__ import annotations

from cudadoctor.derive.gpus import gpus
from cudadoctor.rules.api import CERTAIN, ERROR, LIKELY, MACHINE, POSSIBLE, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD710",
    name="peer-to-peer-broken",
    title="GPUs cannot transfer directly to each other (P2P)",
    severity=ERROR,
    blame=MACHINE,
    follows_from=("CD113", "CD604", "CD701", "CD303"),
    precedence=30,
)

_WAIT, _DEADLOCK, _TIMEOUT, _ACS, _FAULT, _NAMED, _UNSUPPORTED, _CARD, _OFF = (
    "symptom.gpus_wait_for_each_other",
    "symptom.nccl_deadlock",
    "symptom.nccl_timeout",
    "symptom.acs_enabled",
    "symptom.iommu_fault",
    "symptom.p2p_disable_named",
    "symptom.peer_access_unsupported",
    "symptom.p2p_not_on_this_card",
    "symptom.p2p_not_available",
)


def judge(case: Case) -> Outcome:
    if case.fact("torch.hip").is_known or case.fact("symptom.rocm_named").is_known:
        return case.skipped("the GPUs run with ROCm, not CUDA")
    if case.fact(_CARD).is_known:
        message = "cards of this kind do not transfer directly to each other, and the program wants to be told so"
        return _failed(case, message, [_CARD], CERTAIN)
    if case.fact(_UNSUPPORTED).is_known:
        message = "these GPUs cannot reach each other's memory, and the program wants them to"
        return _failed(case, message, [_UNSUPPORTED], LIKELY)
    waiting = [name for name in (_WAIT, _DEADLOCK, _TIMEOUT) if case.fact(name).is_known]
    if not waiting:
        if case.fact(_ACS).is_known or case.fact(_OFF).is_known:
            return case.passed("nobody reports that GPUs wait for each other", (_ACS, _OFF))
        if case.fact("symptom.nccl_error").is_known:
            return case.undecided("NCCL failed; with NCCL_DEBUG=INFO it tells why", ("symptom.nccl_error",))
        return case.skipped("nobody reports that GPUs wait for each other")
    return _waiting(case, waiting)


def _waiting(case: Case, waiting: list[str]) -> Outcome:
    for name, because in (
        (_ACS, "bridges with access control (ACS) on send transfers between GPUs to the IOMMU"),
        (_FAULT, "the IOMMU stops transfers between GPUs"),
    ):
        if case.fact(name).is_known:
            message = f"GPUs wait for each other in vain: {because}"
            return _failed(case, message, [*waiting, name], LIKELY, _without_acs())
    geforce = [gpu for gpu in case.derived(gpus) if _is_geforce(case, gpu.label)]
    if geforce and (len(geforce) > 1 or len(case.derived(gpus)) == 1):
        message = f"GPUs wait for each other in vain: {geforce[0].label} cards mostly cannot transfer to each other"
        return _failed(case, message, [*waiting, "smi.gpus"], LIKELY)
    if case.fact(_NAMED).is_known:
        message = "GPUs wait for each other in vain, and NCCL_P2P_DISABLE=1 is named against it"
        return _failed(case, message, [*waiting, _NAMED], LIKELY)
    if waiting == [_TIMEOUT]:
        # Most often a process has ended or lags behind, and the machine is sound.
        return case.undecided("GPUs waited for each other in vain; whether transfers are broken is not told", waiting)
    message = (
        "GPUs wait for each other in vain: direct transfers may be broken (or a process has ended, or lags behind)"
    )
    return _failed(case, message, waiting, POSSIBLE)


def _is_geforce(case: Case, label: str) -> bool:
    rows = case.matrix.gpu(label).rows
    return bool(rows) and all(row.klass.startswith("geforce") for row in rows)


def _failed(case: Case, message: str, evidence: list[str], certainty: str, *more: Remedy) -> Outcome:
    shown = [name for name in ("smi.links", "kernel.command_line") if case.fact(name).is_known and name not in evidence]
    return case.failed(
        message,
        [*evidence, *shown],
        certainty=certainty,
        fixes=(
            Remedy(
                "change-variable",
                {
                    "name": "NCCL_P2P_DISABLE",
                    "value": "1",
                    "effect": dict.fromkeys(name for name in evidence if name.startswith("symptom.")),
                    "why": "NCCL goes through the machine's memory; this also shows whether P2P is the cause",
                },
            ),
            *more,
        ),
        not_helping=("a longer time limit: the transfer never ends",),
    )


def _without_acs() -> Remedy:
    return Remedy(
        "manual",
        {
            "title": "Turn access control (ACS) of the PCIe bridges off",
            "text": "In the firmware: ACS and IOMMU (VT-d, AMD-Vi) off, or iommu=pt on the kernel's command line. To "
            "try it until the next restart, for each bridge that lspci -vvv shows with SrcValid+:\n"
            "    sudo setpci -s BUS:DEV.FN ECAP_ACS+6.w=0000\nNot on a host whose cards are lent to virtual machines.",
            "kind": "kernel",
            "id": "turn-acs-off",
            "needs": ["root", "reboot"],
        },
    )
