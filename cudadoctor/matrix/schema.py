"""The columns of ``compat/*.toml``, and the check that the data keeps to them.

A column that is not named here is an error: a typing slip in the data must not turn into a silent "not known".
Used when the data is compiled, by the tests and by whatever edits the data; never on the path of a check.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from .changes import COSTS
from .versions import numbers, target

SCHEMA = 1

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}\Z")
_MONTH = re.compile(r"\d{4}-\d{2}(-\d{2})?\Z")
_PYTHON = re.compile(r"3\.\d+t?\Z")
_VARIANT = re.compile(r"(cpu|cu\d{2,3})\Z")
_PCI = re.compile(r"[0-9A-F]{4}\Z")
_CC = re.compile(r"\d{1,2}\.\d\Z")
_BRANCH = re.compile(r"R\d{3}\Z")
_KEBAB = re.compile(r"[a-z]+(-[a-z]+)*\Z")

_CLAUSE = re.compile(r"(==|>=|<=|~=|!=|<|>)\d[0-9A-Za-z.*]*\Z")

PLATFORMS = ("linux-x86_64", "linux-aarch64", "windows-x86_64", "macos-arm64", "macos-x86_64")
CLASSES = ("geforce", "geforce-laptop", "workstation", "workstation-laptop", "datacenter", "jetson", "soc")
CONFIDENCE = ("stated", "derived", "guessed")
XID_FAMILIES = (
    *("program", "follow-up", "driver", "gsp", "init", "memory", "nvlink", "bus", "lost", "power", "hardware"),
    *("video", "display", "vgpu", "confidential", "other"),
)
XID_CAUSES = ("program", "driver", "hardware", "memory", "bus", "thermal", "other")


def _text(value: Any) -> bool:
    return isinstance(value, str) and value.strip() == value and value != ""


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0


def _at_least_nought(value: Any) -> bool:
    return value == 0 or _number(value)


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _share(value: Any) -> bool:
    return _number(value) and value < 1


def _flag(value: Any) -> bool:
    return isinstance(value, bool)


def _matches(pattern: re.Pattern[str]) -> Any:
    return lambda value: isinstance(value, str) and bool(pattern.match(value))


def _one_of(*allowed: str) -> Any:
    return lambda value: value in allowed


def _list_of(check: Any) -> Any:
    return lambda value: isinstance(value, list) and bool(value) and all(check(item) for item in value)


def _words_of(check: Any) -> Any:
    return lambda value: isinstance(value, str) and bool(value) and all(check(word) for word in value.split(" "))


def _texts(value: Any) -> bool:
    return isinstance(value, dict) and all(_text(item) for item in value.values())


def _per_platform(check: Any) -> Any:
    return lambda value: (
        isinstance(value, dict) and bool(value) and all(k in PLATFORMS and check(v) for k, v in value.items())
    )


def _per_major(check: Any) -> Any:
    return lambda value: (
        isinstance(value, dict) and bool(value) and all(key.isdigit() and check(item) for key, item in value.items())
    )


def _specifier(value: Any) -> bool:
    return isinstance(value, str) and all(_CLAUSE.match(clause) for clause in value.split(","))


def _version(value: Any) -> bool:
    return isinstance(value, str) and numbers(value) is not None


def _arch(value: Any) -> bool:
    return isinstance(value, str) and target(value) is not None


def _sources(value: Any) -> bool:
    return _text(value) or _list_of(_text)(value)


def _lower(value: Any) -> bool:
    return isinstance(value, str) and len(value) > 2 and value == value.lower()


def _pattern(value: Any) -> bool:
    try:
        return isinstance(value, str) and bool(value) and re.compile(value, re.IGNORECASE) is not None
    except re.error:
        return False


def _list_of_any(check: Any) -> Any:
    """A list that may be empty."""
    return lambda value: isinstance(value, list) and all(check(item) for item in value)


_date = _matches(_DATE)
_branch = _matches(_BRANCH)


class Column(NamedTuple):
    check: Any
    wanted: str
    required: bool = False


def _c(check: Any, wanted: str) -> Column:
    return Column(check, wanted)


def _r(check: Any, wanted: str) -> Column:
    return Column(check, wanted, True)


_COMMON: dict[str, Column] = {
    "source": _c(_sources, "keys of [sources]"),
    "checked": _c(_date, "a date like 2026-11-30"),
    "confidence": _c(_one_of(*CONFIDENCE), "stated, derived or guessed"),
    "note": _c(_text, "text"),
}
_TEXT = _c(_text, "text")
_ARGV = _c(_list_of(_text), "a list of words")


def _flags(*names: str) -> dict[str, Column]:
    """Columns that may say true or false."""
    return {name: _c(_flag, "true or false") for name in names}


def _table(**columns: Column) -> dict[str, Column]:
    return {**_COMMON, **columns}


# File -> table -> columns. Each table is a list of rows; "builds" and "gpus" are lists inside such rows.
TABLES: dict[str, dict[str, dict[str, Column]]] = {
    "cuda_toolkits": {
        "floor": _table(
            cuda=_r(_whole, "a CUDA major"),
            linux=_r(_version, "a driver version"),
            linux_table=_r(_version, "a driver branch number"),
            windows=_r(_version, "a driver version"),
        ),
        "toolkit": _table(
            cuda=_r(_version, "a CUDA version"),
            release=_r(_version, "a toolkit release"),
            label=_r(_text, "text"),
            date=_c(_date, "a date"),
            linux=_c(_version, "a driver version"),
            windows=_c(_version, "a driver version"),
            windows_seen=_c(_version, "a driver version"),
            branch=_c(_branch, "a branch like R580"),
        ),
    },
    "driver_branches": {
        "branch": _table(
            name=_r(_branch, "a branch like R580"),
            linux=_r(_whole, "the first number of its Linux drivers"),
            cuda=_r(_version, "a CUDA version"),
            windows=_c(_list_of(_whole), "first numbers of Windows drivers"),
            windows_guessed=_c(_list_of(_whole), "first numbers of Windows drivers"),
            kind=_c(_one_of("lts", "production", "new-feature", "legacy"), "lts, production, new-feature or legacy"),
            end_of_life=_c(_matches(_MONTH), "a month or a date"),
            end_of_life_other=_c(_matches(_MONTH), "a month or a date"),
            first_linux=_c(_version, "a driver version"),
            first_date=_c(_matches(_MONTH), "a month or a date"),
            latest_linux=_c(_version, "a driver version"),
            latest_windows=_c(_version, "a driver version"),
            last_for=_c(_list_of(_text), "architectures"),
            modules=_r(_list_of(_one_of("open", "proprietary")), "open, proprietary"),
        )
    },
    "forward_compat": {
        "compat": _table(
            cuda=_r(_version, "a CUDA version"),
            package=_r(_text, "a package"),
            driver=_r(_version, "a driver version"),
            bases=_r(_list_of(_branch), "branches like R580"),
        ),
        "scope": _table(
            **{"class": _r(_one_of(*CLASSES), "a class"), "answer": _r(_one_of("yes", "some", "no"), "yes, some or no")}
        ),
    },
    "architectures": {
        "architecture": _table(
            name=_r(_text, "text"),
            capability=_r(_list_of(_matches(_CC)), "compute capabilities"),
            first_cuda=_c(_version, "a CUDA version"),
            last_cuda=_c(_version, "a CUDA version"),
            min_driver=_c(_branch, "a branch like R580"),
            min_driver_bound=_c(_one_of("exact", "at-least"), "exact or at-least"),
            max_driver=_c(_branch, "a branch like R580"),
            modules=_c(_one_of("open", "proprietary", "either"), "open, proprietary or either"),
            tegra=_c(_flag, "true or false"),
        )
    },
    "gpus": {
        "group": _table(
            architecture=_r(_text, "text"),
            compute_capability=_r(_matches(_CC), "a compute capability like 8.9"),
            modules=_c(_one_of("open", "proprietary", "either"), "open, proprietary or either"),
            min_driver=_c(_branch, "a branch like R580"),
            min_driver_bound=_c(_one_of("exact", "at-least", "at-most"), "exact, at-least or at-most"),
            gpus=_r(lambda value: isinstance(value, list) and bool(value), "a list of GPUs"),
        )
    },
    "pci_chips": {
        "chip": _table(
            first=_r(_matches(_PCI), "a PCI device id, upper case"),
            last=_r(_matches(_PCI), "a PCI device id, upper case"),
            chip=_r(_text, "a chip"),
            capability=_r(_matches(_CC), "a compute capability"),
        )
    },
    "torch": {
        "release": _table(
            version=_r(_version, "a release like 2.14.1"),
            date=_r(_date, "a date"),
            requires_python=_r(_text, "a version range"),
            default=_r(_per_platform(_matches(_VARIANT)), "a variant per platform"),
            glibc=_r(_per_platform(_version), "a glibc version per platform"),
            cxx11_abi=_r(_flag, "true or false"),
            companions=_r(_texts, "versions by package"),
            companions_untagged=_c(_list_of(_text), "packages"),
            nvidia=_r(_texts, "requirements by package"),
            builds=_r(lambda value: isinstance(value, list) and bool(value), "a list of builds"),
        )
    },
    "host_compilers": {
        "compiler": _table(
            cuda=_r(_version, "a CUDA version"),
            read_from=_TEXT,
            gcc_max=_r(_whole, "a GCC major"),
            gcc_min=_c(_whole, "a GCC major"),
            clang_max=_r(_whole, "a clang major"),
            clang_min=_c(_whole, "a clang major"),
            msvc_min=_r(_whole, "an _MSC_VER"),
            msvc_below=_r(_whole, "an _MSC_VER"),
            visual_studio=_r(_text, "text"),
        ),
        "header": _table(
            glibc=_r(_version, "a glibc version"),
            cuda=_r(_version, "a CUDA version"),
            arch=_c(_one_of("x86_64", "aarch64"), "x86_64 or aarch64"),
            functions=_r(_list_of(_text), "names"),
        ),
        "assembler": _table(
            triton=_r(_version, "a Triton version"),
            cuda=_r(_version, "a CUDA version"),
            newer=_c(_version, "a CUDA version"),
            newer_from=_c(_matches(_CC), "a compute capability"),
            variable=_r(_text, "a variable"),
        ),
    },
    "distributions": {
        "distribution": _table(
            id=_r(_text, "the ID of os-release"),
            names=_c(_list_of(_text), "further IDs"),
            title=_r(_text, "text"),
            family=_r(_text, "text"),
            versions=_c(_text, "a version range"),
            install=_r(_list_of(_text), "a command"),
            remove=_r(_list_of(_text), "a command"),
            refresh=_ARGV,
            driver_tool=_ARGV,
            driver_open=_ARGV,
            driver_proprietary=_ARGV,
            driver_gives=_c(_texts, "branch by version of the distribution"),
            driver_legacy=_c(_texts, "packages by branch"),
            driver_needs=_TEXT,
            driver_pattern=_TEXT,
            module_open=_ARGV,
            module_proprietary=_ARGV,
            nvidia_open=_ARGV,
            nvidia_proprietary=_ARGV,
            headers=_ARGV,
            rebuild=_ARGV,
            initramfs=_ARGV,
            bootloader=_ARGV,
            kernel_args=_ARGV,
            mok_key=_TEXT,
            venv=_ARGV,
            pip=_ARGV,
            compiler=_ARGV,
            compiler_version=_TEXT,
            python_headers=_ARGV,
            toolkit=_ARGV,
        )
    },
    "power_plans": {
        "plan": _table(
            guid=_r(_matches(re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")), "a GUID"),
            name=_r(_text, "text"),
            kind=_r(_one_of("performance", "balanced", "saver"), "performance, balanced or saver"),
            overlay=_c(_flag, "true or false"),
            alias=_TEXT,
        )
    },
    "libraries": {
        "library": _table(
            stem=_r(_text, "a library name without its number"),
            packages=_r(_texts, "packages by library number"),
            wheel=_TEXT,
            windows=_TEXT,
            apart=_c(_flag, "true or false"),
            component=_r(_text, "text"),
        ),
        "module": _table(name=_r(_text, "text"), kind=_r(_text, "text"), what=_r(_text, "text")),
    },
    "frameworks": {
        "framework": _table(
            name=_r(_text, "a package"),
            names=_c(_list_of(_text), "other names"),
            torch=_r(_text, "how it is tied to torch"),
            cuda=_c(_per_major(_text), "what to install, by CUDA major"),
            driver_linux=_c(_per_major(_version), "a driver by CUDA major"),
            driver_windows=_c(_per_major(_version), "a driver by CUDA major"),
            capability=_c(_per_major(_matches(_CC)), "a compute capability by CUDA major"),
            windows=_r(_one_of("yes", "wsl", "no"), "yes, wsl or no"),
            windows_last=_c(_version, "a version"),
            platforms=_r(_list_of(_one_of(*PLATFORMS)), "platforms"),
            torch_index=_c(_flag, "true or false"),
        ),
        "rule": _table(
            package=_r(_text, "a package"),
            since=_c(_text, "a version"),
            torch=_r(_text, "how it is tied to torch"),
        ),
        "pin": _table(
            package=_r(_text, "a package"),
            version=_r(_text, "a version"),
            date=_c(_date, "a date"),
            python=_c(_specifier, "a version range"),
            torch=_r(_specifier, "a version range"),
            torchvision=_c(_specifier, "a version range"),
            torchaudio=_c(_specifier, "a version range"),
            cuda=_c(_words_of(_version), "CUDA versions"),
        ),
        "release": _table(
            package=_r(_text, "a package"),
            version=_r(_text, "a version"),
            date=_c(_date, "a date"),
            python=_c(_specifier, "a version range"),
            cuda=_r(_words_of(_version), "CUDA majors"),
            install=_c(_per_major(_text), "what to install, by CUDA major"),
            needs=_c(_texts, "requirements by package"),
        ),
    },
    "conda_forge": {
        "virtual": _table(
            cuda_major=_r(_whole, "a CUDA major"),
            needs=_r(_matches(re.compile(r">=\d+\Z")), "a constraint like >=12"),
        ),
        "release": _table(
            version=_r(_version, "a release like 2.12.1"),
            pythons=_r(_words_of(_matches(_PYTHON)), "Pythons like 3.12"),
            pythons_inferred=_c(_words_of(_matches(_PYTHON)), "Pythons"),
            builds=_r(lambda value: isinstance(value, list) and bool(value), "a list of builds"),
        ),
    },
    "images": {
        "environment": _table(name=_r(_text, "a variable"), value=_r(_text, "its value"), what=_r(_text, "a sentence")),
        "image": _table(
            repository=_r(_text, "an image's name"),
            tag=_r(_text, "a tag, with {python}, {cuda}, {torch}"),
            kind=_r(_one_of("python", "system", "cuda", "torch"), "python, system, cuda or torch"),
            flavour=_c(_one_of("base", "runtime", "devel"), "base, runtime or devel"),
            distribution=_r(_text, "text"),
            glibc=_c(_version, "a glibc version"),
            pythons=_c(_words_of(_matches(_PYTHON)), "Pythons"),
            cuda=_c(_words_of(_version), "toolkit releases"),
            torch=_c(_texts, "CUDA versions by release"),
            platforms=_r(_list_of(_one_of(*PLATFORMS)), "platforms"),
            sets_driver_environment=_c(_flag, "true or false"),
            requires_driver=_c(_flag, "true or false"),
        ),
    },
    "messages": {
        "message": _table(
            name=_r(_matches(re.compile(r"[a-z][a-z0-9_]*\Z")), "a symptom's name"),
            anchor=_r(_lower, "a lower-case text"),
            pattern=_r(_pattern, "a regular expression"),
            meaning=_r(_text, "a sentence"),
            causes=_r(_list_of_any(_matches(re.compile(r"CD\d{3}\Z"))), "ids of rules"),
            hint=_c(_flag, "true or false"),
        )
    },
    "wsl": {
        "needs": _table(
            windows_build=_r(_whole, "a build number of Windows"), kernel=_r(_version, "a kernel release like 5.10.16")
        )
    },
    "verify": {
        "pcie": _table(generation=_r(_whole, "a PCIe generation"), lane_gbs=_r(_number, "GB/s of one lane")),
        "share": _table(
            check=_r(_one_of("bandwidth", "memory-bandwidth"), "a check that measures"),
            good=_r(_share, "a share between 0 and 1"),
            least=_r(_share, "a share between 0 and 1"),
        ),
    },
    "models": {
        "model": _table(
            name=_r(_text, "a name"),
            line=_r(_text, "the family of models that it belongs to"),
            names=_c(_list_of(_text), "other names"),
            parameters=_r(_whole, "a count"),
            weights=_r(_text, "the type of the published weights"),
            config=_r(lambda value: isinstance(value, dict) and bool(value), "the keys of a config.json"),
        ),
        "typical": _table(
            parameters=_r(_whole, "a count"),
            config=_r(lambda value: isinstance(value, dict) and bool(value), "the keys of a config.json"),
        ),
    },
    "quantisations": {
        "type": _table(
            name=_r(_text, "a type of ggml"),
            id=_r(lambda value: _whole(value) or value == 0, "its number in a GGUF file"),
            values=_r(_whole, "numbers in a block"),
            bytes=_r(_whole, "bytes of a block"),
            fallback=_c(_text, "a type"),
        ),
        "plain": _table(
            name=_r(_lower, "a name"),
            bytes=_r(_whole, "bytes of a number"),
            also=_c(_list_of(_lower), "other names"),
            file_type=_c(lambda value: _whole(value) or value == 0, "its number in a GGUF file"),
        ),
        "matrices": _table(
            name=_r(_lower, "a name"),
            also=_c(_list_of(_lower), "other names"),
            bits=_r(_whole, "bits of a number"),
            group=_c(_whole, "numbers that share a scale"),
            group_rows=_c(_whole, "rows that share a scale"),
            group_bytes=_c(_number, "bytes of a group's scale and zero"),
            row_bytes=_c(_whole, "bytes"),
            column_bytes=_c(_whole, "bytes"),
            tensor_bytes=_c(_whole, "bytes"),
            flat=_c(_flag, "true or false"),
            only=_c(_one_of("expert"), "expert"),
            own_head=_c(_flag, "true or false"),
        ),
        "mixture": _table(
            name=_r(_text, "a name"),
            also=_c(_list_of(_text), "other names"),
            type=_r(_text, "a type"),
            importance=_c(_flag, "true or false"),
            file_type=_c(_whole, "its number in a GGUF file"),
        ),
        "rule": _table(
            **{"in": _r(_list_of(_text), "mixtures")},
            of=_r(_list_of(_text), "kinds of tensors"),
            where=_c(_list_of(_text), "conditions"),
            type=_r(_text, "a type"),
        ),
        "window": _table(
            architecture=_r(_text, "an architecture of GGUF files"),
            every=_r(_whole, "layers"),
            tokens=_c(_whole, "tokens"),
            cached_layers=_c(_whole, "layers"),
        ),
    },
    "cards": {
        "usable": _table(name=_r(_text, "a name of gpus.toml"), gib=_r(_number, "GiB")),
        "held": _table(gib=_r(_number, "GiB"), share=_r(_share, "a share between 0 and 1")),
        "ecc": _table(
            **{"class": _r(_one_of(*CLASSES), "a class")},
            memory=_r(_list_of(_text), "kinds of memory"),
            share=_r(_share, "a share between 0 and 1"),
        ),
        "offer": _table(
            name=_r(_text, "a name of gpus.toml"),
            kind=_r(_one_of("own", "rented"), "own or rented"),
            counts=_r(_list_of(_whole), "numbers of GPUs"),
        ),
    },
    "changes": {
        "change": _table(
            id=_r(_text, "a name"),
            title=_r(_text, "half a sentence"),
            quality=_r(_one_of(*COSTS), "none, a little, some, much"),
            speed=_r(_one_of(*COSTS), "none, a little, some, much"),
            why=_r(_text, "half a sentence"),
        ),
        "line": _table(
            change=_r(_text, "a change"),
            frameworks=_r(_list_of(_text), "names of frameworks and engines"),
            sharding=_c(_text, "a way of sharing the work"),
            lines=_r(_list_of(_text), "lines"),
        ),
        "engine": _table(
            name=_r(_text, "an engine"), share=_r(_share, "a share between 0 and 1"), flag=_r(_text, "its flag")
        ),
        "demand": _table(
            feature=_r(_text, "a name"),
            capability=_c(_matches(_CC), "a compute capability"),
            not_on=_c(_list_of(_one_of("linux", "wsl", "windows", "jetson")), "systems"),
            families=_c(_list_of(_text), "families of models"),
        ),
    },
    "engines": {
        "number": _table(
            engine=_r(_lower, "an engine"),
            name=_r(_lower, "a name"),
            value=_r(_at_least_nought, "a number"),
            low=_c(_at_least_nought, "a number"),
            high=_c(_at_least_nought, "a number"),
        ),
        "since": _table(engine=_r(_lower, "an engine"), name=_r(_lower, "a name"), version=_r(_version, "a version")),
        "load": _table(
            engine=_r(_lower, "an engine"), scheme=_r(_lower, "a scheme"), drops=_r(_one_of("head"), "head")
        ),
        "eager": _table(family=_r(lambda value: _text(value) and value == value.lower(), "a model type")),
        "bias": _table(family=_r(lambda value: _text(value) and value == value.lower(), "a model type")),
        "disk": _table(
            kind=_r(_one_of("nvme", "ssd", "hdd", "network", "memory", "virtual"), "a kind of disk"),
            low_gbs=_r(_number, "GB/s"),
            high_gbs=_r(_number, "GB/s"),
        ),
    },
    "memory": {
        "optimizer": _table(
            name=_r(_lower, "a name"),
            also=_c(_list_of(_lower), "other names"),
            moments=_c(lambda value: value in (0, 1, 2), "0, 1 or 2"),
            bytes=_c(_number, "bytes a parameter"),
            temporaries=_c(lambda value: value in (0, 1, 2), "0, 1 or 2"),
            largest=_c(_whole, "bytes a number"),
            rows=_c(_whole, "bytes"),
            paged=_c(_flag, "true or false"),
            wide_embeddings=_c(_whole, "bytes a parameter"),
        ),
        "framework": _table(
            name=_r(_lower, "a name"),
            match=_r(_list_of(lambda value: isinstance(value, str) and value == value.lower() != ""), "words"),
            adapters=_r(_one_of("fp32", "model"), "fp32 or model"),
            loss=_c(_lower, "a loss"),
            precision=_c(_one_of("bf16", "mixed"), "bf16 or mixed"),
            sdpa_since=_c(_version, "a version"),
            plain_loss_since=_c(_version, "a version"),
            lazy_since=_c(_version, "a version"),
            softmax_since=_c(_version, "a version"),
            foreach_since=_c(_version, "a version"),
            **_flags("autocast", "upcasts_kbit", "unties", "quantises_head", "keeps_inputs", "packs"),
            **_flags("fused_optimizer", "fused_kernels", "wide_norm_weight", "keeps_gradients", "casts_in_step"),
            **_flags("sequence_parallel", "holds_outputs", "kbit_deepspeed", "splits_root", "repeats_kv"),
            **_flags("splits_adapters", "empties_cache"),
        ),
        "family": _table(
            name=_r(_text, "a model type"),
            gelu=_c(_whole, "bytes a number"),
            dropouts=_c(_whole, "a count"),
            **_flags("scores_cap", "logits_cap", "relu", "inner_dropout", "probability_dropout", "copies_output"),
            **_flags("wide_norm_weight"),
        ),
        "loss": _table(
            name=_r(_lower, "a name"),
            forward=_r(_number, "bytes"),
            backward=_r(_number, "bytes"),
            blocks=_r(_number, "bytes"),
            held=_c(_number, "bytes"),
            autocast=_c(_number, "bytes"),
            autocast_blocks=_c(_number, "bytes"),
            chunk=_c(_whole, "tokens"),
            chunk_bytes=_c(_number, "bytes"),
            head_gradients=_c(_whole, "copies"),
        ),
        "reserve": _table(
            name=_r(_lower, "a name"),
            share=_r(_number, "a share"),
            low=_r(lambda value: value == 0 or _number(value), "a share"),
            high=_r(_number, "a share"),
        ),
        "process": _table(
            name=_r(_lower, "a name"),
            bytes=_r(_whole, "bytes"),
            low=_r(_whole, "bytes"),
            high=_r(_whole, "bytes"),
        ),
        "host": _table(name=_r(_lower, "a name"), bytes=_r(_whole, "bytes")),
        "gather": _table(name=_r(_lower, "a name"), parameters=_r(_whole, "a count")),
    },
    "xid": {
        "action": _table(name=_r(_matches(_KEBAB), "a name in kebab case"), advice=_r(_text, "half a sentence")),
        "xid": _table(
            code=_r(_whole, "the number of an Xid"),
            name=_r(_text, "NVIDIA's name of it"),
            meaning=_r(_text, "half a sentence"),
            family=_r(_one_of(*XID_FAMILIES), "a family"),
            severity=_r(_one_of("critical", "error", "warning", "info"), "critical, error, warning or info"),
            causes=_r(_list_of(_one_of(*XID_CAUSES)), "causes, the likeliest first"),
            action=_r(_matches(_KEBAB), "a name of the table of actions"),
            nvidia_action=_c(_matches(re.compile(r"[A-Z][A-Z0-9_]*\Z")), "NVIDIA's name of the action"),
        ),
    },
}

GPU_COLUMNS: dict[str, Column] = {
    **_COMMON,
    "name": _r(_text, "text"),
    "class": _r(_one_of(*CLASSES), "a class"),
    "chip": _TEXT,
    "memory_gib": _r(_number, "GiB"),
    "memory_type": _TEXT,
    "bandwidth_gbs": _c(_number, "GB/s"),
    "tdp_w": _c(_number, "watts"),
    "psu_w": _c(_number, "watts"),
    "sm_count": _c(_whole, "a count"),
    "tflops": _c(_number, "TFLOPS"),
    "released": _c(_date, "a date"),
    "smi": _c(_list_of(_text), "names"),
    "also": _c(_list_of(_text), "names"),
    "pci": _c(_list_of(_matches(_PCI)), "PCI device ids, upper case"),
    "min_driver": _c(_branch, "a branch like R580"),
    "min_driver_bound": _c(_one_of("exact", "at-least", "at-most"), "exact, at-least or at-most"),
    "modules": _c(_one_of("open", "proprietary", "either"), "open, proprietary or either"),
    "guessed": _c(_list_of(_text), "columns of the row"),
    "on_arm": _c(_flag, "true or false"),
}

BUILD_COLUMNS: dict[str, Column] = {
    **_COMMON,
    "variant": _r(_matches(_VARIANT), "cpu or cuXXX"),
    "platform": _r(_one_of(*PLATFORMS), "a platform"),
    "pythons": _r(_words_of(_matches(_PYTHON)), "Pythons like 3.12 3.13t"),
    "pythons_inferred": _c(_words_of(_matches(_PYTHON)), "Pythons"),
    "pythons_index_only": _c(_words_of(_matches(_PYTHON)), "Pythons"),
    "sass": _c(_words_of(_arch), "targets like 80 86 90"),
    "ptx": _c(_words_of(_arch), "targets"),
    "disputed": _c(_words_of(_arch), "targets"),
    "listed": _r(_sources, "keys of [sources]"),
    "archs": _c(_sources, "keys of [sources]"),
    "download_mib": _c(_whole, "MiB"),
    "sizes": _c(_sources, "keys of [sources]"),
    "glibc": _c(_version, "a glibc version"),
    "glibc_below": _c(_version, "a glibc version"),
    "cxx11_abi": _c(_flag, "true or false"),
    "no_local_version": _c(_flag, "true or false"),
    "verified_in_binary": _c(_flag, "true or false"),
    "archs_guessed": _c(_flag, "true or false"),
    "seen": _c(_flag, "true or false"),
    "guessed": _c(_flag, "true or false"),
}

CONDA_COLUMNS: dict[str, Column] = {
    **_COMMON,
    "cuda": _r(_version, "a CUDA version"),
    "platform": _r(_one_of(*PLATFORMS), "a platform"),
    "sass": _r(_words_of(_arch), "targets like 80 86 90"),
    "ptx": _c(_words_of(_arch), "targets"),
    "tegra": _c(_flag, "true or false"),
    "glibc": _c(_version, "a glibc version"),
    "libtorch_mb": _c(_whole, "MB"),
    "listed": _r(_sources, "keys of [sources]"),
    "archs": _r(_sources, "keys of [sources]"),
    "seen": _c(_flag, "true or false"),
}

_INNER = {
    ("gpus", "group"): ("gpus", GPU_COLUMNS),
    ("torch", "release"): ("builds", BUILD_COLUMNS),
    ("conda_forge", "release"): ("builds", CONDA_COLUMNS),
}
_HEAD = ("checked", "sources", "source")


def check_file(name: str, data: Mapping[str, Any]) -> list[str]:
    """Everything wrong with one parsed file; an empty list where it is sound.

    ``name`` is the file's path below ``compat/`` without its ending: "gpus", "torch/2.14", "meta".
    """
    if name == "meta":
        return list(_check_meta(data))
    tables = TABLES.get(name.split("/")[0])
    if tables is None:
        return [f"{name}: no such file is known"]
    return list(_check_tables(name, data, tables))


def _check_meta(data: Mapping[str, Any]) -> Iterator[str]:
    wanted = {"schema": _whole, "revision": _text, "checked": _date, "wheel_index": _text}
    wanted["sysmem_fallback_driver"] = _version
    for key in sorted(set(data) | set(wanted)):
        if key not in wanted:
            yield f"meta: unknown key {key!r}"
        elif key not in data:
            yield f"meta: {key} is missing"
        elif not wanted[key](data[key]):
            yield f"meta: {key} = {data[key]!r} is not what it should be"
    if data.get("schema", SCHEMA) != SCHEMA:
        yield f"meta: schema {data.get('schema')} is not {SCHEMA}, which this version reads"


def _check_tables(name: str, data: Mapping[str, Any], tables: Mapping[str, Mapping[str, Column]]) -> Iterator[str]:
    for key in data:
        if key not in tables and key not in _HEAD:
            yield f"{name}: unknown key {key!r}"
    if not _date(data.get("checked")):
        yield f"{name}: checked = {data.get('checked')!r} is not a date"
    sources = data.get("sources", {})
    if not isinstance(sources, dict) or not _texts(sources):
        yield f"{name}: [sources] is not a table of texts"
        sources = {}
    used: list[str] = _keys(data.get("source"))
    for table, columns in tables.items():
        rows = data.get(table)
        if not isinstance(rows, list) or not rows:
            yield f"{name}: {table} has no rows"
            continue
        for number, row in enumerate(rows, 1):
            where = f"{name}: {table} {_title(row) or number}"
            yield from _check_row(where, row, columns)
            if not isinstance(row, dict):
                continue
            keys = _keys(row.get("source")) or _keys(data.get("source"))
            if not keys:
                yield f"{where}: has no source"
            used += keys
            inner = _INNER.get((name.split("/")[0], table))
            if inner is None:
                continue
            column, inner_columns = inner
            for item in row.get(column) or ():
                where_item = f"{where}: {_title(item)}"
                yield from _check_row(where_item, item, inner_columns)
                if isinstance(item, dict):
                    for key in ("source", "listed", "archs", "sizes"):
                        used += _keys(item.get(key))
                    if item.get("sass") and not item.get("archs"):
                        yield f"{where_item}: has a GPU list without archs, its source"
                    if item.get("download_mib") and not item.get("sizes"):
                        yield f"{where_item}: has download_mib without sizes, its source"
    for key in dict.fromkeys(used):
        if key not in sources:
            yield f"{name}: source {key!r} is not in [sources]"
    for key in sources:
        if key not in used:
            yield f"{name}: [sources] {key!r} is used by no row"


def check_rows(name: str, data: Mapping[str, Any], columns: Mapping[str, Column]) -> Iterator[str]:
    """The same for the rows of a compiled section, whose groups have been dissolved."""
    sources = data.get("sources", {})
    for number, row in enumerate(data.get("rows", ()), 1):
        where = f"{name}: {_title(row) or number}"
        yield from _check_row(where, row, columns)
        keys = _keys(row.get("source")) if isinstance(row, dict) else []
        if not keys:
            yield f"{where}: has no source"
        for key in keys:
            if key not in sources:
                yield f"{where}: source {key!r} is not in [sources]"


def _check_row(where: str, row: Any, columns: Mapping[str, Column]) -> Iterator[str]:
    if not isinstance(row, dict):
        yield f"{where}: is not a table"
        return
    for key, value in row.items():
        column = columns.get(key)
        if column is None:
            yield f"{where}: unknown column {key!r}"
        elif not column.check(value):
            yield f"{where}: {key} = {value!r} is not {column.wanted}"
    for key, column in columns.items():
        if column.required and key not in row:
            yield f"{where}: {key} is missing"


def _keys(value: Any) -> list[str]:
    if value is None:
        return []
    return [value] if isinstance(value, str) else list(value)


def _title(row: Any) -> str:
    if not isinstance(row, dict):
        return ""
    parts: tuple[Any, ...] = (row.get("name"), row.get("package"), row.get("id"), row.get("stem"))
    parts += (row.get("version"), row.get("release"), row.get("variant"), row.get("platform"))
    if not any(parts):
        parts = (
            row.get("cuda"),
            row.get("class"),
            row.get("architecture"),
            row.get("compute_capability"),
            row.get("guid"),
            row.get("code"),
        )
    return " ".join(str(part) for part in parts if part)
