"""A program does not find a CUDA library

What it checks
    Which CUDA library a program said that it could not load (libcudart, libcublas, libcudnn, libnvrtc, libnccl,
    TensorRT, ...), which package has it, and whether torch brings another major version of it.

Why it matters
    The number in the file's name is part of it: a program that was built for libcudnn.so.8 does not take libcudnn.so.9.
    The program stops at import, or falls back to the CPU. The driver brings none of these libraries.

How to fix
    Install the package that has the file, or the program's own extra that brings it; or take the build of the program
    for the CUDA and cuDNN that are there. A symbolic link from one number to another does not help.

References
    https://docs.nvidia.com/cuda/cuda-toolkit-release-notes/
    https://onnxruntime.ai/docs/execution-providers/CUDA-ExecutionProvider.html
    https://www.tensorflow.org/install/pip
"""

from __future__ import annotations

from typing import Any, Optional

from cudadoctor.derive.libraries import NotFound, cudnn_of_torch, not_found, torch_with_cudnn
from cudadoctor.derive.symptoms import symptom
from cudadoctor.derive.wheel import CUDA, torch_build
from cudadoctor.rules.api import CERTAIN, ENVIRONMENT, ERROR, INFO, LIKELY, POSSIBLE, Case, Fix, Outcome, Remedy, Rule

RULE = Rule(
    id="CD210",
    name="missing-cuda-library",
    title="A program does not find a CUDA library",
    severity=ERROR,
    blame=ENVIRONMENT,
    follows_from=("CD309", "CD308", "CD602"),
    precedence=34,
)

_WITHOUT_NAME = ("tensorflow_libraries_missing", "bitsandbytes_no_cuda")
# Without TensorRT, TensorFlow prints a warning and works.
_OPTIONAL = {("tensorflow", "TensorRT")}


def judge(case: Case) -> Outcome:
    missing = case.derived(not_found)
    needed = [entry for entry in missing if (entry.asked_by, entry.component) not in _OPTIONAL]
    if needed:
        return _failed(case, needed)
    if missing:
        return case.failed(
            f"TensorFlow does not find {missing[0].soname} ({missing[0].component}), and works without it",
            (missing[0].fact,),
            severity=INFO,
            fixes=(),
            not_helping=("installing TensorRT: only programs that use it gain from it",),
        )
    said = symptom(case, *_WITHOUT_NAME)
    if said is not None and ("dlopen" in said.text.lower() or "setup failed" in said.text.lower()):
        return _without_name(case, said.fact, said.text)
    return case.skipped("no program has said that it lacks a CUDA library")


def _failed(case: Case, missing: list[NotFound]) -> Outcome:
    first = missing[0]
    build = case.derived(torch_build)
    asker = first.asked_by or "a program"
    components = list(dict.fromkeys(f"{entry.component} {entry.number}".strip() for entry in missing))
    message = f"{asker} does not find {first.soname} ({components[0]})"
    if len(components) > 1:
        message += f", nor {', '.join(components[1:4])}" + (" and more" if len(components) > 4 else "")
    evidence: tuple[str, ...] = (first.fact,)
    present = _installed(case, first)
    torch_cudnn = cudnn_of_torch(case) if first.component == "cuDNN" else None
    fixes: tuple[Fix, ...]
    effect: dict[str, Any] = {"libraries.not_found": [], first.fact: None}
    other_cuda = _other_cuda(case, missing)
    not_helping = [
        "a newer driver: none of these libraries comes with it",
        "a symbolic link under another number: the number stands for what is inside",
    ]
    if torch_cudnn is not None and first.major is not None and torch_cudnn != first.major:
        message += f": torch {build.version} brings cuDNN {torch_cudnn}"
        evidence = (*evidence, "torch.version")
        fixes = (_other_cudnn(case, first, effect),)
    elif other_cuda is not None:
        message += f": it was built for CUDA {other_cuda}, and torch {build.version} brings CUDA {build.cuda}"
        evidence = (*evidence, "torch.version", "torch.cuda")
        fixes = (_build_for_this_cuda(case, first, str(build.cuda), str(other_cuda), effect),)
    elif present is not None:
        message += f", though {present} is installed: the loader does not look there"
        evidence = (*evidence, f"package.{present}.version")
        fixes = (_show_the_way(case, first, present, effect),)
    else:
        fixes = _install(case, missing, effect)
    return case.failed(
        message,
        evidence,
        # The loader's words say what is missing; whether the package is the cure depends on what else is there.
        certainty=CERTAIN if first.fact == "libraries.not_found" or first.component else LIKELY,
        data={"libraries": [entry.soname for entry in missing], "asked_by": first.asked_by},
        fixes=fixes,
        not_helping=tuple(not_helping),
    )


