"""A pod as kubectl shows it: its GPUs among the limits, its image, and the events that Kubernetes wrote.

  Limits:
    nvidia.com/gpu:  1
Warning  FailedScheduling  12s   default-scheduler  0/3 nodes are available: 3 Insufficient nvidia.com/gpu.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from cudadoctor.matrix import Matrix
from cudadoctor.reports.blocks import LOG, TYPED, Block, Claim
from cudadoctor.reports.text import Text

TRIGGERS = ("limits:", "default-scheduler", "kubelet", "kubectl ")

_LIMIT = re.compile(r"\"?nvidia\.com/(?:gpu|mig-[\w.]+)\"?:\s*\"?(\d{1,3})\b")
_RESOURCE = re.compile(r"\"?(?:cpu|memory|ephemeral-storage|hugepages-\w+|[\w.-]+/[\w.-]+)\"?:\s*\"?\S")
_EVENT = re.compile(r"\b(?:default-scheduler|kubelet)\b\s{1,}\S")
_KUBECTL = re.compile(r"(?:^|[$#%>]\s)\s*kubectl (?:describe|logs|exec|get|apply)\b")
_LINES = 8


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    for hit in hits:
        line = text[hit][:600]
        if re.match(r"\s*\"?[Ll]imits\"?:", line):
            yield from _limits(text, hit)
        elif _EVENT.search(line) or _KUBECTL.search(line):
            claim = Claim("scheduler.kind", "kubernetes", hit)
            yield Block("Kubernetes", hit, hit, (claim,), LOG if _EVENT.search(line) else TYPED)


def _limits(text: Text, hit: int) -> Iterator[Block]:
    resources = 0
    last = hit
    for index, line in text.lines(hit, hit + _LINES):
        gpu = _LIMIT.search(line)
        if gpu:
            claims = (Claim("pod.gpu_limit", int(gpu.group(1)), index), Claim("scheduler.kind", "kubernetes", index))
            yield Block("pod", hit, index, claims, LOG)
            return
        if index > hit:
            if not _RESOURCE.match(line.strip()):
                break
            resources += 1
            last = index
    if resources:
        yield Block("pod", hit, last, (Claim("pod.gpu_limit", 0, hit),), LOG)
