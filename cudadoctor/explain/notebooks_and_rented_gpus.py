"""Notebooks and rented GPUs

What is not yours
    Colab, Kaggle, a rented pod or a managed notebook give you a container. The driver belongs to the host: nothing that
    you install changes it, and apt's nvidia packages inside only break what works. What you can choose is the wheel:
    it has to suit the host's driver, which nvidia-smi shows.

What happens often
    - No GPU was given: the runtime type is CPU, the quota is used up, or the pod has none. nvidia-smi is not there
      then. No install helps.
    - A package was installed over a running kernel: the old torch is still loaded, and half of the new one is on the
      disk. Restart the kernel after every install of torch.
    - !pip goes to another Python than the kernel: use %pip, which names the kernel's own.
    - Memory is held by the kernel of another notebook, or by an exception that the notebook keeps: restart it.
    - The image brings torch, and a requirements.txt replaces it by a build for another driver or without CUDA. Install
      with a constraint on the torch that is there.
    - A cheap offer runs an old driver, or lends a part of a card. Look at nvidia-smi before you pay for an hour of
      downloads; cudadoctor check takes a second.
    - Disks are small, and home is on a network: a wheel of several GiB and its cache may not fit.

References
    https://research.google.com/colaboratory/faq.html
"""
