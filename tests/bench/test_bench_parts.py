"""The bench itself: what other tests lean on holds."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bench import native
from bench.fixtures import ERAS
from bench.parts import FLOOR, clean_environ, find_python, pythons_at_hand
from bench.roots import BARE, Device, File, Link, Shm, nouveau, nvidia_module, pci_gpu
from bench.venvs import activated
from bench.wheels import companion_wheel, requirements_of, tiny_wheel, torch_wheel

# What the real nvidia-ml-py reads, as JSON: value, or the code of the error.
ASK_NVML = """
import json, pynvml as N
def ask(name, *args):
    try:
        value = getattr(N, name)(*args)
    except N.NVMLError as error:
        return error.value
    except N.NVMLLibraryMismatchError:  # not an NVMLError: an unversioned name whose newest form is missing
        return "library mismatch"
    return value
def processes(handle):
    found = ask("nvmlDeviceGetComputeRunningProcesses", handle)
    return [[p.pid, p.usedGpuMemory] for p in found] if isinstance(found, list) else found
out = {"init": None}
try:
    N.nvmlInit()
except N.NVMLError as error:
    out = {"init": error.value, "text": str(error)}
else:
    out["driver"], out["cuda"] = N.nvmlSystemGetDriverVersion(), N.nvmlSystemGetCudaDriverVersion_v2()
    out["gpus"] = []
    for i in range(N.nvmlDeviceGetCount()):
        handle = ask("nvmlDeviceGetHandleByIndex", i)
        if isinstance(handle, int):
            out["gpus"].append({"handle": handle})
            continue
        memory = ask("nvmlDeviceGetMemoryInfo", handle)
        memory2 = ask("nvmlDeviceGetMemoryInfo", handle, N.nvmlMemory_v2)
        out["gpus"].append({
            "name": ask("nvmlDeviceGetName", handle),
            "cc": ask("nvmlDeviceGetCudaComputeCapability", handle),
            "memory": memory.total,
            "reserved": memory2 if isinstance(memory2, int) else memory2.reserved,
            "throttle": ask("nvmlDeviceGetCurrentClocksThrottleReasons", handle),
            "event": ask("nvmlDeviceGetCurrentClocksEventReasons", handle),
            "width": ask("nvmlDeviceGetCurrPcieLinkWidth", handle),
            "mig": ask("nvmlDeviceGetMigMode", handle),
            "mig_names": [ask("nvmlDeviceGetName", m) for m in
                          (ask("nvmlDeviceGetMigDeviceHandleByIndex", handle, j) for j in range(7))
                          if not isinstance(m, int)],
            "fan": ask("nvmlDeviceGetFanSpeed", handle),
            "processes": processes(handle),
        })
