"""What a probe is: a module in `cudadoctor/probes/` that reads one subject of a machine through the port.

A whole probe, `cudadoctor/probes/headers.py`:

    from cudadoctor.model.fact import Fact, known
    from cudadoctor.probes.api import LINUX, Probe
    from cudadoctor.system.port import System


    def look(system: System) -> dict[str, Fact[Any]]:
        release = system.kernel_release()
        if not release.is_known:
            return {"kernel.headers": unknown(release.reason, release.source)}
        build = system.status(f"/lib/modules/{release.get()}/build")
        if build.is_absent:
            return {"kernel.headers": known(False, build.source)}
        return {"kernel.headers": build.map(lambda status: status.kind == "directory")}


    PROBE = Probe("headers", (LINUX,), ("kernel.headers",), look)

and its line in `probes/registry.py`. A probe reports and never judges; names and types of facts stand in
`model/catalogue.py`. It need not be careful: what it raises becomes `examination.failed` and makes its facts unknown,
and where it hangs it is left behind. On a live machine it runs in a process of its own, so nothing that it keeps in
a module survives it, and its facts' values must be plain data (what JSON can say).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Callable

from cudadoctor.model.fact import Fact
from cudadoctor.model.record import NamedTuple
from cudadoctor.system.port import System

LINUX = "linux"
WINDOWS = "windows"
DARWIN = "darwin"
EVERYWHERE = (LINUX, WINDOWS, DARWIN)


class Probe(NamedTuple):
    """`facts` names what the probe answers, as the catalogue does (`pci.gpus`, `gpu.{n}.name`), or a whole subject
    (`torch.*`): these become unknown where the probe fails. A fact that it leaves out of its answer stays "not looked
    at". On a system that is not among `platforms` the probe does not run, and its facts are not looked at."""

    name: str
    platforms: tuple[str, ...]
    facts: tuple[str, ...]
    function: Callable[[System], Mapping[str, Fact[Any]]]
