"""JAX has no CUDA plugin, or one that does not fit

What it checks
    Whether jax-cudaXX-plugin and jax-cudaXX-pjrt are of the version of the installed jaxlib, whether there is one at
    all where JAX complains of its absence, whether plugins of two CUDA majors are installed, and whether the driver
    serves the plugin's CUDA.

Why it matters
    jaxlib itself has no CUDA. A plugin of another version is passed over with a warning ("it will not be used"), or
    crashes; without one JAX falls back to the CPU. pip install of another package often moves jaxlib and leaves the
    plugin.

How to fix
    Install all of them in one command: pip install "jax[cuda12]" or "jax[cuda13]", whichever the driver serves.

References
    https://docs.jax.dev/en/latest/installation.html
"""

from __future__ import annotations

from typing import Optional

from cudadoctor.derive.driver import numbering, version, version_fact
from cudadoctor.derive.gpus import NONE, PRESENT, presence
from cudadoctor.derive.surroundings import in_report
from cudadoctor.matrix import numbers
from cudadoctor.rules.api import CERTAIN, ENVIRONMENT, ERROR, INFO, LIKELY, WARNING, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD317",
    name="jax-plugin-mismatch",
    title="JAX has no CUDA plugin, or one that does not fit",
    severity=WARNING,
    blame=ENVIRONMENT,
    precedence=38,
)

_JAXLIB = "package.jaxlib.version"
_MAJORS = ("11", "12", "13", "14")
_MISMATCH = "symptom.jax_plugin_mismatch"
_MISSING = "symptom.jax_without_cuda"
_FAILED = "symptom.jax_backend_failed"


def judge(case: Case) -> Outcome:
    jaxlib = case.fact(_JAXLIB)
    jax = case.fact("package.jax.version")
    said = next((name for name in (_MISMATCH, _MISSING, _FAILED) if case.fact(name).is_known), None)
    if not jaxlib.is_known and not jax.is_known and said is None:
        return case.skipped("no JAX is seen")
    if case.derived(presence).state == NONE:
        return case.skipped("JAX on the CPU suits a machine without an NVIDIA GPU")
    parts = _parts(case)
    library = str(jaxlib.value or "")
    for name, installed in parts:
        # Only the numbers count: 0.4.36.dev20241125 goes with 0.4.36.
        if library and _numbers(installed) != _numbers(library):
            return _failed(
                case,
                f"{name} {installed} does not go with jaxlib {library}: JAX passes it over",
                (f"package.{name}.version", _JAXLIB, *((_MISMATCH,) if said == _MISMATCH else ())),
                CERTAIN,
                said,
            )
    majors = sorted({name[len("jax-cuda") :].partition("-")[0] for name, _ in parts})
    if len(majors) > 1:
        return _failed(
            case,
            f"JAX plugins for CUDA {' and '.join(majors)} are installed side by side",
            tuple(f"package.{name}.version" for name, _ in parts),
            LIKELY,
            said,
        )
    driver = case.derived(version)
    if majors and driver.is_known:
        verdict = case.matrix.driver_serves(driver.get(), numbering(case), f"{majors[0]}.0")
        if verdict.answer == "no":
            return _failed(
                case,
                f"JAX's plugin is for CUDA {majors[0]}, and driver {driver.get()} is too old for it",
                (f"package.{parts[0][0]}.version", version_fact(case)),
                CERTAIN,
                said,
                extra="",
            )
    if said == _MISMATCH:
        symptom = case.value(_MISMATCH)
        plugin, lib = symptom.get("plugin"), symptom.get("jaxlib")
        what = f"JAX's CUDA plugin {plugin} does not go with jaxlib {lib}" if plugin and lib else _PLAIN
        return _failed(case, what, (_MISMATCH,), CERTAIN if plugin and lib else LIKELY, said)
    if said == _MISSING and not parts:
        return _failed(
            case,
            "JAX has no CUDA plugin, and falls back to the CPU",
            (_MISSING, *((_JAXLIB,) if jaxlib.is_known else ())),
            CERTAIN if case.derived(presence).state == PRESENT else LIKELY,
            said,
        )
    if said is not None:
        return case.undecided("JAX cannot use the GPU; its packages do not show why", (said, _JAXLIB))
    if not parts and not _has_cuda(library):
        if in_report(case):
            return case.undecided("whether JAX has a CUDA plugin is not shown", (_JAXLIB,))
        return _failed(
            case, f"jaxlib {library} has no CUDA plugin: JAX runs on the CPU", (_JAXLIB,), LIKELY, None, severity=INFO
        )
    return case.passed(f"JAX {library} has its CUDA plugin", (_JAXLIB, *(f"package.{n}.version" for n, _ in parts)))


_PLAIN = "JAX's CUDA plugin is not of the version of jaxlib"


def _parts(case: Case) -> list[tuple[str, str]]:
    """The CUDA plugins and their runtimes that are installed, with their versions."""
    names = [f"jax-cuda{major}-{part}" for major in _MAJORS for part in ("plugin", "pjrt")]
    return [
        (name, str(case.value(f"package.{name}.version")))
        for name in names
        if case.fact(f"package.{name}.version").is_known
    ]


def _extra(case: Case) -> str:
    """The CUDA that JAX's plugin is for, as its extra is called; empty: there is none, or there are two."""
    named = {name[len("jax-") :].partition("-")[0] for name, _ in _parts(case)}
    text = str(case.value(_MISMATCH, {}).get("text", ""))
    named |= {f"cuda{major}" for major in _MAJORS if f"jax_cuda{major}_plugin" in text}
    return named.pop() if len(named) == 1 else ""


def _numbers(text: str) -> tuple[int, ...]:
    return numbers(text.partition("+")[0].partition(".dev")[0]) or ()


def _has_cuda(jaxlib: str) -> bool:
    """Up to 0.4.2x CUDA was in jaxlib itself: 0.4.28+cuda12.cudnn89."""
    return "+cuda" in jaxlib


def _failed(
    case: Case,
    message: str,
    evidence: tuple[str, ...],
    certainty: str,
    said: Optional[str],
    severity: Optional[str] = None,
    extra: Optional[str] = None,
) -> Outcome:
    symptom = case.value(_MISMATCH, {})
    jax = case.value("package.jax.version") or case.value(_JAXLIB) or symptom.get("jaxlib")
    if extra is None:
        extra = _extra(case)
    gone = {f"package.{name}.version": None for name, _ in _parts(case)}
    remedy = Remedy(
        "install-framework",
        {
            "package": "jax",
            "version": str(jax).partition("+")[0] if jax and numbers(str(jax)) else "",
            "extra": extra,
            "remove": [name for name, _ in _parts(case)],
            # Without a driver to go by: CUDA 12 runs on more of them.
            "instead": f"jax[{extra or 'cuda12'}]",
            "effect": {
                **gone,
                _MISMATCH: None,
                _MISSING: None,
                _FAILED: None,
                _JAXLIB: None,
                "package.jax.version": None,
            },
        },
    )
    if case.value("system.os") == "windows":
        remedy = Remedy(
            "use-wsl",
            {"requirement": "jax[cuda12]", "effect": {_MISSING: None, _JAXLIB: None, "package.jax.version": None}},
        )
    return case.failed(
        message,
        evidence,
        certainty=certainty,
        severity=severity or (ERROR if said else None),
        fixes=(remedy,),
        not_helping=("a CUDA toolkit: JAX takes its libraries from its own packages",),
    )
