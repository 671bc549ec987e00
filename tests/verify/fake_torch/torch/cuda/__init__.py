from types import SimpleNamespace

import torch

_PCI = {0: 1, 1: 0x41}


def is_available():
    torch.step("available")
    return torch.SCENARIO.get("available", True) and bool(torch.visible())


def device_count():
    return len(torch.visible()) if torch.SCENARIO.get("available", True) else 0


def get_device_properties(number):
    real = torch.visible()[number]
    return SimpleNamespace(
        name="NVIDIA A100-SXM4-80GB",
        major=8,
        minor=0,
        total_memory=85_000_000_000,
        pci_domain_id=0,
        pci_bus_id=_PCI.get(real, 0x80 + real),
        pci_device_id=0,
    )


def get_arch_list():
    return ["sm_80", "sm_90"]


def memory_allocated(number=0):
    return 0


def memory_reserved(number=0):
    return 2 << 20


def mem_get_info(number=0):
    return 80_000_000_000, 85_000_000_000


def synchronize(number=0):
    torch.step("synchronize", f"cuda:{number}")


def is_bf16_supported(including_emulation=True):
    return not torch.SCENARIO.get("no_bf16", False)


def can_device_access_peer(one, other):
    return torch.SCENARIO.get("direct", True)


def set_device(number):
    assert number < device_count()


class Event:
    def __init__(self, enable_timing=False):
        self.at = None

    def record(self):
        self.at = torch.Clock.milliseconds

    def synchronize(self):
        pass

    def elapsed_time(self, other):
        return other.at - self.at


nccl = SimpleNamespace(version=lambda: (2, 27, 5))
