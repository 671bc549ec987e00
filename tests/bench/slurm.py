"""A real Slurm on one machine: munged, slurmctld and a slurmd a node, of the distribution's packages, on loopback.

Everything lies in one temporary folder; the ports are free ones, so several clusters run beside each other. Each node
has fake GPU device nodes and plays its own machine: `Cluster.plays("n3", "one_gpu_lost")` gives n3's jobs, prologs and
health checks the stand-in NVML with that scenario and the real nvidia-smi of a driver generation.

Slurm is set up as a site would set it up, with one difference: Prolog, TaskProlog and HealthCheckProgram are wrappers
that lay the node's stand-ins over the (nearly empty) environment and run what the test has hung in
(`Cluster.hang_in("health_check", ...)`), or nothing.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Callable, Optional

from . import native
from .parts import CACHE, clean_environ, free_ports, missing_part

HOOKS = ("prolog", "task_prolog", "health_check")
"""What a site can hang in; the names of `Cluster.hang_in`."""

_DAEMONS = ("munged", "slurmctld", "slurmd", "scontrol", "srun", "sbatch")
_REMEDY = "Debian: apt-get install --no-install-recommends slurm-wlm munge"
_GPUS = 2

# What Slurm logs on every such machine.
_NOISE = re.compile(r"pmix|Node configuration differs|CPU frequency setting|MPI: Cannot create", re.IGNORECASE)

# HealthCheckInterval: with 1 the controller has no second left to ask whether a node that came back responds.
_CONF = """\
ClusterName=fake
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={root}/run/munge.sock
CredType=cred/munge
StateSaveLocation={root}/state
SlurmdSpoolDir={root}/spool/%n
SlurmctldPidFile={root}/run/slurmctld.pid
SlurmdPidFile={root}/run/slurmd-%n.pid
SlurmctldLogFile={root}/log/slurmctld.log
SlurmdLogFile={root}/log/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
GresTypes=gpu
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MailProg=/bin/true
SlurmdSyslogDebug=quiet
SlurmctldSyslogDebug=quiet
SlurmdParameters=config_overrides
SchedulerParameters=bf_interval=1,sched_interval=1,sched_min_interval=0,batch_sched_delay=0{scheduler}
InactiveLimit=0
KillWait=2
MessageTimeout=10
SlurmctldTimeout=60
SlurmdTimeout=60
JobRequeue=1
Prolog={root}/hooks/prolog.wrapper
TaskProlog={root}/hooks/task_prolog.wrapper
HealthCheckProgram={root}/hooks/health_check.wrapper
HealthCheckInterval=2
HealthCheckNodeState=ANY
"""

# SLURMD_NODENAME is all that a health check is sure to have; a site's slurm.conf is where scontrol looks for it.
_WRAPPER = """\
#!/bin/sh
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export SLURM_CONF={root}/slurm.conf
[ -x {root}/hooks/{hook} ] || exit 0
. {root}/nodes/"$SLURMD_NODENAME"/environment
export PATH
exec {root}/hooks/{hook} 2>>{root}/log/{hook}-"$SLURMD_NODENAME".log
"""

# What it prints as "export NAME=VALUE" reaches the task. A job without GPUs sees what the device cgroup leaves: none.
_TASK_WRAPPER = """\
#!/bin/sh
. {root}/nodes/"$SLURMD_NODENAME"/environment
if [ -z "$SLURM_JOB_GPUS$SLURM_STEP_GPUS$GPU_DEVICE_ORDINAL" ]; then
  FAKE_NVML={root}/nodes/no_gpus.txt
