"""What rules advise where a job has been given another kind of card than it needs."""

from __future__ import annotations

from cudadoctor.rules.api import Remedy


def another_card(title: str, otherwise: str) -> Remedy:
    """To ask the scheduler for the right kind; `otherwise`, a sentence, is what else there is to do."""
    text = (
        "With Slurm: --gres=gpu:TYPE:COUNT or --constraint; in Kubernetes: a node selector on nvidia.com/gpu.product. "
        + otherwise
    )
    return Remedy("manual", {"title": title, "text": text, "kind": "job"})
