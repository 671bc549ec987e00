"""What the matrix answers with: small immutable records, each with its source and the day it was checked.

``confidence`` is "stated" (read in a source), "derived" (follows from sources) or "guessed". Nothing that is guessed
may decide a verdict; it may be shown, marked as such.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Callable, Optional

from cudadoctor.model.pattern import pattern
from cudadoctor.model.record import NamedTuple

# What "uname -r" can say. Anything else, out of a pasted report say, never becomes part of a command.
_KERNEL = pattern(r"[0-9A-Za-z][0-9A-Za-z._+~-]*\Z")


class MatrixError(Exception):
    """The compatibility data is missing or unreadable. The message is one sentence for the user."""


class Toolkit(NamedTuple):
    """A CUDA toolkit release. ``linux`` and ``windows`` are the drivers that NVIDIA lists for it: what building from
    source and PTX of this toolkit need. Running a wheel needs only the floor of its major."""

    cuda: str
    release: str
    label: str
    date: Optional[str]
    linux: Optional[str]
    windows: Optional[str]
    windows_seen: Optional[str]
    """Lowest Windows driver seen to show this CUDA version, where NVIDIA lists none."""
    branch: Optional[str]
    confidence: str
    note: Optional[str]
    source: str
    checked: str


class Floor(NamedTuple):
    """The oldest driver that runs programs of one CUDA major, whatever the minor."""

    cuda: int
    linux: str
    linux_table: str
    """As NVIDIA's table prints it: the bare branch."""
    windows: str
    note: Optional[str]
    source: str
    checked: str


class Branch(NamedTuple):
    """A driver branch. ``cuda`` is the version that nvidia-smi shows on it: a ceiling, not what is installed."""

    name: str
    linux: int
    cuda: str
    windows: tuple[int, ...]
    """First numbers of its Windows drivers."""
    windows_guessed: tuple[int, ...]
    kind: Optional[str]
    """"lts", "production", "new-feature", "legacy" or None (not known)."""
    end_of_life: Optional[str]
    """ "2028-06" or "2028-06-30", for data-center support; None: not known."""
    end_of_life_other: Optional[str]
    """What a source that disagrees says. Only after the later of the two is the branch surely over."""
    first_linux: Optional[str]
    first_date: Optional[str]
    latest_linux: Optional[str]
    latest_windows: Optional[str]
    last_for: tuple[str, ...]
    """Architectures for which no later branch exists."""
    modules: tuple[str, ...]
    """Flavours of the Linux kernel modules: "open", "proprietary"."""
    confidence: str
    note: Optional[str]
    source: str
    checked: str

    @property
    def guessed(self) -> bool:
        return self.confidence == "guessed"

    @property
    def open_modules_only(self) -> bool:
        return self.modules == ("open",)

    def number(self, system: str) -> str:
        """The branch as people on that system know it: "580", on Windows "580" to "582" the first of them."""
        if system in ("windows", "wsl") and self.windows:
            return str(self.windows[0])
        return str(self.linux)


class ForwardCompat(NamedTuple):
    """A forward compatibility package: the libcuda of a newer driver for an older kernel driver. Linux only."""

    cuda: str
    """What its libcuda serves: every release of that major, PTX up to that minor."""
    package: str
    """In NVIDIA's repositories, "cuda-compat-13-0"."""
    driver: str
    """The driver that it was made from."""
    bases: tuple[str, ...]
    """Branches of the kernel driver that NVIDIA names for it. One that is missing is not promised."""
    confidence: str
    note: Optional[str]
    source: str
    checked: str


class Architecture(NamedTuple):
    """GPUs of one or several compute capabilities that share toolkits and driver branches."""

    name: str
    capability: tuple[str, ...]
    first_cuda: Optional[str]
    last_cuda: Optional[str]
    min_driver: Optional[str]
    min_driver_bound: Optional[str]
    max_driver: Optional[str]
    modules: Optional[str]
    tegra: bool
    note: Optional[str]
    source: str
    checked: str


class DriverBound(NamedTuple):
    """The first or last driver branch of a GPU, and how firm that is."""

    branch: str
    bound: str
    """"exact"; "at-least": surely no older branch; "at-most": seen on it, an older one may do; "guessed"."""
    source: str

    @property
    def decisive(self) -> bool:
        """Whether "the driver is too old for this GPU" may rest on it."""
        return self.bound in ("exact", "at-least")

    @property
    def number(self) -> int:
        """The Linux number of the branch."""
        return int(self.branch[1:])


