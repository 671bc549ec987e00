"""All modules of an installed package in one file: to find and read two hundred small ones takes longer than to run
them.

The build writes the modules' compiled code, as Python itself keeps it beside each module, to `compiled/<Python>.bin`
in the wheel (`scripts/hatch_build.py`). It holds for the Python that built it: `pip install .` builds with its own.
A bundle for another Python, one that is damaged or none at all (a checkout, an editable install) costs time and nothing
else: each module is then imported from its own file. So is one whose file is of another time or size than the bundle
tells, and a bundle that another version of the package was built with is none.

Out of a zip file Python would compile every module at each start. There (`scripts/build_zipapp.py`) lies a bundle for
each Python that the builder had, and beside the package one more of all packages that it needs.
"""

from __future__ import annotations

import _imp
import marshal
import os
import sys
from _frozen_importlib import ModuleSpec  # importlib.machinery and importlib.util have these, too, and are slow
from _frozen_importlib_external import MAGIC_NUMBER
from collections.abc import Sequence
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any, Optional

if TYPE_CHECKING:
    from importlib.abc import Loader
else:
    Loader = object  # importlib.abc is slow to import

FOLDER = "compiled"

# An installer writes the files of a package one after the other.
_INSTALL_SECONDS = 10.0

# What is imported before the bundle, or by name.
_LEFT_OUT = ("__init__", "__main__", "bundle")

# At the head: what Python marks compiled files with, and the length of what follows: the version of the package that
# the bundle was made of, whether each module's code is packed (by zlib), and the table.
_HEAD = len(MAGIC_NUMBER) + 4

# Module -> where its code begins behind the table, its length, the size of its source, whether it is a package.
_Table = dict[str, tuple[int, int, int, bool]]


def file_name() -> str:
    """The bundle of this Python."""
    return f"{sys.implementation.cache_tag}.bin"


def build(folder: str, version: Optional[str] = None, packed: bool = False) -> bytes:
    """The bundle of all modules below `folder`, of the version that the package there gives where none is named.
    `packed` makes it a third as large. Raises OSError or SyntaxError."""
    if packed:
        import zlib
    table: _Table = {}
    codes = bytearray()
    for module, is_package, path in sorted(_modules(folder, "")):
        with open(path, "rb") as file:
            source = file.read()
        code = marshal.dumps(compile(source, _mark(module), "exec", dont_inherit=True, optimize=0))
        if packed:
            code = zlib.compress(code, 9)
        table[module] = (len(codes), len(code), len(source), is_package)
        codes += code
    if version is None:
        version = version_in(os.path.join(folder, "__init__.py"))
    head = marshal.dumps((version, packed, table))
    return MAGIC_NUMBER + len(head).to_bytes(4, "little") + head + codes


def version_in(path: str) -> str:
    """The text that the package's own file gives as its __version__."""
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.startswith("__version__ = "):
                return line.partition(" = ")[2].strip().strip('"')
    raise ValueError(f"{path} has no line that begins with __version__")


def _mark(module: str) -> str:
    """What the code of a module in the bundle has in place of its file."""
    return f"<{module}>"


def _modules(folder: str, prefix: str) -> list[tuple[str, bool, str]]:
    """Name below the package, whether it is a package, path."""
    found = []
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        stem, ending = os.path.splitext(name)
        if ending == ".py" and (prefix or stem not in _LEFT_OUT):
            found.append((prefix.rstrip("."), True, path) if stem == "__init__" else (prefix + stem, False, path))
        elif os.path.isfile(os.path.join(path, "__init__.py")):
            found += _modules(path, prefix + name + ".")
    return found


_archive: Optional[str] = None


def install(package: ModuleType) -> None:
    """From now on the modules of `package` are imported from its bundle, if it has one for this Python."""
    global _archive
    spec = package.__spec__
    archive = getattr(getattr(spec, "loader", None), "archive", None)
    _archive = archive if isinstance(archive, str) else None
    if spec is None or sys.flags.optimize:  # without asserts it is other code
        return
    folder = package.__path__[0]
    version = str(getattr(package, "__version__", None))
    bundle = _bundle(package.__name__ + ".", folder, spec.loader, version)
    if bundle is not None:
        sys.meta_path.insert(0, bundle)
    beside = None if _archive is None else _bundle("", _archive, spec.loader, version)
    if beside is not None:
        sys.meta_path.insert(1, beside)


