from __future__ import annotations

import pytest

from cudadoctor.probes.environment import PROBE

from .tables import ABSENT, Unknown, check, machine, windows


def test_variables_that_matter() -> None:
    variables = {
        "PATH": "/usr/bin",
        "CUDA_HOME": "/usr/local/cuda-12.4",
        "CUDA_VISIBLE_DEVICES": "",
        "LD_LIBRARY_PATH": "/usr/local/cuda/lib64",
        "NCCL_P2P_DISABLE": "1",
        "NVIDIA_PRODUCT_NAME": "PyTorch",
        "TORCH_CUDA_ARCH_LIST": "8.6",
    }
    facts = check(
        PROBE,
        machine(variables=variables),
        {
            "env.CUDA_HOME": "/usr/local/cuda-12.4",
            "env.CUDA_VISIBLE_DEVICES": "",  # set and empty hides every GPU; not the same as not set
            "env.LD_LIBRARY_PATH": "/usr/local/cuda/lib64",
            "env.NCCL_P2P_DISABLE": "1",
            "env.NVIDIA_PRODUCT_NAME": "PyTorch",
            "env.TORCH_CUDA_ARCH_LIST": "8.6",
            "env.VIRTUAL_ENV": ABSENT,
            "env.CUDA_PATH": ABSENT,
            "env.NVIDIA_VISIBLE_DEVICES": ABSENT,
        },
    )
    assert "env.PATH" not in facts


@pytest.mark.parametrize(
    "name",
    [
        "NVIDIA_API_KEY",
        "NCCL_SECRET",
        "CUDA_PASSWORD",
        "TORCH_HUB_TOKEN",
        "NVIDIA_LICENSE_SERVER",
        "PYTORCH_INDEX_URL",
        "CUDA_PROXY",
        "HF_TOKEN",
        "AWS_SECRET_ACCESS_KEY",
        "HOME",
        "PIP_INDEX_URL",
    ],
)
def test_a_value_that_may_be_secret_is_never_read(name: str) -> None:
    facts = check(PROBE, machine(variables={name: "do-not-show"}), {})
    assert f"env.{name}" not in facts
    assert "do-not-show" not in str(facts)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("GPU-11111111-2222-4333-8444-555555555555", "GPU-*"),
        ("GPU-1111,GPU-2222", "GPU-*,GPU-*"),
        ("MIG-GPU-11111111-2222-4333-8444-555555555555/1/0", "MIG-*"),
        ("0,1", "0,1"),
        ("-1", "-1"),
    ],
)
def test_a_gpu_uuid_is_not_shown(value: str, shown: str) -> None:
    check(PROBE, machine(variables={"CUDA_VISIBLE_DEVICES": value}), {"env.CUDA_VISIBLE_DEVICES": shown})


def test_an_odd_name_is_no_fact() -> None:
    facts = check(PROBE, machine(variables={"CUDA_()%%": "x", "CUDA_ \n": "y"}), {})
    assert all(fact.value not in ("x", "y") for fact in facts.values())


def test_windows_names_have_no_case() -> None:
    system = windows(variables={"Cuda_Path": "C:\\CUDA", "CUDA_PATH_V12_4": "C:\\CUDA\\v12.4"})
    check(PROBE, system, {"env.CUDA_PATH": "C:\\CUDA", "env.CUDA_PATH_V12_4": "C:\\CUDA\\v12.4"})


def test_a_recording_without_variables() -> None:
    system = machine(unlisted="unknown")
    check(PROBE, system, {"env.CUDA_HOME": Unknown("not in the recording")})
