"""libcuda.so.1 is missing, empty or a stub

What it checks
    Which libcuda.so.1 the loader finds first: the driver's, one of length zero, a link that leads nowhere, or the
    toolkit's stub, which is made for linking only. Where the driver answers and there is none at all, that is a fault
    too, unless the driver names the CUDA that it serves: it reads that out of libcuda (nvidia-smi shows N/A without).
    In a report, what the error texts say of it.

Why it matters
    CUDA programs load libcuda by that name. A stub answers "CUDA driver is a stub library" (error 34); without one,
    torch finds no driver, while nvidia-smi works.

How to fix
    Take the toolkit's "stubs" folder out of LD_LIBRARY_PATH; remove the empty or dangling file and install the driver's
    library package again. In a container, pass the "compute" capability.

References
    https://docs.nvidia.com/cuda/cuda-installation-guide-linux/
    https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html
"""

from __future__ import annotations

from typing import Any, Optional

from cudadoctor.derive.driver import NO, YES, answer
from cudadoctor.derive.libcuda import first_libcuda
from cudadoctor.derive.surroundings import in_container, in_report, in_wsl, on_jetson
from cudadoctor.derive.symptoms import Symptom, symptom
from cudadoctor.model.pattern import pattern
from cudadoctor.rules.api import (
    ALLOCATION,
    CERTAIN,
    ENVIRONMENT,
    ERROR,
    LIKELY,
    MACHINE,
    POSSIBLE,
    WARNING,
    Case,
    Fix,
    Outcome,
    Remedy,
    Rule,
)
from cudadoctor.rules.causes import NO_ANSWERING_DRIVER

RULE = Rule(
    id="CD207",
    name="libcuda-missing-or-stub",
    title="libcuda.so.1 is missing, empty or a stub",
    severity=ERROR,
    blame=MACHINE,
    blocked_by=NO_ANSWERING_DRIVER,
    precedence=22,
)

_BAD = {
    "stub": "the toolkit's stub, made for linking only",
    "empty": "an empty file",
    "dangling": "a link that leads nowhere",
}


# The name without a number, by which linkers and some programs ask.
_PLAIN = pattern(r"\blibcuda\.so\b(?!\.)")


def judge(case: Case) -> Outcome:
    found = case.fact("driver.libcuda")
    if found.is_unknown and in_report(case):
        return _by_the_text(case)
    if case.value("system.os", "linux" if found.is_known else "") != "linux":
        return case.skipped("libcuda.so.1 is a matter of Linux")
    if found.is_unknown:
        return case.undecided(f"cannot tell which libcuda.so.1 there are: {found.reason}", ("driver.libcuda",))
    libraries = case.value("driver.libcuda", [])
    # The loader passes over a link that leads nowhere, and stops at a file of length zero.
    first = case.derived(first_libcuda) or (libraries[0] if libraries else None)
    if first is not None and first.get("kind") in _BAD:
        good = [entry for entry in libraries if entry.get("kind") not in _BAD]
        return case.failed(
            f"the libcuda.so.1 that is found first is {_BAD[first['kind']]}: {first.get('path')}",
            ("driver.libcuda",),
            certainty=CERTAIN,
            blame=ENVIRONMENT if first.get("found_by") == "LD_LIBRARY_PATH" else None,
            data={"path": first.get("path"), "kind": first.get("kind")},
            fixes=_cure(case, first, good),
            not_helping=("installing torch again: the library is the driver's",),
        )
    missing = symptom(case, "libcuda_missing")
    if first is not None and missing is not None and in_report(case) and _PLAIN.search(missing.text):
        return _reported(
            case,
            missing,
            f"libcuda.so.1 is there ({first.get('path')}), and its plain name libcuda.so is not in the loader's list",
            LIKELY,
            _list_libcuda(case, missing.fact),
        )
    if first is not None:
        return case.passed(f"libcuda.so.1 is {first.get('path')}", ("driver.libcuda",))
    reply = case.derived(answer)
    if reply.state != YES:
        return case.skipped("no driver answers, so there is none to miss")
    if on_jetson(case):
        return case.undecided("no libcuda.so.1 is in the usual places; a Jetson may have it elsewhere", reply.evidence)
    capabilities = case.value("env.NVIDIA_DRIVER_CAPABILITIES", "")
    contained = in_container(case)
    hint = ""
    evidence = ("driver.libcuda", "driver.nvml_cuda", *reply.evidence)
    if contained and capabilities and "compute" not in capabilities and "all" not in capabilities:
        hint = f"; the container was given only the capabilities {capabilities}"
        evidence = (*evidence, "env.NVIDIA_DRIVER_CAPABILITIES")
    told = [fact for fact in ("driver.nvml_cuda", "driver.smi_cuda") if case.fact(fact).is_known]
    if told and not hint:
        # NVML and nvidia-smi read that number out of libcuda, and show N/A where they find none.
        return case.passed("the driver names its CUDA, so it has a libcuda.so.1 where we did not look", tuple(told))
    return case.failed(
        f"the driver answers and there is no libcuda.so.1: CUDA programs find no driver{hint}",
        evidence,
        certainty=CERTAIN if hint else LIKELY,
        blame=ALLOCATION if contained else MACHINE,
        fixes=(_bring_back(case),),
        not_helping=("installing torch again: the library is the driver's",),
    )


