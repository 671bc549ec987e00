"""A stand-in for all upstreams of `cudadoctor matrix update`, on loopback, with their faults.

PyTorch's index (HTML, local versions with %2B, 403 for what is not there), the default index (JSON for who accepts it,
else HTML; dates, Requires-Python) and NVIDIA's lists of drivers. Wheels are real zip files with the few members that
are read, served by ranges.

It is also an HTTPS proxy that answers for every host: with `as_internet()` in its environment a program that names
download.pytorch.org reaches this server, its certificate is checked, and nothing can reach the real network.
"""

from __future__ import annotations

import hashlib
import html
import json
import re
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any, Optional
from urllib.parse import quote, unquote, urlsplit

from .https_proxy import Certificates, HttpsProxy
from .index import _metadata
from .wheels import Wheel, cuda_of, tiny_wheel, torch_version_py

LISTING = Path(__file__).with_name("upstream_listing.txt")
PYTORCH = "download.pytorch.org"
SIMPLE_JSON = "application/vnd.pypi.simple.v1+json"

# The variant of each platform's wheel on the default index: its version.py tells it, its name does not.
DEFAULT_VARIANTS = {
    "2.14.0": {"manylinux_2_28_x86_64": "cu130", "manylinux_2_28_aarch64": "cu130"},
    "2.14.1": {"manylinux_2_28_x86_64": "cu130", "manylinux_2_28_aarch64": "cu130"},
    "2.15.0": {"manylinux_2_28_x86_64": "cu132", "manylinux_2_28_aarch64": "cu132"},
}

# Requires-Dist of the Linux wheels on the default index, without those that are no business of the matrix.
_LINUX = '; platform_system == "Linux"'
REQUIRES = {
    "torch 2.14": (
        "filelock",
        f"cuda-toolkit[cublas,cudart,cufft,cupti,curand,cusolver,cusparse,nvjitlink,nvrtc,nvtx]==13.0.3{_LINUX}",
        f'cuda-bindings<14,>=13.0.3{_LINUX} and python_version < "3.15"',
        f"nvidia-cudnn-cu13==9.24.0.43{_LINUX}",
        f"nvidia-cusparselt-cu13==0.8.1{_LINUX}",
        f"nvidia-nccl-cu13==2.30.7{_LINUX}",
        f"nvidia-nvshmem-cu13==3.4.5{_LINUX}",
        f'triton~=3.8.0{_LINUX} and python_version < "3.15"',
        'optree>=0.13.0; extra == "optree"',
    ),
    "torch 2.15": (
        "filelock",
        f"cuda-toolkit[cublas,cudart,cufft,cupti,cusolver,cusparse,nvjitlink,nvrtc,nvtx]==13.2.2{_LINUX}",
        f"nvidia-cudnn-cu13==9.26.0.51{_LINUX}",
        f"nvidia-cusparselt-cu13==0.8.1{_LINUX}",
        f"nvidia-nccl-cu13==2.30.7{_LINUX}",
        f"nvidia-nvshmem-cu13==3.7.2{_LINUX}",
        f'triton~=3.9.0{_LINUX} and python_version < "3.16"',
    ),
    "torchvision 0.28": ("numpy", "torch==2.13.0", "pillow!=8.3.*,>=5.3.0"),
    "torchvision 0.29.0": ("numpy", "torch==2.14.0", "pillow!=8.3.*,>=5.3.0"),
    "torchvision 0.29.1": ("numpy", "torch>=2.14.0", "pillow!=8.3.*,>=5.3.0"),
    "torchvision 0.29.2": ("numpy", "torch>=2.14", "pillow!=8.3.*,>=5.3.0"),
    "torchaudio 2.11.1": ("torch>=2.11",),
}

# What torch/cuda/__init__.py of 2.14 and 2.15 holds among much else. 13.4 stands there, and no such wheel is published.
GPU_TABLE = """\
import torch

# TORCH_CUDA_ARCH_LIST for PyTorch releases, keyed by host arch.
PYTORCH_RELEASES_CODE_CC: dict[str, dict[str, set[int]]] = {
    "12.6": {
        "x86_64": {50, 60, 70, 75, 80, 86, 90},
        "aarch64": {80, 90},
    },
    "13.0": {
        "x86_64": {75, 80, 86, 90, 100, 120},
        "aarch64": {80, 90, 100, 110, 120},
    },
    "13.2": {
        "x86_64": {75, 80, 86, 90, 100, 120},
        "aarch64": {80, 90, 100, 110, 120},
    },
    "13.4": {
        "x86_64": {75, 80, 86, 90, 100, 120},
        "aarch64": {80, 90, 100, 110, 120},
    },
}


def _device_requirement(code_cc):
    return None
"""


