"""`fit --measure`: what is run for it on this machine, and on what."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Optional

from cudadoctor.fit.measured import CANNOT, CudaContext, DryRun, Measured
from cudadoctor.fit.workload import Workload
from cudadoctor.matrix import Matrix
from cudadoctor.model import Facts, ParseError


def measured(facts: Facts, matrix: Matrix, word: str, workload: Workload, here: bool = True) -> Measured:
    """Runs the model's class on the CPU, and makes a CUDA context on each GPU, in the environment that `check` looks
    at. `word` is what the person called the model; `here`: whether it is this machine's GPUs that it shall fit on.
    Takes up to some minutes, and raises nothing for what is missing: the record says it."""
    from cudadoctor.actions.measure_fit import contexts_of, dry_run_of
    from cudadoctor.cli._private import own_redactor

    executable = facts["python.executable"]
    if not executable.is_known:
        reason = executable.reason or "there is no Python to run it with: name one with --python"
        return Measured(DryRun(CANNOT, reason), (CudaContext(None, reason=reason),))
    python = executable.get()
    config, reason = config_of(matrix, word)
    private = own_redactor()
    try:
        run = DryRun(CANNOT, reason) if config is None else dry_run_of(python, config, workload)
        contexts = contexts_of(python, facts.value("gpu.count")) if here else ()
    except OSError as error:
        reason = f"cannot make a folder for what is run: {error.strerror or error}"
        return Measured(DryRun(CANNOT, reason), (CudaContext(None, reason=reason),))
    except ParseError as error:
        contexts = (CudaContext(None, reason=str(error)),)
    if not here:
        contexts = (CudaContext(None, reason="it is another machine's GPU that is asked about"),)
    return Measured(
        run._replace(reason=private.text(run.reason)),
        tuple(one._replace(reason=private.text(one.reason)) for one in contexts),
    )


def config_of(matrix: Matrix, word: str) -> tuple[Optional[Mapping[str, Any]], str]:
    """The config.json that the model's class is built from: the catalogue's, or that of the folder or beside the file.
    None: there is none, and why."""
    from cudadoctor.fit.catalogue import find
    from cudadoctor.fit.typical import size_of

    path = os.path.expanduser(word)
    if not os.path.exists(path):
        if size_of(word) is not None:
            return None, "only a size was given, and a class is built from a model's config"
        try:
            name = find(matrix, word).architecture.name
            return next(row.config for row in matrix.models() if row.name == name), ""
        except ParseError as error:
            return None, str(error)
    if not path.endswith(".json") or path.endswith(".index.json"):
        folder = path if os.path.isdir(path) else os.path.dirname(path)
        path = os.path.join(folder, "config.json")
    if not os.path.exists(path):
        return None, "there is no config.json to build the model's class from"
    from cudadoctor.cli._model_files import config_of_file
    from cudadoctor.cli._words import InputError

    try:
        return config_of_file(path), ""
    except InputError as error:
        return None, str(error)