def _by_the_text(case: Case) -> Outcome:
    """A report: which libcuda.so.1 there are is not known, and the error text may tell what was found."""
    if case.value("system.os") == "windows":
        return case.skipped("libcuda.so.1 is a matter of Linux")
    stub = symptom(case, "cuda_stub_library")
    if stub is not None:
        return _reported(
            case,
            stub,
            "the toolkit's stub, made for linking only, is loaded in the place of the driver's libcuda: error 34",
            CERTAIN,
            _without_stubs(case, stub.fact),
            ENVIRONMENT,
        )
    reply = case.derived(answer)
    linked = symptom(case, "triton_libcuda_missing")
    if linked is not None:
        return _reported(
            case,
            linked,
            "Triton finds no libcuda.so among those that ldconfig lists, though a driver may be there",
            LIKELY,
            _list_libcuda(case, linked.fact),
        )
    missing = symptom(case, "libcuda_missing")
    if missing is not None and "libcudnn" in missing.text and _PLAIN.search(missing.text):
        return _reported(
            case,
            missing,
            "cuDNN finds no libcuda.so among those that the loader lists, though the program has come as far as cuDNN",
            LIKELY,
            _list_libcuda(case, missing.fact),
        )
    if missing is not None and reply.state == YES:
        return _reported(
            case,
            missing,
            "the driver answers, and the loader finds no libcuda.so.1",
            LIKELY,
            _list_libcuda(case, missing.fact) if not in_container(case) else _bring_back(case, {missing.fact: None}),
        )
    if missing is not None:
        return case.undecided(
            "no libcuda.so.1 was found: whether there is a driver at all is not known", (missing.fact, *reply.evidence)
        )
    stubs = "/stubs" in str(case.value("env.LD_LIBRARY_PATH") or "")
    if stubs and missing is None and case.value("torch.cuda_available") is False:
        return case.failed(
            "LD_LIBRARY_PATH leads to the toolkit's stubs, made for linking only: a libcuda there is no driver",
            ("env.LD_LIBRARY_PATH", "torch.cuda_available"),
            certainty=POSSIBLE,
            blame=ENVIRONMENT,
            fixes=(_without_stubs(case, "driver.libcuda"),),
            not_helping=("installing torch again: the library is the driver's",),
        )
    lost = symptom(case, "cuda_init_failed", "no_cuda_device")
    wsl = in_wsl(case) or symptom(case, "wsl_named") is not None
    if lost is not None and wsl and reply.state != NO and not case.value("env.CUDA_VISIBLE_DEVICES"):
        works = reply.state == YES or symptom(case, "smi_works") is not None
        if (
            not works
            and lost.fact == "symptom.no_cuda_device"
            and "/usr/lib/wsl" not in str(case.value("env.LD_LIBRARY_PATH"))
        ):
            # Programs that bring a runtime of their own say no more than this, for many reasons.
            return case.undecided("whether Windows' libcuda is found first in WSL is not known", (lost.fact,))
        return _reported(
            case,
            lost,
            f"{'nvidia-smi works in WSL, and ' if works else 'in WSL '}CUDA finds no GPU: another libcuda than "
            "Windows' (/usr/lib/wsl/lib) is found first",
            LIKELY if works and lost.fact != "symptom.no_cuda_device" else POSSIBLE,
            _list_libcuda(case, lost.fact),
            severity=WARNING if lost.fact == "symptom.no_cuda_device" else None,
        )
    return case.skipped("the text says nothing of a libcuda.so.1 that is missing")