print(json.dumps(out))
"""
MIB = 1 << 20


def read_nvml(env: dict[str, str]) -> dict:
    done = subprocess.run(
        [sys.executable, "-c", ASK_NVML], env=clean_environ(env), capture_output=True, text=True, timeout=30
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


# ------------------------------------------------------------------------- the stand-in NVIDIA libraries


class TestNvml:
    def test_two_healthy_gpus(self, fake_nvml):
        found = read_nvml(fake_nvml("two_gpus"))
        assert (found["driver"], found["cuda"]) == ("535.183.01", 12020)
        first, second = found["gpus"]
        assert first["name"] == "NVIDIA A100-SXM4-80GB"
        assert first["cc"] == [8, 0]
        assert first["memory"] == 81920 * MIB
        assert first["reserved"] == 633 * MIB
        assert first["processes"] == [[4242, 69000 * MIB], [4243, 800 * MIB]]
        assert first["fan"] == 3, "a server card has no fan: not supported"
        assert (first["throttle"], second["throttle"]) == (0, 1)
        assert second["processes"] == []

    def test_one_gpu_lost(self, fake_nvml):
        first, second = read_nvml(fake_nvml("one_gpu_lost"))["gpus"]
        assert first["name"] == "NVIDIA A100-SXM4-80GB"
        assert second == {"handle": 15}

    @pytest.mark.parametrize(
        ("scenario", "code"),
        [("mismatch_18", 18), ("no_driver_9", 9), ("no_permission_4", 4), ("nvml_unknown_error", 999)],
    )
    def test_init_fails(self, fake_nvml, scenario, code):
        assert read_nvml(fake_nvml(scenario))["init"] == code

    def test_the_library_knows_its_version_without_a_driver(self, fake_nvml):
        code = "import pynvml; pynvml._LoadNvmlLibrary(); print(pynvml.nvmlSystemGetNVMLVersion())"
        done = subprocess.run(
            [sys.executable, "-c", code], env=clean_environ(fake_nvml("mismatch_18")), capture_output=True, timeout=30
        )
        assert done.stdout.split() == [b"12.535.261.03"], done.stderr

    def test_an_old_library_really_lacks_newer_functions(self, fake_nvml):
        env = fake_nvml("missing_symbol")
        code = "import ctypes; ctypes.CDLL('libnvidia-ml.so.1').nvmlDeviceGetMemoryInfo_v2"
        done = subprocess.run([sys.executable, "-c", code], env=clean_environ(env), capture_output=True, timeout=30)
        assert b"undefined symbol: nvmlDeviceGetMemoryInfo_v2" in done.stderr
        (gpu,) = read_nvml(env)["gpus"]
        assert gpu["event"] == gpu["reserved"] == 13, "NVML_ERROR_FUNCTION_NOT_FOUND"
        assert gpu["processes"] == "library mismatch"
        assert gpu["throttle"] == 1, "under its old name the function is there"

    def test_a_hang_is_a_hang_that_does_not_hear_sigterm(self, fake_nvml):
        env = clean_environ(fake_nvml("hang"))
        child = subprocess.Popen([sys.executable, "-c", "import pynvml; print(1, flush=True); pynvml.nvmlInit()"],
                                 env=env, stdout=subprocess.PIPE)  # fmt: skip
        assert child.stdout is not None and child.stdout.readline() == b"1\n"
        time.sleep(0.3)
        child.terminate()
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(0.5)
        child.kill()
        assert child.wait(10) == -9
        child.stdout.close()

    def test_mig_instances(self, fake_nvml):
        first, second = read_nvml(fake_nvml("mig"))["gpus"]
        assert first["mig"] == second["mig"] == [1, 1]
        assert first["mig_names"] == ["NVIDIA H100 80GB HBM3 MIG 1g.10gb", "NVIDIA H100 80GB HBM3 MIG 3g.40gb"]
        assert second["mig_names"] == []

    def test_throttled(self, fake_nvml):
        first, second = read_nvml(fake_nvml("throttled"))["gpus"]
        assert (first["throttle"], second["throttle"], second["width"]) == (0x68, 0x88, 4)

    def test_a_test_can_write_its_own_lines(self, fake_nvml, tmp_path):
        log = tmp_path / "calls"
        env = fake_nvml("healthy_4090", text="gpu.name = NVIDIA GeForce RTX 5090\ngpu.cc = 12.0\n", log=log)
        (gpu,) = read_nvml(env)["gpus"]
        assert (gpu["name"], gpu["cc"], gpu["memory"]) == ("NVIDIA GeForce RTX 5090", [12, 0], 24564 * MIB)
        assert log.read_text().startswith("nvmlInit")

    def test_every_function_that_nvidia_ml_py_knows_is_there(self, fake_nvml):
        import ctypes

        folder = fake_nvml("two_gpus", libcuda=False)["LD_LIBRARY_PATH"]
        library = ctypes.CDLL(f"{folder}/libnvidia-ml.so.1")
        absent = [name for name in native.looked_up_names() if not hasattr(library, name)]
        assert absent == []

    def test_an_unknown_scenario_names_the_known_ones(self, fake_nvml):
        with pytest.raises(ValueError, match=r"no scenario 'two_gpu'; there are: .*two_gpus"):
            fake_nvml("two_gpu")


class TestCuda:
    ASK = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
version, count = ctypes.c_int(-1), ctypes.c_int(-1)
print(cuda.cuInit(0), cuda.cuDriverGetVersion(ctypes.byref(version)), version.value,
      cuda.cuDeviceGetCount(ctypes.byref(count)), count.value)
"""

    def ask(self, env):
        done = subprocess.run(
            [sys.executable, "-c", self.ASK], env=clean_environ(env), capture_output=True, text=True, timeout=30
        )
        return [int(word) for word in done.stdout.split()]

    def test_it_plays_the_same_scenario(self, fake_nvml):
        assert self.ask(fake_nvml("two_gpus")) == [0, 0, 12020, 0, 2]
        assert self.ask(fake_nvml("mismatch_18")) == [803, 0, 12020, 3, -1]

    def test_alone(self, fake_cuda):
        assert self.ask(fake_cuda(driver=13000, init=804)) == [804, 0, 13000, 3, -1]
        assert self.ask(fake_cuda(driver=12080, count=4)) == [0, 0, 12080, 0, 4]