class Gpu(NamedTuple):
    """One product."""

    name: str
    klass: str
    """geforce, geforce-laptop, workstation, workstation-laptop, datacenter, jetson, soc."""
    architecture: str
    capability: str
    chip: Optional[str]
    memory_gib: float
    memory_type: Optional[str]
    bandwidth_gbs: Optional[float]
    """GB/s."""
    tdp_w: Optional[float]
    psu_w: Optional[float]
    """Suggested power supply of the whole PC, in watts."""
    sm_count: Optional[int]
    tflops: Optional[float]
    """Dense FP16/BF16 tensor TFLOPS with FP32 accumulation."""
    released: Optional[str]
    smi: tuple[str, ...]
    pci: tuple[str, ...]
    min_driver: Optional[str]
    min_driver_bound: Optional[str]
    modules: Optional[str]
    """Linux kernel modules that work: "open", "proprietary", "either"; None for Jetson."""
    guessed: tuple[str, ...]
    """Columns of this row that are guesses."""
    source: str
    checked: str
    on_arm: bool = False
    """Comes beside an ARM processor only, as GH200 does; boards and systems on a chip do so by their class."""

    @property
    def laptop(self) -> bool:
        return self.klass.endswith("-laptop")

    @property
    def arm_only(self) -> bool:
        """Whether there is no x86 machine with this GPU."""
        return self.on_arm or self.klass in ("jetson", "soc")


class GpuMatch(NamedTuple):
    """What a GPU name, a compute capability or a PCI id stands for."""

    text: str
    kind: str
    """"name", "capability", "pci", "chip", or "none" where nothing was found."""
    rows: tuple[Gpu, ...]
    """The products it can be; empty for a bare compute capability."""
    capability: Optional[str]
    """"8.9" where all candidates agree, else None."""
    mig: Optional[str]
    vgpu: Optional[str]

    @property
    def found(self) -> bool:
        return self.kind != "none"

    @property
    def ambiguous(self) -> bool:
        """Whether the candidates differ in what decides: the compute capability."""
        return self.found and self.capability is None

    @property
    def exact(self) -> Optional[Gpu]:
        """The product, where it can be only one."""
        return self.rows[0] if len(self.rows) == 1 else None


class Verdict(NamedTuple):
    """Does it serve, does it run? With the reason in plain words and the source that it rests on."""

    answer: str
    """"yes", "likely", "no" or "unknown"."""
    reason: str
    needed: Optional[str]
    """For "no": the oldest driver that would do, in the numbers of that system."""
    via: Optional[str]
    """For "yes" and "likely": the compiled target that runs, "sm_86" or "compute_120"."""
    source: str


class Build(NamedTuple):
    """One wheel family: a torch release for a variant and a platform."""

    torch: str
    variant: str
    cuda: Optional[str]
    """"12.6"; None for a CPU build."""
    platform: str
    """linux-x86_64, linux-aarch64, windows-x86_64, macos-arm64, macos-x86_64."""
    pythons: tuple[str, ...]
    """"3.12", free-threaded "3.13t"."""
    pythons_inferred: tuple[str, ...]
    """Those of them that were seen for the release, not for this very build."""
    glibc: Optional[str]
    """Oldest glibc; None outside Linux."""
    cxx11_abi: Optional[bool]
    sass: tuple[str, ...]
    """Compiled targets, "86" for sm_86."""
    ptx: tuple[str, ...]
    disputed: tuple[str, ...]
    """Targets on which sources contradict each other."""
    seen: bool
    """Whether a source has seen such a wheel on an index. A build that is only announced is never the choice."""
    guessed: bool
    """Whether the build may not exist at all."""
    archs_guessed: bool
    verified: bool
    """Whether the GPU list was read from the wheel itself."""
    default_index: bool
    """Whether a plain ``pip install torch`` gives this build on this platform."""
    index_url: str
    local: Optional[str]
    """The local version on that index ("cu126" of 2.14.1+cu126); None where it has none or that is not known."""
    listed: str
    """Source of its existence."""
    source: str
    """Source of its GPU list (of its existence, for a CPU build)."""
    checked: str
    download_mib: Optional[int] = None
    """MiB that a fresh ``pip install`` of this build downloads on its platform, with everything that it requires there;
    None: not known. The sizes of the wheels of the day on which the row was written: what torch does not pin exactly
    may have changed by a little since."""
    pythons_index_only: tuple[str, ...] = ()
    """Those of ``pythons`` whose wheel lies on ``index_url`` alone: a plain ``pip install torch`` has none for them."""
    glibc_below: Optional[str] = None
    """The first glibc that does not load it any more ("2.41"): one of its libraries asks for an executable stack."""

    @property
    def requirement(self) -> str:
        """``torch==2.14.1+cu126``: pinned with the local version, so that pip replaces a ``+cpu`` build."""
        return f"torch=={self.torch}" + (f"+{self.local}" if self.local else "")

    def has_python(self, python: str) -> bool:
        """Whether there is a wheel for "3.12" or "3.13t"."""
        return python in self.pythons


