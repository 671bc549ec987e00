r"""One-liners about torch and other frameworks: at Python's prompt, in notebooks, as `python -c`, and in sentences.

    >>> torch.cuda.is_available()               In [1]: torch.__version__, torch.version.cuda
    False                                       Out[1]: ('2.9.1+cu128', '12.8')

    $ python -c "import torch; print(torch.__version__, torch.version.cuda, torch.cuda.is_available())"
    2.9.1+cu128 12.8 True

    torch.cuda.is_available(): False            print(torch.cuda.is_available())  # False

An answer is taken for what was asked only where it has the shape of what is asked for, each part of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Callable, Optional

from cudadoctor.matrix import Matrix
from cudadoctor.model.record import NamedTuple
from cudadoctor.reports.blocks import LOG, TABLE, TYPED, Block, Claim
from cudadoctor.reports.gpus import cuda_gpu
from cudadoctor.reports.readers._said import (
    VERSION,
    available_claims,
    built_with_cuda_claims,
    capability,
    package_claims,
    platform_claims,
    python_claims,
    torch_claims,
)
from cudadoctor.reports.text import Text

TRIGGERS = (
    "torch.cuda.",
    "torch.__version__",
    "torch.version.",
    "torch.backends.cudnn.version",
    ".__version__",
    "list_physical_devices",
    "sys.version",
    "sys.executable",
    "platform.platform(",
    "cuda.is_available",
    "_cudadeviceproperties(",
)


class _Question(NamedTuple):
    """An expression that people ask for: `answer` is the shape of what it gives."""

    asked: str
    answer: str
    claims: Callable[[str, int], Iterator[Claim]]
    endless: bool = False  # whether the answer has no clear end


def _capability_claims(text: str, line: int) -> Iterator[Claim]:
    found = capability(text)
    if found:
        yield Claim("smi.gpus", [cuda_gpu(0, None, found)], line)


def _name_claims(text: str, line: int) -> Iterator[Claim]:
    name = text.strip("'\"")
    if re.match(r"(?:NVIDIA|Tesla|GeForce|Quadro|GRID|TITAN|A100|A10\b|A40|H100|RTX)", name):
        yield Claim("smi.gpus", [cuda_gpu(0, name)], line)


def _count_claims(text: str, line: int) -> Iterator[Claim]:
    """None: then is_available() is False, too. A number says that there are some, not that they can be used."""
    if text == "0":
        yield Claim("torch.cuda_available", False, line)


def _targets_claims(text: str, line: int) -> Iterator[Claim]:
    """An empty list is that of a CPU build, and of one that sees no GPU."""
    targets = re.findall(r"(?:sm|compute)_\d{2,3}[a-f]?", text)
    if targets:
        yield Claim("torch.sass", [one for one in targets if one.startswith("sm_")], line)
        yield Claim("torch.ptx", [one for one in targets if one.startswith("compute_")], line)


def _properties_claims(text: str, line: int) -> Iterator[Claim]:
    found = re.search(r"name='([^']{2,90})', major=(\d{1,2}), minor=(\d), total_memory=(\d{2,7})MB", text)
    if found:
        name, major, minor, memory = found.groups()
        yield Claim("smi.gpus", [cuda_gpu(0, name, f"{major}.{minor}", int(memory))], line)


def _executable_claims(text: str, line: int) -> Iterator[Claim]:
    yield Claim("python.executable", text.strip("'").replace("\\\\", "\\"), line)


def _nothing(text: str, line: int) -> Iterator[Claim]:
    return iter(())


def _version_of(package: str) -> Callable[[str, int], Iterator[Claim]]:
    return lambda text, line: package_claims(package, text.strip("'\""), line)


_QUOTED = rf"'?{VERSION}'?"
_QUESTIONS = (
    _Question(r"(?:torch\.)?cuda\.is_available(?:\(\))?", r"True|False", available_claims),
    _Question(r"torch\.(?:__version__|version\.__version__)", _QUOTED, lambda t, n: torch_claims(t.strip("'\""), n)),
    _Question(r"torch\.version\.cuda", r"'?\d{1,2}\.\d{1,2}'?|None", built_with_cuda_claims),
    _Question(r"torch\.version\.hip", r"'?\d[\w.-]*'?|None", _nothing),
    _Question(r"torch\.cuda\.device_count\(\)", r"\d{1,3}", _count_claims),
    _Question(r"torch\.cuda\.current_device\(\)", r"\d{1,3}", _nothing),
    _Question(
        r"torch\.cuda\.get_device_name\([^()]{0,40}(?:\(\))?\)", r"'[^']{2,90}'|[A-Z][\w ./-]{2,90}", _name_claims, True
    ),
    _Question(r"torch\.cuda\.get_device_capability\([^()]{0,40}\)", r"\(\d{1,2}, ?\d\)", _capability_claims),
    _Question(
        r"torch\.cuda\.get_device_properties\([^()]{0,40}\)",
        r"_CudaDeviceProperties\([^\n]{0,400}\)",
        _properties_claims,
        True,
    ),
    _Question(r"torch\.cuda\.get_arch_list\(\)", r"\[[^\[\]]{0,400}\]", _targets_claims),
    _Question(r"torch\.backends\.cudnn\.version\(\)", r"\d{4,6}|None", _nothing),
    _Question(r"torch\.backends\.cudnn\.(?:enabled|is_available\(\))", r"True|False", _nothing),
    _Question(r"(?:torchvision)\.__version__", _QUOTED, _version_of("torchvision")),
    _Question(r"(?:torchaudio)\.__version__", _QUOTED, _version_of("torchaudio")),
    _Question(r"(?:transformers)\.__version__", _QUOTED, _version_of("transformers")),
    _Question(r"(?:xformers)\.__version__", _QUOTED, _version_of("xformers")),
    _Question(r"(?:flash_attn)\.__version__", _QUOTED, _version_of("flash-attn")),
    _Question(r"(?:triton)\.__version__", _QUOTED, _version_of("triton")),
    _Question(r"(?:bitsandbytes|bnb)\.__version__", _QUOTED, _version_of("bitsandbytes")),
    _Question(r"(?:vllm)\.__version__", _QUOTED, _version_of("vllm")),
    _Question(r"(?:np|numpy)\.__version__", _QUOTED, _version_of("numpy")),
    _Question(r"(?:tf|tensorflow)\.__version__", _QUOTED, _version_of("tensorflow")),
    _Question(r"jax\.__version__", _QUOTED, _version_of("jax")),
    _Question(r"jaxlib\.__version__", _QUOTED, _version_of("jaxlib")),
    _Question(r"(?:cp|cupy)\.__version__", _QUOTED, _nothing),
    _Question(r"(?:ort|onnxruntime|rt)\.__version__", _QUOTED, _nothing),  # of either package
    _Question(
        r"sys\.version", r"'?\d\.\d{1,2}\.\d{1,2}[^\n]{0,200}", lambda t, n: python_claims(t.strip("'"), n), True
    ),
    _Question(r"sys\.executable", r"'?(?:/|[A-Za-z]:\\)[^'\n]{3,300}'?", _executable_claims, True),
    _Question(r"platform\.platform\(\)", r"'?[\w.-]{5,120}'?", lambda t, n: platform_claims(t.strip("'"), n)),
)
_ASKED = re.compile("|".join(f"({question.asked})" for question in _QUESTIONS))

_PROMPT = re.compile(r"\s*(?:>>> ?|In ?\[\d{0,4}\]: ?)")
_CONTINUED = re.compile(r"\s*(?:\.\.\. ?|\s+\.\.\.: ?)")
_OUTPUT = re.compile(r"\s*Out ?\[\d{0,4}\]: ?")
_COMMAND = re.compile(r"\bpy(?:thon[\d.]{0,4})?(?:\.exe)?\b[^\n]{0,80}? -c\s*(?P<quote>[\"'])(?P<code>.{3,1500})")
_PRINT = re.compile(r"\bprint\s*\(")
# torch.cuda.is_available(): False / = False / -> False / # False / returns False / is False / False
_SAID = re.compile(
    r"[`'\")]{0,3}\s{0,4}(?:\)\s{0,4})?(?:[:=]{1,2}|-+>|=>|#|returns?(?:ed)?|gives?|is|outputs?|prints?|shows?)?[\s`'\"]{0,4}(?P<value>[^`\n]{1,400})"
)
# How many lines of warnings may stand between a question and its answer.
_BETWEEN = 12
_MOST_HITS = 1000
# What a question that is not known displays.
_OPEN = r".{0,200}?"
# Where more pieces without a clear end than that stand in one line, there are too many ways to tell one from the next.
_MOST_ENDLESS = 2
# What stands between two pieces ends the first.
_ENDS = re.compile(r"[^\w.+-]")


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    end = -1
    half = _MOST_HITS // 2
    for hit in hits if len(hits) <= _MOST_HITS else (*hits[:half], *hits[-half:]):
        if hit <= end:
            continue
        block = _read_at(text, hit)
        if block is not None:
            end = block.last
            yield block


def _read_at(text: Text, hit: int) -> Optional[Block]:
    line = text[hit]
    prompt = _PROMPT.match(line)
    command = _COMMAND.search(line)
    if prompt:
        return _answered(text, hit, _displays(line[prompt.end() :], at_prompt=True), TABLE)
    if command:
        code = command.group("code").rpartition(command.group("quote"))[0] or command.group("code")
        return _answered(text, hit, _displays(code, at_prompt=False), TABLE)
    return _in_one_line(text, hit) or _script(text, hit)


# -- what a piece of code displays -----------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def _displays(code: str, at_prompt: bool) -> tuple[re.Pattern[str], ...]:
    """For each line that the code displays the shape of it; a shape's groups are named q0, q1, ... by question."""
    shapes = []
    statements = _split(code, ";")
    for place, statement in enumerate(statements):
        statement = statement.strip()
        printed = _PRINT.match(statement)
        if printed:
            inner = statement[printed.end() :].rstrip()
            arguments = _split(inner[:-1] if inner.endswith(")") else inner, ",")
            shape = _line_of(arguments, joined_by=" ")
        elif at_prompt and place == len(statements) - 1 and not re.match(r"(?:import|from) |\w+ *= *[^=]", statement):
            parts = _split(statement.strip("()") if _ends_parenthesised(statement) else statement, ",")
            shape = _line_of(parts, joined_by=r", ?")
            if shape is not None and len(parts) > 1:
                shape = r"\(" + shape + r"\)"
        else:
            continue
        shapes.append(shape)
    return tuple([re.compile(shape if shape is not None else r"(?!)") for shape in shapes])


