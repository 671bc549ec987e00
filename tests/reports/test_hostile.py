"""Texts that nobody meant to be read: no crash, no hang, no quadratic blow-up, nothing out of them runs."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cudadoctor
from cudadoctor.matrix import Matrix, load_matrix
from cudadoctor.reports import read_report
from cudadoctor.reports.readers import readers

# What it asks takes a minute, and no Python answers otherwise than another.
pytestmark = pytest.mark.once

TESTS = Path(__file__).parent.parent
SAMPLES = sorted(
    path
    for folder in (TESTS / "cases", TESTS / "reports" / "samples")
    for path in folder.rglob("*")
    if path.is_file() and path.suffix in (".txt", ".xml", ".log", ".bin")
)


@pytest.fixture(scope="module")
def matrix() -> Matrix:
    return load_matrix()


def triggers(matrix: Matrix) -> list[str]:
    """Words at which some reader begins to look."""
    found: list[str] = []
    for module in readers():
        found += module.triggers(matrix) if hasattr(module, "triggers") else module.TRIGGERS
    return sorted(set(found))


# -- mutations of real texts --------------------------------------------------------------------------------------

ROUNDS = 400


def mutated(text: bytes, rng: random.Random) -> bytes:
    """The text with some of what happens to texts: cut, repeated, shuffled, bytes and numbers changed."""
    data = bytearray(text[:20_000])
    for _ in range(rng.randrange(1, 6)):
        if not data:
            break
        at, length = rng.randrange(len(data)), rng.choice((1, 2, 10, 100, 1000))
        kind = rng.randrange(7)
        if kind == 0:
            del data[at : at + length]
        elif kind == 1:
            data[at:at] = data[at : at + length]
        elif kind == 2:
            data[at : at + 1] = bytes([rng.randrange(256)])
        elif kind == 3:
            lines = data.split(b"\n")
            rng.shuffle(lines)
            data = bytearray(b"\n".join(lines))
        elif kind == 4:
            data[at:at] = rng.choice((b"\n", b"|", b":", b"\x00", b"\xff", b"9" * 30, b"-1", b"[", b"\x1b[", b"N/A"))
        elif kind == 5:
            data = bytearray(bytes(data).replace(b" ", rng.choice((b"", b"  ", b"\t", b"\n", b"\xc2\xa0"))))
        else:
            data = bytearray(bytes(data).swapcase() if at % 2 else bytes(data)[: at + 1])
    return bytes(data)


@pytest.mark.parametrize("seed", range(8))
def test_a_mutated_text_is_read_without_a_crash(matrix: Matrix, seed: int) -> None:
    assert SAMPLES
    rng = random.Random(seed)
    for _ in range(ROUNDS // 8):
        path = rng.choice(SAMPLES)
        text = mutated(path.read_bytes(), rng)
        try:
            read_report([("text", text)], matrix)
        except Exception as error:
            raise AssertionError(f"{path.name}, seed {seed}: {text!r}") from error


def test_two_mutated_texts_get_a_whole_answer() -> None:
    rng = random.Random(99)
    for _ in range(40):
        one, two = (mutated(rng.choice(SAMPLES).read_bytes(), rng) for _ in range(2))
        diagnosis = cudadoctor.diagnose_text(one, two)
        assert diagnosis.exit in (0, 1, 3), (diagnosis.verdict, one, two)
        assert diagnosis.text("markdown") and str(diagnosis)


# -- texts out of words at which readers begin ----------------------------------------------------------------------


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_words_of_ours_in_any_order(data: st.DataObject) -> None:
    matrix = load_matrix()
    words = st.one_of(
        st.sampled_from(triggers(matrix)),
        st.sampled_from(
            ["\n", " ", "|", ":", "=", "580.95.05", "2.9.1+cu128", "12.8", "-1", "9" * 40, "N/A", "MiB", "\t"]
        ),
        st.text(max_size=8),
    )
    text = "".join(data.draw(st.lists(words, max_size=40)))
    read_report([("text", text)], matrix)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=400))
def test_any_bytes(data: bytes) -> None:
    read_report([("text", data)], load_matrix())


# -- sizes ----------------------------------------------------------------------------------------------------------

# Shapes on which a careless expression goes back and forth. Each is blown up to SIZE letters.
SIZE = 200_000
SHAPES = {
    "one letter": "a",
    "blanks": " ",
    "quotation marks": ">",
    "quoted quotations": "> ",
    "entities": "&gt;",
    "tags": "<p",
    "open brackets": "([{",
    "escapes": "\x1b[",
    "lost escapes": "[0m[",
    "bars": "| ",
    "frames": "+-",
    "rows of a table": "|   0  NVIDIA A100-SXM4-40GB          On  | 00000000:07:00.0 Off |                    0 |\n",
    "heads of a table": "| NVIDIA-SMI 550.54.14   Driver Version: 550.54.14   CUDA Version: 12.4 |\n",
    "heads in one line": "| NVIDIA-SMI 550.54.14   Driver Version: 550.54.14   CUDA Version: 12.4 | ",
    "packages": "torch==2.9.1\n",
    "packages in one line": "[pip3] torch==2.9.1 ",
    "collect_env": "Collecting environment information...\nPyTorch version: 2.9.1\n",
    "nvcc": "Cuda compilation tools, release 12.4, V12.4.131 ",
    "errors": "RuntimeError: CUDA error: out of memory\n",
    "errors in one line": "CUDA error: CUDA error: no kernel image ",
    "a traceback without an end": '  File "/home/x/y.py", line 3, in f\n    g()\n',
    "kernel log": "[ 1.0] NVRM: Xid (PCI:0000:65:00): 79, pid=1, GPU has fallen off the bus.\n",
    "variables": "export LD_LIBRARY_PATH=/usr/lib:/usr/lib:\n",
    "paths": "/home/alice/",
    "prompts": "alice@node7:~$ ",
    "XML": "<nvidia_smi_log><gpu>",
    "CSV": "0, NVIDIA A100, 40960 MiB, 10 MiB, ",
    "quotes": '"\\n",',
    "colons": "a: ",
    "numbers": "12.4.",
    "Windows lines": "\r",
    "NULs": "\x00",
    "JSON": '{"a": ',
}

READ = """
import json, sys
from cudadoctor import diagnose_text
for name, text in json.load(sys.stdin):
    print(name, flush=True)
    assert diagnose_text(text).exit in (0, 1, 3)
