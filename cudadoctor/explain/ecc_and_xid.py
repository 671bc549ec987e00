"""ECC errors and Xids: when a GPU is broken, and when the program is

Xids
    An Xid is a line of the driver in the kernel log (dmesg): NVRM: Xid (PCI:...): a number, the process, a text. The
    number says what happened, and many are the program's fault: an address that it must not touch, a kernel that does
    not end. Such a program fails on any GPU, and no driver cures it. Others are the hardware's, or the bus's:
    `cudadoctor explain "xid 79"` tells what a number means and what to do.

    Where several stand together the first counts: the rest mostly follow from it. An Xid from before the last boot or
    reset is no present fault.

ECC
    Cards for servers check their memory. A corrected error costs nothing. An uncorrectable one ends the program that
    read it. The card then sets the cell aside: older generations retire the page, newer ones remap the row.

    - Pending: the replacement takes effect with the next reset of the GPU or reboot. Do that when the work allows.
    - Remapping failure, or no spare row left: the card has to be replaced. Row remapping that worked is no defect.
    - nvidia-smi -q -d ECC,ROW_REMAPPER,PAGE_RETIREMENT shows the counts. "Volatile" begins anew at each boot.

    N/A means that the card has no ECC or that it is off; it is no zero.

References
    https://docs.nvidia.com/deploy/xid-errors/
    https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/
"""
