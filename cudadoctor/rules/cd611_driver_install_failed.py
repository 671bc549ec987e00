"""The installation of the driver failed

What it checks
    Whether the installer of the driver reported a failure: Windows' (0x80070002 and its kin, "NVIDIA Installer failed",
    Code 43), NVIDIA's .run file, or the package manager, and which step of it.

Why it matters
    An installation that stopped half-way leaves files of two versions, a module that does not fit, or no driver at all.
    To run the installer again over the remains mostly fails in the same way.

How to fix
    Windows: remove the driver with its remains, install the downloaded one without a network, or roll back. Linux: take
    away what another way of installing left (packages and .run do not mix), end the display server, and let the
    distribution's packages install the driver.

References
    https://nvidia.custhelp.com/app/answers/detail/a_id/2900
    https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/
"""

from __future__ import annotations

from cudadoctor.model.record import NamedTuple
from cudadoctor.rules.api import ERROR, LIKELY, MACHINE, POSSIBLE, WARNING, Case, Fix, Outcome, Remedy, Rule

RULE = Rule(
    id="CD611",
    name="driver-install-failed",
    title="The installation of the driver failed",
    severity=ERROR,
    blame=MACHINE,
    follows_from=("CD102", "CD104", "CD103", "CD107"),
    precedence=20,
)

_FAILED, _ENDED, _STOPPED = (
    "symptom.driver_install_failed",
    "symptom.driver_installer_stopped",
    "symptom.driver_device_stopped",
)


class Step(NamedTuple):
    """A step of an installation that can fail: a lower-case text by which it is known, what it means, and the cure."""

    sign: str
    says: str
    cure: str


_LINUX = (
    Step(
        "already be loaded",
        "the installer found a loaded nvidia module, which it cannot replace",
        "End what uses the GPU, the display server too (sudo systemctl isolate multi-user.target), unload the modules "
        "(sudo rmmod nvidia_drm nvidia_modeset nvidia_uvm nvidia), and run it again; or restart into text mode.",
    ),
    Step(
        "running an x server",
        "the installer does not run beside a display server",
        "End it (sudo systemctl isolate multi-user.target) and run the installer again.",
    ),
    Step(
        "unable to build the nvidia kernel module",
        "the nvidia module could not be built for this kernel",
        "/var/log/nvidia-installer.log names the error: mostly the kernel's headers are missing, its compiler is "
        "another one, or the kernel is newer than this driver knows. The distribution's packages bring a module that "
        "fits.",
    ),
    Step(
        "unable to load the kernel module",
        "the nvidia module was built and the kernel did not take it",
        "The kernel's log (sudo dmesg) names the reason: nouveau in use, Secure Boot, another driver's remains, or a "
        "GPU that this driver does not serve.",
    ),
    Step(
        "pre-install script failed",
        "the distribution's own script refused NVIDIA's installer",
        "It does so where the driver should come from packages: install the distribution's.",
    ),
    Step(
        "driver component failed",
        "the driver of the CUDA installer could not be installed",
        "CUDA's toolkit needs no driver of its own: install the toolkit alone (--toolkit), and the driver out of the "
        "distribution's packages.",
    ),
    Step(
        "going to be installed",
        "the packages of the driver contradict each other",
        "Packages of two sources or versions are mixed: sudo apt-get purge '~nnvidia' (or dnf remove), take out the "
        "repository that is not wanted, update the lists, and install one driver.",
    ),
    Step(
        "also in package",
        "two packages of the driver bring the same file",
        "An older driver was not removed: sudo apt-get purge '~nnvidia', sudo apt-get -f install, then install one "
        "driver.",
    ),
)
_WINDOWS_VERSION = "not compatible with this version of windows"
# Texts by which Windows is known where nothing else tells.
_OF_WINDOWS = ("0x8007", "nvidia installer", _WINDOWS_VERSION, "windows")


def judge(case: Case) -> Outcome:
    if case.fact(_FAILED).is_known:
        text = str(case.value(_FAILED).get("text", ""))
        lowered = text.lower()
        system = case.value("system.os")
        if system != "linux" and (system == "windows" or any(sign in lowered for sign in _OF_WINDOWS)):
            return _windows(case, lowered)
        return _linux(case, lowered)
    if case.fact(_ENDED).is_known:
        return _linux(case, "", _ENDED)
    if case.fact(_STOPPED).is_known:
        return case.failed(
            "Windows has stopped the card (Code 43): its driver reported a problem when it started",
            (_STOPPED,),
            certainty=POSSIBLE,
            fixes=(_clean(_STOPPED),),
        )
    return case.skipped("no installer of a driver reported a failure")


def _windows(case: Case, text: str) -> Outcome:
    code = case.value(_FAILED).get("code") or case.value(_FAILED).get("other")
    if _WINDOWS_VERSION in text:
        message = "the driver's package is not for this Windows: mostly DCH and standard drivers are exchanged"
    elif "compatible graphics hardware" in text:
        message = "the driver's package has no driver for this card: it is older or newer than the card, or a laptop's"
    elif code or "0x8007" in text:
        message = f"Windows could not install the driver ({code or '0x80070002'}): files of it are missing or in use"
    else:
        message = "NVIDIA's installer could not install the driver"
    # The number alone may be of something else: Windows uses it for any file that it does not find.
    about = any(word in text for word in ("nvidia", "driver", "display", "graphics"))
    works = case.fact("driver.smi_version").is_known
    return case.failed(
        message,
        (_FAILED,),
        certainty=LIKELY if about else POSSIBLE,
        severity=WARNING if works else ERROR,
        data={"code": code} if code else {},
        fixes=(_clean(_FAILED),),
        not_helping=("running the same installer again over what is left",),
    )


def _linux(case: Case, text: str, symptom: str = _FAILED) -> Outcome:
    step = next((step for step in _LINUX if step.sign in text), None)
    says = step.says if step is not None else "the driver's installer stopped with an error"
    cure = step.cure if step is not None else "/var/log/nvidia-installer.log names the step that failed."
    fixes: tuple[Fix, ...] = (
        Remedy(
            "manual",
            {
                "title": "Mend what stopped the installer",
                "text": f"{cure} A driver of a .run file is removed with: sudo nvidia-uninstall. Packages and .run "
                "files do not mix.",
                "kind": "driver",
                "id": "mend-driver-install",
                "needs": ["root"],
                "effect": {symptom: None},
            },
        ),
    )
    return case.failed(
        says,
        (symptom,),
        certainty=LIKELY,
        severity=WARNING if case.fact("driver.smi_version").is_known else ERROR,
        fixes=fixes,
        not_helping=("another torch build: there is no driver that it could use",),
    )


def _clean(symptom: str) -> Remedy:
    return Remedy("clean-windows-driver", {"effect": {symptom: None}})
