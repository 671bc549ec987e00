"""Ranks that meet in the folder of their store."""

import os
import time

import torch

_state = {}


def is_available():
    return torch.SCENARIO.get("distributed", True)


def is_nccl_available():
    return torch.SCENARIO.get("nccl", True)


def init_process_group(backend, init_method, rank, world_size, timeout):
    assert backend == "nccl"
    _state.update(store=init_method[len("file://") :], rank=rank, world=world_size, round=0)


def all_reduce(tensor):
    wrong = torch.step("nccl", tensor.device)
    _state["round"] += 1
    start = f"{_state['store']}.{_state['round']}."
    with open(start + "new" + str(_state["rank"]), "w") as file:
        file.write(str(tensor.data[0]))
    os.rename(file.name, start + str(_state["rank"]))
    total = 0.0
    for rank in range(_state["world"]):
        while not os.path.exists(start + str(rank)):
            time.sleep(0.005)
        with open(start + str(rank)) as file:
            total += float(file.read())
    tensor.data = [total] * len(tensor.data)
    if wrong:
        tensor.data[0] += 1


def destroy_process_group():
    _state.clear()
