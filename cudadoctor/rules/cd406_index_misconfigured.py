"""The package index is not the one that has this torch

What it checks
    The indexes that pip is configured for and, in a report, those that the shown command names: whether PyTorch has
    such an index (cu126, not cuda12.6 or cu125), whether it has the release that is asked for, whether another index
    wins beside it, and whether packages are looked for that it does not hold.

Why it matters
    pip says "no matching distribution" or HTTP 403, or quietly installs another build: with --extra-index-url all
    indexes count alike, and PyPI's newer torch wins over the one with CUDA. A mirror of PyPI has PyPI's builds only,
    for Windows those without CUDA.

How to fix
    Name the index of a CUDA variant that exists with --index-url, for torch and its companions alone; other packages
    come from PyPI with a command of their own. cudadoctor fix prints the command.

References
    https://pytorch.org/get-started/locally/
    https://pytorch.org/get-started/previous-versions/
    https://pip.pypa.io/en/stable/cli/pip_install/#cmdoption-extra-index-url
"""

from __future__ import annotations

import re
from typing import Optional

from cudadoctor.derive.gpus import NONE, presence
from cudadoctor.derive.surroundings import in_report
from cudadoctor.derive.wheel import CPU, platform_key, torch_build
from cudadoctor.matrix import COMPANIONS, TorchRelease, numbers
from cudadoctor.model.pattern import pattern
from cudadoctor.parse.pip_config import cuda_tag_of_url
from cudadoctor.parse.versions import cuda_from_tag
from cudadoctor.rules.api import CERTAIN, ENVIRONMENT, ERROR, LIKELY, WARNING, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD406",
    name="index-misconfigured",
    title="The package index is not the one that has this torch",
    severity=WARNING,
    blame=ENVIRONMENT,
    follows_from=("CD402", "CD409", "CD401"),
    precedence=34,
)

_TORCHS_INDEX = "download.pytorch.org/whl"
_TAG = pattern(r"download\.pytorch\.org/whl/((?:nightly/|test/|lts/[\w.]{1,10}/)?)([\w.+-]{1,30})/?$", re.ASCII)
_CUDA_TAG = pattern(r"cu([0-9]{2,4})(?:_pypi_cudnn|\.with\.pypi\.cudnn)?", re.ASCII)
# What people write in its place: cuda126, cu12.6, cu-126, 12.6, 126.
_MISSPELT = pattern(r"(?:cuda?[._-]?)?[0-9]{1,3}(?:[._-][0-9]{1,2}){0,2}|cuda", re.ASCII)
_PAGE = "symptom.index_unreachable"
_NOTHING = "symptom.no_matching_wheel"
_OTHERS = "symptom.version_not_on_index"
_REQUIREMENT = pattern(r"([A-Za-z][\w.-]*)\s*(?:\[[^\]]*\])?\s*(?:==\s*([0-9][\w.]*?)(?:\+([\w.]+))?$)?")
# PyTorch's index holds torch, what is released with it, and copies of what they require.
_ON_TORCHS_INDEX = ("torch", *COMPANIONS, "torchtext", "torchdata", "torchcodec", "triton", "xformers", "fbgemm-gpu")
_ALSO_THERE = ("numpy", "pillow", "jinja2", "sympy", "networkx", "filelock", "fsspec", "requests", "tqdm", "certifi")


def judge(case: Case) -> Outcome:
    if case.value("python.bits") == 32:
        return case.skipped("this Python is a 32-bit build, for which no index has torch")
    found = _no_such_index(case) or _no_such_release(case) or _only_torchs_index(case) or _another_wins(case)
    if found is not None:
        return found
    for name in (_NOTHING, _OTHERS, _PAGE):
        said = str(case.value(name, {}).get("requirement", "torch"))
        if case.fact(name).is_known and _name_of(said) in _ON_TORCHS_INDEX:
            return case.undecided(
                f"pip found no fitting {_name_of(said)}; the command's index, or Python's version, would tell why",
                (name,),
            )
    if case.fact("pip.index_url").is_unknown and not case.fact("install.index_url").is_known:
        if in_report(case):
            return case.skipped("no index is shown")
        return case.undecided("cannot tell which index pip is configured for", ("pip.index_url",))
    shown = _urls(case)
    return case.passed("nothing is wrong with the index", tuple(fact for fact, _ in shown) or ("pip.index_url",))


def _urls(case: Case) -> list[tuple[str, str]]:
    """The indexes in force, each with the fact that names it: those of a command go before the configured ones."""
    found: list[tuple[str, str]] = []
    for one, many in (
        ("install.index_url", "install.extra_index_urls"),
        ("pip.index_url", "pip.extra_index_urls"),
    ):
        if case.value(one):
            found.append((one, str(case.value(one))))
        found += [(many, str(url)) for url in case.value(many, [])]
    return found


