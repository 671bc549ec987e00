"""What Triton compiles its launchers with: a C compiler and Python's headers. Looked for only where there is Triton."""

from __future__ import annotations

from typing import Any

from cudadoctor.model.fact import Fact, known, unknown
from cudadoctor.probes.paths import paths
from cudadoctor.probes.python_layout import Environment
from cudadoctor.probes.site_packages import has_package
from cudadoctor.system.port import System

# In the order in which Triton looks for them.
_COMPILERS = ("gcc", "clang", "cc")


def triton_toolchain(system: System, environment: Environment) -> dict[str, Fact[Any]]:
    """`toolkit.c_compiler` and `python.headers`; nothing where no Triton needs them."""
    if system.platform != "linux" or has_package(system, "triton").value is not True:
        return {}
    return {"toolkit.c_compiler": _compiler(system), "python.headers": _headers(system, environment)}


def _compiler(system: System) -> Fact[str]:
    told = system.variable("CC")
    if told.is_known and told.get():
        return known(told.get(), "$CC")
    found = system.which(_COMPILERS[0])
    for name in _COMPILERS[1:]:
        if not found.is_absent:
            break
        found = system.which(name)
    return found


def _headers(system: System, environment: Environment) -> Fact[bool]:
    if environment.base is None or environment.standard_library is None:
        return unknown("where this Python's headers would be is not known")
    p = system.once(paths)
    path = p.join(environment.base, "include", p.name(environment.standard_library), "Python.h")
    status = system.status(path)
    return unknown(status.reason, path) if status.is_unknown else known(status.is_known, path)
