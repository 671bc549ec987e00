"""CD604: /dev/shm is too small for data loader workers."""

from __future__ import annotations

from cudadoctor.testing import GIB, GONE, MIB, container, fails, linux, passes, skips, unknown_when, windows

RULE = "CD604"

DOCKERS_DEFAULT = {"memory.shm_size": 64 * MIB, "memory.shm_free": 64 * MIB}
REPORTED = {"symptom.shm_exhausted": {"text": "Unexpected bus error encountered in worker"}}
GUESSED = {"symptom.shm_exhausted": {"text": "It is possible that dataloader's workers are out of shared memory."}}

CASES = [
    passes("half of the memory", linux()),
    passes("docker run --shm-size=1g", container().set({"memory.shm_size": GIB}), says="/dev/shm has 1 GiB"),
    fails(
        "docker run without a word",
        container().set(DOCKERS_DEFAULT),
        says=["/dev/shm is small", "64 MiB"],
        certainty="likely",
        severity="warning",
        blame="allocation",
        fix="enlarge-shm",
    ),
    fails("a machine of its own", linux().set(DOCKERS_DEFAULT), blame="machine"),
    fails(
        "a worker died of it",
        container().set(DOCKERS_DEFAULT).set(REPORTED),
        says="ran out of shared memory (64 MiB)",
        certainty="certain",
        severity="error",
    ),
    fails(
        "a report: NCCL, in a container whose start is shown",
        linux()
        .only()
        .set({"examination.kind": "report", "container.engine": "docker"})
        .set({"symptom.shm_exhausted": {"text": "Error while creating shared memory segment /dev/shm/nccl-YkV3bK"}}),
        says="NCCL ran out of shared memory",
        blame="allocation",
        fix="enlarge-shm",
    ),
    fails("a traceback alone", linux().only().set(REPORTED), certainty="certain", severity="error"),
    fails(
        "torch only guesses, whatever died of a bus error",
        linux().only().set(GUESSED),
        says="mostly because /dev/shm is full",
        certainty="likely",
        severity="error",
        fix="enlarge-shm",
    ),
    fails("its guess, and a small /dev/shm", container().set(DOCKERS_DEFAULT).set(GUESSED), certainty="certain"),
    fails(
        "its guess, and an ample /dev/shm",
        linux().set({"memory.shm_size": 64 * GIB}).set(GUESSED),
        says=["64 GiB", "a file that the worker maps"],
        certainty="possible",
    ),
    fails(
        "a worker's bus error, and no more is told",
        linux().only().set({"symptom.worker_killed": {"text": "...", "signal": "Bus error"}}),
        says="bus error",
        certainty="likely",
        severity="error",
        fix="enlarge-shm",
    ),
    fails(
        "a bus error alone",
        linux().only().set({"symptom.bus_error": {"text": "Bus error (core dumped)"}}),
        certainty="possible",
    ),
    passes("a bus error beside an ample /dev/shm", linux().set({"symptom.bus_error": {"text": "Bus error"}})),
    skips("there is none", linux().set({"memory.shm_size": GONE})),
    skips("Windows", windows()),
    unknown_when("it cannot be read", linux().unknown("memory.shm_size")),
]