def _known_tags(case: Case) -> dict[str, tuple[int, ...]]:
    """The CUDA variants that PyTorch has, by name, with their CUDA version."""
    tags: dict[str, tuple[int, ...]] = {}
    for release in case.matrix.torch_releases():
        for variant in release.variants:
            if variant.cuda is not None:
                tags.setdefault(variant.name, numbers(variant.cuda) or ())
    return tags


def _no_such_index(case: Case) -> Optional[Outcome]:
    page = str(case.value(_PAGE, {}).get("text", ""))
    named = [(_PAGE, url) for url in re.findall(r"https?://\S{0,20}download\.pytorch\.org/whl/[\w./-]+", page)]
    shown = [*_urls(case), *named]
    known = _known_tags(case) if shown else {}
    for fact, url in shown:
        match = _TAG.search(_up_to_package(url))
        if match is None or match.group(1) or match.group(2).endswith((".html", ".whl")):
            continue
        tag = match.group(2)
        cuda = _CUDA_TAG.fullmatch(tag)
        if tag in known or (cuda is not None and "cu" + cuda.group(1) in known):
            continue
        version = numbers(cuda_from_tag(tag) or "") if cuda is not None else None
        if cuda is None and not _MISSPELT.fullmatch(tag):
            continue  # cpu, rocm6.4, xpu, a page of some package
        if version is not None and version < min(known.values()):
            continue  # of a time that the matrix does not cover
        is_newer = version is not None and version > max(known.values())
        seen = case.fact(_PAGE).is_known or case.fact(_NOTHING).is_known
        near = _nearest(tag, known)
        return _failed(
            case,
            f"PyTorch has no index {tag}{' that cudadoctor knows' if is_newer else ''}: the nearest is {near}",
            (fact, *((_PAGE,) if fact != _PAGE and case.fact(_PAGE).is_known else ())),
            LIKELY if is_newer and not seen else CERTAIN,
            ERROR if seen or fact.startswith("install") else WARNING,
        )
    return None


def _up_to_package(url: str) -> str:
    """An index's address without the page of a package behind it: .../whl/cu125/torch/ -> .../whl/cu125."""
    trimmed = url.rstrip("/.,;:'\"")
    head, _, tail = trimmed.rpartition("/")
    return head if tail in _ON_TORCHS_INDEX and not head.endswith("/whl") else trimmed


def _nearest(tag: str, known: dict[str, tuple[int, ...]]) -> str:
    digits = "".join(letter for letter in tag if letter.isdigit())
    wanted = numbers(cuda_from_tag("cu" + digits) or "") if len(digits) >= 2 else None
    newest = max(known, key=lambda name: known[name])
    if not wanted or len(wanted) < 2:
        return newest
    same = [name for name, version in known.items() if version[:1] == wanted[:1]]
    return min(same or [newest], key=lambda name: (abs(known[name][1] - wanted[1]), -known[name][1]))


def _name_of(requirement: str) -> str:
    match = _REQUIREMENT.match(requirement)
    return match.group(1).lower().replace("_", "-") if match else ""


def _no_such_release(case: Case) -> Optional[Outcome]:
    """A torch that its index, or the build that is asked for by name, does not have."""
    for name in (_OTHERS, _NOTHING):
        said = case.value(name, {}).get("requirement")
        match = _REQUIREMENT.match(str(said)) if said else None
        if match is None or match.group(1).lower() != "torch" or not match.group(2):
            continue
        release = case.matrix.torch_release(match.group(2))
        tags = [tag for _, url in _urls(case) if (tag := cuda_tag_of_url(url))]
        tag = match.group(3) or (tags[0] if len(tags) == 1 else None)
        fact = next((fact for fact, url in _urls(case) if cuda_tag_of_url(url) == tag), name)
        if release is None and tag is None and _never_was(case, match.group(2)):
            return _failed(case, f"there is no torch {match.group(2)}", (name,), LIKELY, ERROR)
        if release is None or tag is None or tag.startswith(("rocm", "xpu")):
            continue
        variant = release.variant(tag)
        platform = case.derived(platform_key)
        if variant is not None and (platform is None or release.build(tag, platform) is not None):
            named = [url for _, url in _urls(case) if _TORCHS_INDEX in url]
            if match.group(3) and all(url.rstrip("/").endswith(_TORCHS_INDEX) for url in named):
                return _failed(
                    case,
                    f"torch {match.group(2)}+{tag} lies on PyTorch's own index {tag}, and the command does not name it",
                    (name,),
                    LIKELY,
                    ERROR,
                )
            continue
        there = [v.name for v in release.variants if v.cuda is not None and _is_for(v.name, release, platform)]
        where = f" for {platform}" if variant is not None else ""
        has = f"; it has {', '.join(sorted(there))}" if there else ""
        return _failed(
            case,
            f"torch {match.group(2)} was not built for {tag}{where}{has}",
            tuple(dict.fromkeys((name, fact))),
            CERTAIN,
            ERROR,
        )
    return None


