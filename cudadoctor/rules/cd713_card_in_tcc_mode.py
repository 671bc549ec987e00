"""The card is in TCC mode, which lends it to no guest

What it checks
    Inside WSL or a virtual machine of Windows: whether the GPU's access is blocked by the operating system, and whether
    the card is one that Windows' driver runs in TCC mode. On Windows itself: whether a card in TCC mode stands beside a
    report of a guest that cannot use it.

Why it matters
    WSL and Hyper-V's GPU-PV borrow a display adapter (WDDM). Cards for data centers, and workstation cards that were
    switched over, run in TCC mode: they are no display adapter, and a guest sees "GPU access blocked by the operating
    system". That the numbers of nvidia-smi and driver differ there is normal: the driver is Windows' own.

How to fix
    On the Windows host: nvidia-smi -i N -dm WDDM and a restart, or a driver that uses WDDM for this card. A card that
    knows only TCC can be used on Windows itself.

References
    https://docs.nvidia.com/cuda/wsl-user-guide/
    https://docs.nvidia.com/nsight-visual-studio-edition/reference/index.html
"""

from __future__ import annotations

from cudadoctor.derive.gpus import gpus
from cudadoctor.derive.surroundings import in_wsl
from cudadoctor.rules.api import CERTAIN, ERROR, LIKELY, MACHINE, POSSIBLE, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD713",
    name="card-in-tcc-mode",
    title="The card is in TCC mode, which lends it to no guest",
    severity=ERROR,
    blame=MACHINE,
    follows_from=("CD703",),
    precedence=6,
)

_BLOCKED = "symptom.gpu_access_blocked"
_NAMED, _SILENT = "symptom.tcc_mode_named", "symptom.device_handle_unknown"
# The matrix's classes of products that Windows' driver may run without a display.
_HEADLESS = ("datacenter", "workstation")


def judge(case: Case) -> Outcome:
    tcc = [entry for entry in case.value("smi.gpus", []) if entry.get("driver_model") == "TCC"]
    blocked = case.fact(_BLOCKED).is_known
    guest = (
        in_wsl(case)
        or case.fact("symptom.wsl_named").is_known
        or blocked
        or case.fact("symptom.wsl_no_adapter").is_known
    )
    if not guest:
        return case.skipped("no guest borrows the card" if tcc else "no card in TCC mode, and no guest that needs one")
    if tcc:
        return _failed(
            case,
            f"{tcc[0].get('name') or 'the card'} is in TCC mode: WSL and virtual machines can borrow WDDM cards only",
            [name for name in (_BLOCKED, "symptom.wsl_no_adapter") if case.fact(name).is_known] + ["smi.gpus"],
            CERTAIN,
        )
    if case.fact(_NAMED).is_known and (blocked or case.fact(_SILENT).is_known):
        said = [name for name in (_NAMED, _BLOCKED, _SILENT) if case.fact(name).is_known]
        return _failed(case, "a card is in TCC mode: WSL and virtual machines can borrow WDDM cards only", said, LIKELY)
    if not blocked:
        return case.passed("no report that Windows blocks the card", ("system.wsl",))
    card = next((gpu for gpu in case.derived(gpus) if _may_be_headless(case, gpu.label)), None)
    known = any(case.matrix.gpu(gpu.label).found for gpu in case.derived(gpus))
    evidence = [_BLOCKED, *(("smi.gpus",) if case.fact("smi.gpus").is_known else ())]
    if card is not None:
        message = f"Windows blocks {card.label} from its guests: mostly because it is in TCC mode"
        return _failed(case, message, evidence, LIKELY)
    if known:
        return case.undecided("Windows blocks the card, and it is none that TCC mode is for", evidence)
    return _failed(
        case, "Windows blocks the card from its guests: mostly because it is in TCC mode", evidence, POSSIBLE
    )


def _may_be_headless(case: Case, label: str) -> bool:
    return any(row.klass in _HEADLESS for row in case.matrix.gpu(label).rows)


def _failed(case: Case, message: str, evidence: list[str], certainty: str) -> Outcome:
    return case.failed(
        message,
        evidence,
        certainty=certainty,
        fixes=(Remedy("use-wddm", {"effect": {_BLOCKED: None}}),),
        not_helping=(
            "a Linux driver inside the guest: the driver is Windows' own",
            "matching the number of nvidia-smi with the driver's: they differ in every guest",
        ),
    )