def _ends_parenthesised(statement: str) -> bool:
    return statement.startswith("(") and statement.endswith(")")


def _line_of(arguments: Sequence[str], joined_by: str) -> Optional[str]:
    """The shape of one line, or None where an argument is no question that is known."""
    shapes = []
    asked_before: set[int] = set()
    endless = 0
    for argument in arguments:
        argument = argument.strip()
        literal = re.fullmatch(r"(f?)(['\"])(.{0,200})\2", argument)
        if re.match(r"sep\s*=", argument):
            joined_by = " ?"
        if re.match(r"(?:end|sep|flush|file)\s*=", argument):
            continue
        if literal and not literal.group(1):
            shapes.append(re.escape(literal.group(3)))
            continue
        if literal:
            shapes.append(_formatted(literal.group(3), asked_before))
            endless += _glued(literal.group(3))
            continue
        shape = _shape_of(argument, asked_before)
        if shape != _OPEN or shapes[-1:] != [_OPEN]:  # two such are as good as one
            shapes.append(shape)
    endless += sum(shape.count(_OPEN) for shape in shapes)
    endless += sum(_QUESTIONS[number].endless for number in asked_before)
    if not asked_before or endless > _MOST_ENDLESS or (joined_by == " ?" and len(asked_before) > _MOST_ENDLESS):
        return None
    return joined_by.join(shapes)


