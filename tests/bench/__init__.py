"""The test bench: real parts, and honest stand-ins where no real part can be had without a GPU.

Modules: `parts` (where real parts lie; what happens when one is missing), `native` (the stand-in NVIDIA
libraries), `wheels` and `index` (tiny wheels and a package index on loopback), `venvs`, `roots` (another
/proc, /sys, /dev), `windows` (Windows Python under wine), `fixtures` and `strict` (the pytest plugins).
"""
