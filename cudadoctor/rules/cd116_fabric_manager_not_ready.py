"""The fabric manager has not set the GPUs up

What it checks
    On machines whose GPUs are joined by NVSwitches: whether the nvidia-fabricmanager service runs, whether it is of the
    driver's own version, and whether the GPUs have been registered with the fabric. A program reports it as error 802,
    "system not yet initialized".

Why it matters
    Until the fabric manager has set up the NVSwitches, CUDA starts on none of these GPUs, though nvidia-smi shows all
    of them.

How to fix
    Install the nvidia-fabricmanager package of exactly the driver's version, and start the service: sudo systemctl
    enable --now nvidia-fabricmanager. After a driver update, update it too and reboot. Its log (journalctl -u
    nvidia-fabricmanager) says what it waits for. In a virtual machine, the host must pass the NVSwitches through or run
    it. In a container, mend the host.

References
    https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/
    https://docs.nvidia.com/cuda/cuda-runtime-api/
"""

from __future__ import annotations

from typing import Optional

from cudadoctor.derive.driver import version
from cudadoctor.derive.gpus import gpus
from cudadoctor.derive.surroundings import in_container, in_wsl, on_jetson
from cudadoctor.model.catalogue import gpu_numbers
from cudadoctor.rules.api import CERTAIN, ERROR, LIKELY, MACHINE, POSSIBLE, WARNING, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD116",
    name="fabric-manager-not-ready",
    title="The fabric manager has not set the GPUs up",
    severity=ERROR,
    blame=MACHINE,
    follows_from=("CD113", "CD122"),
    precedence=23,
)

_SERVICE = "nvidia-fabricmanager"
_RUNNING = "running"
_STOPPED = "stopped"
_ERROR_802 = "symptom.cuda_not_initialized"
_FAILED = "symptom.fabric_manager_failed"
_ABSENT = "symptom.nvswitch_absent"
_NOT_HELPING = ("another torch build: CUDA starts on none of these GPUs before the fabric is set up",)


def judge(case: Case) -> Outcome:
    if case.value("system.os") in ("windows", "darwin") or in_wsl(case) or on_jetson(case):
        return case.skipped("NVSwitches are found in Linux servers only")
    reported = case.fact(_ERROR_802).is_known
    if not reported and case.fact(_FAILED).is_known and _needs_none(case):
        return case.skipped("there are no NVSwitches here: the fabric manager has nothing to do, and need not run")
    if case.fact(_FAILED).is_known:
        said = case.value(_FAILED)
        other = "manager" in said or "match" in str(said.get("text", "")).lower()
        of = f" ({said['manager']}, driver {said['driver']})" if "manager" in said and "driver" in said else ""
        words = f"is of another version than the driver{of}" if other else "does not run"
        facts = (_FAILED, _ERROR_802) if reported else (_FAILED,)
        certainty = CERTAIN if reported else LIKELY
        return _failed(case, f"the fabric manager {words}", facts, certainty, _cure(case, install=other))
    pending = _waiting(case)
    switches = _switches(case)
    service = case.fact("driver.fabric_manager")
    here = not in_container(case)
    state = service.value if here else None
    missing = here and service.is_absent
    evidence = tuple(name for name, hit in ((_ERROR_802, reported), (pending or "", pending)) if hit)
    if state == _STOPPED and (reported or pending or switches):
        why = "the fabric manager does not run, and so CUDA starts on no GPU"
        return _failed(case, why, (*evidence, "driver.fabric_manager", *switches), CERTAIN, _cure(case))
    if missing and (reported or switches):
        why = "these GPUs are joined by NVSwitches, and no fabric manager is installed"
        certainty = CERTAIN if switches else LIKELY
        found = (*evidence, "driver.fabric_manager", *switches)
        return _failed(case, why, found, certainty, _cure(case, install=True))
    if reported:
        return _error_802(case, state, evidence)
    if pending:
        return case.failed(
            "a GPU is still waiting for the fabric manager",
            (pending, "driver.fabric_manager"),
            certainty=LIKELY,
            severity=WARNING,
            fixes=_cure(case),
            not_helping=_NOT_HELPING,
        )
    if switches and service.is_unknown and here:
        return case.undecided(
            f"cannot tell whether the fabric manager runs: {service.reason}", ("driver.fabric_manager",)
        )
    if state == _RUNNING or _states(case):
        return case.passed("the fabric is set up", (_states(case)[:1] or ("driver.fabric_manager",)))
    return case.skipped("no NVSwitch is known to be here")