@dataclass
class Entry:
    """A file on a page."""

    project: str
    version: str
    local: Optional[str]
    python: str
    platform: str
    uploaded: Optional[str] = None
    requires_python: Optional[str] = None
    yanked: Optional[str] = None

    @property
    def filename(self) -> str:
        version = f"{self.version}+{self.local}" if self.local else self.version
        abi = "none" if self.python.startswith("py") else self.python
        return f"{self.project}-{version}-{self.python.rstrip('t')}-{abi}-{self.platform}.whl"


@dataclass
class Fault:
    """How a request is answered instead; `times`: how often, then as it should be."""

    answer: Callable[[_Handler], None]
    times: int = 1_000_000


@dataclass
class Pages:
    """What is published. `pages`: page -> its files; "default" is the default index. `metadata`: whether that one keeps
    METADATA beside its files and says so (PEP 658)."""

    pages: dict[str, list[Entry]] = field(default_factory=dict)
    toolkits: dict[str, str] = field(default_factory=dict)
    drivers: dict[str, dict[str, Any]] = field(default_factory=dict)
    releases: dict[str, Any] = field(default_factory=dict)
    variants: dict[str, dict[str, str]] = field(
        default_factory=lambda: {k: dict(v) for k, v in DEFAULT_VARIANTS.items()}
    )
    table: str = GPU_TABLE
    metadata: bool = False

    def add(self, page: str, *entries: Entry) -> None:
        self.pages.setdefault(page, []).extend(entries)

    def add_driver(self, version: str, cuda: str, day: str) -> None:
        compat = {"name": "CUDA compat", "version": version, "cuda_variant": [cuda]}
        self.drivers[version] = {"release_date": day, "release_label": version, "cuda_compat": compat}

    def read_listing(self, text: str) -> None:
        """Adds what a listing in the notation of upstream_listing.txt says."""
        for line in text.splitlines():
            if not line.strip() or line.startswith("#"):
                continue
            page, what, pythons, platforms, uploaded, requires = (part.strip() for part in line.split("|"))
            project, version, local = what.split()
            for python in pythons.split():
                for platform in platforms.split():
                    self.add(
                        page,
                        Entry(
                            project, version, _or_none(local), python, platform, _or_none(uploaded), _or_none(requires)
                        ),
                    )

    def add_matrix(self, releases: Iterable[Mapping[str, Any]]) -> None:
        """Adds the wheels that rows of the matrix stand for: the old ones, which the pages go on listing."""
        tags = {"linux-x86_64": "x86_64", "linux-aarch64": "aarch64"}
        for row in releases:
            for build in row["builds"]:
                if not build.get("seen", True):
                    continue
                platform, variant = build["platform"], build["variant"]
                glibc = build.get("glibc", row["glibc"].get(platform, "")).replace(".", "_")
                tag = f"manylinux_{glibc}_{tags[platform]}" if platform in tags else _NOT_LINUX[platform]
                untagged = platform.startswith("macos") or build.get("no_local_version", False)
                for python in build["pythons"].split():
                    abi = "cp" + python.replace(".", "")
                    self.add(variant, Entry("torch", row["version"], None if untagged else variant, abi, tag))
                    alone = python in build.get("pythons_index_only", "").split()
                    if row["default"].get(platform) == variant and not alone:
                        uploaded = row["date"] + "T12:00:00Z"
                        self.add("default", Entry("torch", row["version"], None, abi, tag, uploaded, ">=3.8"))