class Variant(NamedTuple):
    """One CUDA variant of a torch release, or the CPU one, on all its platforms."""

    torch: str
    name: str
    cuda: Optional[str]
    index_url: str
    platforms: tuple[str, ...]
    build_at: Callable[[int], Build]
    """Gives the build for the platform at that place. It is made when it is asked for: who judges a machine asks for
    its own platform alone, and there are some seven hundred builds."""

    @property
    def builds(self) -> tuple[Build, ...]:
        return tuple(map(self.build_at, range(len(self.platforms))))

    def build(self, platform: str) -> Optional[Build]:
        return self.build_at(self.platforms.index(platform)) if platform in self.platforms else None


class TorchRelease(NamedTuple):
    """A torch release with all its builds."""

    version: str
    date: str
    requires_python: str
    default: Mapping[str, str]
    """Platform -> the variant that a plain ``pip install torch`` gives."""
    cxx11_abi: bool
    """Of the Linux x86_64 wheels."""
    companions: Mapping[str, str]
    """torchvision and torchaudio: versions; triton: the range that torch requires."""
    companions_untagged: tuple[str, ...]
    """Companions whose wheel on the variants' indexes is not known to carry ``+cuXXX``."""
    nvidia: Mapping[str, str]
    """nvidia-* requirements of the default Linux wheel, without -cu12/-cu13: {"cudnn": "==9.24.0.43"}."""
    variants: tuple[Variant, ...]
    """CPU first, then by CUDA version, oldest first."""
    note: Optional[str]
    source: str
    checked: str

    @property
    def minor(self) -> str:
        """ "2.14" of 2.14.1."""
        return ".".join(self.version.split(".")[:2])

    def variant(self, name: str) -> Optional[Variant]:
        for variant in self.variants:
            if variant.name == name:
                return variant
        return None

    def build(self, variant: str, platform: str) -> Optional[Build]:
        found = self.variant(variant)
        return None if found is None else found.build(platform)

    def builds(self, platform: str) -> tuple[Build, ...]:
        """Every build for that platform, CPU first, then by CUDA version."""
        found = (variant.build(platform) for variant in self.variants)
        return tuple(build for build in found if build is not None)


class Message(NamedTuple):
    """One wording of an error. ``pattern`` is searched without regard to case; its named groups are what it captures;
    ``anchor`` is a lower-case text that stands in every line that it fits; ``causes`` are ids of rules, the likeliest
    first. ``is_hint``: it is no error by itself, but counts beside one ("I use WSL"), or it is a harmless note."""

    name: str
    anchor: str
    pattern: str
    meaning: str
    causes: tuple[str, ...]
    is_hint: bool = False


class Xid(NamedTuple):
    """One of the numbers under which the driver reports errors of a GPU to the kernel log."""

    code: int
    name: str
    """NVIDIA's own."""
    meaning: str
    """What happened: a sentence without its full stop."""
    family: str
    """What it is about: "program", "memory", "nvlink", "lost", ... (the head of compat/xid.toml lists them)."""
    severity: str
    """ "critical" (the GPU is not fit for use), "error", "warning" or "info"."""
    causes: tuple[str, ...]
    """ "program", "driver", "hardware", "memory", "bus", "thermal", "other"; the likeliest first."""
    action: str
    """The name of what helps: "reset-gpu", "check-program", ..."""
    advice: str
    """What helps: a sentence without its full stop."""
    nvidia_action: Optional[str]
    """NVIDIA's catalog's name for what to do at once: "RESET_GPU"."""
    note: Optional[str]
    source: str
    checked: str

    @property
    def is_programs_fault(self) -> bool:
        """Whether it says nothing against the GPU: the fault of a program, or what follows from one."""
        return self.causes[0] == "program"