"""
READ_BYTES = """
import sys
from cudadoctor import diagnose_text
print(diagnose_text(sys.stdin.buffer.read()).exit)
"""
SHAPES_AT_ONCE = 9
READERS_AT_ONCE = 16


def read_by_another_process(texts: Sequence[tuple[str, str]], limit: int) -> None:
    """Each text is read, within the seconds of the limit all together; it is generous, because other work goes on
    beside, and what is quadratic takes minutes."""
    given = json.dumps(texts).encode()
    try:
        done = subprocess.run([sys.executable, "-c", READ], input=given, capture_output=True, timeout=limit)
    except subprocess.TimeoutExpired as error:
        raise AssertionError(f"no end of {(error.stdout or b'').decode().split()[-1:]}") from None
    assert done.returncode == 0, done.stdout.decode()[-200:] + done.stderr.decode()[-2000:]
    assert done.stdout.decode().splitlines() == [name for name, _ in texts]


@pytest.mark.parametrize("first", range(0, len(SHAPES), SHAPES_AT_ONCE))
def test_large_texts_of_one_shape_come_to_an_end(first: int) -> None:
    chosen = list(SHAPES.items())[first : first + SHAPES_AT_ONCE]
    read_by_another_process([(name, shape * (SIZE // len(shape) + 1)) for name, shape in chosen], limit=180)


# -- texts of nothing but what one reader looks for -----------------------------------------------------------------

HALF_A_TABLE = """+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 550.54.14   Driver Version: 550.54.14   CUDA Version: 12.4 |
|   0  NVIDIA A100-SXM4-40GB          On  | 00000000:07:00.0 Off |                    0 |
torch                    2.9.1+cu128
    Name : value
