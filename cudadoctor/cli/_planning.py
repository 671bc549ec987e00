"""What `fix` is asked: this machine, or one that is described by --gpu, --driver and the like."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import NamedTuple, Optional

from cudadoctor.cli._named import driver_number, gpu_named, own_machine
from cudadoctor.cli._words import InputError
from cudadoctor.matrix import Matrix
from cudadoctor.model import Fact, Facts, ParseError, known
from cudadoctor.parse.versions import is_plain
from cudadoctor.plan import Options, validate
from cudadoctor.plan.index import mirror
from cudadoctor.resolve import COMPANIONS, Gpu, Need
from cudadoctor.resolve.companions import asked
from cudadoctor.resolve.need import NONE, PRESENT, UNKNOWN
from cudadoctor.resolve.without_gpu import ARM, are_on_arm

FLAT = "flat"

NO_GPU = ("none", "cpu", "no")


class Wish(NamedTuple):
    """The options that describe a machine and what is to be installed there."""

    gpus: Sequence[str] = ()
    driver: Optional[str] = None
    system: Optional[str] = None
    arch: Optional[str] = None
    glibc: Optional[str] = None
    python: Optional[str] = None
    torch: Optional[str] = None
    packages: Sequence[str] = ()
    installer: Optional[str] = None
    mirror: Optional[str] = None
    mirror_layout: str = "index"
    online: bool = False

    @property
    def describes_a_machine(self) -> bool:
        return bool(self.gpus or self.driver or self.system or self.arch or self.glibc)


def options_of(wish: Wish, matrix: Matrix) -> Options:
    """What is to be installed, and how."""
    companions, partners = [], []
    for text in wish.packages:
        name, extras, wanted = _package(text)
        if extras and (name in COMPANIONS or matrix.pins(name)):
            raise InputError(f"--with: the versions of {name} are chosen without extras; leave {extras} out")
        if name in COMPANIONS:
            companions.append(wanted)
        elif name != "torch":
            if not matrix.pins(name) and matrix.framework(name) is None:
                raise InputError(
                    f"--with: it is not known which torch or CUDA {text!r} goes with; known are "
                    f"{', '.join(COMPANIONS)} and packages that are tied to a torch release, such as vllm"
                )
            partners.append(wanted)
    try:
        torch = validate.specifier(wish.torch.strip()) if wish.torch else ""
    except ParseError:
        raise InputError(
            f"--torch takes a version or a range such as 2.7.*, '>=2.6,<2.9' or 2.7.1+cu126, not {wish.torch!r}"
        ) from None
    try:
        found = mirror(wish.mirror, wish.mirror_layout == FLAT) if wish.mirror else None
    except ParseError as error:
        raise InputError(
            f"--mirror takes an http or https address such as https://mirror.example/whl: {error}"
        ) from None
    return Options(wish.installer, found, torch, tuple(companions), tuple(partners))


def _package(text: str) -> tuple[str, str, str]:
    """The name of `--with vllm<0.30`, its extras (`[cuda12]`) and all of it, normalized."""
    try:
        checked = validate.requirement(text.strip())
    except ParseError:
        raise InputError(f"--with takes a package such as vllm or 'vllm<0.30', not {text!r}") from None
    name, specifier = asked(checked)
    name = name.lower().replace("_", "-").replace(".", "-")
    extras = checked[checked.index("[") : checked.index("]") + 1] if "[" in checked else ""
    return name, extras, name + extras + specifier


def planned_machine(wish: Wish, matrix: Matrix) -> tuple[Need, Facts]:
    """The machine that the options describe. System and architecture are this machine's where they do not say; all else
    that they leave open is not known, and rules nothing out."""
    own_system, own_arch = own_machine()
    system = wish.system or own_system
    gpus, state = _gpus(wish.gpus, matrix)
    # Windows on ARM has no wheels with CUDA: who plans for Windows means the usual one.
    arch = wish.arch or ("x86_64" if system == "windows" else ARM if are_on_arm(gpus, matrix) else own_arch)
    os_name = "windows" if system == "windows" else "linux"
    python, free_threaded, executable = _python(wish.python, is_here=(system, arch) == (own_system, own_arch))
    if wish.glibc is not None and not is_plain(wish.glibc):
        raise InputError(f"--glibc takes a version such as 2.28, not {wish.glibc!r}")
    need = Need(
        gpus=gpus,
        gpu_state=state,
        driver=driver_number(wish.driver, system, matrix, "the plan") if wish.driver is not None else None,
        numbering="linux" if system == "linux" else "windows",
        platform=f"{os_name}-{arch}",
        python=python,
        free_threaded=free_threaded,
        glibc=wish.glibc,
        wsl=system == "wsl",
        welcome=("torchvision",),
    )
    facts: dict[str, Fact[object]] = {
        "system.os": known(os_name, "--os"),
        "system.arch": known(arch, "--arch"),
        "request.gpu": known(state == PRESENT, "--gpu"),
    }
    if system == "wsl":
        facts["system.wsl"] = known(2, "--os")
    elif wish.system is None and own_system == "linux" and arch == own_arch:
        facts.update(_own_distribution())
    if executable is not None:
        facts["python.executable"] = known(executable, "--python")
    return need, Facts(facts)


def _own_distribution() -> dict[str, Fact[object]]:
    """The distribution that we run on: who plans on a login node plans for the nodes behind it."""
    from cudadoctor.probes.examine import live_system
    from cudadoctor.probes.identity import look

    return {
        name: fact for name, fact in look(live_system()).items() if name.startswith(("system.distri", "system.ostree"))
    }


def _gpus(names: Sequence[str], matrix: Matrix) -> tuple[tuple[Gpu, ...], str]:
    if not names:
        return (), UNKNOWN
    if all(name.strip().lower() in NO_GPU for name in names):
        return (), NONE
    return tuple(_gpu(name, matrix) for name in names), PRESENT


def _gpu(name: str, matrix: Matrix) -> Gpu:
    match = gpu_named(name, matrix)
    assert match.capability is not None
    if match.kind == "capability":
        return Gpu(f"a GPU of compute capability {match.capability}", match.capability)
    # A bare number stands for several products that run the same code; the likeliest one's name reads better.
    alone = match.exact is not None or name.strip().isdigit()
    return Gpu(match.rows[0].name if alone and match.rows and not match.vgpu else name.strip(), match.capability)


def _python(text: Optional[str], is_here: bool) -> tuple[Optional[str], bool, Optional[str]]:
    """Version, whether free-threaded, and the interpreter's path. `is_here`: the plan may be for this very machine."""
    if text is None:
        return None, False, None
    match = re.fullmatch(r"(3\.\d{1,2})(?:\.\d{1,2})?(t?)", text.strip())
    if match:
        return match.group(1), match.group(2) == "t", None
    if "/" in text or "\\" in text or text.startswith("python"):
        try:
            version, free_threaded, executable = _looked_at(text) if is_here else (None, False, text)
            return version, free_threaded, validate.path(executable)
        except ParseError as error:
            raise InputError(f"--python: {error}") from None
    raise InputError(f"--python takes a version such as 3.12 or the path of an interpreter, not {text!r}")


def _looked_at(path: str) -> tuple[Optional[str], bool, str]:
    """The interpreter at `path`, or in that environment's folder. One that is not on this machine is on the one that
    the plan is for: nothing is known of it."""
    from cudadoctor.probes.examine import live_system
    from cudadoctor.probes.patient import patient

    try:
        found = live_system(asked_python=path).once(patient).environment
    except ParseError:
        return None, False, path
    if not found.is_known:
        return None, False, path
    environment = found.get()
    version = environment.version.value
    executable = environment.executable if os.path.isdir(path) else path
    return version and ".".join(version.split(".")[:2]), bool(environment.free_threaded.value), executable