def _formatted(body: str, asked_before: set[int]) -> str:
    shape = ""
    for place, part in enumerate(re.split(r"\{([^{}]{1,100})\}", body)):
        shape += _shape_of(part, asked_before) if place % 2 else re.escape(part)
    return shape


def _glued(body: str) -> int:
    """How many pieces of a format follow another with nothing between that would end it."""
    return sum(not _ENDS.search(between) for between in re.split(r"\{[^{}]{1,100}\}", body)[1:-1])


def _shape_of(argument: str, asked_before: set[int]) -> str:
    asked = _ASKED.fullmatch(argument.strip())
    if asked is None or asked.lastindex is None or asked.lastindex - 1 in asked_before:
        return _OPEN
    number = asked.lastindex - 1
    asked_before.add(number)
    return f"(?P<q{number}>{_QUESTIONS[number].answer})"


def _split(code: str, at: str) -> list[str]:
    """Split at a separator that stands neither in quotes nor in brackets."""
    parts, depth, quote, start = [], 0, "", 0
    for place, letter in enumerate(code):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
        elif letter == at and depth <= 0:
            parts.append(code[start:place])
            start = place + 1
    parts.append(code[start:])
    return parts


# -- the answers -------------------------------------------------------------------------------------------------------


def _answered(text: Text, hit: int, shapes: Sequence[re.Pattern[str]], trust: int) -> Optional[Block]:
    claims: list[Claim] = []
    last = hit
    wanted = list(shapes)
    for index, line in text.lines(hit + 1, hit + _BETWEEN):
        if not wanted or _PROMPT.match(line) or _COMMAND.search(line):
            break
        output = _OUTPUT.match(line)
        value = (line[output.end() :] if output else line).strip()
        match = wanted[0].fullmatch(value)
        if match:
            claims += _of_groups(match, index)
            last = index
            wanted.pop(0)
        elif wanted[0].pattern == "(?!)" and value:
            wanted.pop(0)  # a line that was printed, and of which nothing is known
            last = index
    return Block("Python one-liner", hit, last, tuple(claims), trust) if claims else None


