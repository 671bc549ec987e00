"""Where an installer looks for packages."""

from __future__ import annotations

import pytest

from cudadoctor.parse import pip_config
from cudadoctor.parse.pip_config import IndexSettings, UvIndex

PIP_CONF = """\
# comment
[global]
index-url = https://one.example/simple
extra_index_url =
    https://two.example/simple
    # not this
    https://three.example/simple
trusted-host = one.example two.example
timeout = 60
no-index = false
break-system-packages = true

[install]
index-url = https://download.pytorch.org/whl/cu126
constraint: /etc/constraints.txt
find-links =
    /wheels

[freeze]
index-url = https://other.example/simple
"""


def test_pip_config() -> None:
    assert pip_config.parse_pip_config(PIP_CONF) == IndexSettings(
        index_url="https://download.pytorch.org/whl/cu126",
        extra_index_urls=("https://two.example/simple", "https://three.example/simple"),
        find_links=("/wheels",),
        constraints=("/etc/constraints.txt",),
        trusted_hosts=("one.example", "two.example"),
        no_index=False,
        break_system_packages=True,
    )


@pytest.mark.parametrize(
    "text", ["", "no section = 1", "[global]\n", "[global\nindex-url", "= x", "[install]\nrequire-virtualenv"]
)
def test_pip_config_without_settings(text: str) -> None:
    assert pip_config.parse_pip_config(text) == IndexSettings()


def test_windows_line_ends_and_a_mark() -> None:
    text = "\ufeff[global]\r\nindex-url = https://one.example/simple\r\n"
    assert pip_config.parse_pip_config(text).index_url == "https://one.example/simple"


def test_pip_environment() -> None:
    environment = {
        "PIP_INDEX_URL": "https://one.example/simple",
        "PIP_EXTRA_INDEX_URL": "https://two.example/simple https://three.example/simple",
        "PIP_NO_INDEX": "1",
        "PIP_CONSTRAINT": "",
        "PIP_USER": "no",
        "PIP_REQUIRE_VIRTUALENV": "true",
        "PIP_TARGET": "/opt/x",
        "HOME": "/root",
    }
    assert pip_config.parse_pip_environment(environment) == IndexSettings(
        index_url="https://one.example/simple",
        extra_index_urls=("https://two.example/simple", "https://three.example/simple"),
        no_index=True,
        require_virtualenv=True,
        user=False,
        target="/opt/x",
    )
    assert pip_config.parse_pip_environment({"PATH": "/bin"}) == IndexSettings()


@pytest.mark.parametrize(
    ("text", "indexes"),
    [
        (
            'index-url = "https://one.example/simple"\nextra-index-url = ["https://two.example/a", \'https://x.example/b\']\n',
            [
                UvIndex(None, "https://one.example/simple", True, False),
                UvIndex(None, "https://two.example/a", False, False),
                UvIndex(None, "https://x.example/b", False, False),
            ],
        ),
        (
            '[[index]]\nname = "pytorch"\nurl = "https://download.pytorch.org/whl/cu126"\nexplicit = true # only\n'
            '[[index]]\nurl = "https://one.example/simple"\ndefault = true\n[pip]\nstrict = true\n',
            [
                UvIndex("pytorch", "https://download.pytorch.org/whl/cu126", False, True),
                UvIndex(None, "https://one.example/simple", True, False),
            ],
        ),
        (
            '[project]\nname = "x"\nurl = "https://no.example"\n[[tool.uv.index]]\nurl = "https://one.example/simple"\n'
            '[tool.other]\nindex-url = "https://no.example"\n',
            [UvIndex(None, "https://one.example/simple", False, False)],
        ),
        ("[[index]]\nname = 'nothing'\n", []),
        ("", []),
    ],
)
def test_uv_config(text: str, indexes: list[UvIndex]) -> None:
    assert pip_config.parse_uv_config(text) == indexes


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://me:secret@host.example/simple", "https://host.example/simple"),
        ("https://token@host.example/simple", "https://host.example/simple"),
        ("https://host.example/a@b", "https://host.example/a@b"),
        ("file:///wheels", "file:///wheels"),
        ("/wheels", "/wheels"),
    ],
)
def test_without_credentials(url: str, shown: str) -> None:
    assert pip_config.without_credentials(url) == shown


@pytest.mark.parametrize(
    ("url", "tag"),
    [
        ("https://download.pytorch.org/whl/cu126", "cu126"),
        ("https://download.pytorch.org/whl/nightly/cu130/", "cu130"),
        ("https://download.pytorch.org/whl/cpu", "cpu"),
        ("https://download.pytorch.org/whl/rocm6.2.4", "rocm6.2.4"),
        ("https://download.pytorch.org/whl", None),
        ("https://mirror.example/simple", None),
    ],
)
def test_cuda_tag_of_url(url: str, tag: str | None) -> None:
    assert pip_config.cuda_tag_of_url(url) == tag


def test_uv_options() -> None:
    text = """
torch-backend = "auto"
exclude-newer = '2026-10-01'  # a comment
native-tls = true
[pip]
torch-backend = "cpu"
[tool.other]
exclude-newer = "never"
"""
    assert pip_config.parse_uv_options(text) == {"torch-backend": "cpu", "exclude-newer": "2026-10-01"}


def test_constraints() -> None:
    text = """
# nothing but these
torch == 2.6.0    # the site's own
Torch_Vision>=0.20,<0.22; python_version < "3.13"
nvidia-cudnn-cu12[x]==9.1.0.70
triton @ https://one.example/triton.whl
-c other.txt
--hash=sha256:00
numpy
"""
    assert pip_config.parse_constraints(text) == [
        "torch==2.6.0",
        "torch-vision>=0.20,<0.22",
        "nvidia-cudnn-cu12==9.1.0.70",
        "triton@https://one.example/triton.whl",
    ]
