"""Another libcuda than the driver's is found first

What it checks
    Whether the libcuda.so.1 that the loader finds first belongs to the loaded driver, or comes from NVIDIA's forward
    compatibility package (cuda-compat) or from an image, and whether that can work on this card and driver.

Why it matters
    A libcuda that is older than the driver's module, or of another branch, fails with error 803 ("unsupported display
    driver / cuda driver combination"). Forward compatibility on a card that may not use it (GeForce) fails with 804.
    Both look as if the driver were at fault; "update the driver" is then the wrong advice.

How to fix
    Take the folder (usually /usr/local/cuda/compat) out of LD_LIBRARY_PATH or of /etc/ld.so.conf.d in the image, so
    that the host's own libcuda is found.

References
    https://docs.nvidia.com/deploy/cuda-compatibility/forward-compatibility.html
"""

from __future__ import annotations

from typing import Any, Optional

from cudadoctor.derive.driver import numbering, version, version_fact
from cudadoctor.derive.libcuda import first_libcuda, geforce, module_fact
from cudadoctor.derive.surroundings import in_container, in_report, in_wsl, on_jetson
from cudadoctor.derive.symptoms import symptom
from cudadoctor.matrix import numbers
from cudadoctor.model import PASS, SKIP
from cudadoctor.rules.api import CERTAIN, ENVIRONMENT, ERROR, LIKELY, Case, Outcome, Remedy, Rule
from cudadoctor.rules.causes import NO_ANSWERING_DRIVER

RULE = Rule(
    id="CD208",
    name="compat-libcuda-conflict",
    title="Another libcuda than the driver's is found first",
    severity=ERROR,
    blame=ENVIRONMENT,
    blocked_by=NO_ANSWERING_DRIVER,
    precedence=21,
)


def judge(case: Case) -> Outcome:
    outcome = _by_the_machine(case)
    # A run that was told so had another library path, or another image, than what is looked at.
    said = symptom(case, *_SAID) if case.value("system.os") in (None, "linux") and not on_jetson(case) else None
    return _by_the_text(case) if said is not None and outcome.status in (PASS, SKIP) else outcome


_SAID = ("unsupported_driver_combination", "forward_compatibility_refused")


def _by_the_machine(case: Case) -> Outcome:
    found = case.fact("driver.libcuda")
    if found.is_unknown and in_report(case) and case.value("system.os") in (None, "linux") and not on_jetson(case):
        return _by_the_text(case)
    if case.value("system.os") != "linux" or in_wsl(case):
        return case.skipped("a foreign libcuda is a matter of Linux machines and containers")
    if on_jetson(case):
        return case.skipped("a Jetson may use forward compatibility, and its driver has numbers of its own")
    if found.is_unknown:
        return case.undecided(f"cannot tell which libcuda.so.1 there are: {found.reason}", ("driver.libcuda",))
    first = case.derived(first_libcuda)
    if first is None or first.get("kind") not in ("compat", "driver"):
        return case.skipped("no libcuda of another driver is found first")
    fact = case.derived(module_fact)
    module, found_version = case.value(fact), first.get("version")
    is_compat = first.get("kind") == "compat"
    if module is not None and found_version == module:
        return case.passed("libcuda is the loaded driver's", ("driver.libcuda", fact))
    if found_version and module and (numbers(found_version) or ()) < (numbers(module) or ()):
        what = "forward-compatibility libcuda" if is_compat else "libcuda"
        return _failed(
            case,
            first,
            f"the {what} {found_version} found first is older than driver {module}: error 803",
            CERTAIN if is_compat else LIKELY,
            ("driver.libcuda", fact),
            is_older=True,
        )
    consumer = case.derived(geforce)
    if consumer and (is_compat or (found_version and module)):
        label = consumer[0].label[len("NVIDIA ") if consumer[0].label.startswith("NVIDIA ") else 0 :]
        what = "forward-compatibility libcuda" if is_compat else f"libcuda {found_version}, newer than driver {module},"
        return _failed(
            case,
            first,
            f"the {what} found first does not work on the {label}: error {'804' if is_compat else '803'}",
            CERTAIN if is_compat and found_version and module else LIKELY,
            ("driver.libcuda", fact, *consumer[0].facts),
        )
    if is_compat and (module is None or found_version is None):
        return case.undecided(
            "a forward-compatibility libcuda is found first; whether it fits is not known",
            ("driver.libcuda", fact),
        )
    if is_compat:
        return case.passed(
            f"forward compatibility: libcuda {found_version} on driver {module}, on a card that may use it",
            ("driver.libcuda", fact),
        )
    if found_version and module:
        return case.undecided(
            f"libcuda {found_version} is found first and is newer than driver {module}: whether it fits is not known",
            ("driver.libcuda", fact),
        )
    return case.passed("libcuda is the driver's", ("driver.libcuda",))