def _bundle(prefix: str, folder: str, loader: Any, version: str) -> Optional[Bundle]:
    path = os.path.join(folder, FOLDER, file_name())
    source: _File | _Data | None = _File.open(path) if hasattr(os, "pread") else None
    source = source or _Data.of(loader, path)
    found = None if source is None else _table(source, version)
    return None if source is None or found is None else Bundle(prefix, folder, loader, source, *found)


def archive() -> Optional[str]:
    """The one file that holds cudadoctor and all that it needs; None where it is installed."""
    return _archive


def modules_of(package: str, folder: str) -> list[str]:
    """The names of the modules in a package's folder, which may lie inside a zip file."""
    try:
        return [name[:-3] for name in os.listdir(folder) if name.endswith(".py")]
    except OSError:
        pass
    for finder in sys.meta_path:
        found = finder.modules_of(package) if isinstance(finder, Bundle) else []
        if found:
            return found
    from pkgutil import iter_modules  # slow to import

    return [module.name for module in iter_modules([folder])]


def module(fullname: str) -> ModuleType:
    """The module of that name, imported if it was not, by the shortest way. For many small modules of one package,
    which has to be imported already; what an `import` of them leaves besides (the name in the package) it does not."""
    found = sys.modules.get(fullname)
    if found is None:
        for finder in sys.meta_path:
            if isinstance(finder, Bundle):
                found = finder.load(fullname)
                break
    if found is None:
        from importlib import import_module

        found = import_module(fullname)
    return found


class _File:
    """A bundle on disk, of which only what is asked for is read."""

    def __init__(self, path: str, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor
        self._owner = os.getpid()
        self.written: Optional[float] = os.fstat(descriptor).st_mtime

    @classmethod
    def open(cls, path: str) -> Optional[_File]:
        try:
            return cls(path, _open(path))
        except OSError:
            return None

    def read(self, offset: int, length: int) -> bytes:
        if os.getpid() != self._owner:  # a worker lets go of all files that it inherits
            self._descriptor, self._owner = _open(self._path), os.getpid()
        return os.pread(self._descriptor, length, offset)


def _open(path: str) -> int:
    return os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0))


class _Data:
    """A bundle in memory: out of a zip file, and on Windows, where a thread could move another's place in the file."""

    def __init__(self, data: bytes, written: Optional[float]) -> None:
        self._data = data
        self.written = written  # None: the zip file was written as a whole, and nothing in it is newer

    @classmethod
    def of(cls, loader: Any, path: str) -> Optional[_Data]:
        try:
            data = loader.get_data(path)
        except (OSError, AttributeError):
            return None
        try:
            return cls(data, os.stat(path).st_mtime)
        except OSError:
            return cls(data, None)

    def read(self, offset: int, length: int) -> bytes:
        return self._data[offset : offset + length]


def _table(source: _File | _Data, version: str) -> Optional[tuple[_Table, bool]]:
    """The table of a bundle of this Python and version, and whether the codes are packed."""
    try:
        begin = source.read(0, 1 << 15)
        if begin[: len(MAGIC_NUMBER)] != MAGIC_NUMBER:
            return None
        length = int.from_bytes(begin[len(MAGIC_NUMBER) : _HEAD], "little")
        made_of, packed, table = marshal.loads(
            begin[_HEAD:] if _HEAD + length <= len(begin) else source.read(_HEAD, length)
        )
        if made_of != version:
            return None
        start = _HEAD + length
        return {name: (start + entry[0], *entry[1:]) for name, entry in table.items()}, packed is True
    except (OSError, ValueError, EOFError, TypeError, AttributeError, LookupError):
        return None


