"""NVLink between GPUs is at fault

What it checks
    Whether the kernel log tells of errors of NVLink (Xid 74, 136, 144 to 150 and kin) or of NVSwitches (SXid); whether
    the service IMEX, which joins several machines to one NVLink, is not ready; and whether CUDA's error 802 comes from
    InfiniBand modules that the fabric manager of newer machines needs and that are not loaded.

Why it matters
    Programs on several GPUs fail or hang as soon as they exchange data, and those on one GPU run. On machines whose
    NVLink reaches beyond the machine, CUDA does not start before IMEX is ready.

How to fix
    nvidia-smi nvlink -s and nvidia-smi nvlink -e show each link. Reset all GPUs of the link together or reboot; if it
    comes back, have bridges, cables and switches looked at. For IMEX: systemctl status nvidia-imex on every machine,
    and the same list of machines in /etc/nvidia-imex/nodes_config.cfg. For the modules: sudo modprobe ib_umad, then
    restart the fabric manager.

References
    https://docs.nvidia.com/deploy/xid-errors/
    https://docs.nvidia.com/multi-node-nvlink-systems/imex-guide/
    https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/
"""

from __future__ import annotations

from typing import Optional

from cudadoctor.derive.gpus import gpus, gpus_answer
from cudadoctor.derive.kernel_log import events
from cudadoctor.derive.surroundings import in_container, maybe_own_linux, on_own_linux
from cudadoctor.derive.xids import worst_xid
from cudadoctor.rules.api import ERROR, LIKELY, MACHINE, WARNING, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD122",
    name="nvlink-fault",
    title="NVLink between GPUs is at fault",
    severity=ERROR,
    blame=MACHINE,
    follows_from=("CD113",),
    precedence=24,
)

_ERROR_802 = "symptom.cuda_not_initialized"
_IMEX = "symptom.imex_not_ready"
_PROGRAM = "symptom.nvlink_uncorrectable"
_MODULES = "symptom.infiniband_module_missing"
_FOR_THE_SUBNET = "ib_umad"
_SEVERITY = {"critical": ERROR, "error": WARNING}
_NOT_HELPING = ("another torch build: the links between the GPUs are at fault",)
_LOG = "kernel.log_events"


def judge(case: Case) -> Outcome:
    for check in (_logged, _switch, _reported, _imex, _modules):
        outcome = check(case)
        if outcome is not None:
            return outcome
    log = case.fact(_LOG)
    if len(case.derived(gpus)) < 2:
        return case.skipped("no two GPUs are known to be here")
    if log.is_absent:
        return case.skipped("this system's kernel log tells of no NVLink")
    if not log.is_known and case.derived(gpus_answer):
        return case.skipped(f"the kernel log was not read ({log.reason}); the GPUs answer", unread=(_LOG,))
    if not log.is_known and not case.derived(maybe_own_linux):
        return case.skipped(f"the kernel log is another system's ({log.reason})", unread=(_LOG,))
    if not log.is_known:
        return case.undecided(f"the kernel log was not read: {log.reason}", (_LOG,))
    return case.passed("the kernel log tells of no error of NVLink", (_LOG,))


def _logged(case: Case) -> Optional[Outcome]:
    worst = worst_xid(case, "nvlink")
    if worst is None or worst.row is None or worst.severity not in _SEVERITY:
        return None
    where = f" of GPU {worst.bus_id}" if worst.bus_id else ""
    return _failed(
        case,
        f"{worst.words}{where}",
        (worst.fact,),
        _SEVERITY[worst.severity],
        f"Act on Xid {worst.number}",
        worst.row.advice[0].upper() + worst.row.advice[1:] + ".",
        {worst.fact: [e for e in case.value(worst.fact, []) if e.get("kind") != "xid"]}
        if worst.fact == _LOG
        else {worst.fact: None},
    )


def _switch(case: Case) -> Optional[Outcome]:
    grave = [event for event in events(case, "sxid") if (event.get("values") or {}).get("fatal") == "yes"]
    if not grave:
        return None
    first = grave[0]
    number = (first.get("values") or {}).get("number")
    return _failed(
        case,
        f"an NVSwitch reports a fatal error (SXid {number})",
        (_LOG,),
        ERROR,
        "Look after the NVSwitch",
        "Reset all GPUs and NVSwitches together, or reboot; restart the fabric manager. If it comes back, report it to "
        "the maker of the machine, with the log of nvidia-fabricmanager.",
        {_LOG: [e for e in case.value(_LOG, []) if e.get("kind") != "sxid"]},
    )


def _reported(case: Case) -> Optional[Outcome]:
    if not case.fact(_PROGRAM).is_known:
        return None
    return _failed(
        case,
        "a program met an error of NVLink that could not be corrected",
        (_PROGRAM,),
        ERROR,
        "Look after the links",
        "See nvidia-smi nvlink -s and nvidia-smi nvlink -e. Reset all GPUs together or reboot; if it comes back, have "
        "bridges, cables and switches looked at.",
        {_PROGRAM: None},
    )


def _imex(case: Case) -> Optional[Outcome]:
    stopped = case.value("driver.imex") == "stopped" and case.fact(_ERROR_802).is_known
    if not stopped and not case.fact(_IMEX).is_known:
        return None
    facts = tuple(name for name in (_IMEX, "driver.imex", _ERROR_802) if case.fact(name).is_known)
    effect: dict[str, object] = {name: None for name in facts if name.startswith("symptom.")}
    effect["driver.imex"] = "running"
    message = "IMEX, which joins the NVLink of several machines, is not ready"
    if in_container(case):
        text = "On every machine: sudo systemctl restart nvidia-imex. The container also needs a channel, a device "
        text += "/dev/nvidia-caps-imex-channels/channel0."
        return _failed(case, message, facts, ERROR, "Make IMEX ready on the hosts", text, effect)
    return case.failed(
        message,
        facts,
        certainty=LIKELY,
        fixes=(Remedy("restart-service", {"service": "nvidia-imex", "effect": effect}),),
        not_helping=_NOT_HELPING,
    )


def _modules(case: Case) -> Optional[Outcome]:
    modules = case.fact("kernel.modules")
    missing = (
        on_own_linux(case)
        and case.fact(_ERROR_802).is_known
        and case.value("driver.fabric_manager") == "running"
        and modules.is_known
        and _FOR_THE_SUBNET not in modules.get()
        and any(str(gpu.compute_capability.value).startswith("10.") for gpu in case.derived(gpus))
    )
    if not missing and not case.fact(_MODULES).is_known:
        return None
    facts = tuple(name for name in (_MODULES, _ERROR_802, "kernel.modules") if case.fact(name).is_known)
    effect = {name: None for name in (_MODULES, _ERROR_802) if case.fact(name).is_known}
    return case.failed(
        "the InfiniBand modules that the fabric manager needs are not loaded, so NVLink is not set up",
        facts,
        certainty=LIKELY,
        fixes=(
            Remedy("load-module", {"module": _FOR_THE_SUBNET}),
            Remedy("restart-service", {"service": "nvidia-fabricmanager", "effect": effect}),
        ),
        not_helping=_NOT_HELPING,
    )


def _failed(
    case: Case,
    message: str,
    evidence: tuple[str, ...],
    severity: str,
    title: str,
    text: str,
    effect: dict[str, object],
) -> Outcome:
    return case.failed(
        message,
        evidence,
        certainty=LIKELY,
        severity=severity,
        fixes=(Remedy("manual", {"title": title, "text": text, "kind": "manual", "effect": effect}),),
        not_helping=_NOT_HELPING,
    )
