"""An extension was built for another torch

What it checks
    Whether packages with compiled parts for torch (xformers, flash-attn and others) say that they were built for the
    installed torch's release, CUDA major and C++ ABI. One that says by an open requirement (torch>=2.10) that it is not
    bound to one release is taken at its word.

Why it matters
    Such parts are bound to one torch release: after torch was changed, import fails with an undefined symbol (mangled
    names with c10 or at in them), or the extension is silently switched off.

How to fix
    Install the release of the extension that was built for this torch, or put torch back to the one that it was built
    for. cudadoctor's matrix names both where it knows them.

References
    https://pytorch.org/docs/stable/cpp_extension.html
    https://github.com/Dao-AILab/flash-attention/releases
"""

from __future__ import annotations

from typing import Optional

from cudadoctor.derive.libraries import BuiltForCuda, extension_of_another_cuda
from cudadoctor.derive.wheel import CPU, CUDA, required_torch, torch_build
from cudadoctor.matrix import COMPANIONS, numbers
from cudadoctor.model.pattern import pattern
from cudadoctor.parse.versions import satisfies
from cudadoctor.rules.api import CERTAIN, ENVIRONMENT, ERROR, LIKELY, POSSIBLE, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD308",
    name="extension-built-for-another-torch",
    title="An extension was built for another torch",
    severity=ERROR,
    blame=ENVIRONMENT,
    precedence=39,
)

# Companions have rules of their own.
_NOT_EXTENSIONS = ("torch", *COMPANIONS, "triton")


def judge(case: Case) -> Outcome:
    build = case.derived(torch_build)
    other = case.derived(extension_of_another_cuda)
    if other is not None:
        return _of_another_cuda(case, other)
    told = _by_words(case)
    if told is not None:
        return told
    if build.kind not in (CUDA, CPU) or build.release is None:
        if case.fact("symptom.extension_symbol_missing").is_known:
            return _symbol(case)
        return case.skipped("torch is not installed, or its version is not known")
    stated = {
        name.rpartition(".")[0]: fact
        for name, fact in case.facts.under("package").items()
        if name.endswith(".built_for_torch") and name.rpartition(".")[0] not in _NOT_EXTENSIONS
    }
    names = sorted(name for name, fact in stated.items() if fact.is_known)
    symbol = case.fact("symptom.extension_symbol_missing")
    if not names and not symbol.is_known:
        unread = sorted(name for name, fact in stated.items() if fact.is_unknown)
        if unread:
            reason = f"cannot tell what {unread[0]} was built for"
            return case.undecided(reason, (f"package.{unread[0]}.built_for_torch",))
        return case.skipped("no extension says what it was built for")
    for name in names:
        built_for = case.value(f"package.{name}.built_for_torch")
        if _minor(built_for) != _minor(build.release) and not _takes_any(case, name, built_for, build.release):
            return _failed(case, name, f"torch {built_for}", build.version, f"package.{name}.built_for_torch")
        cuda = case.value(f"package.{name}.built_for_cuda")
        if cuda and build.cuda and cuda.partition(".")[0] != build.cuda.partition(".")[0]:
            return _failed(case, name, f"CUDA {cuda}", build.version, f"package.{name}.built_for_cuda")
    for name in sorted({name.partition(".")[0] for name in case.facts.under("package")} - set(_NOT_EXTENSIONS)):
        abi = _ABI.search(str(case.value(f"package.{name}.version", "")).lower())
        if abi is None or build.row is None or build.row.cxx11_abi is None or build.is_from_conda:
            continue
        if (abi.group(1) == "true") != build.row.cxx11_abi:
            which = "the new" if abi.group(1) == "true" else "the old"
            return _failed(case, name, f"{which} C++ ABI", build.version, f"package.{name}.version")
    if symbol.is_known:
        return _symbol(case)
    facts = tuple(f"package.{name}.built_for_torch" for name in names)
    return case.passed(f"{', '.join(names)} fit torch {build.version}", facts)


def _of_another_cuda(case: Case, other: BuiltForCuda) -> Outcome:
    """The extension looks for the runtime of another CUDA than torch's, and says so."""
    name = str(other.missing.asked_by)
    build = case.derived(torch_build)
    here = f", and torch {build.version} brings CUDA {build.cuda}" if build.cuda is not None else ", and torch was not"
    return case.failed(
        f"{name} was built for CUDA {other.cuda}: it looks for {other.missing.soname}{here}",
        (other.missing.fact, "torch.cuda") if build.cuda is not None else (other.missing.fact,),
        certainty=CERTAIN if build.cuda is not None else LIKELY,
        data={"package": name, "built_for_cuda": other.cuda},
        fixes=(_rebuild(name, build.release, {"libraries.not_found": [], other.missing.fact: None}),),
        not_helping=(
            "another driver or CUDA toolkit: the extension and torch would still use two CUDA runtimes",
            "a symbolic link under the other number: the number stands for what is inside",
        ),
    )


