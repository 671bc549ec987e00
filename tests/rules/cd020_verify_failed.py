"""CD020: what `cudadoctor verify` found, where the policy asks for it."""

from __future__ import annotations

from typing import Any, Optional

from cudadoctor.model import unknown
from cudadoctor.testing import fails, node, passes, skips, unknown_when

RULE = "CD020"

ASKED = {"verify.checks": ["allocation", "nccl"]}


def result(
    check: str, status: str, gpu: Optional[int] = 0, message: str = "", rule: Optional[str] = None
) -> dict[str, Any]:
    return {"check": check, "gpu": gpu, "status": status, "rule": rule, "message": message}


def found(*results: dict[str, Any]) -> dict[str, Any]:
    return {"verify.results": list(results)}


GOOD = (result("allocation", "pass", 0), result("allocation", "pass", 1))

CASES = [
    skips("nobody asks", node(2)),
    passes(
        "all proved",
        node(2).asks(ASKED).set(found(*GOOD, result("nccl", "pass", None))),
        says="allocation, nccl proved",
    ),
    passes(
        "one was left out",
        node(1).asks(ASKED).set(found(GOOD[0], result("nccl", "skip", None, "there is one GPU"))),
        says="allocation proved; left out: nccl",
    ),
    fails(
        "one GPU fails",
        node(2).asks(ASKED).set(found(GOOD[0], result("allocation", "fail", 1, "error 719", "CD115"))),
        says="allocation on GPU 1 fails: error 719",
        blame="machine",
    ),
    fails(
        "torch.compile lacks a compiler",
        node(1).asks({"verify.checks": ["compile"]}).set(found(result("compile", "fail", 0, "no C compiler", "CD320"))),
        blame="environment",
    ),
    fails(
        "a slow link",
        node(1)
        .asks({"verify.checks": ["bandwidth"]})
        .set(found({**result("bandwidth", "fail", 0, "3.1 GB/s of 25"), "severity": "warning"})),
        severity="warning",
    ),
    unknown_when(
        "it did not run",
        node(2).asks(ASKED).set({"verify.results": unknown("there was no time left")}),
        says="no time left",
    ),
    unknown_when(
        "a check is missing from what came back", node(2).asks(ASKED).set(found(*GOOD)), says="nccl was asked for"
    ),
    unknown_when(
        "all were left out", node(1).asks(ASKED).set(found(result("allocation", "skip"), result("nccl", "skip", None)))
    ),
]
