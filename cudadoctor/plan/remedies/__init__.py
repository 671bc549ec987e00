"""The cures that rules name, spelled out for one machine: a remedy's kind -> the function that makes its steps.

Each function takes the machine (`Context`) and the remedy's parameters as keywords, and gives the steps in order, the
last one carrying what the machine is like afterwards. It raises `ParseError` where a fact that has to go into a command
is not fit for one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Callable

from cudadoctor.plan.context import Context
from cudadoctor.plan.draft import Draft
from cudadoctor.plan.remedies import (
    companions,
    conda,
    containers,
    driver,
    frameworks,
    gpu,
    job,
    kernel,
    modules,
    packages,
    python,
    restart,
    setting,
    torch,
    windows,
    windows_gpu,
)

Remedier = Callable[..., "list[Draft]"]

REMEDIES: Mapping[str, Remedier] = {
    # -- packages of the patient's environment
    "install-torch": torch.install_torch,
    "reinstall-companions": companions.reinstall_companions,
    "uninstall-package": packages.uninstall_package,
    "reinstall-package": packages.reinstall_package,
    "install-libraries": packages.install_libraries,
    "remove-conda-package": conda.remove_conda_package,
    "install-framework": frameworks.install_framework,
    # -- Python
    "make-venv": python.make_venv,
    "use-python": python.use_python,
    "install-pip": python.install_pip,
    # -- driver and kernel
    "install-driver": driver.install_driver,
    "update-driver": driver.update_driver,
    "install-open-kernel-module": driver.install_open_kernel_module,
    "install-proprietary-kernel-module": driver.install_proprietary_kernel_module,
    "blacklist-nouveau": kernel.blacklist_nouveau,
    "remove-module-blacklist": kernel.remove_module_blacklist,
    "build-module": kernel.build_module,
    "enroll-mok": kernel.enroll_mok,
    "reload-module": modules.reload_module,
    "reboot": restart.reboot,
    "load-module": modules.load_module,
    "load-uvm": modules.load_uvm,
    "disable-uvm-hmm": modules.disable_uvm_hmm,
    "create-device-nodes": modules.create_device_nodes,
    "restart-service": modules.restart_service,
    "install-fabric-manager": gpu.install_fabric_manager,
    "reset-gpu": gpu.reset_gpu,
    "set-compute-mode": gpu.set_compute_mode,
    "switch-mig-off": gpu.switch_mig_off,
    # -- Windows and WSL
    "update-windows-driver": windows.update_windows_driver,
    "install-windows-driver": windows.install_windows_driver,
    "remove-linux-driver-from-wsl": windows.remove_linux_driver_from_wsl,
    "update-wsl": windows.update_wsl,
    "use-wsl": frameworks.use_wsl,
    "set-power-plan": windows.set_power_plan,
    "set-power-overlay": windows.set_power_overlay,
    "enlarge-page-file": windows.enlarge_page_file,
    "raise-tdr-delay": windows_gpu.raise_tdr_delay,
    "turn-off-gpu-scheduling": windows_gpu.turn_off_gpu_scheduling,
    "refuse-sysmem-fallback": windows_gpu.refuse_sysmem_fallback,
    "clean-windows-driver": windows_gpu.clean_windows_driver,
    "use-wddm": windows_gpu.use_wddm,
    # -- settings and the system
    "join-group": setting.join_group,
    "unset-variable": setting.unset_variable,
    "change-variable": setting.change_variable,
    "remove-library": setting.remove_library,
    "add-swap": setting.add_swap,
    "enlarge-shm": setting.enlarge_shm,
    "install-package": setting.install_package,
    "install-toolkit": setting.install_toolkit,
    "free-disk": setting.free_disk,
    "update-cudadoctor": setting.update_cudadoctor,
    "manual": setting.manual,
    # -- containers and jobs
    "run-container-with-gpu": job.run_container_with_gpu,
    "request-gpu": job.request_gpu,
    "restart-container": job.restart_container,
    "prepare-kubernetes-node": job.prepare_kubernetes_node,
    "set-up-container-toolkit": containers.set_up_container_toolkit,
    "generate-cdi-spec": containers.generate_cdi_spec,
    "run-image-all-the-same": containers.run_image_all_the_same,
    "use-older-image": containers.use_older_image,
}

__all__ = ["REMEDIES", "Context", "Draft", "Remedier", "spell_out"]


def spell_out(kind: str, context: Context, parameters: Mapping[str, Any]) -> list[Draft]:
    """The steps of a remedy. Every kind takes `effect` (facts added to the last step) and `why` (a sentence shown with
    the first). Raises `KeyError` for a kind that does not exist, `TypeError` for a parameter, `ParseError` for a fact
    that is not fit for a command."""
    own = dict(parameters)
    effect = own.pop("effect", {})
    why = own.pop("why", "")
    steps = REMEDIES[kind](context, **{name.replace("-", "_"): value for name, value in own.items()})
    if effect and steps:
        steps[-1] = steps[-1].with_effect(effect)
    if why and steps:
        steps[0] = steps[0].with_why(str(why))
    return steps
