"""One file on loopback, given out by ranges as servers of wheels do, and every way in which a server can go wrong."""

from __future__ import annotations

import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class RangeServer:
    """`fault` is what goes wrong from the request number `since` on (0 is the first), `times` times.

    A status ("404"); "portal" and "whole" (200 and a page, the file); "no answer", "cut off", "trickle"; "no range
    said", "size not said", "elsewhere" (another range), "packed", "another size", "another tag".
    """

    def __init__(self, name: str, data: bytes) -> None:
        self.name, self.data = name, data
        self.etag = '"a"'
        self.fault, self.since, self.times = "", 0, 1000
        self.asked: list[str] = []
        self.hold = threading.Event()  # what a server that does not answer waits for
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                server.answer(self)

            def log_message(self, format: str, *args: object) -> None:
                pass

        class Quiet(ThreadingHTTPServer):
            def handle_error(self, request: object, client_address: object) -> None:
                pass  # clients that hang up are what is played here

        self._http = Quiet(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True).start()

    def url(self, user: str = "") -> str:
        return f"http://{user}127.0.0.1:{self._http.server_port}/files/{self.name.replace('+', '%2B')}"

    def close(self) -> None:
        self.hold.set()
        self._http.shutdown()
        self._http.server_close()

    def answer(self, to: BaseHTTPRequestHandler) -> None:
        number, wanted = len(self.asked), to.headers.get("Range", "")
        self.asked.append(wanted)
        fault = self.fault if self.since <= number < self.since + self.times else ""
        found = re.fullmatch(r"bytes=(\d*)-(\d+)", wanted)
        assert found, "a request without a range would fetch the whole wheel"
        data = self.data + b"more" if fault == "another size" else self.data
        if found.group(1):
            first, last = int(found.group(1)), min(int(found.group(2)), len(data) - 1)
        else:
            first, last = max(0, len(data) - int(found.group(2))), len(data) - 1
        if fault == "elsewhere":
            first, last = (first - 1, last - 1) if first else (1, last + 1)
        body = data[first : last + 1]
        headers = {
            "Content-Range": f"bytes {first}-{last}/{len(data)}",
            "Content-Length": str(len(body)),
            "ETag": '"b"' if fault == "another tag" else self.etag,
        }
        status = 206
        if fault == "no answer":
            self.hold.wait(20)
        elif fault.isdigit():
            status, body, headers = int(fault), b"no", {"Content-Length": "2"}
        elif fault == "portal":
            status, body = 200, b"<html>Please log in</html>"
            headers = {"Content-Length": str(len(body)), "Content-Type": "text/html"}
        elif fault == "whole":
            status, body, headers = 200, self.data, {"Content-Length": str(len(self.data))}
        elif fault == "no range said":
            del headers["Content-Range"]
        elif fault == "size not said":
            headers["Content-Range"] = f"bytes {first}-{last}/*"
        elif fault == "packed":
            headers["Content-Encoding"] = "gzip"
        to.send_response(status)
        for name, value in headers.items():
            to.send_header(name, value)
        to.end_headers()
        try:
            if fault == "cut off":
                to.wfile.write(body[: len(body) // 2])
                to.close_connection = True
            elif fault == "trickle":
                for byte in body[:100]:
                    to.wfile.write(bytes([byte]))
                    if self.hold.wait(0.05):
                        break
                to.close_connection = True
            else:
                to.wfile.write(body)
        except OSError:
            to.close_connection = True  # the other side has heard enough
