"""This TensorFlow uses no GPU on Windows

What it checks
    Whether a TensorFlow on Windows itself (not inside WSL) is of a release that still had GPU support there.

Why it matters
    TensorFlow 2.10 was the last one that used CUDA on Windows itself. Later ones install and run without a word, on the
    CPU: tf.config.list_physical_devices("GPU") is an empty list, whatever driver, toolkit and cuDNN are installed.

How to fix
    Run TensorFlow inside WSL, where the Windows driver serves it: pip install "tensorflow[and-cuda]". Staying on
    Windows takes TensorFlow 2.10 (Python 3.7 to 3.10, CUDA 11.2, cuDNN 8.1, NumPy below 2), which knows no newer card.

References
    https://www.tensorflow.org/install/pip#windows-native
"""

from __future__ import annotations

from cudadoctor.derive.gpus import NONE, presence
from cudadoctor.derive.surroundings import in_report, in_wsl
from cudadoctor.matrix import numbers
from cudadoctor.rules.api import ENVIRONMENT, ERROR, INFO, WARNING, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD315",
    name="tensorflow-no-gpu-on-windows",
    title="This TensorFlow uses no GPU on Windows",
    # A warning, as TensorFlow may be there for the CPU; in a report, who asks TensorFlow for its GPUs wants one.
    severity=WARNING,
    blame=ENVIRONMENT,
    precedence=29,
)

# tensorflow is an empty shell around tensorflow-intel on Windows; its GPU build had a name of its own for some years.
_NAMES = ("tensorflow", "tensorflow-intel", "tensorflow-gpu", "tf-nightly")
_SAYS_SO = "symptom.tensorflow_cpu_on_windows"
_ASKED_FOR = "symptom.tensorflow_sees_no_gpu"


def judge(case: Case) -> Outcome:
    said = case.fact(_SAYS_SO).is_known
    fact = next((f"package.{n}.version" for n in _NAMES if case.fact(f"package.{n}.version").is_known), None)
    if fact is None and not said:
        return case.skipped("no TensorFlow is seen")
    version = str(case.value(fact)) if fact is not None else ""
    shown = f"TensorFlow {version}" if version else "this TensorFlow"
    row = case.matrix.framework("tensorflow")
    last = row.windows_last if row is not None else None
    if not said:
        if in_wsl(case):
            return case.skipped("TensorFlow runs inside WSL")
        system = case.fact("system.os")
        if not system.is_known:
            return case.undecided(f"cannot tell whether {shown} runs on Windows", ("system.os",))
        if system.get() != "windows":
            return case.skipped("not Windows")
        have = numbers(version.partition(".dev")[0].partition("rc")[0])
        if last is None or have is None:
            return case.undecided(f"cannot tell whether TensorFlow {version} has GPU support on Windows", (str(fact),))
        if have[:2] <= (numbers(last) or ()):
            return case.passed(f"TensorFlow {version} has GPU support on Windows", (str(fact),))
    if case.derived(presence).state == NONE:
        return case.skipped(f"{shown} runs on the CPU, which suits a machine without an NVIDIA GPU")
    asked = case.fact(_ASKED_FOR).is_known
    reported = in_report(case)
    evidence = [*([fact, "system.os"] if fact else []), *([_SAYS_SO] if said else []), *([_ASKED_FOR] if asked else [])]
    return case.failed(
        f"{shown} uses no GPU on Windows itself: {last or 'an older release'} was the last one that did",
        evidence,
        # Many a report about TensorFlow is about something else than its GPU.
        severity=ERROR if said or asked else INFO if reported else None,
        data={"tensorflow": version, "last": last},
        fixes=(
            Remedy(
                "use-wsl",
                {
                    "requirement": "tensorflow[and-cuda]",
                    "effect": {**({fact: None} if fact else {}), _SAYS_SO: None, _ASKED_FOR: None},
                },
            ),
        ),
        not_helping=("a CUDA toolkit, cuDNN or another driver: this TensorFlow never looks for a GPU",),
    )
