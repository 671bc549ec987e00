"""Whatever a parser is given: a value or ParseError, nothing else, and soon.

The inputs are arbitrary text, and, likelier to get deep into a parser, pieces of real formats in any order.
"""

from __future__ import annotations

import ast
import random
from pathlib import Path
from typing import Any, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cudadoctor.parse import (
    arch,
    collect_env,
    conda_meta,
    cuda_packages,
    dates,
    decode,
    digits,
    dist_info,
    driver_redist,
    elf,
    fatbin,
    gguf,
    host_compiler,
    kernel,
    kernel_log,
    ld_so_cache,
    markers,
    model_config,
    module_files,
    nvcc,
    nvidia_smi,
    os_release,
    pci,
    pe,
    pip_config,
    pip_output,
    procfs,
    python_env,
    release_archs,
    safetensors,
    secure_boot,
    sizes,
    torch_version,
    versions,
    visible_devices,
    wheel_index,
    wheel_name,
    windows,
)
from cudadoctor.parse.errors import ParseError
from cudadoctor.parse.fatbin import BytesReader

from . import binaries, test_kernel_log, test_module_files, test_procfs

TEXT_PARSERS: list[Callable[[str], Any]] = [
    arch.parse_arch,
    arch.parse_capability,
    collect_env.parse_collect_env,
    conda_meta.parse_conda_meta_name,
    conda_meta.cuda_of_build,
    cuda_packages.matters,
    cuda_packages.matters_in_conda,
    dates.day_number,
    decode.strip_ansi,
    decode.plain_lines,
    digits.is_digits,
    digits.is_dotted,
    digits.leading_dotted,
    dist_info.parse_dist_info_name,
    dist_info.parse_requirement,
    dist_info.parse_metadata,
    dist_info.parse_direct_url,
    dist_info.parse_wheel_name,
    driver_redist.parse_driver_redist,
    driver_redist.parse_driver_listing,
    driver_redist.parse_driver_releases,
    host_compiler.parse_host_compiler,
    kernel.parse_nvrm_version,
    kernel.parse_modules,
    kernel.parse_kernel_release,
    kernel.parse_command_line,
    kernel.parse_bracketed_choice,
    kernel_log.parse_kernel_log,
    lambda text: markers.evaluate(text, {"python_version": "3.12", "platform_system": text}),
    markers.normalise_name,
    module_files.module_name,
    lambda text: module_files.module_options(module_files.parse_modprobe(text), "nvidia"),
    module_files.parse_modprobe,
    module_files.parse_dkms_status,
    module_files.parse_modinfo,
    nvcc.parse_nvcc,
    nvcc.parse_version_json,
    nvcc.parse_version_txt,
    nvcc.release_of_folder,
    nvidia_smi.cell,
    lambda text: [one.number for one in [nvidia_smi.cell(text)]],
    nvidia_smi.parse_table,
    nvidia_smi.parse_tables,
    lambda text: [gpu.is_unreadable for table in nvidia_smi.parse_tables(text) for gpu in table.gpus],
    nvidia_smi.parse_fragment,
    lambda text: [nvidia_smi.table_entry(gpu) for gpu in nvidia_smi.parse_fragment(text).gpus],
    lambda text: nvidia_smi.mib_as_bytes(nvidia_smi.cell(text)),
    nvidia_smi.bus_address,
    nvidia_smi.find_failures,
    nvidia_smi.parse_list,
    lambda text: nvidia_smi.parse_csv(text, ("index", "name")),
    os_release.parse_os_release,
    os_release.parse_tegra_release,
    pci.parse_hex,
    pci.parse_link_speed,
    pci.parse_link_width,
    pci.parse_uevent,
    pci.normalise_bus_id,
    pci.parse_bus_id,
    lambda text: pci.same_device(text, "0000:01:00.0"),
    pip_config.parse_pip_config,
    lambda text: pip_config.parse_pip_environment({"PIP_INDEX_URL": text, text: text}),
    pip_config.parse_uv_config,
    pip_config.parse_uv_options,
    pip_config.parse_constraints,
    pip_config.without_credentials,
    pip_config.cuda_tag_of_url,
    pip_output.parse_pip_config_list,
    pip_output.parse_pip_default_index,
    procfs.parse_meminfo,
    procfs.parse_swaps,
    procfs.parse_cgroup,
    procfs.parse_cgroup_limit,
    lambda text: [one.size for one in procfs.parse_mountinfo(text)],
    lambda text: [one.size for one in procfs.parse_mounts(text)],
    lambda text: procfs.mount_of(procfs.parse_mountinfo(text), text),
    procfs.parse_limits,
    procfs.parse_devices,
    procfs.parse_gpu_information,
    python_env.parse_pyvenv_cfg,
    python_env.parse_externally_managed,
    python_env.parse_python_name,
    python_env.parse_site_packages_version,
    python_env.parse_wheel_tag,
    python_env.split_cuda_suffix,
    release_archs.parse_release_archs,
    lambda text: release_archs.parse_release_archs("PYTORCH_RELEASES_CODE_CC = {" + text + "\n}"),
    lambda text: release_archs.targets_of(text.split()),
    secure_boot.parse_mokutil,
    sizes.parse_size,
    torch_version.parse_assignments,
    torch_version.parse_torch_version,
    versions.numbers,
    versions.release,
    versions.is_plain,
    versions.is_driver_version,
    lambda text: versions.compare(text, "12.4"),
    lambda text: versions.at_least("12.4", text),
    versions.major,
    versions.major_minor,
    versions.cuda_to_int,
    versions.split_local,
    versions.cuda_from_tag,
    versions.tag_from_cuda,
    versions.variant,
    lambda text: versions.satisfies(text, ">=1"),
    lambda text: versions.satisfies("2.0", text),
    visible_devices.parse_visible_devices,
    visible_devices.parse_container_devices,
    lambda text: visible_devices.usable(visible_devices.parse_visible_devices(text), 2, ("GPU-1", "GPU-2")),
    wheel_index.parse_index_html,
    lambda text: wheel_index.parse_index_html(f"<a href='{text}.whl' {text}>"),
    wheel_index.parse_index_json,
    wheel_index.parse_index_root,
    wheel_name.parse_tagged_wheel,
    lambda text: wheel_name.parse_tagged_wheel(f"torch-{text}.whl"),
    windows.normalise_guid,
    windows.parse_active_power_plan,
    windows.parse_power_plans,
    windows.parse_paging_files,
    windows.nvidia_driver_version,
]

