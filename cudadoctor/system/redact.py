r"""Takes out of a recording what tells who and where: user and host names, serials, UUIDs, credentials, addresses.

What replaces it keeps its shape, so that a probe reads the recording as it read the machine:

    /home/alice/venv, C:\Users\Alice         /home/user/venv, C:\Users\user
    /scratch/alice/venv                      /scratch/user/venv
    GPU-8932f937-d72c-4106-c12f-20bd9faed9f6 GPU-00000000-0000-0000-0000-000000000001
    https://me:secret@example.org/simple     https://example.org/simple
    HF_TOKEN=hf_...                          HF_TOKEN=redacted
    52:54:00:12:34:56                        00:00:00:00:00:00

A name is replaced where it stands for a person (a part of a path outside the system's own folders, a whole value), not
wherever its letters occur: someone is called Max, and `max` means something in a control group. Numbers with three
dots are version numbers as often as addresses (`12.4.5.8`), so an address is one only beside what makes it one.
The node's name stays where a scheduler has given it (`SLURMD_NODENAME`, `NODE_NAME`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Optional, Union

from cudadoctor.model.fact import Fact, Facts
from cudadoctor.model.record import NamedTuple
from cudadoctor.parse.decode import decode_pasted

USER = "user"
OTHER_USER = "other"
HOST = "host"
HIDDEN = "redacted"
ADDRESS = "192.0.2.1"  # an address that documentation uses
MAIL = "user@example.org"
MAC = "00:00:00:00:00:00"

# User names that say nothing about a person and words about a machine that some user is called by.
_NO_NAMES = frozenset(
    (
        "root", "user", "other", "admin", "administrator", "guest", "public", "shared", "default", "ubuntu", "debian",
        "centos", "fedora", "rocky", "ec2-user", "opc", "azureuser", "vagrant", "docker", "jovyan", "coder", "vscode",
        "runner", "jenkins", "gitlab-runner", "nobody", "nvidia", "cuda", "torch", "python", "conda", "pip", "linux",
        "kernel", "home", "usr", "opt", "lib", "bin", "etc", "dev", "proc", "sys", "tmp", "var", "mnt", "data",
        "scratch", "work", "none", "open", "host", "localhost", "node", "server", "gpu", "pytorch", "vllm", "comfyui",
        "tensorflow", "jupyter", "jetson", "tegra", "desktop", "laptop", "workstation", "train", "training", "python3",
        "windows", "container", "driver", "version", "devel", "runtime", "library", "module",
    )
)  # fmt: skip

# Paths that our own probes know by name: nothing in them is anybody's name.
_SYSTEM_FOLDERS = (
    "/proc/", "/sys/", "/dev/", "/etc/", "/lib", "/usr/", "/bin/", "/sbin/", "/boot/", "/opt/", "/run/", "/var/lib/",
    "c:\\windows\\", "c:\\program files",
)  # fmt: skip

_SECRET_VARIABLE = r"(?i)(token|secret|passw|credential|api_?key|access_?key|private|auth)"
_ADDRESS_VARIABLE = r"(?i)(^ssh_|_addr$|_ip$|_host$|^display$)"

# Expressions stand as texts: most runs need none of them, and re keeps those that it has compiled.
_HOMES = r"(/home/|/Users/)([^/\s:;,\"'\\]+)"
_WINDOWS_HOMES = r"(?i)([A-Za-z]:[\\/]+Users[\\/]+)([^\\/:*?\"<>|\r\n;]+)"
_NO_HOMES = frozenset((USER, OTHER_USER, "linuxbrew", "Shared", "Public", "Default", "All Users", "conda"))


class _Pattern(NamedTuple):
    """What to replace by what. `hints`: a text with none of them (lower case) holds no match; `colons` and `dots`: nor
    does one with fewer of these. They spare nearly every text the expression, and the expression its compilation."""

    expression: str
    replacement: str
    hints: tuple[str, ...] = ()
    colons: int = 0
    dots: int = 0

    def applied(self, text: str, lowered: str) -> str:
        for hint in self.hints:
            if hint in lowered:
                break
        else:
            if self.hints:
                return text
        if text.count(":") < self.colons or text.count(".") < self.dots:
            return text
        return re.sub(self.expression, self.replacement, text)  # re keeps what it has compiled


_PATTERNS = (
    _Pattern(r"([A-Za-z][A-Za-z0-9+.\-]*://)[^/\s@\"']+@", r"\1", ("://",)),
    _Pattern(
        r"(?i)([?&](?:token|key|sig|signature|password|access_token|auth|secret)=)[^&\s\"']+",
        r"\1" + HIDDEN,
        ("token=", "key=", "sig=", "signature=", "password=", "auth=", "secret="),
    ),
    _Pattern(
        r"\b(?:hf_[A-Za-z0-9]{16,}|gh[pousr]_[A-Za-z0-9]{16,}|github_pat_\w{16,}|glpat-[\w\-]{16,}|"
        r"AKIA[0-9A-Z]{16}|xox[abprs]-[\w\-]{10,}|sk-[A-Za-z0-9\-_]{20,}|pypi-[\w\-]{20,})",
        HIDDEN,
        ("hf_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "akia", "xox", "sk-", "pypi-"),
    ),
    # password=..., api_key: ..., Authorization: Bearer ...
    _Pattern(
        r"(?i)(\b[\w\-]*(?:api[_\-]?key|passw(?:or)?d|secret|token|authorization|credential)[\"']?"
        r"\s*[:=]\s*[\"']?(?:bearer |basic )?)[^\s\"',;&]{6,}",
        r"\g<1>" + HIDDEN,
        ("api_key", "api-key", "apikey", "passw", "secret", "token", "authorization", "credential"),
    ),
    # The program that an Xid names.
    _Pattern(r"(?i)(\bpid='?\d+'?, ?name=)[^,\s]+", r"\g<1>program", ("name=",)),
    _Pattern(r"(?i)(\bserial(?: ?number)?\"?\s*[:=]\s*\"?)[^\s\",;]+", r"\g<1>" + HIDDEN, ("serial",)),
    _Pattern(r"(?<![0-9A-Fa-f:])(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}(?![0-9A-Fa-f:])", MAC, colons=5),
    _Pattern(r"(?<![\w.+\-/])[\w.+\-]{1,64}@[A-Za-z][\w\-]*(?:\.[\w\-]+)*\.[A-Za-z]{2,}\b", MAIL, ("@",), dots=1),
    # An address after ://, @, "inet " or "addr:", or before :/ and :port.
    _Pattern(
        r"(?i)((?:://|@|\binet6? |\baddr[:=] ?|\b(?:ip|host|server)[:=] ?))(?:\d{1,3}\.){3}\d{1,3}\b",
        r"\g<1>" + ADDRESS,
        ("://", "@", "inet", "addr", "ip", "host", "server"),
        dots=3,
    ),
    _Pattern(r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?=:(?:/|\d))", ADDRESS, colons=1, dots=3),
    _Pattern(r"(?i)(://)\[[0-9a-f:.%\w]+\]", r"\g<1>" + ADDRESS, ("://[",)),
    # journalctl and syslog: "Mar 10 09:15:02 node7 kernel: ..."
    _Pattern(
        r"(?m)^([A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d )\S+( \S+?(?:\[\d+\])?: )",
        r"\g<1>" + HOST + r"\g<2>",
        colons=3,
    ),
    _Pattern(r"(?m)^(\d{4}-\d\d-\d\dT[\d:.,+\-Z]+ )\S+( \S+?(?:\[\d+\])?: )", r"\g<1>" + HOST + r"\g<2>", colons=3),
)
_UUID = r"\b(GPU|MIG)-([0-9a-fA-F]{6,8}(?:-[0-9a-fA-F]{4,12}){0,4})(?![\w-])"
_MOUNT_SERVER = r"(?m)(?<=\s)[A-Za-z0-9.\-]{2,}:(?=/[^/])"


# A row of nvidia-smi's process list: GPU, instances, process id and kind, then the program's name and its memory.
_SMI_PROCESS = r"^(\|\s+\d+\s+(?:(?:N/A|\d+)\s+){0,2}\d+\s+[A-Z](?:\+[A-Z])*\s+)(\S.*?)(\s+(?:\d+MiB|N/A|ERR!)\s*\|)$"


def _unnamed(row: re.Match[str]) -> str:
    return row.group(1) + "program".ljust(len(row.group(2)))[: len(row.group(2))] + row.group(3)


# Where a pasted text tells its people and its hosts: an expression, and what its groups are.
_TELLING = (
    (
        r"(?m)^[>\s]{0,9}(?:\([\w.\-]{1,40}\) ?)?\[?([a-z_][\w.\-]{0,31})@([A-Za-z][\w.\-]{0,62})[: ].{0,200}?[#$%]",
        "user",
        "host",
    ),
    (r"/(?:home|Users)/([^/\s:;,\"'\\]{1,64})", "home"),
    (r"(?i)[A-Z]:[\\/]{1,2}Users[\\/]{1,2}([^\\/:*?\"<>|\r\n;]{1,64})", "home"),
    (r"(?m)^(?:export )?(?:USER|LOGNAME|USERNAME|SUDO_USER)=([\w.\-]{1,64})", "user"),
    (r"(?m)^(?:export )?(?:HOSTNAME|COMPUTERNAME|HOST)=([\w.\-]{1,64})", "host"),
    (r"\bLinux ([\w.\-]{1,64}) \d+\.\d+[\w.\-]* #\d", "host"),
    (r"(?:Host Name|Hostname|Hostnameprefix|主机名|node|Node):[ \t]{1,40}([A-Za-z][\w.\-]{1,62})", "host"),
    (r"(?m)^srun: (?:error: )?([A-Za-z][\w.\-]{1,62}): task", "host"),
    (r"(?m)^(?:\[?\d*\]?:? ?)?([A-Za-z][\w.\-]{1,62}):\d+:\d+ \[\d+\] NCCL", "host"),
    (r"(?m)^[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d ([\w.\-]{1,64}) \S{1,60}?: ", "host"),
)  # fmt: skip

# A log of many megabytes names its people where it begins and where it ends, in letters; a home, a token or a line of
# the system's log is seen by its own form wherever it stands.
_TOLD_WITHIN = 500_000


class Redactor:
    """Replaces; the same thing by the same thing for as long as it lives."""

    def __init__(self, names: Iterable[str] = (), home: Optional[str] = None, hosts: Iterable[str] = ()) -> None:
        self._names = sorted({name for name in names if name and name.lower() not in _NO_NAMES}, key=len, reverse=True)
        # "/gpfs/people/alice": somebody's home that does not look like one.
        last = re.split(r"[/\\]", home.rstrip("/\\"))[-1] if home else ""
        self._home = home.rstrip("/\\") if home and last in self._names and len(last) > 1 else None
        telling = {host for host in hosts if len(host) > 3 and host.lower() not in _NO_NAMES}
        self._hosts = sorted(telling, key=len, reverse=True)
        self._uuids: dict[str, int] = {}
        self._owner: Optional[str] = None

    def _name_in_path(self) -> str:
        """An expression for the names as parts of paths."""
        names_pattern = "|".join(re.escape(name) for name in self._names)
        longer = "|".join(re.escape(name) for name in self._names if len(name) >= 4)
        more = rf"|(?:{longer})(?=[-_.])" if longer else ""
        ending = r"(?=[/\\\s:;,\"')\]]|$)"
        return rf"(?<=[/\\])(?:(?:{names_pattern}){ending}{more})"

    def _host_pattern(self) -> str:
        hosts_pattern = "|".join(re.escape(host) for host in self._hosts)
        return rf"(?<![A-Za-z0-9\-])(?:{hosts_pattern})(?![A-Za-z0-9\-])"

    @classmethod
    def of_this_machine(cls) -> Redactor:
        """Knows this user and this host, by their variables, /etc/passwd and uname; asks no directory service."""
        import os

        from cudadoctor.system.home import own_row

        variables = os.environ
        home = variables.get("HOME") or variables.get("USERPROFILE")
        names = [variables.get(name, "") for name in ("USER", "LOGNAME", "USERNAME", "SUDO_USER")]
        if home:
            names.append(re.split(r"[/\\]", home.rstrip("/\\"))[-1])
        hosts = [variables.get(name, "") for name in ("HOSTNAME", "COMPUTERNAME")]
        if hasattr(os, "uname"):
            hosts.append(os.uname().nodename)
            names.append(own_row()[0])
        hosts += [host.partition(".")[0] for host in hosts]
        given = {variables.get(name) for name in ("SLURMD_NODENAME", "NODE_NAME")}
        return cls(names, home, [host for host in hosts if host not in given])

    @classmethod
    def of_texts(cls, texts: Iterable[Union[bytes, str]]) -> Redactor:
        """Knows the people and hosts that pasted texts name: by prompts (`alice@node7:~$`), homes, the variables USER,
        LOGNAME and HOSTNAME, and the lines in which `uname -a` and `systeminfo` tell the host. The home of the person
        whose text it is becomes `~`, so that a command that holds it can be pasted there."""
        told: dict[str, dict[str, int]] = {"user": {}, "home": {}, "host": {}}
        for text in texts:
            if isinstance(text, bytes):
                text = decode_pasted(text)
            if len(text) > 2 * _TOLD_WITHIN:
                text = text[:_TOLD_WITHIN] + "\n" + text[-_TOLD_WITHIN:]
            for expression, *kinds in _TELLING:
                for match in re.finditer(expression, text):
                    for kind, found in zip(kinds, match.groups()):
                        if found:
                            told[kind][found] = told[kind].get(found, 0) + 1
        homes = told["home"]
        redactor = cls({**homes, **told["user"]}, None, told["host"])
        # Whose text it is: a command for that person finds the home as ~.
        redactor._owner = max(homes, key=lambda name: homes[name], default=None)
        return redactor

    # -- texts ------------------------------------------------------------------------------------------------------

    def path(self, path: str) -> str:
        """A path, or a text with paths in it: names of people."""
        if self._home is not None and self._home in path:
            path = re.sub(re.escape(self._home) + r"(?![\w.-])", lambda _: self._neutral_home(), path)
        if "/home/" in path or "/Users/" in path:
            path = re.sub(_HOMES, self._neutral, path)
        if ":" in path and "users" in path.lower():
            path = re.sub(_WINDOWS_HOMES, self._neutral, path)
        if any(name in path for name in self._names):
            path = re.sub(self._name_in_path(), self._named, path)
        return path

    def text(self, text: str) -> str:
        """Any text."""
        text = self.path(text)
        lowered = text.lower()
        for pattern in _PATTERNS:
            text = pattern.applied(text, lowered)
        if "GPU-" in text or "MIG-" in text:
            text = re.sub(_UUID, self._uuid, text)
        if any(host in text for host in self._hosts):
            text = re.sub(self._host_pattern(), HOST, text)
        return text

    def value(self, value: str) -> str:
        """A text that may be a name as a whole: a variable, a group, an item of a list."""
        return USER if value in self._names else self.text(value)

    def variable(self, name: str, value: str) -> str:
        if re.search(_SECRET_VARIABLE, name):
            return HIDDEN
        if re.search(_ADDRESS_VARIABLE, name):
            value = re.sub(r"(?:\d{1,3}\.){3}\d{1,3}", ADDRESS, value)
        return self.value(value)

    def mounts(self, text: str) -> str:
        """A list of mounts: network file systems name their server."""
        return re.sub(_MOUNT_SERVER, "server:", self.text(text))

    def piece(self, data: bytes) -> bytes:
        """A piece of a binary file, its length kept: names in the paths that compilers leave behind."""
        for name in self._names:
            if len(name) >= 3:
                for slash in (b"/", b"\\"):
                    data = data.replace(slash + name.encode() + slash, slash + b"u" * len(name.encode()) + slash)
        return data

    def content(self, path: str, data: bytes) -> bytes:
        """The bytes of a file, before they are looked at as text."""
        if path.endswith("/environ"):  # another process' variables: all that we ask is `container`
            rows = [row.partition(b"=") for row in data.split(b"\0")]
            return b"\0".join(
                name + mark + (value if name == b"container" or not mark else HIDDEN.encode())
                for name, mark, value in rows
            )
        return data

    def _neutral_home(self) -> str:
        return "/home/" + USER if self._home and self._home.startswith("/") else "C:\\Users\\" + USER

    def _neutral(self, match: re.Match[str]) -> str:
        name = match.group(2)
        if name in _NO_HOMES:
            return match.group(0)
        # Several accounts of one machine stay as different as "mine" and "another's".
        lowered = name.lower()
        if self._owner is not None and lowered == self._owner.lower():
            return "~"
        own = self._owner is None and (not self._names or any(lowered == known.lower() for known in self._names))
        return match.group(1) + (USER if own else OTHER_USER)

    def _named(self, match: re.Match[str]) -> str:
        # The path up to the name: from the last character that no path holds.
        before = match.string[: match.start()]
        start = max((before.rfind(mark) for mark in " \t\n\"'=;,(["), default=-1) + 1
        colon = before.rfind(":/")  # an item of a list of paths
        if colon >= start:
            start = colon + 1
        return match.group(0) if before[start:].lower().startswith(_SYSTEM_FOLDERS) else USER

    def _uuid(self, match: re.Match[str]) -> str:
        if re.fullmatch("[0-]+[1-9]?[0-9]{0,2}", match.group(2)):
            return match.group(0)  # one of ours
        number = self._uuids.setdefault(match.group(2).lower(), len(self._uuids) + 1)
        digits = re.sub("[0-9a-fA-F]", "0", match.group(2))
        shown = str(number)
        return f"{match.group(1)}-{digits[: -len(shown)]}{shown}"

    # -- whole documents --------------------------------------------------------------------------------------------

    def plain(self, value: Any) -> Any:
        """All texts in plain data; keys of dictionaries stay."""
        if isinstance(value, str):
            return self.value(value)
        if isinstance(value, list):
            return [self.plain(item) for item in value]
        if isinstance(value, dict):
            return {key: self.plain(item) for key, item in value.items()}
        return value

    def facts(self, facts: Facts) -> Facts:
        """Facts as a replay of the redacted recording gives them."""

        def redacted(name: str, fact: Fact[Any]) -> Fact[Any]:
            value = fact.value
            if name.startswith("env.") and isinstance(value, str):
                value = self.variable(name[4:], value)
            elif name != "scheduler.node":
                value = self.plain(value)
            return Fact(fact.state, value, self.path(fact.source), self.text(fact.reason))

        return Facts({name: redacted(name, fact) for name, fact in facts.items()})

    def document(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """A recording (the content of `machine.json`). Bytes in base64 are not looked into; see `piece`."""
        result: dict[str, Any] = {}
        for section, content in document.items():
            result[section] = self._section(section, content)
        return result

    def _section(self, section: str, content: Any) -> Any:
        if section in ("schema", "platform", "unlisted", "today", "libc", "limits", "machine", "kernel_release"):
            return content
        if section == "variables":
            return {
                name: self.variable(name, value) if isinstance(value, str) else value for name, value in content.items()
            }
        if section == "files":
            return {self.path(path): self._file(path, entry) for path, entry in content.items()}
        if section == "folders":
            return {self.path(path): self._listing(path, entry) for path, entry in content.items()}
        if section in ("binaries", "status", "disks"):
            return {self.path(path): entry for path, entry in content.items()}
        if section in ("links", "real_paths"):
            return {self.path(path): self._in_answer(entry) for path, entry in content.items()}
        if section == "programs":
            return [self._program(entry) for entry in content]
        return self.plain(content)

    def _program(self, entry: Mapping[str, Any]) -> Any:
        if "nvidia-smi" in entry["argv"][0] and "stdout" in entry:
            entry = dict(entry)
            lines = entry["stdout"] if isinstance(entry["stdout"], list) else [entry["stdout"]]
            lines = [re.sub(_SMI_PROCESS, _unnamed, line) for line in lines]
            entry["stdout"] = lines if isinstance(entry["stdout"], list) else lines[0]
        return self.plain(entry)

    def _in_answer(self, entry: Any) -> Any:
        return self.path(entry) if isinstance(entry, str) else entry

    def _file(self, path: str, entry: Any) -> Any:
        whole = self.mounts if "mount" in path else self.text
        if isinstance(entry, list):
            return whole("\n".join(entry)).split("\n")
        return whole(entry) if isinstance(entry, str) else entry

    def _listing(self, folder: str, entry: Any) -> Any:
        if not isinstance(entry, list):
            return entry
        separator = "\\" if "\\" in folder else "/"
        start = folder.rstrip(separator) + separator
        before = self.path(start)
        names = []
        for name in entry:
            whole = self.path(start + name)
            names.append(whole[len(before) :] if whole.startswith(before) else name)
        return sorted(set(names))
