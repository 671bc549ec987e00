"""GPUs that no single build serves: an environment for each kind, spelled out."""

from __future__ import annotations

from collections.abc import Sequence

from cudadoctor.plan import validate
from cudadoctor.plan.context import NEW_ENVIRONMENT, Context
from cudadoctor.plan.draft import PACKAGES, PYTHON, Draft, draft, listed
from cudadoctor.plan.plan import UV
from cudadoctor.plan.remedies import room
from cudadoctor.plan.remedies.installer import install
from cudadoctor.plan.remedies.undo import remove_folder
from cudadoctor.plan.shell import POSIX
from cudadoctor.resolve import Gpu, Split


def one_environment_each(context: Context, parts: Sequence[Split]) -> list[Draft]:
    """For each kind of GPU: the environment, the torch in it, and how a program is held to the GPUs that it serves."""
    steps: list[Draft] = []
    shape = context.target
    for place, part in enumerate(parts):
        names = listed(dict.fromkeys(gpu.label for gpu in part.gpus))
        folder = f"{NEW_ENVIRONMENT}-{validate.name(part.choice.variant)}"
        python = f"{folder}\\Scripts\\python.exe" if context.os == "windows" else f"{folder}/bin/python"
        base = shape.python if not shape.is_new else str(context.facts.value("python.executable", "python"))
        interpreter = validate.path(base)
        venv = [interpreter, "-m", "venv", folder]
        if context.options.installer == UV:
            # Without a name uv takes a Python of its own choosing, for which there may be no such wheel.
            named = interpreter if interpreter != "python" else context.present.python_tag
            venv = ["uv", "venv", "--seed", *(["--python", named] if named else []), folder]
        # Two environments, one after the other, each in its place among the steps.
        steps.append(
            draft(
                PYTHON + place,
                f"make-venv-{part.choice.variant}",
                f"Make an environment for the {names} in {folder}",
                "install",
                venv,
                changes=f"makes the folder {folder} in the working folder",
                undo=remove_folder(context, folder),
            )
        )
        context.target = shape._replace(python=python, prefix=folder, kind="venv", has_pip=True, is_new=True)
        requirements = list(part.choice.requirements)
        command = install(context, requirements, context.index(part.choice.variant))
        space = room.Room(room.download_of(context, part.choice))
        steps.extend(command.first)
        steps.append(
            draft(
                PYTHON + place,
                f"install-torch-{part.choice.variant}",
                f"Install torch {part.choice.version} there",
                "install",
                command.argv,
                needs=room.needs(space),
                changes=f"puts torch {part.choice.version} into {folder}",
                undo=remove_folder(context, folder),
                instructions="\n".join([*part.choice.reasons[:1], *command.notes]),
                covers=requirements,
            )
        )
        steps.append(
            draft(
                PACKAGES + place,
                f"run-on-{part.choice.variant}",
                f"Run programs for the {names} like this",
                "setting",
                instructions=_how_to_run(context, python, part.gpus),
            )
        )
    context.target = shape
    return steps


def _how_to_run(context: Context, python: str, gpus: Sequence[Gpu]) -> str:
    numbers = ",".join("N" if gpu.number is None else str(gpu.number) for gpu in gpus)
    if context.shell == POSIX:
        line = f"    CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES={numbers} {context.text([python])} program.py"
    else:
        line = (
            f"    $env:CUDA_DEVICE_ORDER = 'PCI_BUS_ID'; $env:CUDA_VISIBLE_DEVICES = '{numbers}'; "
            f"{context.text([python])} program.py"
        )
    tail = "\nN is the card's number in nvidia-smi -L." if "N" in numbers else ""
    return line + tail
