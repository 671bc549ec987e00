"""One-liners with their answers, and which Python and pip it was."""

from __future__ import annotations

from typing import Any

import pytest
from report_reading import ABSENT, UNKNOWN, expect, known_names

PROPERTIES = "_CudaDeviceProperties(name='NVIDIA GeForce RTX 3090', major=8, minor=6, total_memory=24268MB, x=82)"

SESSIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "at the prompt": (
        ">>> import torch\n>>> torch.version.cuda\n'12.1'\n>>> torch.cuda.is_available()\nTrue\n",
        {"torch.cuda": "12.1", "torch.cuda_available": True},
    ),
    "a warning before the answer": (
        ">>> torch.cuda.is_available()\n/x/torch/cuda/__init__.py:1: UserWarning: something\n  return f() > 0\nFalse\n",
        {"torch.cuda_available": False},
    ),
    "no answer": (">>> torch.cuda.is_available()\n>>> exit()\nTrue\n", {"torch.cuda_available": UNKNOWN}),
    "a notebook": (
        "In [1]: torch.__version__, torch.version.cuda\nOut[1]: ('2.1.0', None)\n",
        {"torch.version": "2.1.0", "torch.cuda": ABSENT},
    ),
    "-c": (
        '> python -c "import torch; print(torch.__version__); print(torch.cuda.is_available())"\n2.3.1+cpu\nFalse\n',
        {"torch.version": "2.3.1+cpu", "torch.cuda_available": False},
    ),
    "an f-string": (
        "$ python3 -c \"import torch; print(f'{torch.__version__} ({torch.version.cuda})')\"\n2.0.1+cu117 (11.7)\n",
        {"torch.version": "2.0.1+cu117", "torch.cuda": "11.7"},
    ),
    "a label": ('print("CUDA?", torch.cuda.is_available())\nCUDA? False\n', {"torch.cuda_available": False}),
    "a script and its output": (
        "import torch\nprint(torch.__version__)\nprint(torch.cuda.is_available())\n\nOutput:\n2.2.0\nFalse\n",
        {"torch.version": "2.2.0", "torch.cuda_available": False},
    ),
    "a GPU": (
        f">>> torch.cuda.get_device_properties(0)\n{PROPERTIES}\n",
        {"gpus": [(0, "NVIDIA GeForce RTX 3090", "8.6", 24268)]},
    ),
    "targets": (
        ">>> torch.cuda.get_arch_list()\n['sm_50', 'sm_90', 'compute_90']\n",
        {"torch.sass": ["sm_50", "sm_90"], "torch.ptx": ["compute_90"]},
    ),
    "no targets": (">>> torch.cuda.get_arch_list()\n[]\n", {"torch.sass": UNKNOWN}),
    "a sentence": ("`torch.cuda.is_available()` returns False here.\n", {"torch.cuda_available": False}),
    "other frameworks": (
        ">>> tf.__version__\n'2.15.0'\n>>> jax.__version__\n'0.4.30'\n",
        {"package.tensorflow.version": "2.15.0", "package.jax.version": "0.4.30"},
    ),
    "a banner": (
        "Python 3.9.13 (tags/v3.9.13:6de2ca5, May 17 2022, 16:24:45) [MSC v.1929 32 bit (Intel)] on win32\n",
        {"python.version": "3.9.13", "python.bits": 32, "system.os": "windows"},
    ),
    "-V": ("$ python -V\nPython 3.13.1\n", {"python.version": "3.13.1"}),
    "two environments": (
        "$ which python\n/home/u/conda/envs/e/bin/python\n"
        "$ pip --version\npip 22.0.2 from /usr/lib/python3/dist-packages/pip (python 3.10)\n",
        {
            "python.python_on_path": "/home/u/conda/envs/e/bin/python",
            "python.pip_on_path": {"path": "/usr/bin/pip", "interpreter": "/usr/bin/python3"},
        },
    ),
    "a pip that several interpreters may share": (
        "pip 24.0 from /home/u/.local/lib/python3.10/site-packages/pip (python 3.10)\n",
        {"python.pip": True, "python.pip_on_path": UNKNOWN},
    ),
    "a shim": ("$ which python\n/home/u/.pyenv/shims/python\n", {"python.python_on_path": UNKNOWN}),
    "a traceback": (
        '  File "/srv/.venv/lib/python3.11/site-packages/torch/cuda/__init__.py", line 293, in _lazy_init\n',
        {
            "torch.path": "/srv/.venv/lib/python3.11/site-packages/torch",
            "python.prefix": "/srv/.venv",
            "python.version": "3.11",
            "python.environment": "venv",
            "torch.version": UNKNOWN,
        },
    ),
}


@pytest.mark.parametrize(("text", "wanted"), SESSIONS.values(), ids=SESSIONS)
def test_a_session_is_read(text: str, wanted: dict[str, Any]) -> None:
    expect(text, wanted)


@pytest.mark.parametrize(
    "line",
    [
        'device = torch.device("cuda" if torch.cuda.is_available() else "cpu")',
        'assert torch.cuda.is_available(), "no GPU"',
        "torch.cuda.is_available() should be True",
        "torch.cuda.is_available() and True",
        "print(torch.__version__)",
        "python 3 is needed",
        "pip 24 is out",
    ],
)
def test_code_and_prose_answer_nothing(line: str) -> None:
    assert known_names(f"{line}\n") == set()


CALLED = {
    "a relative path, at cmd's prompt": (
        "D:\\ComfyUI_windows_portable>.\\python_embeded\\python.exe -s ComfyUI\\main.py --windows-standalone-build\n",
        {"python.executable": "D:\\ComfyUI_windows_portable\\python_embeded\\python.exe", "system.os": "windows"},
    ),
    "quoted, in PowerShell": (
        "PS C:\\work> & 'C:\\Program Files\\Python311\\python.exe' -m pip list\n",
        {"python.executable": "C:\\Program Files\\Python311\\python.exe", "system.os": "windows"},
    ),
    "a script's line": (
        ".\\python_embeded\\python.exe -s ComfyUI\\main.py\n",
        {"python.executable": ".\\python_embeded\\python.exe", "system.os": "windows"},
    ),
    "no path": ("(venv) C:\\sd>python main.py\n", {"python.executable": UNKNOWN, "system.os": "windows"}),
    "a program that is none": ("D:\\sd>webui.bat\n", {"python.executable": UNKNOWN, "system.os": "windows"}),
    "into WSL": ("C:\\WINDOWS\\system32>wsl --status\n", {"system.os": UNKNOWN}),
    "of an environment": (
        "(sd) user@host:~/sd$ ./venv/bin/python launch.py\n",
        {"python.executable": "./venv/bin/python", "system.os": UNKNOWN},
    ),
    "the system's own": ("$ /usr/bin/python3 -m pip list\n", {"python.executable": UNKNOWN}),
    "prose": ("The file /opt/demo/bin/python is missing\n", {"python.executable": UNKNOWN}),
}


@pytest.mark.parametrize(("text", "wanted"), CALLED.values(), ids=CALLED)
def test_the_interpreter_that_was_called_by_its_path(text: str, wanted: dict[str, Any]) -> None:
    expect(text, wanted)
