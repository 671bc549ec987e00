"""The document of `cudadoctor matrix ... --format json` as types. The shipped schema is generated from these; keys are
only ever added."""

from __future__ import annotations

from typing import Literal, Optional, TypedDict

Command = Literal["show", "query", "verify"]


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
    """`products` are all that the name can be. `first_branch` is the first that can drive it, `seen_branch` the first
    known to drive this very product, where that is later. `drives`, `compiles`: the driver and the CUDA that were asked
    for, null where none was. `first_build` and `last_build`: the oldest and the newest torch with code for it."""

    asked: str
    name: str
    capability: str
    architecture: str
    mig: Optional[str]
    vgpu: Optional[str]
    products: list[ProductEntry]
    first_branch: Optional[BranchBoundEntry]
    seen_branch: Optional[BranchBoundEntry]
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
    version on the index has no local part. `pythons_inferred` are those of `pythons` that were seen for the release,
    not for this very build, `pythons_index_only` those that a plain pip install has no wheel for; `glibc_below` is the
    first glibc that does not load it any more. `sass` and `ptx` are compiled targets; `seen`: on an index, by some
    source. `download_mib`: what a fresh install downloads, null where that is not known."""

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
    pythons_inferred: list[str]
    pythons_index_only: list[str]
    glibc: Optional[str]
    glibc_below: Optional[str]
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
    command: Command
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