# Files of theirs, as the loader names them.
_OF_COMPANIONS = ("torchaudio", "torchvision", "_torch_sox")
_NO_MODULE = "symptom.extension_module_missing"
_NO_LIBRARY = "symptom.torch_library_missing"
_XFORMERS = "symptom.xformers_built_for_another_torch"
_BITSANDBYTES = "symptom.bitsandbytes_no_cuda"


def _by_words(case: Case) -> Optional[Outcome]:
    """What xformers and bitsandbytes say themselves."""
    told = case.value(_XFORMERS, {})
    built, have = str(told.get("built") or ""), str(told.get("have") or "")
    # With torch's CPU build it is torch that is wrong (CD302).
    # A list may be that of another environment than the one that xformers spoke in.
    elsewhere = _public(have) != (case.derived(torch_build).release or _public(have))
    known = case.fact("package.xformers.built_for_torch").is_known
    if built and have and not have.endswith("+cpu") and (elsewhere or not known):
        effect: dict[str, object] = {_XFORMERS: None}
        release = _public(have)
        pins = [pin for pin in case.matrix.pins("xformers") if pin.torch == f"=={release}"]
        remedy = _rebuild("xformers", release, effect)
        if pins:
            remedy = Remedy(
                "reinstall-package",
                {"pins": {"xformers": pins[0].version}, "index": "" if elsewhere else "torch", "effect": effect},
            )
        return case.failed(
            f"xformers was built for torch {built}, and torch {have} is {'loaded' if elsewhere else 'installed'}",
            (_XFORMERS,),
            data={"package": "xformers"},
            fixes=(remedy,),
            not_helping=("another driver: the package does not fit torch",),
        )
    without = case.value(_NO_LIBRARY, {})
    of_cuda = "cuda" in str(without.get("library"))
    # A CPU build has no libtorch_cuda: then torch is wrong (CD302). What cannot be mapped is there.
    if "map segment" not in str(without.get("text", "map segment")) and not (
        of_cuda and case.derived(torch_build).kind == CPU
    ):
        return case.failed(
            "an extension looks for a library that this torch does not have: it was built for another release",
            (_NO_LIBRARY,),
            certainty=POSSIBLE if of_cuda else LIKELY,
            fixes=(_rebuild("the extension", case.derived(torch_build).release, {_NO_LIBRARY: None}),),
            not_helping=("another driver or CUDA toolkit: the library is torch's own",),
        )
    absent = str(case.value(_NO_MODULE, {}).get("module") or "")
    if absent:
        name = absent.partition(".")[0].replace("_", "-")
        return case.failed(
            f"the compiled part of {name} is not there: it was installed without it, or built for another torch",
            (_NO_MODULE,),
            certainty=LIKELY,
            data={"package": name},
            fixes=(_rebuild(name, case.derived(torch_build).release, {_NO_MODULE: None}),),
            not_helping=("another driver: the package lacks its own file",),
        )
    lacking = case.value(_BITSANDBYTES, {})
    library = str(lacking.get("library") or lacking.get("cuda") or "")
    if lacking and case.derived(torch_build).kind != CPU:
        which = f" for CUDA {library.removeprefix('cuda')}" if library else ""
        return case.failed(
            f"this bitsandbytes has no library{which}: it was built without it, or for other releases of CUDA",
            (_BITSANDBYTES,),
            certainty=LIKELY,
            data={"package": "bitsandbytes"},
            fixes=(
                Remedy(
                    "manual",
                    {
                        "title": "Install bitsandbytes anew",
                        "text": "Its wheels on PyPI hold a library for each CUDA that torch comes for; somebody's own "
                        "build, or an old release, does not:\n    python -m pip install --upgrade --force-reinstall "
                        "--no-deps bitsandbytes\nthen look with: python -m bitsandbytes",
                        "kind": "install",
                        "needs": ["network"],
                        "effect": {_BITSANDBYTES: None},
                    },
                ),
            ),
            not_helping=("another driver: the GPU was found; the package lacks its own file",),
        )
    return None


def _symbol(case: Case) -> Outcome:
    """A symbol of torch that an extension misses."""
    missing = case.value("symptom.extension_symbol_missing", {})
    if any(word in str(missing.get("file")) + str(missing.get("text")) for word in _OF_COMPANIONS):
        return case.skipped("that torchvision or torchaudio does not fit torch is another matter")
    name = _package_of(case, str(case.value("symptom.extension_symbol_missing", {}).get("file") or ""))
    return case.failed(
        f"{name or 'an extension'} misses a symbol of torch: it was built for another release, or another C++ ABI",
        ("symptom.extension_symbol_missing", "torch.version"),
        certainty=LIKELY,
        data={"package": name} if name else {},
        fixes=(_anew(case, name, {"symptom.extension_symbol_missing": None}),),
        not_helping=("another driver or CUDA toolkit: the symbol is torch's own",),
    )


