"""`cudadoctor matrix show|query|verify --format json`: the document `cudadoctor.matrix/1`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional, cast

from cudadoctor.matrix import Architecture, DriverBound, Verdict
from cudadoctor.matrix.holdings import Data, Holdings
from cudadoctor.matrix.look_up import covers
from cudadoctor.matrix.views import CudaView, DriverView, GpuView, Line, TorchView
from cudadoctor.render.json_report import dump
from cudadoctor.render.matrix import Shown
from cudadoctor.render.matrix_documents import (
    BranchBoundEntry,
    BuildEntry,
    BuildName,
    Command,
    CudaEntry,
    DataEntry,
    DriverEntry,
    GpuEntry,
    MatrixDocument,
    TableEntry,
    ToolkitEntry,
    TorchEntry,
    VerdictEntry,
)


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


def _empty(command: Command, exit: int, verdict: str, data: Optional[Data]) -> MatrixDocument:
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
        "seen_branch": _bound(gpu.seen_branch),
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
        "pythons_inferred": list(build.pythons_inferred),
        "pythons_index_only": list(build.pythons_index_only),
        "glibc": build.glibc,
        "glibc_below": build.glibc_below,
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