BYTES_PARSERS: list[Callable[[bytes], Any]] = [
    decode.decode,
    decode.program_text,
    lambda data: elf.read_sections(BytesReader(data)),
    lambda data: elf.read_dynamic(BytesReader(data)),
    lambda data: elf.read_elf(BytesReader(data)),
    lambda data: elf.elf_archs(BytesReader(data)),
    lambda data: fatbin.read_fatbins(BytesReader(data), 0, len(data)),
    fatbin.find_arch_string,
    lambda data: gguf.read_gguf(BytesReader(data), len(data), {0: (1, 4)}),
    lambda data: gguf.read_gguf(BytesReader(b"GGUF\3\0\0\0" + data), len(data) + 8, {0: (1, 4)}),
    ld_so_cache.parse_ld_so_cache,
    lambda data: ld_so_cache.parse_ld_so_cache(data, ["libc.so.6", ""]),
    lambda data: pe.read_imports(BytesReader(data)),
    lambda data: pe.read_delayed_imports(BytesReader(data)),
    lambda data: pe.read_pe(BytesReader(data)),
    lambda data: pe.pe_archs(BytesReader(data)),
    model_config.read_config,
    os_release.parse_device_tree_string,
    procfs.parse_environ,
    safetensors.read_index,
    lambda data: safetensors.read_safetensors(BytesReader(data), len(data)),
    lambda data: safetensors.read_safetensors(BytesReader(len(data).to_bytes(8, "little") + data), len(data) + 8),
    secure_boot.parse_efi_flag,
]


def value_or_parse_error(parse: Callable[[Any], Any], given_input: Any) -> None:
    try:
        parse(given_input)
    except ParseError as error:
        message = str(error)
        assert message.isascii() and "\n" not in message and len(message) < 300


def test_no_parser_is_forgotten() -> None:
    """What is called a parser or a reader of a format stands in the lists above."""
    here = Path(__file__).read_text("utf-8")
    missing = []
    for path in sorted(Path(collect_env.__file__).parent.glob("*.py")):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith(("parse_", "read_")):
                missing += [f"{path.stem}.{node.name}"] if f"{path.stem}.{node.name}" not in here else []
    assert not missing


SAMPLES = [
    path.read_text("utf-8", "replace")
    for folder in ("parse/samples", "reports/samples", "cases")
    for path in sorted((Path(__file__).parent.parent / folder).rglob("*.txt"))
]


def mutated(text: str, rng: random.Random) -> str:
    """Some lines of a real text, cut, repeated and mixed with other signs."""
    lines = text.splitlines() or [""]
    first = rng.randrange(len(lines))
    letters = list("\n".join(lines[first : first + rng.choice((1, 5, 60))])[:6000])
    for _ in range(rng.randrange(6)):
        at, length = rng.randrange(len(letters) + 1), rng.choice((1, 3, 30))
        kind = rng.randrange(4)
        if kind == 0:
            del letters[at : at + length]
        elif kind == 1:
            letters[at:at] = letters[at : at + length] * rng.choice((1, 20))
        elif kind == 2:
            letters[at : at + 1] = rng.choice(
                ("|", ":", "=", " ", "\n", "9" * 25, "-", "\x00", "N/A", "(", "[", "\u0663", "\\")
            )
        else:
            other = rng.choice(SAMPLES)
            begin = rng.randrange(len(other) + 1)
            letters[at:at] = other[begin : begin + 10 * length]
    return "".join(letters)