filename:       /lib/modules/6.8.0-79-generic/kernel/fs.ko"""
OF_EACH_ARRANGEMENT = 35_000


def letters(number: int) -> str:
    """A word of its own for each number: lines that differ in digits only are looked at once."""
    word = ""
    while number or not word:
        number, letter = divmod(number, 26)
        word += chr(ord("a") + letter)
    return word


def of_own_triggers(own: list[str]) -> str:
    """Six arrangements of a reader's triggers, 200 KB together."""
    arrangements = (
        own,
        [f"    {trigger} 12.4" for trigger in own],
        [f"{trigger}: {'x' * 700}" for trigger in own],
        [" ".join(own)],
        [f"{trigger}\n{HALF_A_TABLE}" for trigger in own],
        [f"{HALF_A_TABLE} {trigger} {' '.join(own)[:3000]}" for trigger in own],
    )
    parts = []
    for lines in arrangements:
        size = number = 0
        while size < OF_EACH_ARRANGEMENT:
            line = f"{lines[number % len(lines)]} {letters(number)}"
            parts.append(line[:OF_EACH_ARRANGEMENT])
            size += len(line) + 1
            number += 1
    parts.append(" ".join(own * (OF_EACH_ARRANGEMENT // len(" ".join(own)) + 1)))  # all in one line
    return "\n".join(parts)


def readers_by_name(matrix: Matrix) -> list[tuple[str, list[str]]]:
    return [
        (
            module.__name__.rpartition(".")[2],
            list(module.triggers(matrix) if hasattr(module, "triggers") else module.TRIGGERS),
        )
        for module in readers()
    ]


@pytest.mark.parametrize("first", range(0, len(readers()), READERS_AT_ONCE))
def test_lines_of_nothing_but_one_readers_triggers_come_to_an_end(matrix: Matrix, first: int) -> None:
    chosen = readers_by_name(matrix)[first : first + READERS_AT_ONCE]
    texts = [(name, of_own_triggers(own)) for name, own in chosen]
    assert all(len(text) > 200_000 for _, text in texts)
    read_by_another_process(texts, limit=300)


# Each is short, and was asked for so that there are very many ways to tell one piece of the answer from the next.
SESSIONS = {
    "unknown pieces": (">>> print(torch.__version__, a, b, c, d, e, f, 'END')", "2.1.0 " + "x " * 90),
    "pieces in a format": (
        ">>> print(f'{torch.__version__}{a}{b}{torch.version.cuda}{c}{d}END')", "2.1.0 12.4 " + "1.1 " * 90,
    ),
    "versions without a gap": (
        ">>> print(torch.__version__, vllm.__version__, jax.__version__, triton.__version__, 'END', sep='')", "1." * 90,
    ),
    "answers with blanks": (
        ">>> print(sys.version, sys.executable, torch.cuda.get_device_name(0), platform.platform(), 'END')",
        "3.11.1 /" + "a/ A" * 90,
    ),
}  # fmt: skip


def test_an_answer_of_many_pieces_is_not_guessed_at() -> None:
    read_by_another_process([(name, "\n".join(lines)) for name, lines in SESSIONS.items()], limit=60)


@pytest.mark.skipif(sys.platform == "win32", reason="the limit is a matter of POSIX")
def test_memory_is_bounded() -> None:
    """Eight MB of a log with an error in each line are read within the memory that the text takes some times over."""
    limited = "import resource; resource.setrlimit(resource.RLIMIT_AS, (600 << 20, 600 << 20))" + READ_BYTES
    line = b"2026-03-10T09:15:02Z step %d RuntimeError: CUDA error: out of memory\n"
    text = b"".join(line % number for number in range(120_000))
    done = subprocess.run([sys.executable, "-c", limited], input=text, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
