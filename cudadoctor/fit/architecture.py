"""The shape of a model: what parameters it has, and what each layer keeps while it runs."""

from __future__ import annotations

from math import prod
from typing import Optional

from cudadoctor.model.record import NamedTuple

# Kinds of models.
DECODER, ENCODER, ENCODER_DECODER = "decoder", "encoder", "encoder-decoder"
VISION, SPEECH, DIFFUSION = "vision", "speech", "diffusion"

# Kinds of attention.
FULL, WINDOW, LATENT, LINEAR = "full", "window", "latent", "linear"

# Roles of tensors. Quantisers touch MATRIX and EXPERT only; the rest stays in 16 bits or is told apart by the scheme.
EMBEDDING, HEAD, MATRIX, EXPERT, ROUTER = "embedding", "head", "matrix", "expert", "router"
NORM, BIAS, CONVOLUTION, POSITION, OTHER = "norm", "bias", "convolution", "position", "other"


class Tensor(NamedTuple):
    """Alike parameters. `name` is one word of the field: token_embedding, output, q, k, v, qkv, o, q_a, q_b, kv_a,
    kv_b, gate, up, down, gate_up, router, norm, q_norm, ... ; `shape` as torch stores a weight, (out, in) for a matrix,
    of one of `copies` tensors (layers x experts). `layers` indexes Architecture.layers; None: outside of the layers."""

    name: str
    role: str
    shape: tuple[int, ...]
    copies: int = 1
    layers: Optional[int] = None

    @property
    def elements(self) -> int:
        """Of all `copies` together."""
        return self.copies * prod(self.shape)


class Attention(NamedTuple):
    """One attention of a layer. Heads and dimensions are counts; `window` in tokens, 0 where every token is seen."""

    kind: str
    heads: int
    kv_heads: int
    head_dim: int
    value_dim: int = 0
    """Of a head's values, where it differs from head_dim (latent attention); 0: the same."""
    window: int = 0
    kv_rank: int = 0
    """Latent attention: width of what is cached for keys and values together, without the rotary part."""
    rope_dim: int = 0
    """Latent attention: width of the rotary part of the keys, cached once for all heads."""
    q_rank: int = 0
    index_dim: int = 0
    """Latent attention that chooses the tokens it looks at: width of the keys it chooses by, cached beside."""
    state: int = 0
    """Linear attention and state-space layers: elements kept for a sequence, however long it is."""
    qk_norm: bool = False
    packed: bool = False
    """Queries, keys and values come out of one matrix."""

    @property
    def query_width(self) -> int:
        return self.heads * self.head_dim

    @property
    def kv_width(self) -> int:
        """Of the keys; the values' is kv_heads x (value_dim or head_dim)."""
        return self.kv_heads * self.head_dim


class FeedForward(NamedTuple):
    """One feed-forward part. `gated`: three matrices instead of two. With experts, `intermediate` is that of one
    expert, `shared` the summed width of what every token passes, too."""

    intermediate: int
    gated: bool
    experts: int = 0
    experts_per_token: int = 0
    shared: int = 0


class Layers(NamedTuple):
    """A run of `number` alike layers: `first` counts from 0 on its side ("decoder", "encoder")."""

    first: int
    number: int
    attention: Optional[Attention]
    feed_forward: Optional[FeedForward]
    norms: int = 2
    """Norms over the hidden width in each layer."""
    rms_norm: bool = True
    side: str = "decoder"
    cross: Optional[Attention] = None
    """Attention to the encoder's output."""


class Architecture(NamedTuple):
    """What a model is built of. Layers that alternate (window, full, window, ...) are runs of one each, or are gathered
    by kind where the order does not matter; the indices `first` then are those of the first of its kind."""

    name: str
    kind: str
    family: str
    """model_type of a Hugging Face config, general.architecture of a GGUF file."""
    hidden: int
    vocabulary: int
    layers: tuple[Layers, ...]
    tensors: tuple[Tensor, ...]
    tied: bool = False
    """Output head and embedding are one tensor."""
    max_context: Optional[int] = None
    source: str = ""
    guessed: bool = False
    """Made up for a size such as 7b: a typical model of that size, not a certain one."""
    shared_blocks: bool = False
    """The norms and matrices of a layer work on one input (parallel attention and feed-forward)."""
    tokens_per_item: int = 0
    """Vision, speech, diffusion: tokens of one image or clip at the default size; 0: as asked for."""

    def __hash__(self) -> int:
        """Worked out once: all that is counted of a model is looked up by it, and it has hundreds of tensors."""
        kept = self.__dict__
        if "hash" not in kept:
            kept["hash"] = hash(tuple(self))
        return int(kept["hash"])

    @property
    def parameters(self) -> int:
        kept = self.__dict__
        if "parameters" not in kept:
            kept["parameters"] = sum(tensor.elements for tensor in self.tensors)
        return int(kept["parameters"])

    @property
    def active_parameters(self) -> int:
        """Those that one token passes: experts count as often as a token visits one."""
        total = 0
        for tensor in self.tensors:
            run = self.layers[tensor.layers] if tensor.layers is not None else None
            part = run.feed_forward if run is not None else None
            if run is None or part is None or not part.experts:
                total += tensor.elements
            elif tensor.role == EXPERT or (tensor.role == BIAS and tensor.copies == run.number * part.experts):
                total += tensor.elements * part.experts_per_token // part.experts
            else:
                total += tensor.elements
        return total

    @property
    def layer_count(self) -> int:
        return sum(run.number for run in self.layers)


class Stored(NamedTuple):
    """What a file holds, exactly. `by_type`: bytes by the type's name in the file ("BF16", "Q4_K"), with all that a
    tensor of that type takes (scales included); `elements` is their number of values where the file tells."""

    path: str
    total: int
    by_type: dict[str, int]
    elements: int
    scheme: str
    """A name of compat/quantisations.toml, or "mixed"."""
    files: int = 1
    tensors: tuple[int, ...] = ()
    """Bytes of each of the architecture's tensors, in their order; empty: only the total is known."""


class Model(NamedTuple):
    """What is to be loaded. `stored`: out of the files themselves; None: `weights` says how it would be stored."""

    architecture: Architecture
    weights: str
    """A name of compat/quantisations.toml: the type that the checkpoint is published in, or what was asked for."""
    stored: Optional[Stored] = None
    notes: tuple[str, ...] = ()
    """Sentences that the answer has to say: what was assumed about the model."""