def _reported(
    case: Case,
    said: Symptom,
    message: str,
    certainty: str,
    fix: Fix,
    blame: Optional[str] = None,
    severity: Optional[str] = None,
) -> Outcome:
    reply = case.derived(answer)
    return case.failed(
        message,
        (said.fact, *reply.evidence) if reply.state == YES else (said.fact,),
        certainty=certainty,
        severity=severity,
        blame=blame,
        fixes=(fix,),
        not_helping=("installing torch again: the library is the driver's",),
    )


def _without_stubs(case: Case, fact: str) -> Fix:
    folders = [folder for folder in str(case.value("env.LD_LIBRARY_PATH") or "").split(":") if "/stubs" in folder]
    if folders:
        effect = {"driver.libcuda": _BROUGHT_BACK, fact: None}
        return Remedy("change-variable", {"name": "LD_LIBRARY_PATH", "without": folders, "effect": effect})
    return Remedy(
        "manual",
        {
            "title": "Keep the loader away from the stub",
            "text": "Take the folder that ends in /stubs out of LD_LIBRARY_PATH, and out of the file in "
            "/etc/ld.so.conf.d that names it (then: sudo ldconfig). In an image: do not set LD_LIBRARY_PATH to it, "
            "link with -L alone. The stub stays where it is, for the linker.",
            "kind": "setting",
            "effect": {fact: None},
        },
    )


def _list_libcuda(case: Case, fact: str) -> Fix:
    effect = {fact: None}
    if in_wsl(case) or symptom(case, "wsl_named") is not None:
        text = (
            "In WSL the only right libcuda is Windows': export LD_LIBRARY_PATH=/usr/lib/wsl/lib:$LD_LIBRARY_PATH, and "
            "remove a Linux driver that was installed into WSL (dpkg -l | grep -E 'nvidia-driver|libnvidia-compute')."
        )
    else:
        text = (
            "Bring the loader's list up to date: sudo ldconfig. Where ldconfig -p | grep libcuda then shows "
            "libcuda.so.1 alone, add the plain name beside it: sudo ln -s libcuda.so.1 libcuda.so, in "
            "its folder. Where it shows none, the driver's library package is missing (libnvidia-compute on Debian "
            "and Ubuntu)."
        )
        if case.fact("system.os").is_unknown:
            text += " In WSL, set LD_LIBRARY_PATH=/usr/lib/wsl/lib instead."
    return Remedy(
        "manual",
        {"title": "Let the loader find libcuda", "text": text, "kind": "setting", "needs": ["root"], "effect": effect},
    )


def _cure(case: Case, first: dict[str, Any], good: list[dict[str, Any]]) -> tuple[Fix, ...]:
    if good:
        return (_take_away(first, good),)
    if first.get("kind") == "dangling":
        return (_bring_back(case),)
    return (_take_away(first, _BROUGHT_BACK), _bring_back(case))


def _take_away(entry: dict[str, Any], rest: list[dict[str, Any]]) -> Fix:
    path = str(entry.get("path"))
    folder = path.rpartition("/")[0]
    if entry.get("found_by") == "LD_LIBRARY_PATH":
        return Remedy(
            "change-variable", {"name": "LD_LIBRARY_PATH", "without": [folder], "effect": {"driver.libcuda": rest}}
        )
    if entry.get("kind") == "stub":
        # The stub itself is needed for linking: only the loader must not find it.
        return Remedy(
            "manual",
            {
                "title": "Keep the loader away from the stub",
                "text": f"Find the file in /etc/ld.so.conf.d that names {folder}, take that line out, and run: "
                "sudo ldconfig. The stub stays where it is, for the linker.",
                "kind": "setting",
                "needs": ["root"],
                "effect": {"driver.libcuda": rest},
            },
        )
    return Remedy("remove-library", {"paths": [path], "effect": {"driver.libcuda": rest}})


# What the loader finds once the driver's own is there, wherever that is.
_BROUGHT_BACK: list[dict[str, Any]] = [
    {
        "path": "/usr/lib/libcuda.so.1",
        "real_path": "/usr/lib/libcuda.so.1",
        "found_by": "ld.so.cache",
        "kind": "driver",
        "version": None,
    }
]


def _bring_back(case: Case, also: Optional[dict[str, Any]] = None) -> Fix:
    kind = "run-container-with-gpu" if in_container(case) else "install-driver"
    return Remedy(kind, {"effect": {"driver.libcuda": _BROUGHT_BACK, **(also or {})}})
