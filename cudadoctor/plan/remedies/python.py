"""Interpreters and environments: a new venv, another Python, pip where it is missing."""

from __future__ import annotations

from typing import Any

from cudadoctor.plan import validate
from cudadoctor.plan.context import NEW_ENVIRONMENT, Context
from cudadoctor.plan.draft import CAREFUL, PIP, PYTHON, SAFE, Draft, draft
from cudadoctor.plan.plan import UV
from cudadoctor.plan.remedies.installer import installer
from cudadoctor.plan.remedies.undo import remove_folder


def environment_effect(context: Context) -> dict[str, Any]:
    """What the new environment is like: empty, with pip, its own master."""
    effect: dict[str, Any] = {
        "python.executable": context.target.python,
        "python.prefix": NEW_ENVIRONMENT,
        "python.environment": "venv",
        "python.externally_managed": False,
        "python.pip": True,
        "disk.environment_writable": True,
    }
    if context.facts["python.pip_on_path"].is_known:
        folder = context.target.python.rpartition("python")[0]
        effect["python.pip_on_path"] = {"path": f"{folder}pip", "interpreter": context.target.python}
    if context.facts["python.python_on_path"].is_known:
        effect["python.python_on_path"] = context.target.python
    return effect


def make_venv(context: Context, python: str = "", path: str = "") -> list[Draft]:
    """A venv beside the person's work. `path` is fixed (.venv); it is taken so that a rule may name it."""
    if python:
        return use_python(context, python)
    base = context.facts.value("python.executable")
    interpreter = validate.path(base) if isinstance(base, str) else "python"
    argv = [interpreter, "-m", "venv", NEW_ENVIRONMENT]
    instructions = ""
    distribution = context.distribution
    if context.options.installer == UV:
        argv = ["uv", "venv", "--seed", "--python", interpreter, NEW_ENVIRONMENT]
    elif distribution is not None and distribution.family == "debian":
        package = context.text(context.install(distribution, distribution.venv))
        instructions = f"If the venv module is missing: {package}"
    return [
        draft(
            PYTHON,
            "make-venv",
            f"Make an environment of your own in {NEW_ENVIRONMENT}",
            "install",
            argv,
            safety=SAFE,
            effect=environment_effect(context),
            changes=f"makes the folder {NEW_ENVIRONMENT} in the working folder; the system's Python stays as it is",
            undo=remove_folder(context, NEW_ENVIRONMENT),
            instructions=instructions,
        )
    ]


def use_python(context: Context, version: str, free_threaded: bool = False, bits: int = 64) -> list[Draft]:
    """A venv with another Python, which uv fetches where the system has none."""
    wanted = validate.python_version(version)
    context.use_python(wanted)
    name = wanted + ("t" if free_threaded else "")
    wider = bits == 64 and context.facts.value("python.bits") == 32
    effect = environment_effect(context)
    effect.update(
        {
            "python.version": wanted + ".0",
            "python.bits": bits,
            "python.free_threaded": free_threaded,
            "python.implementation": "CPython",
        }
    )
    return [
        draft(
            PYTHON,
            "make-venv",
            f"Make an environment with {'the 64-bit ' if wider else ''}Python {name} in {NEW_ENVIRONMENT}",
            "install",
            ["uv", "venv", "--seed", "--python", name, NEW_ENVIRONMENT],
            needs=("network",),
            # uv may not be there; a person sees that at once, --apply would stop at it.
            safety=SAFE if context.options.installer == UV or context.target.is_uv else CAREFUL,
            effect=effect,
            changes=f"makes the folder {NEW_ENVIRONMENT}; uv fetches Python {name} if the system has none",
            undo=remove_folder(context, NEW_ENVIRONMENT),
            instructions=(
                f"Without uv (https://docs.astral.sh/uv/): with a python{wanted} of your system, "
                f"{context.text([f'python{wanted}', '-m', 'venv', NEW_ENVIRONMENT])}"
                + ("\nTake the 64-bit installer of https://www.python.org/downloads/." if wider else "")
            ),
        )
    ]


def install_pip(context: Context) -> list[Draft]:
    """pip for the patient's interpreter, from the copy that Python carries along."""
    distribution = context.distribution
    instructions = ""
    if distribution is not None and distribution.pip:
        command = context.text(context.install(distribution, distribution.pip))
        instructions = f"Where ensurepip is missing too: {command}"
    return [
        draft(
            PIP,
            "install-pip",
            "Install pip in this environment",
            "install",
            [context.target.python, "-m", "ensurepip", "--upgrade"],
            safety=SAFE,
            effect={"python.pip": True},
            changes="adds the pip that comes with Python",
            undo=context.text([context.target.python, "-m", "pip", "uninstall", "-y", "pip"]),
            instructions=instructions,
        )
    ]


def preparations(context: Context) -> list[Draft]:
    """What has to be there before a package can be installed: an environment that may be changed, and pip in it."""
    if context.target.is_new and not context.makes_python:
        steps = make_venv(context)
        return [step.with_why(why) for step in steps] if (why := context.target.why_new) else steps
    if context.target.has_pip is False and installer(context) != UV and not context.target.is_new:
        return install_pip(context)
    return []


def where(context: Context) -> str:
    """The environment, as people call it."""
    name = context.facts.value("python.environment_name")
    if context.target.is_new or not isinstance(name, str) or not name.isprintable():
        return context.target.prefix if context.target.is_new and context.target.prefix else "the environment"
    return f"the environment {name[:60]}"
