"""The document of `cudadoctor matrix ... --format json` as types, and how it is made. Keys are only ever added."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Optional, TypedDict, cast

from cudadoctor.matrix import Architecture, DriverBound, Verdict
from cudadoctor.matrix.holdings import Data, Holdings
from cudadoctor.matrix.look_up import covers
from cudadoctor.matrix.views import CudaView, DriverView, GpuView, Line, TorchView
from cudadoctor.render.json_report import dump
from cudadoctor.render.matrix import Shown

_Command = Literal["show", "query", "verify"]


class DataEntry(TypedDict):
    """Which data was asked. `origin`: `shipped`, `updated` (the user's own update lies over it) or `files` (a folder
    that was named); `not_taken` says why an update that is there was not used."""

    revision: str
    checked: str
    age_days: int
    stale: bool
    origin: Literal["shipped", "updated", "files"]
    updated: Optional[str]
    path: Optional[str]
    not_taken: Optional[str]


class TableEntry(TypedDict):
    """`guessed` of the rows are guesses, which decide nothing; `first` and `last` where the rows have an order."""

    section: str
    rows: int
    guessed: int
    first: Optional[str]
    last: Optional[str]
    checked: str


class NewestEntry(TypedDict):
    torch: str
    torch_date: str
    cuda: str
    cuda_date: Optional[str]
    driver_branch: str
    driver: Optional[str]


class HoldingsEntry(TypedDict):
    """`builds` of torch, `builds_seen` of them on an index, `builds_verified` read from the wheel itself."""

    tables: list[TableEntry]
    newest: NewestEntry
    builds: int
    builds_seen: int
    builds_verified: int


class QuestionEntry(TypedDict):
    """What was asked; `system` is the numbering of the driver."""

    gpus: list[str]
    driver: Optional[str]
    torch: Optional[str]
    cuda: Optional[str]
    python: Optional[str]
    system: Literal["linux", "windows", "wsl"]
    platforms: list[str]


class VerdictEntry(TypedDict):
    """`needed` is what would do, where the answer is no; `via` the compiled target that runs."""

    answer: Literal["yes", "likely", "no", "unknown"]
    reason: str
    needed: Optional[str]
    via: Optional[str]
    source: str


class ServedEntry(TypedDict):
    """`cuda` is a major ("12.x"), or the newest minor that runs of one without compatibility within it."""

    cuda: str
    verdict: VerdictEntry


class DrivenEntry(TypedDict):
    architecture: str
    capabilities: list[str]
    verdict: VerdictEntry


class DriverEntry(TypedDict):
    """`branch` is null where the number belongs to none that is known, `branch_guessed` where that is a guess. `cuda`
    is the version that nvidia-smi shows: the newest whose PTX it compiles, no limit within a major."""

    driver: str
    system: Literal["linux", "windows", "wsl"]
    branch: Optional[str]
    branch_guessed: bool
    kind: Optional[str]
    end_of_life: list[str]
    over: Optional[bool]
    newest: Optional[str]
    cuda: Optional[str]
    modules: list[str]
    serves: list[ServedEntry]
    drives: list[DrivenEntry]
    source: Optional[str]


class BranchBoundEntry(TypedDict):
    """`bound`: `exact`; `at-least` (surely no older branch); `at-most` (an older one may do); `guessed`."""

    branch: str
    bound: Literal["exact", "at-least", "at-most", "guessed"]
    source: str


class ProductEntry(TypedDict):
    name: str
    kind: str
    memory_gib: float
    memory_type: Optional[str]
    bandwidth_gbs: Optional[float]
    tdp_w: Optional[float]
    modules: Optional[str]
    guessed: list[str]
    source: str
    checked: str


class BuildName(TypedDict):
    torch: str
    variant: str
    platform: str


class GpuEntry(TypedDict):
    """`products` are all that the name can be. `drives`, `compiles`: the driver and the CUDA that were asked for, null
    where none was. `first_build` and `last_build`: the oldest and the newest torch with code for it."""

    asked: str
    name: str
    capability: str
    architecture: str
    mig: Optional[str]
    vgpu: Optional[str]
    products: list[ProductEntry]
    first_branch: Optional[BranchBoundEntry]
    last_branch: Optional[BranchBoundEntry]
    first_cuda: Optional[str]
    last_cuda: Optional[str]
    drives: Optional[VerdictEntry]
    compiles: Optional[VerdictEntry]
    first_build: Optional[BuildName]
    last_build: Optional[BuildName]


class TorchEntry(TypedDict):
    """`default` maps platforms to the variant that a plain pip install gives; `nvidia` are requirements of the default
    wheel for Linux; `others` are further releases of the name that was asked for."""

    version: str
    others: list[str]
    date: str
    requires_python: str
    default: dict[str, str]
    companions: dict[str, str]
    nvidia: dict[str, str]
    variants: list[str]
    note: Optional[str]
    source: str
    checked: str


class ToolkitEntry(TypedDict):
    """`linux`, `windows`: the drivers that NVIDIA lists for it; `windows_seen`: the lowest seen to show it."""

    release: str
    label: str
    date: Optional[str]
    linux: Optional[str]
    windows: Optional[str]
    windows_seen: Optional[str]
    branch: Optional[str]
    confidence: str
    note: Optional[str]
    source: str
    checked: str


class FloorEntry(TypedDict):
    """The oldest driver for programs of any CUDA of that major."""

    cuda: int
    linux: str
    windows: str
    source: str


class CompilerEntry(TypedDict):
    """Host compilers that nvcc takes; `msvc_below` is the first _MSC_VER that it refuses."""

    cuda: str
    gcc_min: Optional[int]
    gcc_max: int
    clang_min: Optional[int]
    clang_max: int
    msvc_min: int
    msvc_below: int
    visual_studio: str
    confidence: str
    source: str


class CudaEntry(TypedDict):
    """`toolkits` is empty where there never was such a toolkit. `compiles_for`, `adds`, `drops` are compute
    capabilities; `served` and `ptx`: the driver that was asked for, null where none was."""

    cuda: str
    toolkits: list[ToolkitEntry]
    floor: Optional[FloorEntry]
    shown_by: list[str]
    ptx_branch: Optional[str]
    compilers: list[CompilerEntry]
    compiles_for: list[str]
    adds: list[str]
    drops: list[str]
    torch: list[BuildName]
    served: Optional[VerdictEntry]
    ptx: Optional[VerdictEntry]


class BuildEntry(TypedDict):
    """One torch build, and whether it runs as asked. `driver_floor` is the oldest driver for its CUDA, in the numbers
    of its system; `gpu_branch` the branch with which the GPU begins, where that is later. `local` is null where its
    version on the index has no local part. `sass` and `ptx` are compiled targets; `seen`: on an index, by some source.
    `download_mib`: what a fresh install downloads, null where that is not known."""

    torch: str
    variant: str
    cuda: Optional[str]
    platform: str
    answer: Literal["yes", "likely", "no", "unknown"]
    gpus: list[VerdictEntry]
    driver: Optional[VerdictEntry]
    python: Optional[VerdictEntry]
    driver_floor: Optional[str]
    gpu_branch: Optional[str]
    pythons: list[str]
    glibc: Optional[str]
    sass: list[str]
    ptx: list[str]
    local: Optional[str]
    index_url: str
    default_index: bool
    download_mib: Optional[int]
    seen: bool
    guessed: bool
    archs_guessed: bool
    verified: bool
    listed: str
    source: str
    checked: str


class FindingEntry(TypedDict):
    """`file` is null where the fault is not of one file alone."""

    file: Optional[str]
    message: str


class MatrixDocument(TypedDict):
    """`cudadoctor matrix show|query|verify --format json`. Each command fills its own keys, and leaves the others null
    or empty: `show` the `holdings`; `query` the `question`, what was asked for, and `builds` (of one torch, all of
    them; else the newest of each variant that runs), `refused` (the newest of a variant of which none runs), `unsure`
    and `announced` (newer ones of which that is not known, or that no source has seen), `default` (what a plain pip
    install gives); `verify` the `findings`."""

    schema: Literal["cudadoctor.matrix/1"]
    command: Literal["show", "query", "verify"]
    exit: int
    verdict: str
    data: Optional[DataEntry]
    holdings: Optional[HoldingsEntry]
    question: Optional[QuestionEntry]
    driver: Optional[DriverEntry]
    gpus: list[GpuEntry]
    torch: Optional[TorchEntry]
    cuda: Optional[CudaEntry]
    best: Optional[BuildName]
    builds: list[BuildEntry]
    refused: list[BuildEntry]
    unsure: list[BuildEntry]
    announced: list[BuildEntry]
    default: list[BuildEntry]
    findings: list[FindingEntry]


def show_json(verdict: str, data: Data, held: Holdings) -> str:
    entry = _empty("show", 0, verdict, data)
    entry["holdings"] = {
        "tables": [cast(TableEntry, table._asdict()) for table in held.tables],
        "newest": {
            "torch": held.torch.version,
            "torch_date": held.torch.date,
            "cuda": held.toolkit.release,
            "cuda_date": held.toolkit.date,
            "driver_branch": held.branch.name,
            "driver": held.branch.latest_linux or held.branch.first_linux,
        },
        "builds": held.builds,
        "builds_seen": held.seen,
        "builds_verified": held.verified,
    }
    return dump(entry)


def verify_json(exit: int, verdict: str, data: Optional[Data], findings: Sequence[tuple[Optional[str], str]]) -> str:
    entry = _empty("verify", exit, verdict, data)
    entry["findings"] = [{"file": file, "message": message} for file, message in findings]
    return dump(entry)


def query_json(shown: Shown) -> str:
    answer, question = shown.answer, shown.answer.question
    entry = _empty("query", shown.said.exit, shown.said.text, shown.data)
    entry["question"] = {
        "gpus": [match.text for match in question.gpus],
        "driver": question.driver,
        "torch": question.torch,
        "cuda": question.cuda,
        "python": question.python,
        "system": cast(Any, question.system),
        "platforms": list(question.platforms),
    }
    entry["driver"] = None if answer.driver is None else _driver(answer.driver)
    entry["gpus"] = [_gpu(gpu) for gpu in answer.gpus]
    entry["torch"] = None if answer.torch is None else _torch(answer.torch)
    entry["cuda"] = None if answer.cuda is None else _cuda(answer.cuda)
    entry["best"] = _name(answer.best)
    entry["builds"] = [_build(line) for line in answer.lines]
    entry["refused"] = [_build(item.line) for item in answer.refused]
    entry["unsure"] = [_build(line) for line in answer.unsure]
    entry["announced"] = [_build(line) for line in answer.announced]
    entry["default"] = [_build(line) for line in answer.default]
    return dump(entry)


def _empty(
    command: Literal["show", "query", "verify"], exit: int, verdict: str, data: Optional[Data]
) -> MatrixDocument:
    return {
        "schema": "cudadoctor.matrix/1",
        "command": command,
        "exit": exit,
        "verdict": verdict,
        "data": None if data is None else _data(data),
        "holdings": None,
        "question": None,
        "driver": None,
        "gpus": [],
        "torch": None,
        "cuda": None,
        "best": None,
        "builds": [],
        "refused": [],
        "unsure": [],
        "announced": [],
        "default": [],
        "findings": [],
    }


def _data(data: Data) -> DataEntry:
    return {
        "revision": data.revision,
        "checked": data.checked,
        "age_days": data.age_days,
        "stale": data.stale,
        "origin": cast(Any, data.origin.kind),
        "updated": data.origin.updated,
        "path": data.origin.path,
        "not_taken": data.origin.reason,
    }


def _verdict(verdict: Verdict) -> VerdictEntry:
    return cast(VerdictEntry, verdict._asdict())


def _said(verdict: Optional[Verdict]) -> Optional[VerdictEntry]:
    return None if verdict is None else _verdict(verdict)


def _driver(driver: DriverView) -> DriverEntry:
    branch = driver.branch
    ends = (branch.end_of_life, branch.end_of_life_other) if branch is not None else ()
    newest = None
    if branch is not None:
        newest = branch.latest_linux if driver.system == "linux" else branch.latest_windows
    return {
        "driver": driver.driver,
        "system": cast(Any, driver.system),
        "branch": branch.name if branch is not None else None,
        "branch_guessed": branch is not None and branch.guessed,
        "kind": branch.kind if branch is not None else None,
        "end_of_life": sorted({end for end in ends if end}),
        "over": driver.over,
        "newest": newest,
        "cuda": branch.cuda if branch is not None else None,
        "modules": list(branch.modules) if branch is not None else [],
        "serves": [{"cuda": item.cuda, "verdict": _verdict(item.verdict)} for item in driver.serves],
        "drives": [
            {
                "architecture": item.architecture.name,
                "capabilities": list(item.architecture.capability),
                "verdict": _verdict(item.verdict),
            }
            for item in driver.drives
        ],
        "source": branch.source if branch is not None else None,
    }


def _gpu(gpu: GpuView) -> GpuEntry:
    return {
        "asked": gpu.match.text,
        "name": gpu.label,
        "capability": gpu.capability,
        "architecture": gpu.architecture.name,
        "mig": gpu.match.mig,
        "vgpu": gpu.match.vgpu,
        "products": [
            {
                "name": row.name,
                "kind": row.klass,
                "memory_gib": row.memory_gib,
                "memory_type": row.memory_type,
                "bandwidth_gbs": row.bandwidth_gbs,
                "tdp_w": row.tdp_w,
                "modules": row.modules,
                "guessed": list(row.guessed),
                "source": row.source,
                "checked": row.checked,
            }
            for row in gpu.products
        ],
        "first_branch": _bound(gpu.first_branch),
        "last_branch": _bound(gpu.last_branch),
        "first_cuda": gpu.architecture.first_cuda,
        "last_cuda": gpu.architecture.last_cuda,
        "drives": _said(gpu.drives),
        "compiles": _said(gpu.compiles),
        "first_build": _name(gpu.first),
        "last_build": _name(gpu.last),
    }


def _bound(bound: Optional[DriverBound]) -> Optional[BranchBoundEntry]:
    return None if bound is None else cast(BranchBoundEntry, bound._asdict())


def _torch(torch: TorchView) -> TorchEntry:
    release = torch.release
    return {
        "version": release.version,
        "others": list(torch.others),
        "date": release.date,
        "requires_python": release.requires_python,
        "default": dict(release.default),
        "companions": dict(release.companions),
        "nvidia": dict(release.nvidia),
        "variants": [variant.name for variant in release.variants],
        "note": release.note,
        "source": release.source,
        "checked": release.checked,
    }


def _cuda(cuda: CudaView) -> CudaEntry:
    def capabilities(rows: Sequence[Architecture]) -> list[str]:
        return list(covers(rows))

    floor = cuda.floor
    return {
        "cuda": cuda.cuda,
        "toolkits": [
            cast(ToolkitEntry, {key: value for key, value in row._asdict().items() if key != "cuda"})
            for row in cuda.toolkits
        ],
        "floor": None
        if floor is None
        else {"cuda": floor.cuda, "linux": floor.linux, "windows": floor.windows, "source": floor.source},
        "shown_by": [branch.name for branch in cuda.shown_by],
        "ptx_branch": cuda.ptx_branch.name if cuda.ptx_branch is not None else None,
        "compilers": [
            {
                "cuda": row.cuda,
                "gcc_min": row.gcc_min,
                "gcc_max": row.gcc_max,
                "clang_min": row.clang_min,
                "clang_max": row.clang_max,
                "msvc_min": row.msvc_min,
                "msvc_below": row.msvc_below,
                "visual_studio": row.visual_studio,
                "confidence": row.confidence,
                "source": row.source,
            }
            for row in cuda.compilers
        ],
        "compiles_for": capabilities(cuda.compiles_for),
        "adds": capabilities(cuda.adds),
        "drops": capabilities(cuda.drops),
        "torch": [name for name in map(_name, cuda.builds) if name is not None],
        "served": _said(cuda.served),
        "ptx": _said(cuda.ptx),
    }


def _name(line: Optional[Line]) -> Optional[BuildName]:
    if line is None:
        return None
    return {"torch": line.build.torch, "variant": line.build.variant, "platform": line.build.platform}


def _build(line: Line) -> BuildEntry:
    build = line.build
    return {
        "torch": build.torch,
        "variant": build.variant,
        "cuda": build.cuda,
        "platform": build.platform,
        "answer": cast(Any, line.answer),
        "gpus": [_verdict(verdict) for verdict in line.gpus],
        "driver": _said(line.driver),
        "python": _said(line.python),
        "driver_floor": line.floor,
        "gpu_branch": line.branch,
        "pythons": list(build.pythons),
        "glibc": build.glibc,
        "sass": list(build.sass),
        "ptx": list(build.ptx),
        "local": build.local,
        "index_url": build.index_url,
        "default_index": build.default_index,
        "download_mib": build.download_mib,
        "seen": build.seen,
        "guessed": build.guessed,
        "archs_guessed": build.archs_guessed,
        "verified": build.verified,
        "listed": build.listed,
        "source": build.source,
        "checked": build.checked,
    }
