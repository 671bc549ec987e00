"""Settings, groups, variables, libraries, memory, and packages of the system."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional

from cudadoctor.model import ParseError
from cudadoctor.plan import validate
from cudadoctor.plan.context import Context
from cudadoctor.plan.draft import BY_HAND, CAREFUL, JOB, KERNEL, MEMORY, SETTING, SYSTEM, Draft, draft
from cudadoctor.plan.remedies.driver_effect import answering_effect, nodes_effect
from cudadoctor.plan.remedies.kernel import header_steps
from cudadoctor.plan.shell import POSIX, quote

GIB = 1 << 30

_PHASES = {"driver": KERNEL, "kernel": KERNEL, "job": JOB, "container": JOB, "setting": SETTING}


def join_group(context: Context, group: str) -> list[Draft]:
    """Membership in the group that may open the device nodes."""
    name = validate.name(group)
    groups = [*context.facts.value("system.groups", []), name]
    return [
        draft(
            SETTING,
            f"join-group-{name}",
            f"Become a member of the group {name}",
            "setting",
            # The name of the user stands in no fact; sudo knows it.
            ("sudo", "sh", "-c", f'usermod -aG {name} "$SUDO_USER"'),
            needs=("root", "restart-shell"),
            effect={
                "system.groups": list(dict.fromkeys(groups)),
                "device.nodes": nodes_effect(context),
                **answering_effect(context, context.facts.value("driver.module_version")),
            },
            changes=f"adds you to {name}; it holds after you have logged in again",
            undo=f"sudo gpasswd -d USER {name}",
        )
    ]


def unset_variable(context: Context, name: str, found_in: str = "") -> list[Draft]:
    """A variable that does harm. A process cannot change its parent's: this is a step by hand."""
    variable = validate.variable(name)
    command = f"unset {variable}" if context.shell == POSIX else f"Remove-Item Env:{variable}"
    where = (
        f" Take it out of {validate.path(found_in)} too, which sets it."
        if found_in
        else (
            " Find what sets it (~/.bashrc, ~/.profile, a module, the job's script) and take it out there too."
            if context.shell == POSIX
            else " Take it out of System Properties, Environment Variables too."
        )
    )
    is_told = _is_told(context, variable)
    shown = f"echo ${variable}" if context.shell == POSIX else f"$env:{variable}"
    ask = "" if is_told else f"Whether {variable} is set there is not known; this shows it:\n    {shown}\nIf it is: "
    return [
        draft(
            SETTING,
            f"unset-{variable}",
            f"Unset {variable}" if is_told else f"Unset {variable}, where it is set",
            "setting",
            needs=("restart-shell",),
            effect=_variable_effect(context, variable, None),
            changes=f"{variable} is not set any more",
            undo=f"set {variable} to its former value",
            instructions=f"{ask}{'I' if is_told else 'i'}n the shell that starts your program:\n    {command}\n"
            f"{where.strip()}",
        )
    ]


def _is_told(context: Context, variable: str) -> bool:
    """Whether the variable is known to be set: a pasted text may show only what it does."""
    if context.facts.value("examination.kind") != "report":
        return True
    home = context.facts.value("toolkit.cuda_home")
    said = isinstance(home, dict) and home.get("variable") == variable
    return said or context.facts[f"env.{variable}"].is_known


def change_variable(
    context: Context, name: str, value: Optional[str] = None, without: Sequence[str] = ()
) -> list[Draft]:
    """Another value for a variable, or a path list without some of its folders."""
    variable = validate.variable(name)
    if value is None:
        separator = ";" if context.os == "windows" else ":"
        gone = {folder.rstrip("/") for folder in without}
        folders = str(context.facts.value(f"env.{variable}", "")).split(separator)
        kept = [folder for folder in folders if folder and folder.rstrip("/") not in gone]
        if not kept:
            return unset_variable(context, variable)
        value = separator.join(kept)
    if not value.isprintable() or len(value) > 8192:
        raise ParseError(f"the new value of {variable} is not one that can stand in a command")
    command = f"export {variable}={quote((value,), POSIX)}"
    if context.shell != POSIX:
        command = f"$env:{variable} = " + "'" + value.replace("'", "''") + "'"
    folders_gone = f" (without {', '.join(without)})" if without else ""
    return [
        draft(
            SETTING,
            f"change-{variable}",
            f"Set {variable} anew{folders_gone}",
            "setting",
            needs=("restart-shell",),
            effect=_variable_effect(context, variable, value, without),
            changes=f"{variable} in the shell that starts your program",
            undo=f"set {variable} to its former value",
            instructions=f"    {command}\nAnd the same where it is set for good (~/.bashrc, a module, a job script).",
        )
    ]


