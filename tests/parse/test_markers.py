"""Environment markers, compared with packaging where packaging can be asked."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.markers import Marker

from cudadoctor.parse.markers import evaluate, normalise_name

LINUX = {
    "platform_system": "Linux",
    "platform_machine": "x86_64",
    "sys_platform": "linux",
    "os_name": "posix",
    "python_version": "3.12",
    "python_full_version": "3.12.4",
    "platform_python_implementation": "CPython",
    "extra": "",
}

MARKERS = [
    ("", True),
    ('platform_system == "Linux"', True),
    ("platform_system == 'Linux' and platform_machine == 'x86_64'", True),
    ('platform_system == "Linux" and platform_machine == "aarch64"', False),
    ('"Linux" == platform_system', True),
    ('sys_platform != "win32"', True),
    ('python_version >= "3.9"', True),
    ('python_version < "3.10"', False),
    ('"3.9" <= python_version', True),
    ('"3.9" > python_version', False),
    ('python_version ~= "3.11"', True),
    ('python_version == "3.*"', True),
    ('python_full_version < "3.12.5"', True),
    ('python_version in "3.11 3.12"', True),
    ('platform_machine not in "aarch64 arm64"', True),
    ('extra == "opt-einsum"', False),
    ('python_version >= "3.9" and extra == "opt-einsum"', False),
    ('platform_system == "Windows" or sys_platform == "linux"', True),
    ('(platform_system == "Windows" or sys_platform == "linux") and python_version < "3.0"', False),
    ('platform_system == "Windows" or sys_platform == "linux" and python_version < "3.0"', False),
    ('os.name == "posix"', True),
    # not given, and what follows from it
    ('platform_release >= "5.0"', None),
    ('platform_release >= "5.0" or sys_platform == "linux"', True),
    ('platform_release >= "5.0" and sys_platform == "win32"', False),
    ('platform_release >= "5.0" and sys_platform == "linux"', None),
    # not understood
    ("platform_system", None),
    ('platform_system == "Linux" and', None),
    ('platform_system == "Linux")', None),
    ('(platform_system == "Linux"', None),
    ('platform_system === ""', None),
    ('not platform_system == "Linux"', None),
    ('platform_system > "Linux"', None),
    ("???", None),
    ("(" * 100 + 'sys_platform == "linux"' + ")" * 100, None),
]


@pytest.mark.parametrize(("marker", "verdict"), MARKERS)
def test_marker(marker: str, verdict: bool | None) -> None:
    assert evaluate(marker, LINUX) is verdict


def test_an_extra_is_compared_by_its_normal_name() -> None:
    assert evaluate('extra == "opt-einsum"', {"extra": "Opt_Einsum"}) is True


@pytest.mark.parametrize(
    ("name", "normal"),
    [
        ("torch", "torch"),
        ("Nvidia_cuBLAS.cu12", "nvidia-cublas-cu12"),
        ("a-._b", "a-b"),
        ("ruamel.yaml", "ruamel-yaml"),
    ],
)
def test_normal_name(name: str, normal: str) -> None:
    assert normalise_name(name) == normal


comparisons = st.sampled_from(
    [
        'platform_system == "Linux"',
        'platform_system != "Linux"',
        'platform_machine == "aarch64"',
        'python_version >= "3.10"',
        'python_version < "3.9"',
        'python_version != "3.12"',
        '"3.12" == python_version',
        'sys_platform in "linux darwin"',
        'sys_platform not in "linux darwin"',
        'extra == "test"',
    ]
)
markers = st.recursive(
    comparisons,
    lambda inner: st.builds("{} {} {}".format, inner, st.sampled_from(["and", "or"]), inner) | inner.map("({})".format),
    max_leaves=8,
)


@given(markers, st.sampled_from(["Linux", "Windows"]), st.sampled_from(["3.9", "3.12"]), st.sampled_from(["", "test"]))
def test_markers_mean_what_packaging_says(marker: str, system: str, python: str, extra: str) -> None:
    environment = {**LINUX, "platform_system": system, "python_version": python, "extra": extra}
    assert evaluate(marker, environment) is Marker(marker).evaluate(dict(environment))