@pytest.mark.parametrize("seed", range(4))
def test_mutations_of_real_texts(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(60):
        text = mutated(rng.choice(SAMPLES), rng)
        for parse in TEXT_PARSERS:
            value_or_parse_error(parse, text)


def pieces_of_real_formats() -> list[str]:
    samples = [path.read_text(encoding="utf-8") for path in (Path(__file__).parent / "samples").glob("*/*.txt")]
    samples += [lines for lines, _ in test_kernel_log.EVENTS]
    samples += [test_module_files.MODPROBE, test_module_files.MODINFO, test_procfs.MOUNTINFO, test_procfs.LIMITS]
    samples += [test_procfs.INFORMATION, *(line for line, _ in test_module_files.DKMS)]
    lines = {line for sample in samples for line in sample.splitlines()}
    words = {word for line in lines for word in line.split()}
    more = [
        "__version__ = '",
        "cuda: Optional[str] = ",
        "0::/",
        "Filename",
        "MemTotal:",
        "index, name",
        "Requires-Dist: ",
    ]
    more += [
        "GPU 0: x (UUID: GPU-1)",
        "?:\\pagefile.sys",
        "and",
        "or",
        "not in",
        "python_version",
        "'",
        '"',
        "==",
        "\\",
        "\x00",
    ]
    more += [
        "[global]\nindex-url = ",
        "[[index]]\nurl = ",
        "home = ",
        "{",
        "[",
        "sm_80",
        "cu126",
        "-",
        "+",
        "0x",
        "٣",
        "²",
        "\u2028",
    ]
    return sorted(lines) + sorted(words) + more


mixtures = st.lists(st.sampled_from(pieces_of_real_formats()) | st.text(max_size=5), max_size=12).flatmap(
    lambda parts: st.sampled_from(["", " ", "\n", "|", ","]).map(lambda glue: glue.join(parts))
)


@given(st.text(max_size=200) | mixtures)
def test_any_text(text: str) -> None:
    for parse in TEXT_PARSERS:
        value_or_parse_error(parse, text)


def real_binaries() -> list[bytes]:
    gpu_code = binaries.fatbin("sm_80", "sm_90a", "compute_90", payload=40) * 3
    return [
        binaries.elf({".rodata": b"\x00sm_75 sm_80\x00", ".nv_fatbin": gpu_code}),
        binaries.elf({".nv_fatbin": gpu_code}, bits=32, machine=3),
        binaries.pe(imports=("c10.dll", "kernel32.dll"), delayed=("cudnn64_9.dll",), gpu_code=gpu_code),
        binaries.ld_so_cache([("libc.so.6", "/lib/libc.so.6", 0x303), ("liba.so", "/x/libb.so", 3)], True),
        gpu_code,
        Path("/bin/true").read_bytes()[:60000] if Path("/bin/true").exists() else b"",
    ]


@given(st.binary(max_size=300))
def test_any_bytes(data: bytes) -> None:
    for parse in BYTES_PARSERS:
        for start in (
            b"",
            b"\x7fELF\x02\x01\x01",
            b"MZ",
            b"glibc-ld.so.cache1.1",
            b"ld.so-1.7.0\x00",
            b"\x50\xed\x55\xba",
        ):
            value_or_parse_error(parse, start + data)


@given(st.sampled_from(real_binaries()), st.data())
def test_damaged_binaries(data: bytes, choose: st.DataObject) -> None:
    damaged = bytearray(data)
    for _ in range(choose.draw(st.integers(1, 4))):
        if damaged:
            # The headers, where a changed number leads somewhere else, are at the start or the end.
            near = choose.draw(st.integers(0, min(len(damaged), 600) - 1))
            at = near if choose.draw(st.booleans()) else len(damaged) - 1 - near
            width = choose.draw(st.sampled_from([1, 2, 4, 8]))
            damaged[at : at + width] = choose.draw(st.sampled_from([b"\x00", b"\xff", b"\x80", b"\x01"])) * width
    cut = choose.draw(st.sampled_from([len(damaged), len(damaged) // 2, 100]))
    for parse in BYTES_PARSERS:
        value_or_parse_error(parse, bytes(damaged[:cut]))


LONG = [
    " " * 100000,
    "\t| " * 30000,
    "a" * 100000,
    "1" * 100000,
    "1." * 50000,
    "(" * 50000,
    "-" * 100000,
    "x=" * 50000,
    "\\" * 100000,
    '"' * 100001,
    "N/A " * 25000,
    "\x1b[" * 50000,
    "sm_80 " * 20000,
    "NVRM: " * 20000,
    "NVIDIA-SMI 535.1 Driver Version: " * 3000,
    "\n" * 100000,
    "[" * 100000,
    "nvidia: version magic '" * 5000,
    "could not insert " * 6000,
    "Unable to determine the device handle for gpu " * 2000,
    "C/C++" * 20000,
    "gcc (" * 20000,
    "release 1.1" * 10000,
]


@pytest.mark.parametrize("text", LONG, ids=[f"{text[:12]!r} again and again" for text in LONG])
def test_long_repetitive_text_ends(text: str) -> None:
    """A pattern that backtracks without bound would not come back from these."""
    for parse in TEXT_PARSERS:
        value_or_parse_error(parse, text)
    for parse_bytes in BYTES_PARSERS:
        value_or_parse_error(parse_bytes, text.encode())