def _variable_effect(
    context: Context, variable: str, value: Optional[str], without: Sequence[str] = ()
) -> dict[str, Any]:
    effect: dict[str, Any] = {f"env.{variable}": value}
    if variable == "LD_LIBRARY_PATH":
        kept = [folder for folder in (value or "").split(":") if folder]
        effect["libraries.search_path"] = kept or None
        effect["libraries.on_search_path"] = [
            row
            for row in context.facts.value("libraries.on_search_path", [])
            if str(row.get("directory", "")).rstrip("/") in {folder.rstrip("/") for folder in kept}
        ]
        effect["driver.libcuda"] = [
            row
            for row in context.facts.value("driver.libcuda", [])
            if row.get("found_by") != "LD_LIBRARY_PATH"
            or any(str(row.get("path", "")).startswith(folder.rstrip("/") + "/") for folder in kept)
        ]
    if variable in ("CUDA_HOME", "CUDA_PATH"):
        home = context.facts.value("toolkit.cuda_home")
        if value is None:
            effect["toolkit.cuda_home"] = None
        elif isinstance(home, dict):
            effect["toolkit.cuda_home"] = {"variable": variable, "path": value, "exists": True, "has_nvcc": True}
    return effect


def remove_library(context: Context, paths: Sequence[str], package: str = "") -> list[Draft]:
    """A libcuda that hides the driver's is set aside."""
    steps = []
    gone = [validate.path(path) for path in paths]
    for path in gone:
        steps.append(
            draft(
                KERNEL,  # before a driver is installed, which may bring the path anew
                "set-aside-" + path.rpartition("/")[2][:40],
                f"Set {path} aside",
                "setting",
                context.root("mv", path, path + ".disabled"),
                needs=("root",),
                changes=f"renames {path}, which hides the driver's own library",
                undo=context.text(context.root("mv", path + ".disabled", path)),
                instructions=f"It belongs to the package {package}." if package and package.isprintable() else "",
            )
        )
    kept = [row for row in context.facts.value("driver.libcuda", []) if row.get("path") not in gone]
    steps[-1] = steps[-1].with_effect({"driver.libcuda": kept})
    return steps


