"""Which torch build is installed in the patient's environment, and which GPUs it holds code for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Optional

from cudadoctor.derive.surroundings import in_report, on_jetson
from cudadoctor.model import Fact, ParseError, absent, known, unknown
from cudadoctor.model.record import NamedTuple
from cudadoctor.parse.dist_info import Requirement, parse_requirement
from cudadoctor.parse.versions import cuda_from_tag

if TYPE_CHECKING:
    from cudadoctor.derive.case import Case
    from cudadoctor.matrix import Build, TorchRelease

CUDA = "cuda"
CPU = "cpu"
ROCM = "rocm"
MISSING = "missing"
UNCLEAR = "unclear"


class TorchBuild(NamedTuple):
    """The installed torch. `kind` is cuda, cpu, rocm, missing or unclear; `version` as torch itself gives it.

    `sass` and `ptx` hold targets as `sm_86` and `compute_90`, read from the libraries, else out of the matrix's row for
    the same release, variant and platform; `sass_fact` says which fact to show as evidence. `row` is that matrix row,
    None where the build is somebody's own (NVIDIA's containers, Jetson, a source build) or newer than the matrix.
    `disputed` are targets of a list out of the matrix on which its sources disagree.
    """

    kind: str
    version: Optional[str]
    release: Optional[str]
    cuda: Optional[str]
    variant: Optional[str]
    sass: Fact[tuple[str, ...]]
    ptx: Fact[tuple[str, ...]]
    sass_fact: str
    row: Optional[Build]
    is_from_conda: bool
    is_own_build: bool
    disputed: tuple[str, ...] = ()


def platform_key(case: Case) -> Optional[str]:
    """The matrix's name of the platform on which the patient's Python runs: linux-x86_64, windows-x86_64, ...; None
    where system or architecture is not known."""
    os_name = case.value("system.os")
    arch = case.value("python.arch") or case.value("system.arch")
    if arch is None and os_name in ("linux", "windows") and in_report(case):
        arch = _likely_arch(case)
    if os_name is None or arch is None:
        return None
    if os_name == "darwin":
        return f"macos-{'arm64' if arch in ('arm64', 'aarch64') else arch}"
    return f"{os_name}-{arch}"


def _likely_arch(case: Case) -> str:
    """The processor of a machine of which a report tells the cards: that of nearly all, but for cards that are one with
    an ARM processor."""
    for entry in case.value("smi.gpus", []):
        product = case.matrix.gpu(str(entry.get("name") or "")).exact
        if product is not None and product.arm_only:
            return "aarch64"
    return "x86_64"


# What messages call a torch whose version a report does not tell: "torch of unknown version".
UNTOLD = "of unknown version"


def torch_build(case: Case) -> TorchBuild:
    """What the environment's torch is, without importing it."""
    version = case.fact("torch.version")
    if version.is_absent:
        return _build(MISSING)
    cuda = case.fact("torch.cuda")
    if not version.is_known:
        return _untold(case) if in_report(case) else _build(UNCLEAR)
    text: str = version.get()
    release, _, local = text.partition("+")
    local = local.partition(".")[0]  # cu117.with.pypi.cudnn
    if case.fact("torch.hip").is_known or local.startswith("rocm"):
        return _build(ROCM, text, release, case=case)
    if cuda.is_known:
        kind, number = CUDA, cuda.get()
    elif cuda.is_absent or local == "cpu":
        kind, number = CPU, None
    elif cuda_from_tag(local) is not None:
        kind, number = CUDA, cuda_from_tag(local)
    elif case.fact(_NOT_COMPILED).is_known and not _of_another(case):
        kind, number = CPU, None
    else:
        kind, number = _by_default(case, release) if not local else (UNCLEAR, None)
        if kind == UNCLEAR and _shows_cuda(case):
            kind = CUDA
        if kind == UNCLEAR:
            return _build(UNCLEAR, text, release, case=case)
    return _build(kind, text, release, number, _variant(kind, number), case)


_NOT_COMPILED = "symptom.torch_not_compiled_with_cuda"


def _of_another(case: Case) -> bool:
    """Whether the words "not compiled with CUDA" are about another library, or one operator of it, and not torch."""
    said = case.value(_NOT_COMPILED, {})
    operator = str(said.get("operator", ""))
    if operator:
        return not operator.startswith("aten::")
    return "torch" not in str(said.get("text", "")).lower()


def _shows_cuda(case: Case) -> bool:
    """Whether torch has worked with a GPU, or named the GPUs that it was built for."""
    return bool(case.value("torch.cuda_available", False) or case.value("torch.sass"))


def _variant(kind: str, number: Optional[str]) -> Optional[str]:
    if kind == CPU:
        return CPU
    return "cu" + number.replace(".", "") if number is not None else None


def _untold(case: Case) -> TorchBuild:
    """A torch whose version a report does not tell, as far as something else shows its kind."""
    cuda = case.fact("torch.cuda")
    if cuda.is_known:
        return _build(CUDA, UNTOLD, None, cuda.get(), _variant(CUDA, cuda.get()), case)
    if cuda.is_absent or (case.fact(_NOT_COMPILED).is_known and not _of_another(case)):
        return _build(CPU, UNTOLD, None, None, CPU, case)
    if _shows_cuda(case):
        return _build(CUDA, UNTOLD, None, None, None, case)
    return _build(UNCLEAR)