def _installed(case: Case, entry: NotFound) -> Optional[str]:
    """A package that is installed and has this very library."""
    library = case.matrix.library(entry.name)
    for package in library.packages if library is not None else ():
        version = str(case.value(f"package.{package}.version") or "")
        if version and (entry.component != "cuDNN" or version.partition(".")[0] == str(entry.major)):
            return package
    return None


def _cuda_of(case: Case, entry: NotFound) -> Optional[int]:
    """The CUDA major that a library belongs to; None where several share its name."""
    majors = {major for major in range(10, 20) if _packages(case, entry, major)}
    return majors.pop() if len(majors) == 1 else None


def _packages(case: Case, entry: NotFound, major: int) -> tuple[str, ...]:
    library = case.matrix.library(entry.name)
    if library is None:
        return ()
    wanted = tuple(name for name in library.packages if _major_of_name(name) in (None, major))
    if len(library.packages) == 1 and _major_of_name(library.packages[0]) is None:
        # Wheels without a CUDA in their names are those of the newest major that the name's number stands for.
        return wanted if entry.component == "TensorRT" or entry.major is None or major >= 13 else ()
    return tuple(name for name in wanted if _major_of_name(name) == major) or (wanted if major >= 13 else ())


def _major_of_name(package: str) -> Optional[int]:
    ending = package.rpartition("-cu")[2]
    return int(ending) if ending.isdigit() else None


def _other_cuda(case: Case, missing: list[NotFound]) -> Optional[int]:
    """The CUDA major that the program was built for, where that is another than torch's; torch itself left out."""
    build = case.derived(torch_build)
    if build.kind != CUDA or build.cuda is None or missing[0].asked_by in (None, "torch"):
        return None
    for entry in missing:
        major = _cuda_of(case, entry)
        if major is not None:
            return major if major != int(build.cuda.partition(".")[0]) else None
    return None


def _wanted_cuda(case: Case, missing: list[NotFound]) -> Optional[int]:
    """The CUDA major for which libraries are to be brought: by the names of the files, else torch's, else that of the
    program's newest release."""
    for entry in missing:
        major = _cuda_of(case, entry)
        if major is not None:
            return major
    build = case.derived(torch_build)
    if build.cuda is not None:
        return int(build.cuda.partition(".")[0])
    releases = case.matrix.framework_releases(missing[0].asked_by) if missing[0].asked_by else ()
    return int(releases[0].cuda[0].partition(".")[0]) if releases and releases[0].cuda else None


def _install(case: Case, missing: list[NotFound], effect: dict[str, Any]) -> tuple[Fix, ...]:
    first = missing[0]
    cuda = _wanted_cuda(case, missing)
    if first.asked_by == "torch" and case.derived(torch_build).kind == CUDA:
        return (Remedy("install-torch", {"effect": effect}),)
    framework = case.matrix.framework(first.asked_by) if first.asked_by else None
    newer = sorted(key for key, name in framework.cuda.items() if "[" in name) if framework is not None else []
    if first.asked_by == "onnxruntime-gpu" and cuda is not None and newer and cuda < int(newer[0]):
        # It does not look into site-packages in the releases of that CUDA: those that bring their libraries do.
        return (
            Remedy(
                "install-libraries",
                {
                    "requirements": [framework.cuda[newer[0]] if framework is not None else first.asked_by],
                    "title": f"Install a newer {first.asked_by} together with the CUDA {newer[0]} libraries",
                    "text": _after(case, first),
                    "effect": effect,
                },
            ),
        )
    if framework is not None and cuda is not None and "[" in framework.cuda.get(str(cuda), ""):
        return (
            Remedy(
                "install-libraries",
                {
                    "requirements": [framework.cuda[str(cuda)]],
                    "title": f"Install {first.asked_by} together with the CUDA libraries that it needs",
                    "text": _after(case, first),
                    "effect": effect,
                },
            ),
        )
    requirements = []
    for entry in missing:
        found = _packages(case, entry, cuda) if cuda is not None else ()
        if len(found) == 1:
            requirements.append(_requirement(found[0], entry))
    if requirements:
        return (
            Remedy(
                "install-libraries",
                {"requirements": list(dict.fromkeys(requirements)), "text": _after(case, first), "effect": effect},
            ),
        )
    return (_by_hand(case, first, cuda, effect),)


def _requirement(package: str, entry: NotFound) -> str:
    """With the major version where one package has had several of them."""
    if entry.component in ("cuDNN", "TensorRT") and entry.major:
        return f"{package}>={entry.major},<{entry.major + 1}"
    return package