class Bundle(Loader):
    """Imports the modules of a bundle: finder and loader in the sense of importlib."""

    def __init__(
        self, prefix: str, folder: str, loader: Any, source: _File | _Data, table: _Table, packed: bool
    ) -> None:
        self._prefix = prefix  # of the modules' names: "cudadoctor."
        self._folder = folder
        self._loader = loader
        self._source = source
        self._table = table
        self._packed = packed
        self._codes: dict[str, CodeType] = {}

    def modules_of(self, package: str) -> list[str]:
        """Those right below a package."""
        if not package.startswith(self._prefix):
            return []
        start = (package + ".")[len(self._prefix) :]
        below = [name[len(start) :] for name in self._table if name.startswith(start)]
        return [name for name in below if "." not in name]

    def find_spec(
        self, fullname: str, path: Optional[Sequence[str]] = None, target: Optional[ModuleType] = None
    ) -> Optional[ModuleSpec]:
        if not fullname.startswith(self._prefix):
            return None
        entry = self._table.get(fullname[len(self._prefix) :])
        if entry is None:
            return None
        offset, length, size, is_package = entry
        file = self.get_filename(fullname)
        try:
            if self._source.written is not None:
                status = os.stat(file)
                if status.st_size != size or abs(status.st_mtime - self._source.written) > _INSTALL_SECONDS:
                    return None
            data = self._source.read(offset, length)
            code = marshal.loads(_unpacked(data) if self._packed else data)
            if code.co_filename != _mark(fullname[len(self._prefix) :]):
                return None
            _name_file(code, file)
        except (OSError, ValueError, EOFError, TypeError, AttributeError):
            return None
        self._codes[fullname] = code
        spec = ModuleSpec(fullname, self, origin=file, is_package=is_package)
        spec.has_location = True
        if is_package:
            spec.submodule_search_locations = [os.path.dirname(file)]
        return spec

    def create_module(self, spec: ModuleSpec) -> Optional[ModuleType]:
        return None  # an ordinary one

    def exec_module(self, module: ModuleType) -> None:
        exec(self._codes.pop(module.__name__), module.__dict__)

    def load(self, fullname: str) -> Optional[ModuleType]:
        """A module of the bundle that nothing has imported yet, without the import system, which takes longer for each
        than the module itself. Its package has to be imported already. None: import it as any other."""
        spec = self.find_spec(fullname)
        if spec is None:
            return None
        module = ModuleType(fullname)
        module.__spec__, module.__loader__, module.__file__ = spec, self, spec.origin
        module.__package__ = fullname.rpartition(".")[0]
        sys.modules[fullname] = module
        try:
            self.exec_module(module)
        except BaseException:
            del sys.modules[fullname]
            raise
        return module

    # What others may ask the loader of a module, answered as the loader of the package would.

    def get_filename(self, fullname: str) -> str:
        name = fullname[len(self._prefix) :]
        path = os.path.join(self._folder, *name.split("."))
        return os.path.join(path, "__init__.py") if self.is_package(fullname) else path + ".py"

    def is_package(self, fullname: str) -> bool:
        return self._table[fullname[len(self._prefix) :]][3]

    def get_data(self, path: str) -> bytes:
        data: bytes = self._loader.get_data(path)
        return data

    def get_source(self, fullname: str) -> str:
        return self.get_data(self.get_filename(fullname)).decode("utf-8")

    def get_resource_reader(self, fullname: str) -> Any:
        """For importlib.resources."""
        if not self.is_package(fullname):
            return None
        file = self.get_filename(fullname)
        if isinstance(getattr(self._loader, "archive", None), str):
            loader = type(self._loader)(os.path.dirname(os.path.dirname(file)))
        else:
            from importlib.machinery import SourceFileLoader

            loader = SourceFileLoader(fullname, file)
        return loader.get_resource_reader(fullname)


def _unpacked(data: bytes) -> bytes:
    """Raises ValueError."""
    import zlib

    try:
        return zlib.decompress(data)
    except zlib.error as error:
        raise ValueError(str(error)) from None


def _name_file(code: CodeType, file: str) -> None:
    """Tracebacks name the file as it is installed. Python itself does this with the compiled code that it keeps."""
    fix = getattr(_imp, "_fix_co_filename", None)
    if fix is not None:
        fix(code, file)