def _by_default(case: Case, release: str) -> tuple[str, Optional[str]]:
    """What a version without a build tag means in pip's lists: PyPI's wheel; those of PyTorch's index carry a tag."""
    os_name = case.value("system.os")
    listed = case.fact("torch.metadata_version").is_known and case.value("torch.origin", "pip") == "pip"
    if not listed or not in_report(case) or os_name is None or on_jetson(case):
        return UNCLEAR, None
    known_release = case.matrix.torch_release(release)
    platform = case.derived(platform_key) or f"{os_name}-x86_64"
    default = known_release.default.get(platform) if known_release is not None else None
    if default == CPU:
        return CPU, None
    number = cuda_from_tag(default) if default else None
    return (CUDA, number) if number is not None else (UNCLEAR, None)


def _build(
    kind: str,
    version: Optional[str] = None,
    release: Optional[str] = None,
    cuda: Optional[str] = None,
    variant: Optional[str] = None,
    case: Optional[Case] = None,
) -> TorchBuild:
    if case is None:
        nothing: Fact[tuple[str, ...]] = absent("torch.version") if kind == MISSING else unknown("torch was not found")
        return TorchBuild(kind, version, release, cuda, variant, nothing, nothing, "torch.version", None, False, False)
    origin = case.value("torch.origin")
    local = (version or "").partition("+")[2].partition(".")[0]
    # A local version that is no index's (a commit, a date, a Jetson or NVIDIA container build) is somebody's own build.
    is_own = origin in ("source", "system") or (bool(local) and not _is_index_local(local))
    row = None
    platform = platform_key(case)
    # A Jetson's wheels bear the same names as those of ARM servers, and hold code for other GPUs.
    if release and variant and not is_own and not on_jetson(case):
        known_release = case.matrix.torch_release(release)
        if known_release is not None and platform:
            row = known_release.build(variant, platform)
        elif known_release is not None and in_report(case):
            row = _row_of_any(known_release, variant)
    listed = row
    if kind == CUDA and release and variant is None and not is_own and in_report(case) and not on_jetson(case):
        known_release = case.matrix.torch_release(release)
        listed = _row_of_any(known_release, None, platform) if known_release is not None else None
    sass, ptx, shown = _targets(case, kind, listed, origin == "conda")
    disputed = listed.disputed if listed is not None and shown == "torch.version" else ()
    return TorchBuild(kind, version, release, cuda, variant, sass, ptx, shown, row, origin == "conda", is_own, disputed)


def _row_of_any(release: TorchRelease, variant: Optional[str], platform: Optional[str] = None) -> Optional[Build]:
    """The build where a report does not tell the platform (then x86_64's), or the variant (then that of any CUDA). Of
    what only some of them have code for nothing is said."""
    rows = [
        row
        for name in ((platform,) if platform else ("linux-x86_64", "windows-x86_64"))
        for row in release.builds(name)
        if row.cuda is not None and variant in (None, row.variant)
    ]
    if not rows or any(row.archs_guessed for row in rows):
        return None
    everywhere = set(rows[0].sass).intersection(*(row.sass for row in rows))
    unsure = {target for row in rows for target in (*row.sass, *row.disputed)} - everywhere
    unsure |= {target for row in rows for target in row.disputed}
    return rows[0]._replace(sass=(*sorted(everywhere), *sorted(unsure - everywhere)), disputed=tuple(sorted(unsure)))


def _is_index_local(local: str) -> bool:
    if local == "cpu" or (local.startswith("cu") and local[2:].isdigit()):
        return True
    return local.startswith(("rocm", "xpu"))


def _targets(
    case: Case, kind: str, row: Optional[Build], is_conda: bool
) -> tuple[Fact[tuple[str, ...]], Fact[tuple[str, ...]], str]:
    sass, ptx = case.fact("torch.sass"), case.fact("torch.ptx")
    if sass.is_known:
        return sass.map(tuple), ptx.map(tuple) if not ptx.is_absent else known((), ptx.source), "torch.sass"
    if kind == CPU:
        return known((), "torch.cuda"), known((), "torch.cuda"), "torch.cuda"
    # conda builds carry lists of their own; what nobody is sure of decides nothing.
    if row is not None and not is_conda and not row.archs_guessed:
        source = f"compat/torch/{'.'.join(row.torch.split('.')[:2])}.toml, {row.torch} {row.variant} {row.platform}"
        return (
            known(tuple("sm_" + target for target in row.sass), source),
            known(tuple("compute_" + target for target in row.ptx), source),
            "torch.version",
        )
    reason = sass.reason or "the libraries' GPU list was not read, and the matrix has no row for this build"
    return unknown(reason), unknown(reason), "torch.sass"


def requirements(case: Case, package: str) -> Iterator[Requirement]:
    """What a package's metadata requires, as far as it is known and can be read."""
    for text in case.value(f"package.{package}.requires", []):
        try:
            yield parse_requirement(str(text))
        except ParseError:
            continue


def required_torch(case: Case, package: str) -> tuple[str, ...]:
    """What a package's metadata requires of torch, as specifiers ("==2.9.1", ">=2.14,<3"); empty: it names none."""
    return tuple(one.specifier for one in requirements(case, package) if one.name == "torch" and one.specifier)


def required_packages(case: Case) -> dict[str, str]:
    """What torch's metadata requires here: package names (nvidia-..., triton) to specifiers such as ==12.8.4.1, those
    behind the extras of cuda-toolkit included. Empty where nothing is required or the metadata could not be read."""
    found: dict[str, str] = {}
    for owner in ("torch", "cuda-toolkit"):
        for one in requirements(case, owner):
            found.setdefault(one.name, one.specifier)
    return found
