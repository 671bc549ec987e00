"""CD315: TensorFlow on Windows itself."""

from __future__ import annotations

from cudadoctor.testing import fails, linux, passes, skips, unknown_when, windows, wsl

RULE = "CD315"

IN_REPORT = {"examination.kind": "report"}
WARNED = {
    "symptom.tensorflow_cpu_on_windows": {
        "text": "WARNING:tensorflow:TensorFlow GPU support is not available on native Windows for TensorFlow >= 2.11."
    }
}
ASKED = {"symptom.tensorflow_sees_no_gpu": {"text": "tf.config.list_physical_devices('GPU') gives []"}}

CASES = [
    passes("the last one that used a GPU there", windows().package("tensorflow", "2.10.1"), says="has GPU support"),
    fails(
        "a later one, beside a torch that works",
        windows().package("tensorflow", "2.17.0"),
        says=["TensorFlow 2.17.0 uses no GPU on Windows itself", "2.10"],
        severity="warning",
        certainty="certain",
        blame="environment",
        fix="use-wsl",
    ),
    fails("its package of that time", windows().package("tensorflow-intel", "2.13.0"), says="TensorFlow 2.13.0"),
    fails("a nightly", windows().package("tf-nightly", "2.22.0.dev20261101"), severity="warning"),
    fails(
        "somebody asks about it",
        windows()
        .package("tensorflow", "2.17.0")
        .set({**IN_REPORT, **ASKED})
        .only("package.tensorflow.version", "system.os", "examination.kind", *ASKED),
        severity="error",
        certainty="certain",
    ),
    fails(
        "a report that may be about something else",
        windows()
        .package("tensorflow", "2.17.0")
        .set(IN_REPORT)
        .only("package.tensorflow.version", "system.os", "examination.kind"),
        severity="info",
    ),
    fails("TensorFlow says so itself", windows().set(WARNED).only(*WARNED), says="this TensorFlow", severity="error"),
    skips("in WSL it has one", wsl().package("tensorflow", "2.17.0"), says="inside WSL"),
    skips("Linux", linux().package("tensorflow", "2.17.0")),
    skips("no GPU anyway", windows().no_gpu().package("tensorflow", "2.17.0"), says="suits a machine without"),
    skips("no TensorFlow", windows()),
    unknown_when(
        "a version and nothing of the system",
        windows().package("tensorflow", "2.17.0").set(IN_REPORT).only("package.tensorflow.version"),
        says="cannot tell whether TensorFlow 2.17.0 runs on Windows",
    ),
    unknown_when("a version that is none", windows().package("tensorflow", "from-source")),
]