class HostCompiler(NamedTuple):
    """Which host compilers nvcc of one toolkit accepts. Only the upper ends are checked by nvcc itself."""

    cuda: str
    read_from: Optional[str]
    gcc_max: int
    gcc_min: Optional[int]
    clang_max: int
    clang_min: Optional[int]
    msvc_min: int
    """Lowest _MSC_VER."""
    msvc_below: int
    """First _MSC_VER that is refused."""
    visual_studio: str
    confidence: str
    note: Optional[str]
    source: str
    checked: str

    @property
    def guessed(self) -> bool:
        return self.confidence == "guessed"


class Assembler(NamedTuple):
    """The ptxas that a Triton brings."""

    cuda: str
    """The CUDA release that it is of."""
    variable: str
    """The environment variable that names another in its place."""
    source: str
    checked: str


class HeaderClash(NamedTuple):
    """Headers of the C library that an older nvcc cannot compile."""

    glibc: str
    """First glibc that has them."""
    cuda: str
    """First toolkit that compiles them."""
    arch: Optional[str]
    """The only architecture that has them; None: all."""
    functions: tuple[str, ...]
    """What the compiler's message names."""
    confidence: str
    note: Optional[str]
    source: str
    checked: str


class PowerPlan(NamedTuple):
    """A Windows power plan or overlay that has a fixed GUID."""

    guid: str
    name: str
    """English name; Windows shows a translated one."""
    kind: str
    """ "performance", "balanced" or "saver"."""
    overlay: bool
    alias: Optional[str]
    note: Optional[str]
    source: str
    checked: str


class WslNeeds(NamedTuple):
    """What WSL has to be at least for Windows to lend it a GPU."""

    windows_build: int
    kernel: str
    """The release of WSL 2's own kernel, without its ending."""
    source: str
    checked: str


class Library(NamedTuple):
    """A CUDA library file and the wheels that bring it."""

    name: str
    """As asked: "libcudart.so.13"."""
    component: str
    """ "CUDA runtime"."""
    packages: tuple[str, ...]
    """Wheels on PyPI that have this file; empty for a driver library or a number that no wheel has."""
    from_driver: bool
    """Whether the NVIDIA driver brings it."""
    source: str
    checked: str


class Pin(NamedTuple):
    """A release of a package that is tied to torch."""

    package: str
    version: str
    date: Optional[str]
    torch: str
    """The range of torch that it requires: "==2.14.0"."""
    torchvision: Optional[str]
    torchaudio: Optional[str]
    cuda: tuple[str, ...]
    """CUDA versions that it has binaries for, "12.6"; "13" is any 13.x. Empty: not known."""
    python: Optional[str]
    """The range of Python that it declares and has wheels for: ">=3.10,<3.15"; None: not known."""
    source: str
    checked: str


class FrameworkRelease(NamedTuple):
    """A release of a package that is tied to CUDA and not to torch."""

    package: str
    version: str
    date: Optional[str]
    python: Optional[str]
    cuda: tuple[str, ...]
    """CUDA majors that it comes for, "12"."""
    install: Mapping[str, str]
    """What an installer is told, by CUDA major, with the version: {"12": "jax[cuda12]==0.12.0"}."""
    needs: Mapping[str, str]
    """NVIDIA libraries that it requires: {"cudnn": ">=9.3.0.75,<10.0"}."""
    note: Optional[str]
    source: str
    checked: str


class Framework(NamedTuple):
    """A package that is tied to torch or to CUDA."""

    name: str
    torch: str
    """How its newest releases are tied to torch: "==" to one each, ">=2.10" to a range, "built" to one without saying
    so, "any" to whichever is there, "none" not at all."""
    cuda: Mapping[str, str]
    """CUDA major -> what an installer is told for it, without the version; empty: it follows torch's CUDA."""
    linux: Mapping[str, str]
    """CUDA major -> the oldest Linux driver."""
    windows_driver: Mapping[str, str]
    """CUDA major -> the oldest Windows driver, also for WSL."""
    capability: Mapping[str, str]
    """CUDA major -> the lowest compute capability, where that is known."""
    windows: str
    """Whether it uses the GPU on Windows: "yes", "wsl" (only inside WSL), "no"."""
    platforms: tuple[str, ...]
    """Where it has wheels that use the GPU."""
    torch_index: bool
    """Whether its builds for each CUDA lie on PyTorch's index, beside torch's of the same variant."""
    note: Optional[str]
    source: str
    checked: str
    windows_last: Optional[str] = None
    """The last release that used the GPU on Windows itself, where later ones do not ("2.10")."""

    @property
    def tied_to_torch(self) -> bool:
        return self.torch != "none"

    def driver(self, cuda_major: str, system: str) -> Optional[str]:
        """The oldest driver for its build of that CUDA major ("12"); None: it has none, or that is not known."""
        return (self.linux if system == "linux" else self.windows_driver).get(cuda_major)


