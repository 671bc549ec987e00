"""systeminfo and the like, in the languages in which people paste it. MB are MiB there.

OS Version:                    10.0.26100 N/A Build 26100
Total Physical Memory:         32,560 MB
Virtueller Arbeitsspeicher: Maximale Größe:    37.424 MB
物理内存总量:     15,742 MB
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Optional

from cudadoctor.matrix import Matrix
from cudadoctor.reports.blocks import TABLE, TYPED, Block, Claim
from cudadoctor.reports.text import Text

_TOTAL = (
    "total physical memory",
    "gesamter physischer speicher",
    "mémoire physique totale",
    "cantidad total de memoria f",
    "memoria fisica totale",
    "memória física total",
    "полный объем физической памяти",
    "物理内存总量",
    "實體記憶體總計",
    "物理メモリの合計",
    "총 실제 메모리",
)
_AVAILABLE = (
    "available physical memory",
    "verfügbarer physischer speicher",
    "mémoire physique disponible",
    "memoria física disponible",
    "memoria fisica disponibile",
    "memória física disponível",
    "доступная физическая память",
    "可用的物理内存",
    "可用實體記憶體",
    "利用できる物理メモリ",
    "사용 가능한 실제 메모리",
)
_COMMIT = (
    "virtual memory: max size",
    "virtueller arbeitsspeicher: maximale gr",
    "mémoire virtuelle : taille maximale",
    "memoria virtual: tamaño máximo",
    "memoria virtuale: dimensione massima",
    "memória virtual: tamanho máximo",
    "виртуальная память: макс. размер",
    "虚拟内存: 最大值",
    "虛擬記憶體: 大小上限",
    "仮想メモリ: 最大サイズ",
    "가상 메모리: 최대 크기",
)
_NAMES = ("os name:", "betriebssystemname:", "os 名称:", "os 名稱:", "os 名:", "nom du syst", "nombre del sistema op")
_VERSIONS = (
    "os version:",
    "betriebssystemversion:",
    "os 版本:",
    "version du syst",
    "версия ос:",
    "os バージョン:",
    "build 0",
)
_TYPES = (
    "x00-based pc",
    "x00-basierter pc",
    "arm00-based pc",
    "arm00-basierter pc",
    "pc à base de x00",
    "equipo basado en x00",
)
_EDITIONS = ("microsoft windows 00", "microsoft windows server")

TRIGGERS = (*_TOTAL, *_AVAILABLE, *_COMMIT, *_NAMES, *_VERSIONS, *_TYPES, *_EDITIONS)

_SIZE = re.compile(r"[:：]\s*(\d{1,3}(?:[.,  \u202f]?\d{3}){0,3})\s*(?:MB|Mo|МБ|GB|Go)\b")
_BUILD = re.compile(r"\b10\.0\.(\d{5})\b")
_BUILD_NUMBER = re.compile(r"\b[Bb]uild (\d{5})\b")
_EDITION = re.compile(
    r"\bMicrosoft (Windows (?:1[01]|8\.1|7|Server \d{4})(?: [\w ()-]{2,40}?)?)\s*(?:$|[|(\[]|\d{2}\.)"
)
_FACTS = ((_TOTAL, "memory.total"), (_AVAILABLE, "memory.available"), (_COMMIT, "memory.commit_limit"))


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    for hit in hits:
        line = text[hit][:400]
        claims = list(_memory(line, hit)) or list(_system(line, hit))
        if claims:
            yield Block("systeminfo", hit, hit, tuple(claims), TABLE)
    yield from _page_file(text, hits)


def _memory(line: str, at: int) -> Iterator[Claim]:
    lowered = line.lower()
    for labels, fact in _FACTS:
        if any(label in lowered for label in labels):
            size = _mib(line)
            if size is not None:
                yield Claim(fact, size << 20, at)
                yield Claim("system.os", "windows", at, trust=TYPED)


def _mib(line: str) -> Optional[int]:
    match = _SIZE.search(line)
    return int(re.sub(r"\D", "", match.group(1))) if match else None


def _system(line: str, at: int) -> Iterator[Claim]:
    lowered = line.lower()
    build = _BUILD.search(line) or _BUILD_NUMBER.search(line)
    labelled = any(label in lowered for label in (*_NAMES, *_VERSIONS[:-1], *("系统类型", "systemtyp", "system type")))
    if build and (labelled or "windows" in lowered):
        yield Claim("system.windows_build", int(build.group(1)), at)
    if not labelled:
        return
    edition = _EDITION.search(line)
    if edition:
        yield Claim("system.distribution_name", "Microsoft " + edition.group(1).strip(), at)
    if edition or build:
        yield Claim("system.os", "windows", at, trust=TYPED)
    if "pc" in lowered.split() or "pc" in lowered:
        if "arm64-" in lowered:
            yield Claim("system.arch", "aarch64", at)
        elif "x64" in lowered:
            yield Claim("system.arch", "x86_64", at)


def _page_file(text: Text, hits: Sequence[int]) -> Iterator[Block]:
    """What may be promised, less the memory, is what the page files hold at their largest."""
    found: dict[str, tuple[int, int]] = {}
    for hit in hits:
        for claim in _memory(text[hit][:400], hit):
            if isinstance(claim.value, int):
                found[claim.fact] = (claim.value, hit)
    total, commit = found.get("memory.total"), found.get("memory.commit_limit")
    if total and commit and abs(total[1] - commit[1]) < 10 and commit[0] >= total[0]:
        claim = Claim("memory.swap_total", commit[0] - total[0], commit[1])
        yield Block("systeminfo", total[1], commit[1], (claim,), TABLE)
