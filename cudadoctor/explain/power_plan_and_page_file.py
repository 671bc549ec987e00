"""Windows: power plan and page file

Page file
    Windows promises memory when a program asks for it, and keeps its promise with memory and page file together. Every
    process that imports a CUDA build of torch asks for several GiB, and each worker of a data loader is a process that
    imports it again. With a small page file that fails with "The paging file is too small for this operation to
    complete" (WinError 1455), also while much memory is free.

    Let Windows manage the size, or set it by hand: System - Advanced - Performance - Virtual memory. It takes a
    restart. Fewer workers need less of it.

Power plan
    A balanced plan lets the processor and the PCIe link rest between small pieces of work, which a training loop is
    made of. "High performance" avoids it; some machines offer "Ultimate Performance". Laptops with modern standby
    only have "Balanced", with a slider for the power mode beside it: that is the setting there.

    It is advice. No plan breaks CUDA, and on most desktops the difference is small.

References
    https://learn.microsoft.com/windows-server/administration/performance-tuning/hardware/power/power-performance-tuning
"""
