"""CD017: the fabric manager runs, where the policy asks for it."""

from __future__ import annotations

from cudadoctor.testing import GONE, container, fails, linux, node, passes, skips, unknown_when

RULE = "CD017"

ASKED = {"system.fabric_manager": True}
SERVICE = "driver.fabric_manager"

CASES = [
    skips("nobody asks", node(8)),
    passes("it runs", node(8).asks(ASKED)),
    passes("in a container the GPUs tell", node(8).set({"system.container": "docker", SERVICE: GONE}).asks(ASKED)),
    fails(
        "it is stopped",
        node(8).set({SERVICE: "stopped"}).asks(ASKED),
        says="does not run",
        blame="machine",
        fix="restart-service",
    ),
    fails("it is not there", linux().asks(ASKED), says="is not installed", fix="install-fabric-manager"),
    unknown_when("a container shows no services", container().asks(ASKED), says="not seen from a container"),
    unknown_when("nobody could ask", linux().unknown(SERVICE).asks(ASKED)),
]