# Cards that are joined by no NVSwitch, by what their names hold.
_WITHOUT_SWITCH = ("GeForce", "RTX", "Quadro", "TITAN", "PCIe")


def _needs_none(case: Case) -> bool:
    """The manager says that it found no switch, or every card is of a kind that has none."""
    cards = [gpu.label for gpu in case.derived(gpus)]
    return case.fact(_ABSENT).is_known or (
        bool(cards) and all(any(word in card for word in _WITHOUT_SWITCH) for card in cards)
    )


def _states(case: Case) -> tuple[str, ...]:
    names = (f"gpu.{number}.fabric_state" for number in gpu_numbers(case.facts))
    return tuple(name for name in names if case.fact(name).is_known)


def _waiting(case: Case) -> Optional[str]:
    """The fact of a GPU that is not registered with the fabric."""
    return next((name for name in _states(case) if case.value(name) in ("not-started", "in-progress")), None)


def _switches(case: Case) -> tuple[str, ...]:
    """The device nodes of NVSwitches prove that there are some. (nvidia-nvswitchctl alone does not.)"""
    prefix = "/dev/nvidia-nvswitch"
    paths = [str(node.get("path", "")) for node in case.value("device.nodes", [])]
    return ("device.nodes",) if any(p.startswith(prefix) and p[len(prefix) :].isdigit() for p in paths) else ()


def _error_802(case: Case, state: Optional[str], evidence: tuple[str, ...]) -> Outcome:
    """A program said that the GPUs are not ready; of the service nothing is known, or it runs."""
    consumer = [gpu for gpu in case.derived(gpus) if "GeForce" in gpu.label or "RTX" in gpu.label]
    if state == _RUNNING:
        return _failed(
            case,
            "the GPUs are not ready (error 802), though a fabric manager runs: it waits, or is of another version",
            (*evidence, "driver.fabric_manager"),
            POSSIBLE,
            _cure(case, install=True),
        )
    if consumer:
        why = "the GPUs are not ready (error 802): the driver or the virtual machine has not set them up"
        return _failed(case, why, evidence, POSSIBLE, _cure(case))
    why = "the GPUs are not ready (error 802): the fabric manager is missing, stopped, or of another version"
    return _failed(case, why, evidence, LIKELY, _cure(case, install=True))


def _cure(case: Case, install: bool = False) -> tuple[Remedy, ...]:
    effect = {
        "driver.fabric_manager": _RUNNING,
        **{name: None for name in (_ERROR_802, _FAILED) if case.fact(name).is_known},
        **dict.fromkeys(_states(case), "completed"),
    }
    if in_container(case):
        text = (
            "On the host: sudo systemctl restart nvidia-fabricmanager, and see systemctl status nvidia-fabricmanager."
        )
        remedy = {"title": "Mend the fabric manager on the host", "text": text, "kind": "driver", "effect": effect}
        return (Remedy("manual", remedy),)
    if not install:
        return (Remedy("restart-service", {"service": _SERVICE, "effect": effect}),)
    driver = case.derived(version)
    number = {"version": driver.get()} if driver.is_known else {}
    return (Remedy("install-fabric-manager", {**number, "effect": effect}),)


def _failed(case: Case, message: str, evidence: tuple[str, ...], certainty: str, fixes: tuple[Remedy, ...]) -> Outcome:
    return case.failed(message, evidence, certainty=certainty, fixes=fixes, not_helping=_NOT_HELPING)
