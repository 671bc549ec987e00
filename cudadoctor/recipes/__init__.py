"""Ready pieces for schedulers, orchestrators and shells: files that a person copies and edits, not code that we run.

A recipe is a file in a folder beside this one, named without its ending: `slurm/prolog` is `slurm/prolog.sh`. It begins
with a comment whose first line says what the piece is for; the rest of that comment says where it goes.
"""

from __future__ import annotations

from typing import NamedTuple

# Comments that are not for people.
_DIRECTIVES = ("#!", "# shellcheck ", "# yaml-language-server:", "# vim:", "# -*-")


class Recipe(NamedTuple):
    name: str  # folder and file without its ending
    file: str  # folder and file
    text: str

    @property
    def title(self) -> str:
        """What it is for: the first line of its comment, without a full stop; empty where it has none."""
        for line in self.text.splitlines():
            if line.startswith("#") and not line.startswith(_DIRECTIVES) and line.strip("# "):
                return line.strip("# ").rstrip(".")
        return ""

    @property
    def is_script(self) -> bool:
        """Is it run by its name? Then its file must be executable."""
        return self.text.startswith("#!")


def recipes() -> dict[str, Recipe]:
    """All recipes by name, in order."""
    from importlib.resources import files

    # Through the package above this one: whatever it is loaded from (a folder, a zip file) knows how to list itself.
    found: dict[str, Recipe] = {}
    top = files(__name__.partition(".")[0]).joinpath(__name__.partition(".")[2])
    for folder in top.iterdir():
        if folder.name.startswith((".", "_")) or not folder.is_dir():
            continue
        for file in folder.iterdir():
            if file.name.startswith((".", "_")) or not file.is_file():
                continue
            path = f"{folder.name}/{file.name}"
            name = path.rpartition(".")[0] or path
            text = file.read_bytes().decode("utf-8")
            # Two files of one name but for the ending keep it.
            if name in found:
                other = found.pop(name)
                found[other.file] = other._replace(name=other.file)
                name = path
            found[name] = Recipe(name, path, text)
    return dict(sorted(found.items()))
