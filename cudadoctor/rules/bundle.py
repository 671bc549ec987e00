"""All rules of an installed package in one file: a hundred small files cost a check more than all that it does.

The build writes the rules' compiled code, as Python keeps it beside every module, into `compiled/<Python>.bin` of the
wheel (`scripts/hatch_build.py`). It holds for the Python that built it (`pip install .` builds with its own). A bundle
for another Python, one that is damaged or none at all (a checkout, an editable install) costs time and nothing else:
each rule is then imported from its own file. So is a rule whose file is newer than the bundle or of another size.
"""

from __future__ import annotations

import marshal
import os
import sys
from _frozen_importlib_external import MAGIC_NUMBER  # importlib.util has it, too, and is slow to import
from collections.abc import Iterable, Mapping, Sequence
from importlib.machinery import ModuleSpec
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any, Optional

if TYPE_CHECKING:
    from importlib.abc import Loader
else:
    Loader = object  # importlib.abc is slow to import

FOLDER = "compiled"

# An installer writes the files of a package one after the other.
_INSTALL_SECONDS = 10.0


def file_name() -> str:
    """The bundle of this Python."""
    return f"{sys.implementation.cache_tag}.bin"


def build(folder: str, names: Iterable[str]) -> bytes:
    """The bundle of the modules `names` in `folder`. Raises OSError or SyntaxError."""
    content = {}
    for name in names:
        with open(os.path.join(folder, name + ".py"), "rb") as file:
            source = file.read()
        code = compile(source, f"cudadoctor/rules/{name}.py", "exec", dont_inherit=True, optimize=0)
        content[name] = (len(source), marshal.dumps(code))
    return MAGIC_NUMBER + marshal.dumps(content)


def find(package: str, folder: str, loader: Any) -> Optional[Bundle]:
    """The bundle of a package in `folder` (which may be inside a zip file), if there is one for this Python."""
    if sys.flags.optimize:  # no asserts: other code than the bundle's
        return None
    path = os.path.join(folder, FOLDER, file_name())
    try:
        data: bytes = loader.get_data(path)
        if data[: len(MAGIC_NUMBER)] != MAGIC_NUMBER:
            return None
        content = marshal.loads(memoryview(data)[len(MAGIC_NUMBER) :])
        return Bundle(package, folder, loader, content, _written(path)) if isinstance(content, dict) else None
    except (OSError, ValueError, EOFError, TypeError, AttributeError):
        return None


def module_names(folder: str, found: Optional[Bundle]) -> Sequence[str]:
    """The modules of a folder, which may be inside a zip file; `found` is its bundle."""
    try:
        return [name[:-3] for name in os.listdir(folder) if name.endswith(".py")]
    except OSError:
        if found is not None:
            return found.names
    from pkgutil import iter_modules

    return [module.name for module in iter_modules([folder])]


def _written(path: str) -> Optional[float]:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return None  # in a zip file, which is written as a whole


class Bundle(Loader):
    """Imports the modules of a bundle (finder and loader in the sense of importlib)."""

    def __init__(
        self,
        package: str,
        folder: str,
        loader: Any,
        content: Mapping[str, tuple[int, bytes]],
        written: Optional[float],
    ) -> None:
        self._prefix = package + "."
        self._folder = folder
        self._loader = loader
        self._content = content
        self._written = written
        self._codes: dict[str, CodeType] = {}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._content)

    def find_spec(
        self, fullname: str, path: Optional[Sequence[str]] = None, target: Optional[ModuleType] = None
    ) -> Optional[ModuleSpec]:
        if not fullname.startswith(self._prefix):
            return None
        entry = self._content.get(fullname[len(self._prefix) :])
        if entry is None:
            return None
        file = self._file(fullname)
        try:
            size, data = entry
            if self._written is not None:
                status = os.stat(file)
                if status.st_size != size or status.st_mtime > self._written + _INSTALL_SECONDS:
                    return None
            self._codes[fullname] = marshal.loads(data)
        except (OSError, ValueError, EOFError, TypeError):
            return None
        spec = ModuleSpec(fullname, self, origin=file)
        spec.has_location = True
        return spec

    def create_module(self, spec: ModuleSpec) -> Optional[ModuleType]:
        return None  # an ordinary one

    def exec_module(self, module: ModuleType) -> None:
        exec(self._codes.pop(module.__name__), module.__dict__)

    def get_source(self, fullname: str) -> str:
        """For tracebacks."""
        text: bytes = self._loader.get_data(self._file(fullname))
        return text.decode("utf-8")

    def _file(self, fullname: str) -> str:
        return os.path.join(self._folder, fullname[len(self._prefix) :] + ".py")
