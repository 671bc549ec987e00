"""`matrix query` for people: what a driver serves, which builds have code for a GPU, what a torch or a CUDA needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Optional

from cudadoctor.matrix import Architecture, Branch, HostCompiler, Verdict, numbers
from cudadoctor.matrix.holdings import Data
from cudadoctor.matrix.look_up import covers
from cudadoctor.matrix.views import LIKELY, NO, UNKNOWN, YES, Answer, CudaView, DriverView, GpuView, TorchView
from cudadoctor.model.record import NamedTuple
from cudadoctor.render.matrix_builds import built_with, newest_builds, pip_rows, release_builds
from cudadoctor.render.matrix_lines import LABEL, row, table
from cudadoctor.render.matrix_words import OK, Said, listed, version
from cudadoctor.render.style import Style, clean, wrap

_MOST_NAMED = 6  # products of one name; more are counted

_KINDS = {
    "lts": "a long-term branch",
    "production": "a production branch",
    "new-feature": "a new-feature branch",
    "legacy": "kept for old cards",
}


class Shown(NamedTuple):
    """An answer and what stands around it: the data that it rests on, the command to type next."""

    answer: Answer
    said: Said
    data: Data
    more: str = ""
    style: Style = Style()


def text(shown: Shown) -> str:
    answer, style = shown.answer, shown.style
    head = [*verdict_lines(shown.said, style), ""]
    lines: list[str] = []
    for gpu in answer.gpus:
        lines += _gpu_rows(gpu, answer, style)
    if answer.driver is not None:
        lines += _driver_rows(answer.driver, answer, style)
    if answer.torch is not None:
        lines += _torch_rows(answer.torch, style)
    if answer.cuda is not None:
        lines += _cuda_rows(answer.cuda, answer, style)
    if not answer.misfits:
        lines += newest_builds(answer, style) if answer.torch is None else release_builds(answer, style)
        lines += pip_rows(answer, style)
    if style.verbose:
        lines += row("sources", "; ".join(_sources(answer)) or "none", style)
    lines = [*head, *lines, *([""] if lines else []), *data_row(shown.data, style)]
    if shown.more:
        lines.append("more".ljust(LABEL) + style.paint("command", clean(shown.more)))
    return "".join(line.rstrip() + "\n" for line in lines)


def verdict_lines(said: Said, style: Style) -> Iterator[str]:
    role = {OK: "ok"}.get(said.word, said.word)
    head = style.paint(role, said.word.ljust(4)) + "  " if said.word else ""
    indent = 6 if said.word else 0
    for number, line in enumerate(wrap(clean(said.text), style.width - indent)):
        yield (head if number == 0 else " " * indent) + line


def data_row(data: Data, style: Style) -> Iterator[str]:
    """Which data was asked, and that it is old where it is."""
    said = f"revision {data.revision}, checked {data.checked}"
    if data.origin.kind == "updated":
        said += ", with your update"
    if data.stale:
        said += f": {data.age_days} days old, the newest releases are likely to be missing"
    yield from row("data", said, style, indent="")


# -- a GPU ----------------------------------------------------------------------------------------------------------


def _gpu_rows(gpu: GpuView, answer: Answer, style: Style) -> Iterator[str]:
    yield from row("GPU", _gpu_text(gpu, len(answer.gpus) > 1), style)
    if gpu.match.mig:
        yield from row("", f"a MIG slice ({gpu.match.mig}) runs the code that the whole card runs", style)
    if gpu.match.vgpu:
        yield from row("", f"a vGPU ({gpu.match.vgpu}) runs the code of its board; the guest's driver counts", style)
    yield from row("drivers", _branches_text(gpu, answer), style)
    first, last = gpu.architecture.first_cuda, gpu.architecture.last_cuda
    if first or last:
        span = (
            f"CUDA {first} and newer" if last is None else f"CUDA {first} to {last}" if first else f"CUDA up to {last}"
        )
        yield from row("toolkits", f"{span}: their nvcc compiles for {gpu.target}", style)
    if gpu.first is not None and gpu.last is not None and answer.torch is None:
        oldest = " (the oldest in the data)" if gpu.first.build.torch == answer.oldest_torch else ""
        what = "that runs on it by PTX alone" if gpu.by_ptx else "with code for it"
        said = f"the first build {what} is {version(gpu.first.build)}{oldest}, the newest {version(gpu.last.build)}"
        yield from row("torch", said, style)


def _gpu_text(gpu: GpuView, by_name: bool) -> str:
    head = f"{gpu.target}, {gpu.architecture.name}"
    if gpu.match.kind != "capability" and len(gpu.products) == 1:
        product = gpu.products[0]
        memory = f"{product.memory_gib:g} GiB" + (f" {product.memory_type}" if product.memory_type else "")
        speed = f", {product.bandwidth_gbs:g} GB/s" if product.bandwidth_gbs else ""
        power = f", {product.tdp_w:g} W" if product.tdp_w else ""
        return f"{product.name}: {head}, {memory}{speed}{power}" if by_name else f"{head}, {memory}{speed}{power}"
    names = list(dict.fromkeys(product.name for product in gpu.products))
    if not names:
        return f"{head}; no product of it is known"
    rest = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"{head}: {', '.join(names[:_MOST_NAMED])}{rest}"


def _branches_text(gpu: GpuView, answer: Answer) -> str:
    if gpu.architecture.tegra:
        return "its driver comes with JetPack"
    said = _first_text(gpu)
    if gpu.last_branch is not None:
        said += f"{', ' if said else 'up '}to {gpu.last_branch.branch}, the last that drives it"
    said = said or "no limit is known"
    kinds = {product.modules for product in gpu.products if product.modules}
    if not gpu.products and gpu.architecture.modules:
        kinds = {gpu.architecture.modules}
    if answer.question.system == "linux" and kinds in ({"open"}, {"proprietary"}):
        said += f"; only with the {kinds.pop()} kernel modules"
    if gpu.drives is not None and gpu.drives.answer == UNKNOWN:
        said += f"; driver {answer.question.driver}: {gpu.drives.reason}"
    return said


def _first_text(gpu: GpuView) -> str:
    first, seen = gpu.first_branch, gpu.seen_branch
    if seen is not None:
        return f"from branch {seen.branch} on" + (f", perhaps from {first.branch}" if first is not None else "")
    if first is None:
        return ""
    hedge = {"at-least": " at the earliest", "at-most": ", perhaps earlier", "guessed": " (a guess)"}.get(
        first.bound, ""
    )
    if not hedge and len(gpu.products) > 1:
        hedge = ", later products from a later one"
    return f"from branch {first.branch} on{hedge}"


# -- a driver -------------------------------------------------------------------------------------------------------


def _driver_rows(driver: DriverView, answer: Answer, style: Style) -> Iterator[str]:
    yield from row("driver", _branch_text(driver), style)
    for item in driver.serves:
        if item.verdict.answer == UNKNOWN:
            yield from row("", item.verdict.reason, style)
    branch = driver.branch
    if answer.gpus or answer.torch or answer.cuda or branch is None or branch.guessed:
        return
    able = [item.cuda for item in driver.serves if item.verdict.answer == YES]
    if able:
        yield from row("runs", f"programs built with CUDA {listed(able)}", style)
    said = f'of CUDA {branch.cuda} and older; where nvidia-smi prints a "CUDA Version", it is this one'
    yield from row("PTX", f"{said}: not what is installed, and no limit for the line above", style)
    driven = [item.architecture for item in driver.drives if item.verdict.answer == YES]
    yield from row("drives", f"{_architectures(driven)}; products newer than the driver may need a newer one", style)
    for reason, rows in _not_driven(driver):
        yield from row("", f"not {_architectures(rows)}: {reason}", style)
    if branch.note:
        yield from row("note", branch.note, style)


def _branch_text(driver: DriverView) -> str:
    branch = driver.branch
    if branch is None:
        if driver.is_newer:
            return f"{driver.driver}: its branch is not known yet; the newest known is {driver.newest.name}"
        return f"{driver.driver}: no branch of this number is known"
    if branch.guessed:
        return f"{driver.driver}: branch {branch.name}, which is a guess"
    newest = branch.latest_linux if driver.system == "linux" else branch.latest_windows
    parts = [
        f"{driver.driver}: branch {branch.name}",
        _KINDS.get(branch.kind or "", ""),
        _end_text(branch, driver.over),
    ]
    if newest and (numbers(newest) or ()) > (numbers(driver.driver) or ()):
        parts.append(f"its newest known driver is {newest}")
    return ", ".join(part for part in parts if part)


def _end_text(branch: Branch, over: Optional[bool]) -> str:
    ends = sorted({end for end in (branch.end_of_life, branch.end_of_life_other) if end})
    if not ends:
        return ""
    return f"support {'ended' if over else 'ends'} {' or '.join(ends)}" + (" (sources differ)" if len(ends) > 1 else "")


def _not_driven(driver: DriverView) -> Iterator[tuple[str, list[Architecture]]]:
    """Architectures that it does not drive, or perhaps not, by reason."""
    found: dict[str, list[Architecture]] = {}
    for item in driver.drives:
        if item.verdict.answer != YES:
            reason = item.verdict.reason.replace("drives it", "drives them").replace("it needs", "they need")
            found.setdefault(reason, []).append(item.architecture)
    yield from found.items()


def _architectures(rows: Sequence[Architecture]) -> str:
    """ "Turing (sm_75), Ampere (sm_80 86)"."""
    names: dict[str, list[Architecture]] = {}
    for architecture in rows:
        names.setdefault(architecture.name, []).append(architecture)
    said = [f"{name} ({_targets(covers(group))})" for name, group in names.items()]
    return ", ".join(said) or "none that is known"


def _targets(capabilities: Iterable[str]) -> str:
    found = [item.replace(".", "") for item in capabilities]
    return "sm_" + " ".join(found) if found else ""


# -- a torch, a CUDA ------------------------------------------------------------------------------------------------


def _torch_rows(torch: TorchView, style: Style) -> Iterator[str]:
    release = torch.release
    said = f"{release.version}, {release.date}, Python {release.requires_python}"
    if torch.others:
        said += f" (also of this name: {', '.join(torch.others)})"
    yield from row("torch", said, style)
    if release.companions:
        belongs = [f"{name} {wanted}" for name, wanted in release.companions.items()]
        yield from row("with", ", ".join(belongs), style)
    if release.nvidia:
        pins = [f"{name} {pin.lstrip('=')}" for name, pin in release.nvidia.items()]
        yield from row("brings", f"{', '.join(pins)} (its default wheel for Linux)", style)
    if release.note:
        yield from row("note", release.note, style)


def _cuda_rows(cuda: CudaView, answer: Answer, style: Style) -> Iterator[str]:
    alone = not (answer.gpus or answer.driver or answer.torch)
    if cuda.served is not None and cuda.served.answer != NO:
        yield from row("CUDA", f"{cuda.cuda}: {cuda.served.reason}", style)
    if cuda.toolkits and alone:
        newest = cuda.toolkits[0]
        yield from row(
            "toolkit", f"newest release {newest.release}" + (f", {newest.date}" if newest.date else ""), style
        )
        yield from row("", "the drivers that NVIDIA lists for building with it, and for PTX made with it:", style)
        rows = []
        for toolkit in cuda.toolkits:
            linux = toolkit.linux or toolkit.branch or "not known"
            windows = toolkit.windows or (f"{toolkit.windows_seen} seen" if toolkit.windows_seen else "not listed")
            rows.append((toolkit.release, toolkit.date or "", linux, windows))
        yield from table(("release", "date", "Linux", "Windows"), rows, style)
    if cuda.ptx_branch is not None and cuda.toolkits:
        said = f"made with {cuda.cuda} needs driver branch {cuda.ptx_branch.name} or newer"
        if cuda.ptx is not None:
            said += f"; {answer.question.driver}: {_yes_no(cuda.ptx)}"
        yield from row("PTX", said, style)
    if alone and len(cuda.compilers) == 1:
        yield from row("nvcc", _compiler_text(cuda.compilers[0]), style)
    targets = []
    if alone and cuda.compiles_for:
        targets.append(f"it compiles for {_targets(covers(cuda.compiles_for))}")
    if alone and cuda.adds:
        targets.append(f"new in it: {_architectures(cuda.adds)}")
    if alone and cuda.drops:
        targets.append(f"no longer in it: {_architectures(cuda.drops)}")
    for place, line in enumerate(targets):
        yield from row("" if place else "GPUs", line, style)
    if alone and cuda.toolkits:
        yield from row("torch", built_with(cuda), style)
    elif alone and cuda.floor is not None:
        low = f"{cuda.floor.linux} or newer (Windows: {cuda.floor.windows})"
        yield from row("driver", f"{low} runs programs built with any CUDA {cuda.floor.cuda}.x", style)


def _compiler_text(compiler: HostCompiler) -> str:
    def span(name: str, low: Optional[int], high: int) -> str:
        return f"{name} {low} to {high}" if low is not None else f"{name} up to {high}"

    gcc, clang = span("GCC", compiler.gcc_min, compiler.gcc_max), span("clang", compiler.clang_min, compiler.clang_max)
    guess = " (a guess)" if compiler.guessed else ""
    return f"takes {gcc}, {clang}, or Visual Studio {compiler.visual_studio}, as host compiler{guess}"


def _yes_no(verdict: Verdict) -> str:
    return {YES: "yes", LIKELY: "likely"}.get(verdict.answer, f"{verdict.answer}, {verdict.reason}")


def _sources(answer: Answer) -> list[str]:
    """Everything that the answer rests on, each once."""
    found: list[str] = []
    if answer.driver is not None:
        found += [answer.driver.branch.source] if answer.driver.branch is not None else []
        found += [item.verdict.source for item in answer.driver.serves]
    for gpu in answer.gpus:
        found += [gpu.architecture.source, *(one.source for one in gpu.products if gpu.match.kind != "capability")]
    if answer.torch is not None:
        found.append(answer.torch.release.source)
    if answer.cuda is not None:
        found += [toolkit.source for toolkit in answer.cuda.toolkits]
        found += [compiler.source for compiler in answer.cuda.compilers]
        found += [answer.cuda.floor.source] if answer.cuda.floor is not None else []
    found += [line.build.source for line in answer.lines]
    return list(dict.fromkeys(part for source in found for part in source.split("; ") if part))
