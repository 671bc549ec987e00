"""Nodes that one reaches over ssh: OpenSSH's real server once a node, each with its own host name and processes, on
loopback. What fans out (ssh, pdsh, clush, mpirun) is the real program and sees several machines.

Each node plays its own machine: `Nodes.plays("n2", "one_gpu_lost")` gives its checks the stand-in NVML with that
scenario. Nothing of the system is changed: the servers live in namespaces of their own.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Optional

from bench import native
from bench.parts import CACHE, ROOT, clean_environ, free_ports, missing_part, program

SSHD = CACHE / "sshd"
UNREACHABLE = "n9"
"""A node that is known by name, and at whose address nobody listens."""

_SERVER = """\
Port {port}
ListenAddress 127.0.0.1
HostKey {root}/host_key
AuthorizedKeysFile {root}/key.pub
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin prohibit-password
PidFile none
MaxStartups 100
"""

_CLIENT = """\
Host *
  HostName 127.0.0.1
  User root
  IdentityFile {root}/key
  IdentitiesOnly yes
  UserKnownHostsFile /dev/null
  StrictHostKeyChecking no
  LogLevel ERROR
"""

# The server wants its own user and an empty folder; root's home is the test's.
_PASSWD = "sshd:x:100:65534::/run/sshd:/usr/sbin/nologin\nroot:x:0:0:root:{root}/home:/bin/sh\n"

_START = """\
mount --make-rprivate /
mount -t tmpfs none /run
mkdir /run/sshd
mount --bind "$1/passwd" /etc/passwd
hostname "$2"
exec "$3" -D -e -f "$1/$2.conf"
"""

_DOCTOR = """\
#!/bin/sh
machine={root}/machines/$(uname -n)
[ ! -r "$machine" ] || . "$machine"
PYTHONPATH={checkout} exec {python} -m cudadoctor "$@"
"""


class Nodes:
    """n1, n2, ...; a context manager. `environment` is that of a person at the head of them."""

    def __init__(self, count: int = 3) -> None:
        for tool in ("ssh", "ssh-keygen"):
            program(tool, "Debian: apt-get install openssh-client")
        program("unshare", "Debian: apt-get install util-linux")
        if not (SSHD / "ready").exists():
            missing_part("sshd", "scripts/install_test_parts.sh sshd fetches it")
        if os.getuid() != 0 or subprocess.run(["unshare", "--uts", "--pid", "--mount", "--fork", "true"]).returncode:
            missing_part("nodes with names of their own", "Run as root, where namespaces are allowed")
        self.names = [f"n{number}" for number in range(1, count + 1)]
        self.root = Path(tempfile.mkdtemp(prefix="cudadoctor-nodes-"))
        self.environment = clean_environ({"PATH": str(self.root / "bin")})
        self._servers: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Nodes:
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _start(self) -> None:
        for folder in ("bin", "home", "machines", "logs"):
            (self.root / folder).mkdir()
        for key in ("key", "host_key"):
            command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.root / key)]
            subprocess.run(command, check=True, timeout=30)
        (self.root / "passwd").write_text(_PASSWD.format(root=self.root))
        ports = free_ports(len(self.names) + 1)
        hosts = "".join(f"Host {name}\n  Port {port}\n" for name, port in zip([*self.names, UNREACHABLE], ports))
        (self.root / "ssh_config").write_text(hosts + _CLIENT.format(root=self.root))
        self.installs("ssh", f'#!/bin/sh\nexec {shutil.which("ssh")} -F {self.root}/ssh_config "$@"\n')
        doctor = _DOCTOR.format(root=self.root, checkout=ROOT, python=sys.executable)
        self.installs("cudadoctor", doctor)
        for name, port in zip(self.names, ports):
            self.plays(name, "two_gpus")
            (self.root / f"{name}.conf").write_text(_SERVER.format(root=self.root, port=port))
            with open(self.root / "logs" / name, "wb") as log:
                # With their first process all others of the namespace end.
                namespaces = ["--uts", "--mount", "--pid", "--mount-proc", "--fork", "--kill-child"]
                command = ["unshare", *namespaces, "sh", "-c", _START, "sh", str(self.root), name, str(SSHD / "sshd")]
                environment = clean_environ(LD_LIBRARY_PATH=str(SSHD / "lib"))
                server = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
                self._servers.append(server)
        end = time.monotonic() + 20
        for port in ports[:-1]:
            while not _listens(port):
                assert time.monotonic() < end, f"sshd does not listen: {self.logs()}"
                time.sleep(0.05)

    def stop(self) -> None:
        """Ends the servers with all that runs on the nodes, and removes the folder."""
        for server in self._servers:
            server.kill()
        for server in self._servers:
            with contextlib.suppress(subprocess.TimeoutExpired):
                server.wait(10)
        shutil.rmtree(self.root, ignore_errors=True)

    def logs(self) -> str:
        return "\n".join(file.read_text(errors="replace")[-1500:] for file in sorted((self.root / "logs").iterdir()))

    def plays(self, name: str, scenario: str) -> None:
        """From now on the node's checks see this machine (tests/native/scenarios)."""
        lines = [f"export {key}='{value}'\n" for key, value in native.environment(scenario).items()]
        (self.root / "machines" / name).write_text("".join(lines))

    def installs(self, name: str, script: str) -> Path:
        """A program on everybody's PATH."""
        file = self.root / "bin" / name
        file.write_text(script)
        file.chmod(0o755)
        return file

    @property
    def doctor(self) -> str:
        """The command as all nodes have it."""
        return str(self.root / "bin" / "cudadoctor")

    def run(
        self, command: Sequence[str], cwd: Path, env: Optional[Mapping[str, str]] = None, timeout: float = 120
    ) -> subprocess.CompletedProcess[str]:
        """Runs a command at the head of the nodes."""
        environment = {**self.environment, "CUDADOCTOR": self.doctor, **(env or {})}
        return subprocess.run(
            command,
            cwd=cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
        )


def _listens(port: int) -> bool:
    with socket.socket() as client:
        client.settimeout(1)
        return client.connect_ex(("127.0.0.1", port)) == 0