# --------------------------------------------------------------------------- the real nvidia-smi on them


class TestNvidiaSmi:
    def smi(self, folder, env, *arguments, timeout=20):
        return subprocess.run(
            [f"{folder}/nvidia-smi", *arguments],
            env=clean_environ(env),
            capture_output=True,
            text=True,
            timeout=timeout,
        )

    @pytest.mark.parametrize("era", ERAS)
    def test_prints_its_table(self, real_nvidia_smi, fake_nvml, era):
        done = self.smi(real_nvidia_smi(era), fake_nvml("two_gpus"))
        assert done.returncode == 0
        banner = re.search(r"NVIDIA-SMI (\S+)\s+Driver Version: (\S+)\s+CUDA Version: (\S+)", done.stdout)
        assert banner is not None
        assert banner.group(1).startswith(era + ".")
        assert banner.groups()[1:] == ("535.183.01", "12.2")
        assert re.search(r"\d+MiB / +81920MiB", done.stdout)

    def test_answers_a_query(self, real_nvidia_smi, fake_nvml):
        query = "--query-gpu=name,driver_version,compute_cap,memory.total,pcie.link.width.current"
        done = self.smi(real_nvidia_smi("535"), fake_nvml("throttled"), query, "--format=csv,noheader")
        assert done.stdout.splitlines() == [
            "NVIDIA GeForce RTX 3090, 535.183.01, 8.6, 24576 MiB, 16",
            "NVIDIA GeForce RTX 3090, 535.183.01, 8.6, 24576 MiB, 4",
        ]

    # The exit code of the same fault changed with the generation, and everything goes to standard output.
    @pytest.mark.parametrize(
        ("era", "scenario", "code", "text"),
        [
            ("470", "mismatch_18", 255, "Failed to initialize NVML: Driver/library version mismatch"),
            ("535", "mismatch_18", 18, "Failed to initialize NVML: Driver/library version mismatch"),
            ("550", "mismatch_18", 18, "NVML library version: 535.261"),
            ("535", "no_driver_9", 9, "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."),
            ("535", "no_permission_4", 4, "Failed to initialize NVML: Insufficient Permissions"),
            ("550", "nvml_unknown_error", 255, "Failed to initialize NVML: Unknown Error"),
            ("535", "one_gpu_lost", 15, "Unable to determine the device handle for GPU1: GPU is lost."),
        ],
    )
    def test_says_what_is_wrong(self, real_nvidia_smi, fake_nvml, era, scenario, code, text):
        done = self.smi(real_nvidia_smi(era), fake_nvml(scenario))
        assert text in done.stdout
        assert (done.returncode, done.stderr) == (code, "")

    def test_hangs_with_its_driver(self, real_nvidia_smi, fake_nvml):
        with pytest.raises(subprocess.TimeoutExpired):
            self.smi(real_nvidia_smi("535"), fake_nvml("hang"), timeout=1)

    def test_lists_mig_devices(self, real_nvidia_smi, fake_nvml):
        done = self.smi(real_nvidia_smi("550"), fake_nvml("mig"), "-L")
        assert "  MIG 3g.40gb     Device  1: (UUID: MIG-" in done.stdout

    @pytest.mark.parametrize("era", ERAS)
    def test_the_real_library_finds_no_driver_where_there_is_none(self, real_nvidia_libraries, era):
        found = read_nvml({"LD_LIBRARY_PATH": real_nvidia_libraries(era)})
        assert (found["init"] == 9) == (not Path("/proc/driver/nvidia").exists())


# --------------------------------------------------------------------------------------- interpreters


@pytest.mark.parametrize("version", pythons_at_hand())
def test_interpreters_are_what_they_are_called(real_python, version):
    done = subprocess.run(
        [real_python(version), "-c", "import sys; print('%d.%d' % sys.version_info[:2], sys.executable)"],
        env=clean_environ(), capture_output=True, text=True, timeout=30,
    )  # fmt: skip
    assert done.stdout.split() == [version, real_python(version)]