class Distribution(NamedTuple):
    """A Linux distribution: its names for the driver, its commands. Commands are words and need root."""

    id: str
    title: str
    family: str
    """debian, redhat, suse, arch, gentoo, alpine."""
    relative: bool
    """Matched through ID_LIKE only: names and commands are likely the same, not surely."""
    version: Optional[str]
    install: tuple[str, ...]
    remove: tuple[str, ...]
    refresh: tuple[str, ...]
    driver_tool: tuple[str, ...]
    """A tool that picks the driver by itself; empty where there is none."""
    driver_needs: Optional[str]
    """What must be set up before the driver packages can be installed."""
    driver_pattern: Optional[str]
    mok_key: Optional[str]
    venv: tuple[str, ...]
    pip: tuple[str, ...]
    compiler: tuple[str, ...]
    python_headers: tuple[str, ...]
    toolkit: tuple[str, ...]
    initramfs: tuple[str, ...]
    """Writes the early boot image anew; empty where that is not known."""
    bootloader: tuple[str, ...]
    row: Mapping[str, Any]
    """The raw columns behind the methods."""
    note: Optional[str]
    source: str
    checked: str

    def install_command(self, packages: Sequence[str]) -> tuple[str, ...]:
        """The command that installs these packages."""
        return (*self.install, *packages)

    def remove_command(self, packages: Sequence[str]) -> tuple[str, ...]:
        return (*self.remove, *packages)

    def driver_packages(self, branch: int, open_modules: bool) -> tuple[str, ...]:
        """Packages of a driver branch (580) from the distribution, with open or proprietary kernel modules.

        A branch for old cards has its own packages. Empty: the distribution has none, or it is not known.
        """
        legacy = self.row.get("driver_legacy", {}).get(f"R{branch}")
        if legacy and not open_modules:
            return tuple(legacy.split(" "))
        column = "driver_open" if open_modules else "driver_proprietary"
        return tuple(word.format(branch=branch) for word in self.row.get(column, ()))

    def legacy_packages(self, branch: int) -> tuple[str, ...]:
        """Packages that the distribution has for this branch alone, beside those of its own driver."""
        legacy = self.row.get("driver_legacy", {}).get(f"R{branch}")
        return tuple(legacy.split(" ")) if legacy else ()

    def nvidia_packages(self, open_modules: bool) -> tuple[str, ...]:
        """Packages of the newest driver from NVIDIA's own repository, once that has been added."""
        return tuple(self.row.get("nvidia_open" if open_modules else "nvidia_proprietary", ()))

    def module_stream(self, branch: int, open_modules: bool) -> tuple[str, ...]:
        """The command that picks a driver branch before its packages are installed; empty where none is needed."""
        column = "module_open" if open_modules else "module_proprietary"
        return tuple(word.format(branch=branch) for word in self.row.get(column, ()))

    def driver_branch(self) -> Optional[str]:
        """The branch ("R550") that the packages of this release of the distribution bring, where it is bound to one."""
        gives = self.row.get("driver_gives", {})
        if self.relative or self.version is None:
            return None
        found = gives.get(self.version) or gives.get(self.version.split(".")[0])
        return None if found is None else str(found)

    def headers(self, kernel: str) -> tuple[str, ...]:
        """Packages that the module build needs for this kernel (``uname -r``)."""
        if not _KERNEL.match(kernel):
            return ()
        return tuple(word.format(kernel=kernel) for word in self.row.get("headers", ()))

    def rebuild(self, kernel: str) -> tuple[str, ...]:
        """The command that builds the NVIDIA module for this kernel; empty where packages bring built modules."""
        if not _KERNEL.match(kernel):
            return ()
        return tuple(word.format(kernel=kernel) for word in self.row.get("rebuild", ()))

    def kernel_args(self, argument: str) -> tuple[str, ...]:
        """The command that puts an argument on the kernel command line; empty where a file must be edited."""
        return tuple(word.format(arg=argument) for word in self.row.get("kernel_args", ()))

    def compiler_package(self, major: int) -> Optional[str]:
        """The package of one GCC major, for a toolkit that refuses the default one."""
        name = self.row.get("compiler_version")
        return None if name is None else str(name).format(major=major)