def _of_groups(match: re.Match[str], index: int) -> Iterator[Claim]:
    for name, value in match.groupdict().items():
        if value is not None:
            yield from _QUESTIONS[int(name[1:])].claims(value, index)


def _in_one_line(text: Text, hit: int) -> Optional[Block]:
    """Question and answer in one line; what a person wrote in a sentence counts least."""
    line = text[hit]
    claims: list[Claim] = []
    for asked in _ASKED.finditer(line):
        number = (asked.lastindex or 1) - 1
        said = _SAID.match(line, asked.end())
        if said is None:
            continue
        question = _QUESTIONS[number]
        value = re.match(rf"({question.answer})(?=$|[\s`'\").,;!?]+(?:$|\s)|[`,;]|\. |\s)", said.group("value"))
        if value:
            claims += question.claims(value.group(1), hit)
    if not claims:
        return None
    is_output = re.match(r"\s*[\w. ]{0,30}torch\.[\w.]+(?:\(\))?\s*[:=]", line)
    return Block("Python one-liner", hit, hit, tuple(claims), LOG if is_output else TYPED)


def _script(text: Text, hit: int) -> Optional[Block]:
    """Lines of print(...) one below the other, and what they gave below them all."""
    shapes: list[re.Pattern[str]] = []
    last = hit
    for index, line in text.lines(hit, hit + _BETWEEN):
        if not line.strip() or line.lstrip().startswith(("#", "import ", "from ")):
            continue
        if not _PRINT.match(line.strip()):
            break
        shapes += _displays(line, at_prompt=False)
        last = index
    if not shapes:
        return None
    block = _answered(text, last, shapes, TYPED)
    return block._replace(first=hit) if block is not None else None
