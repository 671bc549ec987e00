"""A package index on loopback for the real pip and uv.

Three layouts, as in the world: `/simple/<project>/` like the default index, `/whl/<variant>/<project>/` like
download.pytorch.org (local versions in the file names with %2B, 403 for what it does not have), and `/flat/<variant>/`
like some mirrors of it (all wheels of the variant on one page, with relative links).

The same server is an HTTPS proxy that answers for every host itself: with the environment of
`WheelIndex.as_internet()` a *verbatim* command that names download.pytorch.org, or no index at all, installs
from here, and nothing can reach the real network.
"""

from __future__ import annotations

import hashlib
import html
import io
import re
import ssl
import threading
import zipfile
from collections.abc import Iterable
from http.server import ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from packaging.requirements import Requirement

from .https_proxy import Certificates, HttpsProxy
from .wheels import LINUX, Wheel, companion_wheel, requirements_of, tiny_wheel, torch_wheel

PYTORCH = "download.pytorch.org"
SIMPLE = "simple"


class WheelIndex:
    """The index. Pages are named "simple" or by variant ("cu126", "cpu").

    url      http://127.0.0.1:<port>
    requests every request so far, as "host path" or, without a proxy, "path"
    broken   path prefix -> HTTP status to answer instead (503, say)
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._pages: dict[str, dict[str, list[Wheel]]] = {SIMPLE: {}}
        self.requests: list[str] = []
        self.broken: dict[str, int] = {}
        self._certificates = Certificates(folder)
        index = self

        class Handler(_Handler):
            _index = index

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def simple(self) -> str:
        """The default index: PIP_INDEX_URL."""
        return f"{self.url}/{SIMPLE}"

    @property
    def mirror(self) -> str:
        """What stands in for https://download.pytorch.org/whl."""
        return f"{self.url}/whl"

    def whl(self, variant: str) -> str:
        return f"{self.mirror}/{variant}"

    @property
    def flat_mirror(self) -> str:
        """A mirror with all wheels of a variant on one page."""
        return f"{self.url}/flat"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)

    # ------------------------------------------------------------------------------------------ filling it

    def add(self, page: str, *wheels: Wheel) -> None:
        """Puts wheels on a page, and with them a tiny wheel of everything that they require and that it lacks."""
        projects = self._pages.setdefault(page, {})
        for wheel in wheels:
            known = projects.setdefault(wheel.name, [])
            if all(wheel.filename != other.filename for other in known):
                known.append(wheel)
        for wheel in wheels:
            for text in requirements_of(wheel):
                requirement = Requirement(text)
                if requirement.marker and "extra ==" in str(requirement.marker):
                    continue
                name = re.sub(r"[-_.]+", "-", requirement.name).lower()
                version = _version_for(requirement)
                served = projects.get(name, [])
                if not any(requirement.specifier.contains(other.version, prereleases=True) for other in served):
                    self.add(page, tiny_wheel(requirement.name, version, extras=sorted(requirement.extras)))

    def add_torch(
        self,
        version: str,
        variant: str,
        *,
        torchvision: str | None = None,
        torchaudio: str | None = None,
        pythons: Iterable[str] = ("3.9", "3.10", "3.11", "3.12", "3.13"),
        platform: str = LINUX,
        default: bool = False,
    ) -> None:
        """One torch release with its companions on the variant's page, for several Pythons.

        default=True: on the default index too, as the build of that platform there: without "+cuXXX" in its name.
        """
        pages = [(variant, True)] + ([(SIMPLE, False)] if default else [])
        for page, local in pages:
            for python in pythons:
                self.add(page, torch_wheel(version, variant, python=python, platform=platform, local=local))
                for name, companion in (("torchvision", torchvision), ("torchaudio", torchaudio)):
                    if companion:
                        wheel = companion_wheel(
                            name, companion, variant, version, python=python, platform=platform, local=local
                        )
                        self.add(page, wheel)

    def pages(self) -> dict[str, dict[str, list[Wheel]]]:
        """Page -> project -> its wheels."""
        return self._pages

    # ------------------------------------------------------------------------------------------- using it

    def pip_environment(self) -> dict[str, str]:
        """For pip and uv: no configuration, no cache, nothing but this index's default page."""
        return {
            "PIP_CONFIG_FILE": "/dev/null",
            "PIP_INDEX_URL": self.simple,
            "PIP_NO_CACHE_DIR": "1",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "PIP_NO_INPUT": "1",
            "PIP_RETRIES": "0",
            "PIP_TIMEOUT": "10",
            "PIP_ROOT_USER_ACTION": "ignore",
            "UV_NO_CONFIG": "1",
            "UV_INDEX_URL": self.simple,  # not UV_DEFAULT_INDEX: that one beats --index-url on the command line
            "UV_CACHE_DIR": str(self._folder / "uv-cache"),
            "UV_PYTHON_DOWNLOADS": "never",
            "UV_LINK_MODE": "copy",
            "UV_HTTP_TIMEOUT": "10",
            "NO_PROXY": "127.0.0.1",
            "no_proxy": "127.0.0.1",
        }

    def as_internet(self) -> dict[str, str]:
        """For commands that name real hosts: an HTTPS proxy that answers for them, and its authority."""
        env = self.pip_environment()
        for name in ("PIP_INDEX_URL", "UV_INDEX_URL", "NO_PROXY", "no_proxy"):
            del env[name]
        authority = str(self._certificates.authority())
        for name in ("HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy", "ALL_PROXY"):
            env[name] = self.url
        for name in ("PIP_CERT", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", "CURL_CA_BUNDLE"):
            env[name] = authority
        env["SSL_CERT_DIR"] = str(self._folder / "no-certificates")
        return env

    def page(self, name: str, project: str) -> str | None:
        """The HTML page of a project, or None."""
        wheels = self._pages.get(name, {}).get(project)
        if wheels is None:
            return None
        base = f"/{SIMPLE}/{project}/" if name == SIMPLE else f"/whl/{name}/"
        links = []
        for wheel in wheels:
            digest = hashlib.sha256(wheel.data).hexdigest()
            required = re.search(r"^Requires-Python: (.*)$", _metadata(wheel), re.MULTILINE)
            attribute = f' data-requires-python="{html.escape(required.group(1))}"' if required else ""
            href = f"{base}{quote(wheel.filename)}#sha256={digest}"
            links.append(f'<a href="{href}"{attribute}>{wheel.filename}</a><br/>')
        return "<!DOCTYPE html>\n<html>\n  <body>\n    " + "\n    ".join(links) + "\n  </body>\n</html>\n"

    def flat_page(self, name: str) -> str | None:
        """The HTML page of all wheels of a variant, or None."""
        wheels = [wheel for wheels in self._pages.get(name, {}).values() for wheel in wheels]
        links = [f'<a href="{quote(wheel.filename)}">{wheel.filename}</a><br/>' for wheel in wheels]
        return "<!DOCTYPE html>\n<html><body>\n" + "\n".join(links) + "\n</body></html>\n" if links else None

    def file(self, name: str, filename: str) -> bytes | None:
        for wheels in self._pages.get(name, {}).values():
            for wheel in wheels:
                if wheel.filename == filename:
                    return wheel.data
        return None

    def answer(self, host: str | None, path: str) -> tuple[int, str, bytes]:
        """(status, content type, body) of a request; host only where a proxy was asked."""
        self.requests.append(f"{host} {path}" if host else path)
        for prefix, status in self.broken.items():
            if path.startswith(prefix):
                return status, "text/plain", b"broken on purpose\n"
        whl = re.fullmatch(r"/whl/(\w+)/(.*)", path)
        simple = re.fullmatch(r"/simple/([^/]+)/(.*)", path)
        flat = re.fullmatch(r"/flat/(\w+)/(.*)", path)
        if host is not None and (host == PYTORCH) != bool(whl):
            return 404, "text/plain", b"not on this host\n"
        found: str | bytes | None = None
        if whl:
            name, rest = whl.groups()
            found = self.page(name, rest.rstrip("/")) if "." not in rest.rstrip("/") else self.file(name, rest)
        elif flat:
            name, rest = flat.groups()
            found = self.file(name, rest) if rest else self.flat_page(name)
        elif simple:
            project, rest = simple.groups()
            found = self.file(SIMPLE, rest) if rest else self.page(SIMPLE, project)
        if found is None:
            return (403 if whl else 404), "text/plain", b"not here\n"
        return (200, "text/html", found.encode()) if isinstance(found, str) else (200, "application/zip", found)

    def tls(self, host: str) -> ssl.SSLContext:
        return self._certificates.context(host)


class _Handler(HttpsProxy):
    _index: WheelIndex

    def do_GET(self) -> None:
        target = urlsplit(self.path)
        host = self._host or target.hostname
        status, kind, body = self._index.answer(host, unquote(target.path))
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_HEAD = do_GET

    def tls(self, host: str) -> ssl.SSLContext:
        return self._index.tls(host)


def _metadata(wheel: Wheel) -> str:
    with zipfile.ZipFile(io.BytesIO(wheel.data)) as archive:
        name = next(n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        return archive.read(name).decode()


def _version_for(requirement: Requirement) -> str:
    """A version that the requirement accepts: the one that it names, else 1.0."""
    for specifier in requirement.specifier:
        if specifier.operator in ("==", "~=", ">=", "==="):
            return specifier.version.replace(".*", ".0")
    return "1.0"
