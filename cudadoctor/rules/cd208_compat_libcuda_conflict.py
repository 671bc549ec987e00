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

from typing import Any

from cudadoctor.derive.libcuda import first_libcuda, geforce, module_fact
from cudadoctor.derive.surroundings import in_wsl, on_jetson
from cudadoctor.matrix import numbers
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
    if case.value("system.os") != "linux" or in_wsl(case):
        return case.skipped("a foreign libcuda is a matter of Linux machines and containers")
    if on_jetson(case):
        return case.skipped("a Jetson may use forward compatibility, and its driver has numbers of its own")
    found = case.fact("driver.libcuda")
    if found.is_unknown:
        return case.undecided(f"cannot tell which libcuda.so.1 there are: {found.reason}", ("driver.libcuda",))
    first = case.derived(first_libcuda)
    if first is None or first.get("kind") not in ("compat", "driver"):
        return case.skipped("no libcuda of another driver is found first")
    fact = case.derived(module_fact)
    module, version = case.value(fact), first.get("version")
    is_compat = first.get("kind") == "compat"
    if module is not None and version == module:
        return case.passed("libcuda is the loaded driver's", ("driver.libcuda", fact))
    if version and module and (numbers(version) or ()) < (numbers(module) or ()):
        what = "forward-compatibility libcuda" if is_compat else "libcuda"
        return _failed(
            case,
            first,
            f"the {what} {version} found first is older than driver {module}: error 803",
            CERTAIN if is_compat else LIKELY,
            ("driver.libcuda", fact),
            is_older=True,
        )
    consumer = case.derived(geforce)
    if consumer and (is_compat or (version and module)):
        label = consumer[0].label[len("NVIDIA ") if consumer[0].label.startswith("NVIDIA ") else 0 :]
        what = "forward-compatibility libcuda" if is_compat else f"libcuda {version}, newer than driver {module},"
        return _failed(
            case,
            first,
            f"the {what} found first does not work on the {label}: error {'804' if is_compat else '803'}",
            CERTAIN if is_compat and version and module else LIKELY,
            ("driver.libcuda", fact, *consumer[0].facts),
        )
    if is_compat and (module is None or version is None):
        return case.undecided(
            "a forward-compatibility libcuda is found first; whether it fits is not known",
            ("driver.libcuda", fact),
        )
    if is_compat:
        return case.passed(
            f"forward compatibility: libcuda {version} on driver {module}, on a card that may use it",
            ("driver.libcuda", fact),
        )
    if version and module:
        return case.undecided(
            f"libcuda {version} is found first and is newer than driver {module}: whether it fits is not known",
            ("driver.libcuda", fact),
        )
    return case.passed("libcuda is the driver's", ("driver.libcuda",))


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
