"""Runs in an interpreter that has torch and transformers (diffusers for image models): builds each model without
weights, on the meta device, and prints what parameters it has. Standard input: a list of {name, config, class}."""

from __future__ import annotations

import contextlib
import json
import re
import sys
import warnings
from typing import Any

warnings.filterwarnings("ignore")


def build(config: dict[str, Any], name: str) -> Any:
    import torch

    with torch.device("meta"), contextlib.redirect_stdout(sys.stderr):
        if "_class_name" in config:
            import diffusers

            return getattr(diffusers, config["_class_name"]).from_config(config)
        import transformers
        from transformers.models.auto import modeling_auto as auto
        from transformers.models.auto.configuration_auto import CONFIG_MAPPING

        made = CONFIG_MAPPING[config["model_type"]].from_dict(config)
        if not hasattr(made, "pad_token_id"):  # the class of Llama 4 asks for it
            made.pad_token_id = None
        if name:
            return getattr(transformers, name)(made)
        order = (
            *(auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING, auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING),
            *(auto.MODEL_FOR_CAUSAL_LM_MAPPING, auto.MODEL_MAPPING),
        )
        for mapping in order:
            if type(made) in mapping:
                found = mapping[type(made)]
                return (found[0] if isinstance(found, tuple) else found)(made)
        raise ValueError("no class")


def described(model: Any) -> dict[str, Any]:
    shapes: dict[str, int] = {}
    for path, one in model.named_parameters():
        shape = list(one.shape)
        copies = 1
        if len(shape) >= 2 and re.search(r"(?<!shared_)experts\.(?!\d)", path):
            copies, *shape = shape  # one tensor holds all experts
        key = ",".join(str(size) for size in sorted(size for size in shape if size != 1))
        shapes[key] = shapes.get(key, 0) + copies
    return {"parameters": sum(one.numel() for one in model.parameters()), "shapes": shapes}


def main() -> None:
    answers = {}
    for one in json.load(sys.stdin):
        try:
            answers[one["name"]] = described(build(one["config"], one.get("class")))
        except Exception as error:
            answers[one["name"]] = {"error": f"{type(error).__name__}: {error}"[:300]}
    json.dump(answers, sys.stdout)


main()