fi
export PATH
printf 'export %s=%s\\n' PATH "$PATH" LD_LIBRARY_PATH "$LD_LIBRARY_PATH" FAKE_NVML "$FAKE_NVML"
[ -x {root}/hooks/task_prolog ] || exit 0
exec {root}/hooks/task_prolog
"""


def _needed() -> None:
    for name in _DAEMONS:
        if not shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin"):
            missing_part(f"Slurm ({name})", _REMEDY)
    if os.getuid() != 0:
        missing_part("Slurm on one machine", "Run as root: it makes device nodes and runs slurmd")


class Cluster:
    """One controller and `nodes` nodes (n1, n2, ...) of two GPUs and four cores each. A context manager."""

    def __init__(self, nodes: int = 4) -> None:
        _needed()
        self.nodes = [f"n{number}" for number in range(1, nodes + 1)]
        # Short, for a socket's path, and open to the users whose jobs run.
        self.root = Path(tempfile.mkdtemp(prefix="cudadoctor-slurm-"))
        self.root.chmod(0o755)
        self.conf = self.root / "slurm.conf"
        self.environment = clean_environ(SLURM_CONF=str(self.conf))
        self.environment["PATH"] = f"{self.environment.get('PATH', os.defpath)}:/usr/sbin:/sbin"
        self._scheduler = ""
        self._ports: list[int] = []

    # -- up and down ----------------------------------------------------------------------------------------------

    def __enter__(self) -> Cluster:
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _start(self) -> None:
        for name in ("state", "spool", "log", "run", "hooks", "nodes", "jobs"):
            (self.root / name).mkdir()
        (self.root / "jobs").chmod(0o1777)
        (self.root / "munge").mkdir(mode=0o700)
        key = self.root / "munge" / "key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        self._ports = free_ports(1 + len(self.nodes))
        for name in self.nodes:
            (self.root / "spool" / name).mkdir()
            (self.root / "nodes" / name / "bin").mkdir(parents=True)
            for gpu in range(_GPUS):  # /dev/null's number: Slurm wants a device, and nobody opens it
                os.mknod(self.root / "nodes" / name / f"nvidia{gpu}", stat.S_IFCHR | 0o666, os.makedev(1, 3))
            self.plays(name, "two_gpus")
        (self.root / "nodes" / "no_gpus.txt").write_text("count = 0\n")
        for hook in HOOKS:
            text = _TASK_WRAPPER if hook == "task_prolog" else _WRAPPER
            wrapper = self.root / "hooks" / f"{hook}.wrapper"
            wrapper.write_text(text.format(root=self.root, hook=hook))
            wrapper.chmod(0o755)
        gres = [
            f"NodeName={name} Name=gpu Type=a100 File={self.root}/nodes/{name}/nvidia[0-{_GPUS - 1}]\n"
            for name in self.nodes
        ]
        (self.root / "gres.conf").write_text("AutoDetect=off\n" + "".join(gres))
        self._write_conf()
        munge = {"key-file": "munge/key", "socket": "run/munge.sock", "pid-file": "run/munged.pid"}
        munge.update({"log-file": "log/munged.log", "seed-file": "munge/seed"})
        self.run("munged", "--force", *(f"--{option}={self.root}/{file}" for option, file in munge.items()))
        wait_for(lambda: (self.root / "run" / "munge.sock").exists(), 10, "munged's socket")
        self.run("slurmctld", "-f", str(self.conf), "-c")
        for name in self.nodes:
            self.run("slurmd", "-N", name, "-f", str(self.conf))
        wait_for(self._all_idle, 30, "all nodes to be in service", self.logs)

    def _write_conf(self) -> None:
        host = socket.gethostname().split(".")[0]
        lines = [_CONF.format(host=host, port=self._ports[0], root=self.root, scheduler=self._scheduler)]
        for name, port in zip(self.nodes, self._ports[1:]):
            lines.append(
                f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=4 Boards=1 SocketsPerBoard=1 "
                f"CoresPerSocket=4 ThreadsPerCore=1 RealMemory=2000 Gres=gpu:a100:{_GPUS} State=UNKNOWN\n"
            )
        lines.append("PartitionName=gpu Nodes=ALL Default=YES MaxTime=10 State=UP\n")
        self.conf.write_text("".join(lines))

    def stop(self) -> None:
        """Ends what this cluster started, by its pid files, and removes its folder. Never raises for a daemon."""
        with contextlib.suppress(OSError, subprocess.SubprocessError, AssertionError):
            self.end_jobs()
        pids = [pid for file in sorted((self.root / "run").glob("*.pid")) for pid in [self._own(file)] if pid]
        for number in (signal.SIGTERM, signal.SIGKILL):
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
            with contextlib.suppress(AssertionError):
                wait_for(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in pids), 10, "the daemons' end")
                break
        shutil.rmtree(self.root, ignore_errors=True)

    def _own(self, file: Path) -> Optional[int]:
        """The process that a pid file means, if it still is this cluster's: numbers are used again."""
        with contextlib.suppress(OSError, ValueError):
            pid = int(file.read_text())
            if str(self.root).encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                return pid
        return None

    def logs(self) -> str:
        """The ends of the daemons' logs, for a message."""
        told = []
        for file in sorted((self.root / "log").glob("*.log")):
            lines = [line for line in file.read_text(errors="replace").splitlines() if not _NOISE.search(line)]
            told.append(f"-- {file.name}\n" + "\n".join(lines[-15:]))
        return "\n".join(told)

    # -- the machines ---------------------------------------------------------------------------------------------

    def plays(self, name: str, scenario: str, *, smi: str = "535", text: str = "") -> None:
        """From now on the node plays this machine (tests/native/scenarios): its NVML and the real nvidia-smi `smi`.

        text: lines of the scenario's own that go before those of the named one.
        """
        folder = self.root / "nodes" / name
        source = native.scenario_file(scenario)
        # Written beside and renamed: a check that runs meanwhile reads the one or the other.
        new = folder / "nvml.new"
        new.write_text(source.read_text() + "\n" + text)
        new.rename(folder / "nvml.txt")
        libraries = os.pathsep.join(map(str, (native.nvml_folder(native.missing_names(source)), native.cuda_folder())))
        tool = CACHE / "nvidia" / smi / "bin" / "nvidia-smi"
        if not tool.exists():
            missing_part(f"nvidia-smi {smi}", "scripts/install_test_parts.sh nvidia-smi fetches it")
        link = folder / "bin" / "nvidia-smi"
        with contextlib.suppress(FileNotFoundError):
            link.unlink()
        link.symlink_to(tool)
        (folder / "environment").write_text(
            f"export LD_LIBRARY_PATH={libraries}\nexport FAKE_NVML={folder}/nvml.txt\nPATH={folder}/bin:$PATH\n"
        )

    def hang_in(self, hook: str, script: Optional[str]) -> None:
        """What Prolog, TaskProlog or HealthCheckProgram (see HOOKS) run, as a shell script; None: nothing."""
        assert hook in HOOKS
        file = self.root / "hooks" / hook
        if script is None:
            with contextlib.suppress(FileNotFoundError):
                file.unlink()
            return
        new = file.with_suffix(".new")
        new.write_text(f"#!/bin/sh\n{script}\n")
        new.chmod(0o755)
        new.rename(file)

    def scheduler_parameters(self, *parameters: str) -> None:
        """Sets further SchedulerParameters and lets the controller read them."""
        self._scheduler = "".join(f",{parameter}" for parameter in parameters)
        self._write_conf()
        self.run("scontrol", "reconfigure")

    def fresh(self) -> None:
        """As after the start: no job, no hook, every node in service and well."""
        for hook in HOOKS:
            self.hang_in(hook, None)
        self.end_jobs()
        if self._scheduler:
            self.scheduler_parameters()
        for name in self.nodes:
            self.plays(name, "two_gpus")
        wait_for(self._all_idle, 20, "all nodes to be in service", self.logs)

    def _all_idle(self) -> bool:
        states = {name: self.state(name) for name in self.nodes}
        drained = [name for name, state in states.items() if "DRAIN" in state]
        if drained:
            self.run("scontrol", "update", f"NodeName={','.join(drained)}", "State=undrain", check=False)
        return set(states.values()) == {"IDLE"}

    # -- commands -------------------------------------------------------------------------------------------------

    def run(
        self,
        *command: str,
        env: Optional[Mapping[str, str]] = None,
        timeout: float = 60,
        check: bool = True,
        user: Optional[int] = None,
    ) -> subprocess.CompletedProcess[str]:
        """One of Slurm's commands, against this cluster; check: it must succeed."""

        def become() -> None:
            if user is not None:
                os.setgroups([])
                os.setgid(user)
                os.setuid(user)

        done = subprocess.run(
            command,
            env={**self.environment, **(env or {})},
            cwd=self.root / "jobs" if (self.root / "jobs").exists() else self.root,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            preexec_fn=become if user is not None else None,
        )
        if check:
            assert done.returncode == 0, f"{shlex.join(command)}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done

    def submit(
        self, script: str, *options: str, user: Optional[int] = None, env: Optional[Mapping[str, str]] = None
    ) -> Job:
        """A batch job; options: sbatch's."""
        number = len(list((self.root / "jobs").glob("*.sh")))
        file = self.root / "jobs" / f"{number}.sh"
        file.write_text(f"#!/bin/sh\n{script}\n")
        output = self.root / "jobs" / f"{number}.out"
        done = self.run(
            "sbatch", "--parsable", "--open-mode=append", f"--output={output}", *options, str(file), user=user, env=env
        )
        return Job(self, int(done.stdout.split(";")[0]), output)

    def end_jobs(self) -> None:
        """Cancels every job and waits for the end of its processes."""
        ids = self.run("squeue", "-h", "-o", "%A", timeout=20).stdout.split()
        if ids:
            self.run("scancel", *ids, timeout=20, check=False)
            wait_for(lambda: not self.run("squeue", "-h", timeout=20).stdout.strip(), 20, "the end of all jobs")

    def state(self, name: str) -> str:
        """The node's state as Slurm writes it: IDLE, IDLE+DRAIN, ALLOCATED."""
        return self._node(name).get("State", "?").rstrip("*")

    def reason(self, name: str) -> str:
        """Why the node is drained, without who said so and when; "" where it has no reason."""
        return self._node(name).get("Reason", "").partition(" [")[0]

    def drained(self) -> dict[str, str]:
        """The nodes that get no more jobs, with their reasons, as `sinfo -R` has them."""
        lines = self.run("sinfo", "-h", "-N", "-R", "-o", "%N %E").stdout.splitlines()
        return {name: reason for name, _, reason in (line.partition(" ") for line in lines) if reason != "none"}

    def _node(self, name: str) -> dict[str, str]:
        done = self.run("scontrol", "--oneliner", "show", "node", name, check=False)
        return fields_of(done.stdout) if done.returncode == 0 else {}


