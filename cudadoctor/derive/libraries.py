"""Which CUDA libraries a program did not find, and what torch brings of them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Optional

from cudadoctor.derive.symptoms import symptom
from cudadoctor.derive.wheel import CUDA, required_packages, torch_build
from cudadoctor.model.record import NamedTuple

if TYPE_CHECKING:
    from cudadoctor.derive.case import Case

_SYMPTOMS = ("cuda_library_missing", "onnxruntime_provider_library", "tensorflow_library_missing")


class NotFound(NamedTuple):
    """A CUDA library that a program did not find: its file's name, the one by which the matrix knows it, the component
    ("cuDNN"), the number in the name ("9", "11.0"; empty: none) and the package that asked for it."""

    soname: str
    name: str
    component: str
    number: str
    asked_by: Optional[str]
    fact: str

    @property
    def major(self) -> Optional[int]:
        digits = self.number.partition(".")[0]
        return int(digits) if digits.isdigit() else None


def plain_name(soname: str) -> str:
    """The name by which the matrix knows a library: cuDNN's parts (libcudnn_ops.so.9) go by cuDNN's."""
    return re.sub(r"\A(lib)?cudnn[_ ]\w*?(?=64_|\.so|\.dll|\Z)", r"\1cudnn", soname)


def number_of(soname: str) -> str:
    """ "11.0" of libcudart.so.11.0 and of cudart64_110.dll, "9" of cudnn_ops64_9.dll."""
    so = re.search(r"\.so\.([\d.]+)\Z", soname)
    if so:
        return so.group(1)
    dll = re.search(r"_(\d+)(?:_\d+)?\.dll\Z", soname, re.IGNORECASE)
    if not dll:
        return ""
    digits = dll.group(1)
    return f"{digits[:2]}.{digits[2:]}" if len(digits) == 3 else digits


def not_found(case: Case) -> tuple[NotFound, ...]:
    """The CUDA libraries that error texts name as missing, the driver's own left out, in the order of the texts."""
    entries = [(str(entry.get("soname")), entry.get("asked_by")) for entry in case.value("libraries.not_found", [])]
    fact = "libraries.not_found"
    if not entries:
        said = symptom(case, *_SYMPTOMS)
        soname = (said.get("library") or said.get("dll")) if said is not None else ""
        if said is None or not soname:
            return ()
        entries, fact = [(soname, None)], said.fact
    found = []
    for soname, asked_by in entries:
        name = plain_name(soname)
        library = case.matrix.library(name)
        if library is not None and not library.from_driver:
            found.append(NotFound(soname, name, library.component, number_of(soname), asked_by, fact))
    return tuple(found)


def cudnn_of_torch(case: Case) -> Optional[int]:
    """The major version of the cuDNN that the installed torch brings: its own requirement, else the matrix's."""
    build = case.derived(torch_build)
    if build.kind != CUDA:
        return None
    for name, specifier in case.derived(required_packages).items():
        if name.startswith("nvidia-cudnn"):
            return _first_number(specifier)
    release = case.matrix.torch_release(build.release) if build.release and not build.is_own_build else None
    if release is not None and "cudnn" in release.nvidia:
        return _first_number(release.nvidia["cudnn"])
    return _first_number(str(case.value("torch.cudnn") or ""))


def _first_number(text: str) -> Optional[int]:
    digits = re.search(r"\d+", text)
    return int(digits.group(0)) if digits else None


def torch_with_cudnn(case: Case, major: int) -> tuple[Optional[str], Optional[str]]:
    """The first and the last release of torch that bring this major version of cuDNN, as far as the matrix knows."""
    fitting = []
    for version in case.matrix.torch_versions():
        release = case.matrix.torch_release(version)
        if release is not None and _first_number(release.nvidia.get("cudnn", "")) == major:
            fitting.append(version)
    return (fitting[-1], fitting[0]) if fitting else (None, None)


# Extensions of torch that the matrix has no row for.
_MORE_EXTENSIONS = ("mmcv", "mmcv-full", "detectron2", "apex", "pytorch3d", "dgl", "torch-geometric")


class BuiltForCuda(NamedTuple):
    """An extension of torch that looks for the CUDA runtime of a major that torch has not loaded."""

    missing: NotFound
    cuda: str


def extension_of_another_cuda(case: Case) -> Optional[BuiltForCuda]:
    """An extension whose CUDA runtime was not found. It is loaded after torch, which has loaded its own: so the one
    that is missing is of another major."""
    for entry in case.derived(not_found):
        name = entry.asked_by
        if name is None or entry.component != "CUDA runtime" or entry.major is None:
            continue
        framework = case.matrix.framework(name)
        tied = framework is not None and framework.torch != "none"
        build = case.derived(torch_build)
        same = build.cuda is not None and build.cuda.partition(".")[0] == str(entry.major)
        if (tied or name in _MORE_EXTENSIONS or name.startswith("torch-")) and not same:
            return BuiltForCuda(entry, str(entry.major))
    return None