def published(compat: Path, *, listing: bool = True, without: Iterable[str] = ()) -> Pages:
    """Upstream on the day of the matrix: what the rows below `compat` stand for, and the listing of the newest minors.

    without: minors whose rows are passed over ("2.15"). Reads nothing but the TOML.
    """
    from cudadoctor.matrix.compile import load_toml

    pages = Pages()
    for path in sorted((compat / "torch").glob("*.toml")):
        if path.stem not in without:
            pages.add_matrix(load_toml(str(path))["release"])
    if listing:
        pages.read_listing(LISTING.read_text("utf-8"))
    for row in load_toml(str(compat / "driver_branches.toml"))["branch"]:
        versions = [row[column] for column in ("first_linux", "latest_linux") if column in row]
        if versions:
            info = [{"release_version": version, "release_date": "2026-01-01"} for version in versions]
            pages.releases[str(row["linux"])] = {"type": "production branch", "driver_info": info}
            pages.add_driver(versions[-1], row["cuda"], "2026-01-01")
    for row in load_toml(str(compat / "cuda_toolkits.toml"))["toolkit"]:
        pages.toolkits[row["release"]] = row.get("date", "2026-01-01")
    return pages


_NOT_LINUX = {
    "windows-x86_64": "win_amd64",
    "macos-arm64": "macosx_11_0_arm64",
    "macos-x86_64": "macosx_10_9_x86_64",
}


def _or_none(text: str) -> Optional[str]:
    return None if text == "-" else text


