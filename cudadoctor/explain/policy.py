"""Policies: what a job or a site asks of a machine

What it is for
    cudadoctor check finds what is broken. A policy says what is asked for beyond that: eight GPUs of one kind, with
    their memory free, a driver of some branches, room in /dev/shm. A machine that is well and does not have it fails
    the check.

How to write one
    cudadoctor recipes policy/preflight -o preflight.toml writes an example with every key. Take out what is not needed:
    what is not asked for is not judged.

        [gpu]
        count = 8
        names = ["H100", "H200"]
        memory_free = "70 GiB"

        [driver]
        version = ">=535,<600"

    cudadoctor check --policy preflight.toml judges by it; the same keys stand on the command line as --require
    gpu.count=8 or --require 'driver.version=>=535,<600'. A wrong key or value ends the run with exit status 2 and one
    sentence: file, line, what was expected.

What can be asked for
    - [gpu] of each GPU that the job sees: count (8 or ">=4"), names (products: "H100" is every H100 and no H1000),
      compute_capability, memory_total, memory_free, temperature (degrees C at most), pcie_generation, pcie_width,
      nvlink = true (each GPU's links are up), mig, mig_devices, throttled = false
    - [driver] version (a range, as >=535,<600; "535" is that branch), cuda (the CUDA of the programs that have to run)
    - [torch] version, cuda (ranges; "2.7" is every 2.7, "==2.7" that one alone); [nccl] version
    - [system] memory_total, memory_available, fabric_manager = true
    - [limits] nofile, memlock: a number, an amount, or "unlimited"
    - [disk] working, temporary, environment, cache, shm: free room
    - [fit] what is to be run, which has to fit into the memory that the GPUs have free (as cudadoctor fit judges it):
      model (a name, or a size: "7b"), train ("full", "lora", "qlora"; left out: inference), quant, precision, batch,
      context (tokens of a sequence), kv, engine, attention, checkpointing, optimizer, loss, lora_rank, gpus and
      sharding (how many share the work, and how), offload
    - [verify] checks (what cudadoctor verify has to prove), timeout

    Amounts have a unit: "70 GiB" or "70G" are powers of 1024, "80 GB" of 1000, as on the box of a card.

    The checks CD001 to CD020 and CD801 judge these; cudadoctor explain CD001 and so on tell how.

What the doctor's own checks count as
    [rules] CD115 = "error" makes each finding of that check an error; { severity = "error", required = true } also
    leaves the verdict undecided where the check cannot be decided, or has nothing to judge because no driver answers
    or nobody may read the kernel's log. A hint, as of an Xid that programs cause, stays one.
    That is how to ask for GPUs without ECC, Xid and row remapping trouble (CD115, CD114, CD113), for cool and fast ones
    (CD502, CD503, CD508), for whole links (CD504, CD122).

    [ignore] CD117 = "reason" leaves a check out, and the report shows the reason.

    [check] sets fail_on, timeout, unknown_ok, retry_code and blame; an option on the command line wins.

Which policy holds
    Read in this order, each over those before it, key by key:
    - /etc/cudadoctor/policy.toml, the site's
    - the file that CUDADOCTOR_POLICY names
    - the files of --policy, in order
    - --require, and the options of check

    For a check, being asked for and being ignored take each other's place. The files of the site count where the
    machine itself is looked at, not for --from, --facts and --replay. A site's file asks best for what holds for every
    job: a job with one GPU on a node of eight is no fault. And for what holds while jobs run: a health check that asks
    for free memory (gpu.memory_free, system.memory_available, disk.temporary, disk.shm) drains nodes that are at work.
    cudadoctor check --policy preflight.toml --explain-policy shows what holds, where it stands, and what it took the
    place of. It looks at no machine.

The verdict
    Exit status 0: all is as asked for. 1: something is not; with --retry-code 75 it is 75 where all of it is the
    machine's, so that another node may do. 3: something that is asked for cannot be told. What is not known is never
    taken for good. Each finding says who can mend it: too few GPUs are the allocation's matter where the job was given
    fewer, the machine's where a card on the bus does not answer, the user's where CUDA_VISIBLE_DEVICES hides them.

References
    https://toml.io/en/v1.0.0
    https://packaging.python.org/en/latest/specifications/version-specifiers/
"""