def _never_was(case: Case, version: str) -> bool:
    """Whether newer minors of torch than this one are known, and this one is not."""
    have = numbers(version) or ()
    minors = {(numbers(release.version) or ())[:2] for release in case.matrix.torch_releases()}
    return len(have) > 1 and min(minors) < have[:2] < max(minors) and have[:2] not in minors


def _is_for(name: str, release: TorchRelease, platform: Optional[str]) -> bool:
    return platform is None or release.build(name, platform) is not None


def _only_torchs_index(case: Case) -> Optional[Outcome]:
    """Packages of PyPI looked for on PyTorch's index alone."""
    urls = _urls(case)
    said = case.value(_NOTHING, {}).get("requirement")
    name = _name_of(str(said)) if said else ""
    if not urls or not name or not all(_TORCHS_INDEX in url for _, url in urls):
        return None
    if name in (*_ON_TORCHS_INDEX, *_ALSO_THERE) or name.startswith(("nvidia-", "pytorch-", "torch")):
        return None
    return case.failed(
        f"{name} is looked for on PyTorch's index, which holds torch and its companions only",
        (_NOTHING, urls[0][0]),
        severity=ERROR,
        data={"package": name},
        fixes=(
            Remedy(
                "manual",
                {
                    "title": f"Install {name} without --index-url",
                    "text": "Install torch and its companions from PyTorch's index first, then the rest with a command "
                    "of its own that names no index.",
                    "kind": "install",
                    "effect": {_NOTHING: None},
                },
            ),
        ),
        not_helping=("another Python: the package is not on that index for any",),
    )


def _another_wins(case: Case) -> Optional[Outcome]:
    """A build without CUDA where the settings, or the command, explain it."""
    build = case.derived(torch_build)
    if build.kind != CPU or case.derived(presence).state == NONE:
        return None
    urls = _urls(case)
    cpu = next(((fact, url) for fact, url in urls if cuda_tag_of_url(url) == "cpu"), None)
    backend = case.fact("uv.torch_backend")
    if cpu is not None:
        return _failed(case, f"torch is taken from PyTorch's CPU index ({cpu[1]})", (cpu[0], "torch.version"), LIKELY)
    if backend.is_known and backend.get() == "cpu":
        return _failed(
            case, "uv is told to take torch's CPU build (torch-backend)", ("uv.torch_backend", "torch.version"), LIKELY
        )
    extra = next(((f, u) for f, u in urls if f.endswith("extra_index_urls") and _CUDA_TAG.fullmatch(_end(u))), None)
    main = next((u for f, u in urls if f.endswith("index_url")), None)
    if extra is not None and (main is None or _TORCHS_INDEX not in main):
        return _failed(
            case,
            f"{_end(extra[1])} is an extra index only: PyPI's torch {build.version}, without CUDA, won over it",
            (extra[0], "torch.version"),
            LIKELY,
        )
    if main is not None and _TORCHS_INDEX not in main and case.value("system.os") == "windows":
        fact = next(f for f, u in urls if u == main)
        return _failed(
            case,
            f"torch is taken from {main[:80]}, which has PyPI's builds: for Windows those without CUDA",
            (fact, "torch.version"),
            LIKELY,
        )
    return None


def _end(url: str) -> str:
    return url.rstrip("/").rpartition("/")[2]


def _failed(
    case: Case, message: str, evidence: tuple[str, ...], certainty: str, severity: Optional[str] = None
) -> Outcome:
    return case.failed(
        message,
        evidence,
        certainty=certainty,
        severity=severity,
        fixes=(
            Remedy("install-torch", {"effect": {_PAGE: None, _NOTHING: None, _OTHERS: None, **_no_command()}}),
            *((_correct(case),) if evidence[0].startswith(("pip.", "uv.")) else ()),
        ),
        not_helping=("a newer pip: it looks where it is told to",),
    )


def _correct(case: Case) -> Remedy:
    """The settings stay as they are otherwise, and turn the next install aside again."""
    files = ", ".join(map(str, case.value("pip.configured_by", [])))
    return Remedy(
        "manual",
        {
            "title": "Take the wrong index out of the settings",
            "text": f"It is set in {files or 'a configuration file or a variable'} (pip config list, pip config debug; "
            "UV_TORCH_BACKEND and uv.toml for uv).",
            "kind": "setting",
            "effect": {"pip.index_url": None, "pip.extra_index_urls": [], "uv.torch_backend": None},
        },
    )


def _no_command() -> dict[str, object]:
    return {"install.index_url": None, "install.extra_index_urls": []}
