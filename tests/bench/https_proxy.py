"""An HTTPS proxy that answers for every host itself, and the certificates that make clients believe it."""

from __future__ import annotations

import ssl
import subprocess
import threading
from http.server import BaseHTTPRequestHandler
from pathlib import Path

from .parts import program


class HttpsProxy(BaseHTTPRequestHandler):
    """Serves requests to itself and, behind CONNECT, those to any host; `_host` is that host, else None."""

    protocol_version = "HTTP/1.1"
    _host: str | None = None

    def tls(self, host: str) -> ssl.SSLContext:
        """What the host shows to its clients."""
        raise NotImplementedError

    def do_CONNECT(self) -> None:
        host = self.path.split(":")[0]
        self.send_response(200, "Connection established")
        self.end_headers()
        try:
            secure = self.tls(host).wrap_socket(self.connection, server_side=True)
        except (ssl.SSLError, OSError):  # the client does not trust us: its test will say so
            self.close_connection = True
            return
        # From here on the same connection carries requests to that host.
        self.connection = secure
        self.rfile = secure.makefile("rb")
        self.wfile = secure.makefile("wb", buffering=0)  # type: ignore[assignment]
        self._host = host
        self.close_connection = False

    def log_message(self, format: str, *args: object) -> None:
        pass


class Certificates:
    """A certificate authority of a day, made with openssl, and a certificate for each host that is asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._contexts: dict[str, ssl.SSLContext] = {}

    def _openssl(self, *arguments: str) -> None:
        openssl = program("openssl", "Debian: apt-get install openssl")
        subprocess.run([openssl, *arguments], cwd=self._folder, check=True, capture_output=True, timeout=60)

    _KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")

    def authority(self) -> Path:
        path = self._folder / "authority.pem"
        with self._lock:
            if not path.exists():
                usage = ("-addext", "keyUsage=critical,keyCertSign,cRLSign")
                self._openssl(
                    "req", "-x509", *self._KEY, "-days", "2", "-subj", "/CN=cudadoctor tests", *usage,
                    "-keyout", "authority.key", "-out", "authority.pem",
                )  # fmt: skip
        return path

    def context(self, host: str) -> ssl.SSLContext:
        self.authority()
        with self._lock:
            if host not in self._contexts:
                extensions = (
                    f"subjectAltName=DNS:{host}\nbasicConstraints=critical,CA:FALSE\n"
                    "keyUsage=critical,digitalSignature\nextendedKeyUsage=serverAuth\n"
                    "subjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid\n"
                )
                (self._folder / f"{host}.ext").write_text(extensions)
                self._openssl(
                    "req", *self._KEY, "-subj", f"/CN={host}", "-keyout", f"{host}.key", "-out", f"{host}.csr"
                )
                self._openssl(
                    "x509", "-req", "-in", f"{host}.csr", "-CA", "authority.pem", "-CAkey", "authority.key",
                    "-CAcreateserial", "-days", "2", "-extfile", f"{host}.ext", "-out", f"{host}.pem",
                )  # fmt: skip
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                context.load_cert_chain(self._folder / f"{host}.pem", self._folder / f"{host}.key")
                self._contexts[host] = context
            return self._contexts[host]