@pytest.mark.real_part(f"Python {FLOOR}")
def test_the_floor_is_at_hand(real_python):
    assert real_python(FLOOR)


def test_an_interpreter_that_is_not_there():
    assert find_python("3.0") is None


# ------------------------------------------------------------------------- wheels, index, environments


class TestWheels:
    def test_torch_says_what_a_build_says(self, venv_with):
        venv = venv_with(torch_wheel("2.9.1", "cu126"))
        assert venv.installed() == {"torch": "2.9.1+cu126"}
        assert venv.torch_build() == ("2.9.1+cu126", "12.6")

    def test_the_default_index_leaves_the_local_version_out(self, venv_with):
        venv = venv_with(torch_wheel("2.9.1", "cu128", local=False))
        assert venv.installed() == {"torch": "2.9.1"}
        assert venv.torch_build() == ("2.9.1+cu128", "12.8")

    def test_a_cpu_build(self, venv_with):
        venv = venv_with(torch_wheel("2.13.0", "cpu"))
        assert venv.torch_build() == ("2.13.0+cpu", None)
        assert not (venv.site_packages / "torch/lib/libtorch_cuda.so").exists()

    def test_nobody_imports_the_patients_torch(self, venv_with):
        venv = venv_with(torch_wheel("2.9.1", "cpu"))
        assert "somebody imported the patient's torch" in venv.run("-c", "import torch").stderr
        assert venv.run("-c", "import torch", env={"TINY_TORCH_MAY_BE_IMPORTED": "1"}).returncode == 0

    def test_its_libraries_name_the_gpus(self, venv_with):
        lib = venv_with(torch_wheel("2.14.1", "cu130", archs=["75", "90a", "ptx120"])).site_packages / "torch/lib"
        assert b"sm_75 sm_90a compute_120" in (lib / "libtorch_python.so").read_bytes()
        data = (lib / "libtorch_cuda.so").read_bytes()
        assert data[:4] == b"\x7fELF"
        assert data.count((0xBA55ED50).to_bytes(4, "little")) == 3

    @pytest.mark.real_part("readelf")
    def test_readelf_finds_the_section(self, venv_with):
        from bench.parts import program

        readelf = program("readelf", "Debian: apt-get install binutils")
        lib = venv_with(torch_wheel("2.9.1", "cu126")).site_packages / "torch/lib/libtorch_cuda.so"
        done = subprocess.run([readelf, "-S", "-W", str(lib)], capture_output=True, text=True, timeout=30)
        assert ".nv_fatbin" in done.stdout
        assert done.stderr == ""

    def test_cuda_builds_for_linux_require_the_nvidia_wheels(self):
        requires = requirements_of(torch_wheel("2.9.1", "cu126"))
        assert 'nvidia-cuda-runtime-cu12==12.6.77; platform_system == "Linux"' in requires
        assert not any("nvidia" in line for line in requirements_of(torch_wheel("2.9.1", "cpu")))


@pytest.mark.real_part("Python " + FLOOR)
def test_environments_of_other_interpreters(venv_with):
    venv = venv_with(tiny_wheel("six", "1.16.0"), python=FLOOR)
    done = venv.run("-c", "import six, sys; print('%d.%d' % sys.version_info[:2], sys.prefix)")
    assert done.stdout.split() == [FLOOR, str(venv.root)]