class Upstream:
    """The server.

    pages      what is published
    requests   every request so far, as "host path" or, without a proxy, "path", with " 304" where that was the answer
    faults     path prefix -> Fault
    """

    def __init__(self, folder: Path, pages: Pages) -> None:
        self.pages = pages
        self.requests: list[str] = []
        self.faults: dict[str, Fault] = {}
        self.user_agents: set[str] = set()
        self.authorizations: list[tuple[str, str]] = []
        self.ends = threading.Event()
        self._certificates = Certificates(folder)
        self._folder = folder
        self._wheels: dict[str, bytes] = {}
        upstream = self

        class Handler(_Handler):
            _upstream = upstream

        self._server = _Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def simple(self) -> str:
        return f"{self.url}/simple"

    def close(self) -> None:
        self.ends.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)

    def as_internet(self, trusted: bool = True) -> dict[str, str]:
        """The environment in which every host is this server; trusted=False: its authority is not known."""
        env = dict.fromkeys(("HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy"), self.url)
        env |= {"NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
        authority = str(self._certificates.authority())
        return {**env, "REQUESTS_CA_BUNDLE": authority} if trusted else env

    def tls(self, host: str) -> ssl.SSLContext:
        return self._certificates.context(host)

    # ------------------------------------------------------------------------------------------------- content

    def content(self, path: str, accept: str) -> Optional[tuple[str, bytes]]:
        """(content type, body), or None."""
        if path == "/whl/":
            names = sorted({*self.pages.pages, "rocm6.4", "xpu", "cpu-cxx11-abi", "nightly", "torch"} - {"default"})
            return "text/html", _html([f'<a href="{name}/">{name}/</a><br/>' for name in names])
        found = re.fullmatch(r"/whl/([\w.-]+)/([a-z]+)/", path)
        if found:
            files = self._of(*found.groups())
            return ("text/html", _html([self._anchor(found.group(1), e) for e in files])) if files else None
        found = re.fullmatch(r"/simple/([a-z-]+)/", path)
        if found:
            return self._project(found.group(1), accept)
        found = re.fullmatch(r"/(?:whl/([\w.-]+)|packages)/([^/]+\.whl)(\.metadata)?", path)
        if found and found.group(3) and self.pages.metadata and not found.group(1):
            wheel = self._wheel("default", found.group(2))
            return None if wheel is None else ("binary/octet-stream", _metadata(Wheel(found.group(2), wheel)).encode())
        if found and not found.group(3):
            wheel = self._wheel(found.group(1) or "default", found.group(2))
            return None if wheel is None else ("binary/octet-stream", wheel)
        if path == "/compute/nvidia-driver/redist/":
            names = [f"redistrib_{version}.json" for version in self.pages.drivers]
            return "text/html", _html([f"<a href='{name}'>{name}</a>" for name in ["../", *names]])
        found = re.fullmatch(r"/compute/nvidia-driver/redist/redistrib_([\d.]+)\.json", path)
        if found and found.group(1) in self.pages.drivers:
            return "application/json", json.dumps(self.pages.drivers[found.group(1)], indent=1).encode()
        if path == "/datacenter/tesla/drivers/releases.json":
            return "application/json", json.dumps(self.pages.releases).encode()
        return None

    def _of(self, page: str, project: str) -> list[Entry]:
        return [entry for entry in self.pages.pages.get(page, ()) if entry.project == project]

    def _anchor(self, page: str, entry: Entry) -> str:
        digest = hashlib.sha256(entry.filename.encode()).hexdigest()
        href = f"/whl/{page}/{quote(entry.filename)}#sha256={digest}"
        yanked = f' data-yanked="{html.escape(entry.yanked)}"' if entry.yanked is not None else ""
        return f'<a href="{href}" data-core-metadata="sha256={digest}"{yanked}>{entry.filename}</a><br/>'

    def _project(self, project: str, accept: str) -> Optional[tuple[str, bytes]]:
        files = self._of("default", project)
        if project == "cuda-toolkit":
            files = [
                Entry("cuda_toolkit", version, None, "py2.py3", "any", day + "T10:00:00Z")
                for version, day in self.pages.toolkits.items()
            ]
        if not files:
            return None
        if SIMPLE_JSON not in accept:
            links = []
            for entry in files:
                requires = f' data-requires-python="{html.escape(entry.requires_python or "")}"'
                links.append(f'<a href="../../packages/{quote(entry.filename)}"{requires}>{entry.filename}</a>')
            return "text/html; charset=utf-8", _html(links)
        entries: list[dict[str, Any]] = [
            {
                "filename": entry.filename,
                "url": f"../../packages/{quote(entry.filename)}",
                "hashes": {},
                "size": 500_000_000,
                "upload-time": entry.uploaded,
                "requires-python": entry.requires_python,
                "yanked": entry.yanked if entry.yanked is not None else False,
            }
            for entry in files
        ]
        for item in entries if self.pages.metadata else ():
            item["core-metadata"] = {"sha256": "00"}
        document = {"meta": {"api-version": "1.1"}, "name": project, "versions": [], "files": entries}
        return SIMPLE_JSON, json.dumps(document).encode()

    def _wheel(self, page: str, filename: str) -> Optional[bytes]:
        if f"{page}/{filename}" not in self._wheels:
            entry = next((entry for entry in self.pages.pages.get(page, ()) if entry.filename == filename), None)
            if entry is None:
                return None
            self._wheels[f"{page}/{filename}"] = self._made(page, entry)
        return self._wheels[f"{page}/{filename}"]

    def _made(self, page: str, entry: Entry) -> bytes:
        name = f"{entry.project} {entry.version}"
        requires = next((REQUIRES[key] for key in sorted(REQUIRES, reverse=True) if name.startswith(key)), ())
        files: dict[str, str | bytes] = {f"{entry.project}/__init__.py": ""}
        if entry.project == "torch":
            variant = (
                page if page != "default" else self.pages.variants.get(entry.version, {}).get(entry.platform, "cpu")
            )
            cuda = cuda_of(variant)
            files["torch/version.py"] = torch_version_py(f"{entry.version}+{variant}", cuda)
            files["torch/cuda/__init__.py"] = self.pages.table
            if cuda and "linux" in entry.platform:
                targets = _targets(self.pages.table, cuda, "aarch64" if "aarch64" in entry.platform else "x86_64")
                files["torch/lib/libtorch_python.so"] = b"\x7fELF\0" + targets + b"\0rest\0"
        full = f"{entry.version}+{entry.local}" if entry.local else entry.version
        abi = "none" if entry.python.startswith("py") else entry.python
        tag = f"{entry.python.rstrip('t')}-{abi}-{entry.platform}"
        wheel = tiny_wheel(
            entry.project, full, requires=requires, tag=tag, files=files, requires_python=entry.requires_python
        )
        return wheel.data


def _targets(table: str, cuda: str, machine: str) -> bytes:
    values: dict[str, Any] = {}
    exec(re.sub(r"^import torch$", "", table, flags=re.M), values)
    numbers = sorted(values["PYTORCH_RELEASES_CODE_CC"][cuda][machine])
    return " ".join(f"sm_{number}" for number in numbers).encode()


def _html(links: Iterable[str]) -> bytes:
    body = "\n    ".join(links)
    return f"<!DOCTYPE html>\n<html>\n  <body>\n    {body}\n  </body>\n</html>\n<!--TIMESTAMP 1795996800-->".encode()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is what these tests are about."""


class _Handler(HttpsProxy):
    _upstream: Upstream
    path_only = ""

    def do_GET(self) -> None:
        upstream = self._upstream
        target = urlsplit(self.path)
        self.path_only = unquote(target.path)
        host = self._host or target.hostname
        name = f"{host} {self.path_only}" if host else self.path_only
        upstream.requests.append(name)
        upstream.user_agents.add(self.headers.get("User-Agent", ""))
        if self.headers.get("Authorization"):
            upstream.authorizations.append((self.path_only, self.headers["Authorization"]))
        for prefix, fault in upstream.faults.items():
            if self.path_only.startswith(prefix) and fault.times > 0:
                fault.times -= 1
                fault.answer(self)
                return
        found = upstream.content(self.path_only, self.headers.get("Accept", ""))
        if found is None:
            # PyTorch's index lies in a store that says 403 for what is not there.
            self.answer(403 if self.path_only.startswith("/whl/") else 404, "application/xml", b"<Error/>")
            return
        kind, body = found
        etag = '"' + hashlib.sha256(body).hexdigest()[:16] + '"'
        if self.headers.get("If-None-Match") == etag:
            upstream.requests[-1] += " 304"
            self.answer(304, kind, b"", {"ETag": etag})
            return
        asked = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        if asked:
            first, last = asked.groups()
            start = int(first) if first else max(0, len(body) - int(last))
            end = min(int(last), len(body) - 1) if first and last else len(body) - 1
            span = {"Content-Range": f"bytes {start}-{end}/{len(body)}", "ETag": etag}
            self.answer(206, kind, body[start : end + 1], span)
            return
        self.answer(200, kind, body, {"ETag": etag})

    def answer(self, status: int, kind: str, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        if status != 304:
            self.send_header("Content-Length", str(len(body)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def tls(self, host: str) -> ssl.SSLContext:
        return self._upstream.tls(host)


# ------------------------------------------------------------------------------------------------------ faults


def status(code: int) -> Callable[[_Handler], None]:
    return lambda handler: handler.answer(code, "text/plain", b"broken on purpose\n")


def html_page(text: str, kind: str = "text/html") -> Callable[[_Handler], None]:
    return lambda handler: handler.answer(200, kind, text.encode())


# What a hotel's network answers to everything, with status 200.
SIGN_IN = html_page(
    "<!DOCTYPE html><html><head><title>Welcome</title></head><body><h1>Guest WiFi</h1>"
    '<form action="/login" method="post"><input name="room"></form><a href="/terms">Terms</a></body></html>'
)


def silence(handler: _Handler) -> None:
    """No answer at all."""
    handler._upstream.ends.wait(20)
    handler.close_connection = True


def trickle(handler: _Handler) -> None:
    """A byte now and then, for ever: no wait is ever long."""
    handler.send_response(200)
    handler.send_header("Content-Type", "text/html")
    handler.end_headers()
    handler.close_connection = True
    for _ in range(200):
        if handler._upstream.ends.wait(0.1):
            return
        try:
            handler.wfile.write(b"<")
        except OSError:
            return


def cut_off(handler: _Handler) -> None:
    """Half of what the head promises."""
    found = handler._upstream.content(handler.path_only, handler.headers.get("Accept", ""))
    assert found is not None
    kind, body = found
    handler.send_response(200)
    handler.send_header("Content-Type", kind)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body[: len(body) // 2])
    handler.close_connection = True


def reset(handler: _Handler) -> None:
    """The connection breaks before anything is said."""
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.connection.close()
    handler.close_connection = True


def endless(handler: _Handler) -> None:
    """A page that does not end, without a length; bounded, for the test's sake."""
    handler.send_response(200)
    handler.send_header("Content-Type", "text/html")
    handler.end_headers()
    handler.close_connection = True
    deadline = time.monotonic() + 20
    try:
        while time.monotonic() < deadline and not handler._upstream.ends.is_set():
            handler.wfile.write(b"<a href='x'>" * 100_000)
    except OSError:
        return


def huge(handler: _Handler) -> None:
    """A page that says that it is huge."""
    handler.send_response(200)
    handler.send_header("Content-Type", "text/html")
    handler.send_header("Content-Length", str(50 << 30))
    handler.end_headers()
    handler.close_connection = True


def downgrade(handler: _Handler) -> None:
    """From https to http."""
    handler.answer(302, "text/plain", b"", {"Location": f"{handler._upstream.url}{handler.path_only}"})