def add_swap(context: Context, size: int, path: str = "/swapfile") -> list[Draft]:
    """A swap file, and its line in fstab."""
    amount = max(1, -(-validate.size(size) // GIB))
    file = validate.path(path)
    if quote((file,), POSIX) != file:
        raise ParseError(f"{file!r} is no path for a swap file")
    script = (
        f"fallocate -l {amount}G {file} && chmod 600 {file} && mkswap {file} && swapon {file} "
        f"&& echo '{file} none swap sw 0 0' >> /etc/fstab"
    )
    devices = [*context.facts.value("memory.swap_devices", []), {"path": file, "kind": "file", "size": amount * GIB}]
    return [
        draft(
            MEMORY,
            "add-swap",
            f"Add a swap file of {amount} GiB",
            "setting",
            context.root("sh", "-c", script),
            needs=("root",),
            safety=CAREFUL,
            effect={
                "memory.swap_total": context.facts.value("memory.swap_total", 0) + amount * GIB,
                "memory.swap_devices": devices,
            },
            changes=f"makes {file} ({amount} GiB of disk) and adds it to /etc/fstab",
            undo=context.text(context.root("swapoff", file)) + ", then delete it and its line in /etc/fstab",
            instructions="On btrfs: btrfs filesystem mkswapfile in place of fallocate, chmod and mkswap.",
        )
    ]


def enlarge_shm(context: Context, size: int, runtime: str = "") -> list[Draft]:
    """/dev/shm, through which data loader workers hand over their batches. `runtime`: the engine that a report shows
    starting the container, where the text is not of its inside."""
    amount = max(1, -(-validate.size(size) // GIB))
    effect = {"memory.shm_size": amount * GIB, "memory.shm_free": amount * GIB}
    engine = context.container or runtime
    if engine and engine not in ("apptainer", "singularity"):
        texts = {
            "kubernetes": f"Mount an emptyDir with medium: Memory and sizeLimit: {amount}Gi at /dev/shm of the pod.",
            "podman": f"Start it with more: podman run --shm-size={amount}g ... (or --ipc=host).",
        }
        docker = f"Start it with more: docker run --shm-size={amount}g ... (in a compose file: shm_size: {amount}gb)."
        return [
            draft(
                JOB,
                "enlarge-shm",
                f"Give the container {amount} GiB of shared memory",
                "container",
                effect=effect,
                changes="the size of /dev/shm in the container",
                undo="start it without that option",
                instructions=texts.get(engine, docker),
            )
        ]
    return [
        draft(
            MEMORY,
            "enlarge-shm",
            f"Enlarge /dev/shm to {amount} GiB",
            "setting",
            context.root("mount", "-o", f"remount,size={amount}G", "/dev/shm"),
            needs=("root",),
            effect=effect,
            changes="the size of /dev/shm until the next reboot",
            undo=context.text(context.root("mount", "-o", "remount,size=50%", "/dev/shm")),
        )
    ]


def install_package(context: Context, role: str, version: str = "") -> list[Draft]:
    """A package of the system, by what it is for."""
    if role == "vc-runtime":
        return _vc_runtime(context)
    if role == "kernel-headers":
        return header_steps(context) or [_by_name(role, {"kernel.headers": True})]
    distribution = context.distribution
    words: tuple[str, ...] = ()
    if distribution is not None:
        named = distribution.compiler_package(int(version)) if role == "compiler" and version.isdigit() else None
        words = {
            "compiler": (named,) if named else distribution.compiler,
            "venv": distribution.venv,
            "pip": distribution.pip,
            "python-headers": distribution.python_headers,
            "nvidia-modprobe": ("nvidia-modprobe",),
            "container-toolkit": ("nvidia-container-toolkit",),
        }[role]
    effect: dict[str, Any] = {"python.pip": True} if role == "pip" else {}
    if not words or distribution is None:
        return [_by_name(role, effect)]
    return [
        draft(
            SYSTEM,
            f"install-{role}",
            f"Install {', '.join(words)}",
            "install",
            context.install(distribution, words),
            needs=("root", "network"),
            effect=effect,
            changes=f"installs {', '.join(words)}",
            undo=context.text(context.remove(distribution, words)),
            instructions="It is in NVIDIA's repository for containers (https://nvidia.github.io/libnvidia-container/)."
            if role == "container-toolkit"
            else "",
        )
    ]


def _by_name(role: str, effect: dict[str, Any]) -> Draft:
    what = {
        "compiler": "a C++ compiler (gcc, g++)",
        "venv": "Python's venv module",
        "pip": "pip",
        "python-headers": "Python's headers (Python.h)",
        "container-toolkit": "the NVIDIA Container Toolkit (nvidia-container-toolkit)",
        "kernel-headers": "the headers of the running kernel",
    }.get(role, role)
    text = f"Install {what} with your distribution's package manager."
    return draft(
        SYSTEM,
        f"install-{role}",
        f"Install {what}",
        "install",
        needs=("root", "network"),
        effect=effect,
        instructions=text,
    )


def _vc_runtime(context: Context) -> list[Draft]:
    return [
        draft(
            SYSTEM,
            "install-vc-runtime",
            "Install the Visual C++ runtime",
            "install",
            ("winget", "install", "--id", "Microsoft.VCRedist.2015+.x64", "-e"),
            needs=("admin", "network"),
            effect={"windows.vc_runtime": "14.40.33810.0"},
            changes="installs Microsoft's C++ runtime for all users",
            undo="uninstall it under Settings, Apps",
            instructions="By hand: https://aka.ms/vs/17/release/vc_redist.x64.exe",
        )
    ]


def install_toolkit(context: Context, version: str = "") -> list[Draft]:
    wanted = validate.version(version) if version else context.facts.value("torch.cuda")
    what = f"the CUDA toolkit {wanted}" if isinstance(wanted, str) and wanted.isprintable() else "a CUDA toolkit"
    text = (
        "Only for building extensions: torch brings its own CUDA runtime. Get it from "
        "https://developer.nvidia.com/cuda-toolkit-archive, and leave its driver out."
    )
    return [
        draft(SYSTEM, "install-toolkit", f"Install {what}", "install", needs=("root", "network"), instructions=text)
    ]


def free_disk(context: Context, path: str = "") -> list[Draft]:
    return [
        draft(
            SYSTEM,
            "free-disk",
            "Make room: empty pip's cache",
            "setting",
            (context.target.python, "-m", "pip", "cache", "purge"),
            safety=CAREFUL,
            changes="deletes downloaded packages that pip kept",
            undo="pip downloads them again when it needs them",
        )
    ]


def update_cudadoctor(context: Context) -> list[Draft]:
    text = "With what you installed it: pip install --upgrade cudadoctor, pipx upgrade cudadoctor, ..."
    return [draft(SETTING, "update-cudadoctor", "Update cudadoctor", "setting", needs=("network",), instructions=text)]


def manual(
    context: Context, title: str, text: str, kind: str = "manual", needs: Sequence[str] = (), id: str = ""
) -> list[Draft]:
    """A step that only a person can take."""
    slug = "".join(letter if letter.isalnum() else "-" for letter in title.lower())
    name = id or "-".join(part for part in slug.split("-") if part)[:50]
    return [draft(_PHASES.get(kind, BY_HAND), name, title, kind, needs=needs, instructions=text)]
