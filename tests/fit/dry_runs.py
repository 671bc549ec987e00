"""Runs in an interpreter that has torch, transformers and peft: many dry runs in one process, by the child script of
the doctor itself. Arguments: the path of fit/dry_run.py. Standard input: a list of requests, each with its name;
standard output: what each came to, and for those that ask ("real") what a real run with real tensors holds."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import sys
import warnings

warnings.filterwarnings("ignore")


def script(path):
    spec = importlib.util.spec_from_file_location("dry_run", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def held_by_the_graph(dry, torch, transformers, request):
    """Bytes that autograd saves of a real forward pass on the CPU: asked of autograd, not of the operators."""
    model, _ = dry.build(torch, transformers, request["config"], request)
    model = model.to_empty(device="cpu")
    own = {one.untyped_storage().data_ptr() for one in (*model.parameters(), *model.buffers())}
    inputs = dry.inputs_of(torch, model, model.config, request)
    for one in inputs.values():
        own.add(one.untyped_storage().data_ptr())
    saved = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            saved[storage.data_ptr()] = (-(-storage.nbytes() // dry.BLOCK) * dry.BLOCK, tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        loss = model(**inputs, use_cache=False).loss
    found = sum(size for size, _ in saved.values())
    del loss
    return found


def main():
    dry = script(sys.argv[1])
    dry.environment()
    answers = {}
    with contextlib.redirect_stdout(sys.stderr):
        import torch
        import transformers

        requests = json.load(sys.stdin)
        # Before the ways of CUDA are put in.
        real = {one["name"]: held_by_the_graph(dry, torch, transformers, one) for one in requests if one.get("real")}
        dry.as_cuda_does(torch)
        for one in requests:
            found = dry.sides(one["config"])
            plan = [one["depths"]] if "depths" in one else dry.depths_to_run(found)
            try:
                runs = [dry.dry_run(torch, transformers, one, depths, found) for depths in plan]
                sides = [[side.key, side.number, side.period] for side in found]
                answers[one["name"]] = {"runs": runs, "sides": sides, "real": real.get(one["name"])}
            except dry.Cannot as reason:
                answers[one["name"]] = {"cannot": str(reason)}
            except Exception as error:
                answers[one["name"]] = {"error": f"{type(error).__name__}: {error}"}
    json.dump(answers, sys.stdout)
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