def _by_the_text(case: Case) -> Outcome:
    """A report: which libcuda was loaded is not known; the error, and numbers that do not go together, tell."""
    combination = symptom(case, "unsupported_driver_combination")
    refused = symptom(case, "forward_compatibility_refused")
    said = refused or combination
    if said is None:
        return case.skipped("no error speaks of another libcuda than the driver's")
    driver = case.derived(version)
    shown = f"driver {driver.get()}" if driver.is_known else "the driver"
    evidence: tuple[str, ...] = (said.fact, version_fact(case)) if driver.is_known else (said.fact,)
    raised = _raised(case)
    why = ""
    if raised is not None:
        # nvidia-smi reads this number out of the libcuda that it loads.
        why = f"; nvidia-smi shows CUDA {raised[0]} there, and that driver's own libcuda is of {raised[1]}"
        evidence = (*evidence, "driver.smi_cuda")
    contained = in_container(case)
    if contained:
        evidence = (*evidence, "system.container")
    consumer = case.derived(geforce)
    if refused is not None:
        card = f"the {consumer[0].label.replace('NVIDIA ', '')}" if consumer else "this GPU or driver"
        message = f"a forward-compatibility libcuda is loaded, which {card} may not use with {shown}: error 804"
        if consumer:
            evidence = (*evidence, *consumer[0].facts)
    elif in_wsl(case):
        message = "another libcuda than that of Windows' driver is loaded in WSL: error 803"
    else:
        message = f"a libcuda of another release than {shown} is loaded, as images bring it: error 803"
    image = "the image" if contained or raised is not None else "the image or machine"
    effect: dict[str, Any] = {said.fact: None}
    text = (
        f"In {image}: take the folder that ends in /compat out of LD_LIBRARY_PATH (docker run -e LD_LIBRARY_PATH=...) "
        "and delete its file in /etc/ld.so.conf.d, then run ldconfig; the host's own libcuda is found then. Or take "
        "an image for a CUDA that the driver serves by "
        f"itself{', or update the driver of the host' if refused else ''}. On a host without a container, a driver "
        "update that was not followed by a reboot looks the same: reboot first."
    )
    not_helping = ["installing torch again: the library comes from the image or a package of NVIDIA's"]
    if refused is None:
        not_helping.append("a newer driver: 803 also comes where the driver is newer than the image's libcuda")
    return case.failed(
        message + why,
        evidence,
        certainty=LIKELY,
        data={"driver": driver.value},
        fixes=(
            Remedy(
                "manual",
                {"title": "Take the foreign libcuda away", "text": text, "kind": "container", "effect": effect},
            ),
        ),
        not_helping=tuple(not_helping),
    )


def _raised(case: Case) -> Optional[tuple[str, str]]:
    """The CUDA that nvidia-smi shows and the one of the driver's branch, where the first is the higher one: then the
    libcuda is not the driver's own."""
    driver = case.derived(version)
    shown = case.fact("driver.smi_cuda")
    if not driver.is_known or not shown.is_known:
        return None
    branch = case.matrix.branch_of(driver.get(), numbering(case))
    if branch is None or not branch.cuda or (numbers(shown.get()) or ()) <= (numbers(branch.cuda) or ()):
        return None
    return str(shown.get()), str(branch.cuda)


def _failed(
    case: Case, entry: dict[str, Any], message: str, certainty: str, evidence: tuple[str, ...], is_older: bool = False
) -> Outcome:
    path = str(entry.get("path"))
    rest = [other for other in case.value("driver.libcuda", []) if other.get("path") != path]
    if entry.get("found_by") == "LD_LIBRARY_PATH":
        remedy = Remedy(
            "change-variable",
            {"name": "LD_LIBRARY_PATH", "without": [path.rpartition("/")[0]], "effect": {"driver.libcuda": rest}},
        )
    else:
        remedy = Remedy("remove-library", {"paths": [path], "effect": {"driver.libcuda": rest}})
    return case.failed(
        message,
        evidence,
        certainty=certainty,
        data={"path": path, "version": entry.get("version")},
        fixes=(remedy,),
        not_helping=(
            ("a newer driver: the library that is found first is too old for the present one already",)
            if is_older
            else ("installing torch again: the library comes from the image or a package of NVIDIA's",)
        ),
    )
