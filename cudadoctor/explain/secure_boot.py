"""Secure Boot and NVIDIA's kernel module

What happens
    With Secure Boot on, the Linux kernel loads only modules that are signed with a key that the firmware trusts. A
    module that DKMS builds on this machine is signed with a key of this machine (the machine owner key, MOK), which the
    firmware does not know before somebody enrols it. modprobe then says "Key was rejected by service" or "Required key
    not available", and nvidia-smi that it cannot communicate with the driver.

Three ways
    - Enrol the key: sudo mokutil --import with the key of the distribution's DKMS, choose a password, reboot, and
      confirm in the blue screen that appears before the system starts. It appears once, and only on the machine's own
      screen; missing it is the usual mistake.
    - Take modules that the distribution has signed (on Ubuntu the linux-modules-nvidia-* packages): nothing is built.
    - Turn Secure Boot off in the firmware. It works, and gives its protection up.

    `cudadoctor fix` prints the commands for the distribution at hand.

How to look
    mokutil --sb-state says whether it is on; modinfo nvidia shows the signer; dmesg shows the refusal.

References
    https://wiki.debian.org/SecureBoot
    https://wiki.ubuntu.com/UEFI/SecureBoot
"""