def _after(case: Case, entry: NotFound) -> str:
    if case.value("system.os") == "windows" or entry.soname.lower().endswith(".dll"):
        return (
            "Windows looks for DLLs in PATH: add the bin folder of the package (site-packages\\nvidia\\...\\bin), or "
            "import torch first where a CUDA build of it brings the same libraries."
        )
    if entry.asked_by in ("tensorflow", "jax", "cupy", "torch"):
        return ""
    return (
        "A program that does not look into site-packages by itself finds them with LD_LIBRARY_PATH set to the lib "
        "folders below site-packages/nvidia, or where torch is imported first."
    )


def _by_hand(case: Case, entry: NotFound, cuda: Optional[int], effect: dict[str, Any]) -> Remedy:
    library = case.matrix.library(entry.name)
    packages = library.packages if library is not None else ()
    if packages:
        text = f"{entry.soname} is in {', '.join(packages)}: take the one of the CUDA that the program was built for."
        first, last = (
            torch_with_cudnn(case, entry.major) if entry.component == "cuDNN" and entry.major else (None, None)
        )
        if first is not None:
            text += f" torch {first} to {last} bring cuDNN {entry.major} themselves."
    else:
        number = entry.number or "an old release"
        text = (
            f"No wheel has {entry.soname}: it is part of an old CUDA toolkit ({entry.component} {number}), for which "
            "the program was built. Take a newer release of the program, or that toolkit."
        )
    return Remedy(
        "manual",
        {
            "title": f"Bring {entry.component} {entry.number}".strip(),
            "text": f"{text} {_after(case, entry)}".strip(),
            "kind": "install",
            "effect": effect,
        },
    )


def _other_cudnn(case: Case, entry: NotFound, effect: dict[str, Any]) -> Remedy:
    """torch brings one cuDNN, the program wants another: bring the two to one."""
    asker = entry.asked_by or "the program"
    build = case.derived(torch_build)
    have = cudnn_of_torch(case) or 0
    first, last = torch_with_cudnn(case, entry.major or 0)
    if entry.major is not None and entry.major > have and first is not None:
        way = f"Install torch {first} or newer, which brings cuDNN {entry.major} (or keep torch and take a release of "
        way += f"{asker} that was built for cuDNN {have})."
    else:
        way = f"Install a release of {asker} that was built for cuDNN {have}, as newer ones are"
        way += f" (or torch {last}, the last with cuDNN {entry.major})." if last is not None else "."
    return Remedy(
        "manual",
        {
            "title": f"Bring torch {build.version} and {asker} to one cuDNN",
            "text": f"{way} Two cuDNN packages in one environment overwrite each other's files.",
            "kind": "install",
            "effect": effect,
        },
    )


def _build_for_this_cuda(case: Case, entry: NotFound, here: str, there: str, effect: dict[str, Any]) -> Remedy:
    major = here.partition(".")[0]
    framework = case.matrix.framework(entry.asked_by) if entry.asked_by else None
    name = framework.cuda.get(major) if framework is not None else None
    if name:
        return Remedy(
            "install-libraries",
            {"requirements": [name], "title": f"Install {entry.asked_by} for CUDA {major}", "effect": effect},
        )
    return Remedy(
        "manual",
        {
            "title": f"Install {entry.asked_by} for CUDA {major}",
            "text": f"{entry.asked_by} was built for CUDA {there}. Take its build for CUDA {major}, which torch has, "
            "from its own release page, or build it against the installed torch (pip install --no-build-isolation "
            "--no-cache-dir --force-reinstall --no-deps, which needs nvcc).",
            "kind": "install",
            "effect": effect,
        },
    )


def _show_the_way(case: Case, entry: NotFound, package: str, effect: dict[str, Any]) -> Remedy:
    return Remedy(
        "manual",
        {
            "title": f"Let the loader find {entry.soname}",
            "text": f"The file is below site-packages/nvidia (pip show -f {package} names it). Set LD_LIBRARY_PATH to "
            "that lib folder before the program starts, or import torch first where it brings the same library.",
            "kind": "setting",
            "effect": effect,
        },
    )


def _without_name(case: Case, fact: str, text: str) -> Outcome:
    is_tensorflow = "dlopen" in text.lower()
    name = "tensorflow" if is_tensorflow else "bitsandbytes"
    if is_tensorflow and case.value("system.os") == "windows":
        return case.skipped("on Windows, TensorFlow's releases of today do not use the GPU")
    framework = case.matrix.framework(name)
    cuda = max(framework.cuda, default="") if framework is not None else ""
    requirement = framework.cuda.get(cuda, name) if framework is not None else name
    return case.failed(
        f"{name} does not find the CUDA libraries that it was built for, and leaves the GPU alone",
        (fact,),
        certainty=LIKELY if is_tensorflow else POSSIBLE,
        fixes=(Remedy("install-libraries", {"requirements": [requirement], "effect": {fact: None}}),),
        not_helping=("a newer driver: none of these libraries comes with it",),
    )