class TestInstallers:
    def test_pip_takes_the_build_of_the_variants_page(self, wheel_index, venv_with):
        wheel_index.add_torch("2.9.1", "cu126", torchvision="0.24.1")
        venv = venv_with(pip=True)
        done = venv.run(
            "-m", "pip", "install", "torch==2.9.1", "torchvision", "--index-url", wheel_index.whl("cu126"),
            env=wheel_index.pip_environment(),
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert venv.torch_build() == ("2.9.1+cu126", "12.6")
        installed = venv.installed()
        assert installed["torchvision"] == "0.24.1+cu126"
        assert installed["nvidia-cuda-runtime-cu12"] == "12.6.77"
        assert "/whl/cu126/torch/" in wheel_index.requests

    def test_pip_keeps_a_cpu_build_that_satisfies_the_number(self, wheel_index, venv_with):
        """The trap that the printed command must avoid: 2.9.1+cpu satisfies torch==2.9.1."""
        wheel_index.add_torch("2.9.1", "cu126")
        venv = venv_with(torch_wheel("2.9.1", "cpu", requires=[]), pip=True)
        install = ("-m", "pip", "install", "--index-url", wheel_index.whl("cu126"))
        venv.run(*install, "torch==2.9.1", env=wheel_index.pip_environment())
        assert venv.torch_build() == ("2.9.1+cpu", None)
        venv.run(*install, "torch==2.9.1+cu126", env=wheel_index.pip_environment())
        assert venv.torch_build() == ("2.9.1+cu126", "12.6")

    def test_pip_refuses_a_wheel_for_another_python(self, wheel_index, venv_with):
        wheel_index.add_torch("2.9.1", "cu126", pythons=["3.14"])
        done = venv_with(pip=True).run(
            "-m", "pip", "install", "torch", "--index-url", wheel_index.whl("cu126"), env=wheel_index.pip_environment()
        )
        assert "No matching distribution found for torch" in done.stderr

    def test_the_default_index(self, wheel_index, venv_with):
        wheel_index.add_torch("2.14.1", "cu130", default=True)
        venv = venv_with(pip=True)
        done = venv.run("-m", "pip", "install", "torch", env=wheel_index.pip_environment())
        assert done.returncode == 0, done.stderr
        assert venv.torch_build() == ("2.14.1+cu130", "13.0")
        assert venv.installed()["torch"] == "2.14.1"

    def test_uv_takes_the_same_pages(self, real_uv, wheel_index, venv_with):
        wheel_index.add_torch("2.9.1", "cu126")
        venv = venv_with()
        command = [real_uv, "pip", "install", "--python", venv.python, "torch==2.9.1+cu126"]
        done = subprocess.run(
            [*command, "--index-url", wheel_index.whl("cu126")],
            env=clean_environ(wheel_index.pip_environment()), capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert venv.torch_build() == ("2.9.1+cu126", "12.6")

    @pytest.mark.real_part("openssl")
    def test_a_command_that_names_the_real_host_runs_word_for_word(self, real_uv, wheel_index, venv_with):
        wheel_index.add_torch("2.9.1", "cu126")
        wheel_index.add("simple", tiny_wheel("six", "1.16.0"))
        env = wheel_index.as_internet()
        venv = venv_with(pip=True)
        done = venv.run(
            *("-m", "pip", "install", "torch==2.9.1+cu126"),
            *("--index-url", "https://download.pytorch.org/whl/cu126"),
            env=env,
        )
        assert done.returncode == 0, done.stderr
        assert venv.torch_build() == ("2.9.1+cu126", "12.6")
        assert "download.pytorch.org /whl/cu126/torch/" in wheel_index.requests
        done = venv.run("-m", "pip", "install", "six", env=env)
        assert done.returncode == 0, done.stderr
        uv = [real_uv, "pip", "install", "--reinstall", "--python", venv.python, "torch==2.9.1+cu126"]
        done = subprocess.run(
            [*uv, "--index-url", "https://download.pytorch.org/whl/cu126"],
            env=clean_environ(env), capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr

    def test_an_index_that_is_broken(self, wheel_index, venv_with):
        wheel_index.broken["/whl/cu126/"] = 503
        done = venv_with(pip=True).run(
            "-m", "pip", "install", "torch", "--index-url", wheel_index.whl("cu126"), env=wheel_index.pip_environment()
        )
        assert done.returncode == 1
        assert "No matching distribution found for torch" in done.stderr

    def test_an_active_environment(self, venv_with):
        venv = venv_with(pip=True)
        done = subprocess.run(["pip", "--version"], env=clean_environ(activated(venv)), capture_output=True, text=True)
        assert str(venv.site_packages) in done.stdout

    def test_companions_pin_torch(self):
        assert requirements_of(companion_wheel("torchvision", "0.24.1", "cu126", "2.9.1")) == ["torch==2.9.1"]


# ----------------------------------------------------------------------------------- another machine around it


class TestFakeRoot:
    def shell(self, machine, script, **options):
        done = machine.run(["sh", "-c", script], **options)
        assert done.stderr == ""
        return done.stdout

    def test_files_stand_at_their_real_places(self, fake_root):
        machine = fake_root(pci_gpu(), nvidia_module("535.183.01"))
        assert self.shell(machine, "cat /sys/module/nvidia/version") == "535.183.01\n"
        assert "Kernel Module  535.183.01" in self.shell(machine, "cat /proc/driver/nvidia/version")
        assert "nvidia 56717312" in self.shell(machine, "cat /proc/modules")
        assert self.shell(machine, "ls /sys/bus/pci/devices") == "0000:01:00.0\n"
        assert self.shell(machine, "readlink /sys/bus/pci/devices/*/driver").endswith("/nvidia\n")

    def test_the_bare_machine_has_no_gpu_and_is_no_container(self, fake_root):
        machine = fake_root()
        assert self.shell(machine, "ls /sys/bus/pci/devices; ls -d /dev/nvidia* /.dockerenv 2>/dev/null; true") == ""

    def test_the_rest_of_the_machine_works(self, fake_root):
        machine = fake_root(nouveau(), {"/proc/self/cgroup": "0::/job\n"})
        code = "import os; print(os.path.exists('/proc/self/fd/1'), len(os.listdir('/usr/bin')) > 10)"
        assert machine.run([sys.executable, "-c", code]).stdout == "True True\n"
        assert self.shell(machine, "cat /proc/self/cgroup") == "0::/job\n"
        assert self.shell(machine, "cat /proc/meminfo").startswith("MemTotal")

    def test_every_kind_of_entry(self, fake_root):
        machine = fake_root(
            {
                "/etc/os-release": 'ID=ubuntu\nVERSION_ID="24.04"\n',
                "/etc/secret": File("x", mode=0o000),
                "/dev/nvidiactl": Device(195, 255, mode=0o660),
                "/dev/shm": Shm(64 * MIB),
                "/usr/lib/wsl/lib/libcuda.so.1": Link("libcuda.so.1.1"),
                "/etc/passwd": None,
            }
        )
        assert "24.04" in self.shell(machine, "cat /etc/os-release")
        assert self.shell(machine, "stat -c %a /etc/secret; ls /etc/passwd 2>/dev/null || echo gone") == "0\ngone\n"
        assert self.shell(machine, "stat -f -c '%b %S' /dev/shm").split() == ["16384", "4096"]
        assert self.shell(machine, "readlink /usr/lib/wsl/lib/libcuda.so.1") == "libcuda.so.1.1\n"
        assert self.shell(machine, "stat -c %F,%a /dev/nvidiactl") == "character special file,660\n"

    def test_it_is_over_when_the_command_ends(self, fake_root):
        self.shell(fake_root({"/etc/cudadoctor-was-here": "x"}), "cat /etc/cudadoctor-was-here")
        assert not Path("/etc/cudadoctor-was-here").exists()
        assert not Path("/.real").exists()

    def test_with_the_stand_in_libraries(self, fake_root, fake_nvml):
        machine = fake_root(pci_gpu(), nvidia_module())
        done = machine.run([sys.executable, "-c", ASK_NVML], env=fake_nvml("healthy_4090"))
        assert json.loads(done.stdout)["gpus"][0]["name"] == "NVIDIA GeForce RTX 4090"

    def test_bare_names_real_places(self):
        assert all(path.startswith("/") for path in BARE)


# --------------------------------------------------------------------------------------- programs on PATH


class TestFakeProgram:
    def test_says_what_it_was_told(self, fake_program):
        folder = fake_program("nvidia-smi", stdout=b"\xb0C\n", stderr="oops\n", exit=9)
        done = subprocess.run(["nvidia-smi"], env={"PATH": folder}, capture_output=True)
        assert (done.returncode, done.stdout, done.stderr) == (9, b"\xb0C\n", b"oops\n")

    def test_scripts_share_the_folder(self, fake_program):
        fake_program("nvcc", "echo $1")
        folder = fake_program("lspci", "exit 3")
        assert subprocess.run(["nvcc", "-V"], env={"PATH": folder}, capture_output=True).stdout == b"-V\n"
        assert subprocess.run(["lspci"], env={"PATH": folder}).returncode == 3

    def test_can_take_long(self, fake_program):
        folder = fake_program("nvidia-smi", sleep=100)
        with pytest.raises(subprocess.TimeoutExpired):
            subprocess.run(["nvidia-smi"], env={"PATH": folder}, timeout=0.5)


# ----------------------------------------------------------------------------------------------- torch itself


def test_the_real_torch_is_a_cpu_build(real_torch_venv):
    version, cuda = real_torch_venv.torch_build()
    assert cuda is None
    code = "import torch; print(torch.__version__, torch.cuda.is_available())"
    assert real_torch_venv.run("-c", code).stdout.split() == [version, "False"]


# ------------------------------------------------------------------------------------------------- Windows


class TestWindowsPython:
    def test_is_windows(self, windows_python):
        code = "import sys, os, platform; print(sys.platform, os.sep, sys.version_info[:2], platform.system())"
        done = windows_python.run("-c", code)
        assert done.stdout.split() == ["win32", "\\", "(3,", "11)", "Windows"], done.stderr

    def test_reads_the_stand_in_nvml(self, windows_python):
        windows_python.nvml("two_gpus")
        done = windows_python.run("-c", ASK_NVML)
        assert [gpu["name"] for gpu in json.loads(done.stdout)["gpus"]] == ["NVIDIA A100-SXM4-80GB"] * 2

    def test_reads_its_registry_and_programs(self, windows_python):
        control = r"SYSTEM\CurrentControlSet\Control"
        windows_python.registry(rf"HKLM\{control}\GraphicsDrivers", "HwSchMode", 2)
        memory = rf"{control}\Session Manager\Memory Management"
        windows_python.registry(rf"HKLM\{memory}", "PagingFiles", [r"C:\pagefile.sys 16 4096"])
        scheme = "Power Scheme GUID: 381b4222-f694-41f0-9685-ff5bb260df2e  (\xe9)"
        windows_python.program("powercfg", scheme.encode("cp850"))
        code = f"""
import subprocess, winreg
def read(key, name):
    with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, key) as handle:
        return winreg.QueryValueEx(handle, name)
print(read({control + chr(92) + "GraphicsDrivers"!r}, "HwSchMode"))
print(read({memory!r}, "PagingFiles"))
print(subprocess.run(["powercfg", "/getactivescheme"], stdout=subprocess.PIPE).stdout)
"""
        done = windows_python.run("-c", code)
        assert done.stdout.splitlines() == [
            "(2, 4)",
            r"(['C:\\pagefile.sys 16 4096'], 7)",
            r"b'Power Scheme GUID: 381b4222-f694-41f0-9685-ff5bb260df2e  (\x82)'",
        ], done.stderr


# ---------------------------------------------------------------------------------------------- strict mode

STRICT_CASES = """
import sys
sys.path.insert(0, {tests!r})
pytest_plugins = ["bench.strict", "bench.fixtures"]
"""
A_SUITE = """
import pytest
from bench.parts import missing_part

@pytest.mark.real_part("a GPU")
def test_marked():
    pytest.skip("not today")

def test_not_marked():
    pytest.skip("does not apply here")

@pytest.mark.real_part("a GPU")
@pytest.mark.skipif(True, reason="never")
def test_skipif():
    pass

def test_part_without_mark():
    missing_part("a unicorn", "Breed one.")

def test_needs_smi(real_nvidia_smi):
    real_nvidia_smi("340")

@pytest.mark.real_part("a GPU")
@pytest.mark.xfail(reason="known")
def test_expected_failure():
    raise AssertionError

def test_passes():
    pass
"""


@pytest.mark.parametrize("strict", [False, True])
def test_strict_mode_turns_missing_parts_into_failures(tmp_path, strict):
    tests = Path(__file__).resolve().parent.parent
    (tmp_path / "conftest.py").write_text(STRICT_CASES.format(tests=str(tests)))
    (tmp_path / "test_suite.py").write_text(A_SUITE)
    env = clean_environ(CUDADOCTOR_TESTS_STRICT="1" if strict else "0", CUDADOCTOR_TEST_PARTS=str(tmp_path / "parts"))
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-c", "/dev/null", "--rootdir=.", "-rA", "."]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60)
    # ERROR: a skipif takes effect before the test itself.
    failed = set(re.findall(r"^(?:FAILED|ERROR) test_suite.py::(\w+)", done.stdout, re.MULTILINE))
    counts = done.stdout.splitlines()[-1]
    if strict:
        assert failed == {"test_marked", "test_skipif", "test_part_without_mark", "test_needs_smi"}
        assert "3 failed, 1 passed, 1 skipped, 1 xfailed, 1 error" in counts
    else:
        assert "1 passed, 5 skipped, 1 xfailed" in counts
    assert "Breed one." in done.stdout
    assert "scripts/install_test_parts.sh nvidia-smi fetches it" in done.stdout
