"""MIG: one GPU as several

What it is
    A data-centre GPU in MIG mode is cut into instances, each with its own share of memory and processors. A program
    sees one instance, as a device with less memory. Compute capability and driver are those of the whole card.

What goes wrong
    - MIG is on, and nobody has made instances: nvidia-smi shows the card and "No MIG devices found", and CUDA finds no
      device. Make instances (nvidia-smi mig -cgi ... -C), or turn MIG off (nvidia-smi -mig 0). Both need root and an
      idle GPU.
    - Instances are gone after a reboot on many systems: a service (nvidia-mig-manager, mig-parted) restores them.
    - CUDA_VISIBLE_DEVICES must name an instance by its UUID (MIG-...), and a program uses one instance: more are not
      seen. A UUID of before the instances were made anew hides everything.
    - No peer-to-peer between instances, and no NCCL across them in most releases.
    - What nvidia-smi shows of the whole card as "N/A" in MIG mode is no fault.

References
    https://docs.nvidia.com/datacenter/tesla/mig-user-guide/
"""
