"""Will it fit? What takes the memory of a GPU, and what to change first

Three numbers
    - Allocated: what tensors hold at the peak. This is what can be counted.
    - Reserved: with what PyTorch keeps for the next tensor. Sequences of changing length make it a quarter more, or
      twice as much; expandable segments and padding to one length bring it back.
    - What nvidia-smi shows: with CUDA's context, some hundred MiB a process, and what others on the card hold.

    A card is full when the third number reaches what is free. So cudadoctor fit compares that one.

Inference
    - Weights: parameters times bytes. bf16 takes 2 bytes a parameter, int8 1, four bits 0.52 to 0.56 with their scales.
      Embeddings and the output head mostly stay in 16 bits: small models with a large vocabulary shrink less.
    - KV cache: 2 x layers x heads of keys and values x size of a head x bytes, for each token of each sequence. Grouped
      queries (GQA) and latent attention (MLA) make it a few times smaller than the hidden size suggests; a sliding
      window bounds it.
    - The prompt passes at once, unless the engine takes it in pieces: its activations are the peak of short answers.
    - vLLM and SGLang take a share of the card for their pool, whatever the model needs. That it is full is no sign that
      the model needs it.

Training
    - Weights, gradients and the optimizer's states. With AdamW and bf16 throughout 8 bytes a parameter, with mixed
      precision 16 or more. LoRA trains little: there the weights alone count, QLoRA keeps them in four bits.
    - Activations: they grow with batch times length. Checkpointing keeps one tensor a layer and computes the rest
      again.
    - Logits: tokens times vocabulary, several times over, half of it in 32 bits. With a vocabulary of 128 000 this is
      nearly 2 GB for 1000 tokens; a fused or chunked loss takes it away.
    - AdamW without fused=True copies all parameters for a moment.

What to change, cheapest first
    Training: expandable segments; a fused loss; flash attention or SDPA; a fused optimizer; a smaller batch with
    accumulation; checkpointing; an 8-bit optimizer; shorter sequences; offload; LoRA, then QLoRA; more GPUs; a smaller
    model. Inference: a shorter context or fewer sequences; a cache in 8 bits; weights in 8, then 4 bits; prompts in
    pieces; some layers on the CPU; more GPUs; a smaller model.

    cudadoctor fit MODEL tries them in this order and names the first that are enough. It warns and never forbids: an
    estimate is not a measurement, and its interval says how far it may be off.

The rest of the machine
    Memory of the machine: the weights pass through it when they are loaded, offloading lives there. Without swap (on
    Windows: a page file) a loader that takes too much is killed. /dev/shm carries batches between processes. The disk
    decides how long loading takes, and nothing else.

References
    https://huggingface.co/docs/transformers/main/en/model_memory_anatomy
    https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management
    https://arxiv.org/abs/2205.05198
    https://arxiv.org/abs/2305.14314
"""