# Extensions of PyTorch Geometric: their maker keeps a page of wheels for each build of torch.
_OF_PYG = ("torch-scatter", "torch-sparse", "torch-cluster", "torch-spline-conv", "pyg-lib")
# Others whose compiled files or folders are called as they are.
_WELL_KNOWN = ("mmcv", "detectron2", "apex", "causal-conv1d", "pytorch3d", "natten", "deepspeed", "fairseq", "mmdet3d")
_FILE = pattern(r"[A-Za-z][A-Za-z0-9_]{1,40}")


def _package_of(case: Case, file: str) -> Optional[str]:
    """The package that a compiled file belongs to: an installed one whose name the file's begins with."""
    folder, _, base = file.rpartition("/")
    # torch_scatter/_version_cuda.so: the folder bears the package's name.
    match = _FILE.match(base) or _FILE.match(folder.rpartition("/")[2])
    if match is None:
        return None
    stem = match.group().lower().strip("_").replace("_", "-")
    names = {name.partition(".")[0] for name in case.facts.under("package")} - set(_NOT_EXTENSIONS)
    known = {*names, *(row.name for row in case.matrix.frameworks()), *_OF_PYG, *_WELL_KNOWN}
    fitting = sorted((name for name in known if stem.startswith(name)), key=len)
    return fitting[-1] if fitting else None


# In the versions of flash-attn's and others' ready wheels: 2.5.5+cu118torch2.2cxx11abiTRUE.
_ABI = pattern(r"cxx11abi(true|false)")


def _takes_any(case: Case, name: str, built_for: str, release: str) -> bool:
    """Whether the package says by an open requirement (>=) that it is not bound to the torch that it was built for, as
    those with the stable ABI do: the least torch that it takes is not older than that one."""
    for specifier in required_torch(case, name):
        if specifier.startswith(">=") and "==" not in specifier and satisfies(release, specifier):
            least = specifier[len(">=") :].partition(",")[0]
            if (numbers(least) or ())[:2] >= (numbers(_public(built_for)) or ())[:2]:
                return True
    return False


def _public(version: str) -> str:
    return version.partition("+")[0]


def _minor(version: str) -> list[str]:
    return _public(version).split(".")[:2]


def _failed(case: Case, name: str, built_for: str, torch: Optional[str], fact: str) -> Outcome:
    version = case.value(f"package.{name}.version", "")
    release = (torch or "").partition("+")[0]
    effect: dict[str, object] = {f"package.{name}.built_for_torch": release, f"package.{name}.built_for_cuda": None}
    fitting = [pin for pin in case.matrix.pins(name) if pin.torch == f"=={release}"]
    remedy = _rebuild(name, release, {**effect, f"package.{name}.version": version.partition("+")[0]})
    if fitting:
        # The index of torch's variant has it where it was built for that CUDA; else PyPI's one build is all there is.
        index = "torch" if case.derived(torch_build).cuda in fitting[0].cuda else ""
        remedy = Remedy("reinstall-package", {"pins": {name: fitting[0].version}, "index": index, "effect": effect})
    shown = f"{name} {version}".strip()
    return case.failed(
        f"{shown} was built for {built_for}, and torch {torch} is installed",
        tuple(dict.fromkeys((fact, f"package.{name}.version", "torch.version"))),
        certainty=CERTAIN,
        data={"package": name},
        fixes=(remedy,),
        not_helping=("another driver: the package does not fit torch",),
    )


def _anew(case: Case, name: Optional[str], effect: dict[str, object]) -> Remedy:
    build = case.derived(torch_build)
    variant = "cu" + build.cuda.replace(".", "") if build.cuda is not None else "cpu" if build.kind == CPU else None
    if name not in _OF_PYG or build.release is None or variant is None:
        return _rebuild(name or "the extension", build.release, effect)
    if build.is_from_conda:
        text = (
            "Its wheels are for torch's own builds, not for conda's: take it from where torch came from (conda install "
            f"-c conda-forge {name.replace('torch-', 'pytorch_', 1)}), or build it against the installed torch."
        )
    else:
        page = f"https://data.pyg.org/whl/torch-{build.release}+{variant}.html"
        text = (
            "Its maker has a page of wheels for each build of torch:\n    python -m pip install --force-reinstall "
            f"--no-deps --no-cache-dir {name} -f {page}"
        )
    title = f"Install {name} for torch {build.release}"
    return Remedy("manual", {"title": title, "text": text, "kind": "install", "needs": ["network"], "effect": effect})


def _rebuild(name: str, release: Optional[str], effect: dict[str, object]) -> Remedy:
    torch = f"torch {release}" if release else "the torch that is installed"
    return Remedy(
        "manual",
        {
            "title": f"Install {name} for {torch}",
            "text": f"Take the release of {name} that was built for {torch} and its CUDA major from its own "
            "release page, or build it against the installed torch: pip install --no-build-isolation --no-cache-dir "
            "--force-reinstall --no-deps, which needs nvcc.",
            "kind": "install",
            "effect": effect,
        },
    )