class Job:
    """A batch job of a cluster."""

    def __init__(self, cluster: Cluster, id: int, output: Path) -> None:
        self._cluster = cluster
        self.id = id
        self._output = output

    @property
    def output(self) -> str:
        """What it has written so far, of all its runs."""
        return self._output.read_text(errors="replace") if self._output.exists() else ""

    def show(self) -> dict[str, str]:
        """What `scontrol show job` says of it: JobState, Reason, Restarts, ExcNodeList, NodeList, ExitCode."""
        return fields_of(self._cluster.run("scontrol", "--oneliner", "show", "job", str(self.id)).stdout)

    @property
    def state(self) -> str:
        return self.show()["JobState"]

    def wait(self, *states: str, seconds: float = 30) -> dict[str, str]:
        """Waits for one of these states; by default for the job's end."""
        wanted = states or ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL")
        wait_for(
            lambda: self.state in wanted,
            seconds,
            f"job {self.id} to be {' or '.join(wanted)}",
            lambda: f"{self.show()}\n{self.output}\n{self._cluster.logs()}",
        )
        return self.show()

    def completes(self, seconds: float = 30) -> str:
        """Waits for its end, which must be a good one; what it has written."""
        shown = self.wait(seconds=seconds)
        assert shown["JobState"] == "COMPLETED", f"{shown}\n{self.output}\n{self._cluster.logs()}"
        return self.output

    def start_now(self) -> None:
        """A job that went back to the queue waits two minutes by itself; no test does."""
        # Those have a reason: a node takes no start of a job in the very second in which the job was ended on it.
        time.sleep(1.2)
        self._cluster.run("scontrol", "update", f"JobId={self.id}", "StartTime=now")


def fields_of(line: str) -> dict[str, str]:
    """`Name=value` pairs of a line of `scontrol --oneliner show`; a value (a reason) may hold blanks."""
    fields: dict[str, str] = {}
    name = ""
    for word in line.split():
        key, equals, value = word.partition("=")
        if equals and key[:1].isupper() and key.replace("/", "").replace(":", "").replace("_", "").isalnum():
            name, fields[key] = key, value
        elif name:
            fields[name] += f" {word}"
    return fields


def wait_for(holds: Callable[[], bool], seconds: float, what: str, details: Optional[Callable[[], str]] = None) -> None:
    """Waits until something holds; an AssertionError with the details when it does not in time."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds} s for {what}\n{details() if details else ''}")
        time.sleep(0.1)


@contextlib.contextmanager
def cluster(nodes: int = 4) -> Iterator[Cluster]:
    """A running cluster; a second attempt where another process took one of the free ports first."""
    for last in (False, True):
        try:
            one = Cluster(nodes).__enter__()
        except AssertionError:
            if last:
                raise
            continue
        try:
            yield one
        finally:
            one.stop()
        return


def words(command: Sequence[str]) -> str:
    """A command as a shell reads it."""
    return shlex.join(command)
