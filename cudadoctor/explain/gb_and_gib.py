"""GB and GiB: why a 24 GB card has 24564 MiB, and an 80 GB one 79.6 GiB

Two units
    1 GB is 1000^3 bytes, 1 GiB 1024^3: 7.4 percent more. A disk of 1 TB is 931 GiB. Of memory the makers of GPUs say GB
    and mostly mean GiB: a "24 GB" RTX 4090 has 24564 MiB, which is 25.8 GB.

Who means what
    - nvidia-smi and NVML: MiB. What they call the total is less than the card has, because the driver and, where it is
      on, ECC keep some: 23.99 GiB of 24.
    - PyTorch's messages: MiB and GiB, written so. torch.cuda.memory_allocated() gives bytes; who divides by 1e9 gets
      GB, by 1024**3 GiB, and prints "GB" in both cases.
    - vLLM: GiB, in older logs written GB. SGLang: GiB, written GB.
    - Hugging Face's pages, ollama's and llama.cpp's lists of files: GB (llama.cpp's own log: MiB and GiB).
    - Papers and blogs: either. A table without a unit's name is off by 7 percent for one of its readers.

What it does to a plan
    A model of 8 billion parameters in bf16 takes 16.06 GB, which is 14.96 GiB. Read as 16.06 GiB it would not even load
    on a card with 16 GiB; it does, and leaves one GiB for all else. The other way round, a need of 24 GB is no reason
    to pass over a card of "24 GB".

What cudadoctor does
    It counts bytes. What it prints has its unit; where a number is to be compared with a card it is GiB, as nvidia-smi
    has it, and beside it GB. In a policy "70 GiB" and "70G" are powers of 1024, "80 GB" of 1000.

References
    https://physics.nist.gov/cuu/Units/binary.html
"""
