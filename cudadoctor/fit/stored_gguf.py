"""From the header of a GGUF file to the model in it: metadata and tensors to an Architecture, and its exact bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Optional

from cudadoctor.fit.architecture import (
    BIAS,
    CONVOLUTION,
    DECODER,
    EMBEDDING,
    ENCODER,
    ENCODER_DECODER,
    EXPERT,
    FULL,
    HEAD,
    LATENT,
    LINEAR,
    MATRIX,
    NORM,
    OTHER,
    POSITION,
    ROUTER,
    WINDOW,
    Attention,
    FeedForward,
    Model,
    Stored,
    Tensor,
)
from cudadoctor.fit.families.blocks import Block, build
from cudadoctor.matrix.quantisations import BlockType
from cudadoctor.matrix.query import Matrix
from cudadoctor.model.pattern import pattern
from cudadoctor.parse.errors import ParseError
from cudadoctor.parse.gguf import GgufArray, GgufHeader, GgufTensor

_IN_A_LAYER = pattern(r"(?:(enc|dec)\.)?blk\.(\d{1,6})\.(.+)\Z")
_FAMILY = pattern(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")
_PLAIN_NAME = pattern(r"[A-Za-z0-9_.-]{1,64}\Z")
_OLD_EXPERT = pattern(r"(ffn_(?:gate|up|down))\.\d+\Z")

# The names of llama.cpp, and ours.
_NAMES = {
    "attn_q": ("q", MATRIX),
    "attn_k": ("k", MATRIX),
    "attn_v": ("v", MATRIX),
    "attn_qkv": ("qkv", MATRIX),
    "attn_output": ("o", MATRIX),
    "attn_out": ("o", MATRIX),
    "attn_o": ("o", MATRIX),
    "attn_q_a": ("q_a", MATRIX),
    "attn_q_b": ("q_b", MATRIX),
    "attn_kv_a_mqa": ("kv_a", MATRIX),
    "attn_kv_b": ("kv_b", MATRIX),
    "attn_k_b": ("k_b", MATRIX),
    "attn_v_b": ("v_b", MATRIX),
    "attn_rel_b": ("relative_positions", POSITION),
    "cross_attn_q": ("cross_q", MATRIX),
    "cross_attn_k": ("cross_k", MATRIX),
    "cross_attn_v": ("cross_v", MATRIX),
    "cross_attn_o": ("cross_o", MATRIX),
    "ffn_gate": ("gate", MATRIX),
    "ffn_up": ("up", MATRIX),
    "ffn_down": ("down", MATRIX),
    "ffn_gate_exps": ("gate", EXPERT),
    "ffn_up_exps": ("up", EXPERT),
    "ffn_gate_up_exps": ("gate_up", EXPERT),
    "ffn_down_exps": ("down", EXPERT),
    "ffn_gate_shexp": ("shared_gate", MATRIX),
    "ffn_up_shexp": ("shared_up", MATRIX),
    "ffn_down_shexp": ("shared_down", MATRIX),
    "ffn_gate_inp": ("router", ROUTER),
    "ffn_gate_inp_shexp": ("shared_router", OTHER),
    "ssm_conv1d": ("convolution", CONVOLUTION),
    "token_embd": ("token_embedding", EMBEDDING),
    "per_layer_token_embd": ("per_layer_embedding", EMBEDDING),
    "output": ("output", HEAD),
    "position_embd": ("position_embedding", POSITION),
    "token_types": ("token_types", POSITION),
}
_PARTS = {"mmproj": "the vision or audio part of a model", "adapter": "an adapter", "imatrix": "an importance matrix"}
_MOST_LAYERS = 4_096

_Layer = tuple[str, int]


class _Keys:
    """The metadata under general.architecture."""

    def __init__(self, metadata: Mapping[str, Any], family: str) -> None:
        self.metadata = metadata
        self.family = family

    def value(self, key: str) -> Any:
        return self.metadata.get(f"{self.family}.{key}")

    def count(self, key: str) -> Optional[int]:
        """A whole number of 0 or more; None where there is none. ParseError where it is something else."""
        found = self.value(key)
        if found is None or isinstance(found, GgufArray):
            return None
        if isinstance(found, bool) or not isinstance(found, int) or not 0 <= found < 1 << 48:
            raise ParseError(f"its {self.family}.{key} is {found!a}, and a count was expected")
        return found

    def counts(self, key: str, layers: int) -> Optional[list[int]]:
        """One a layer: some models differ from layer to layer."""
        found = self.value(key)
        if not isinstance(found, GgufArray):
            same = self.count(key)
            return None if same is None else [same] * layers
        values = found.values
        if values is None or len(values) < layers or not all(_is_count(value) for value in values):
            raise ParseError(f"its {self.family}.{key} does not give a count for each of {layers} layers")
        return [int(value) for value in values[:layers]]

    def needed(self, key: str) -> int:
        found = self.count(key)
        if not found:
            raise ParseError(f"its metadata has no {self.family}.{key}")
        return found


def _is_count(value: object) -> bool:
    return isinstance(value, int) and 0 <= value < 1 << 48


def model_of_gguf(matrix: Matrix, headers: Sequence[GgufHeader], name: str, path: str = "") -> Model:
    """The model of one file, or of all the parts of one that was split, the first part first. ParseError, one
    sentence, where it is no whole language model or contradicts itself."""
    metadata = headers[0].metadata
    family = metadata.get("general.architecture")
    kind = metadata.get("general.type")
    if isinstance(kind, str) and kind in _PARTS:
        raise ParseError(f"it is {_PARTS[kind]}, not a whole one")
    if not isinstance(family, str) or not _FAMILY.match(family):
        raise ParseError("its metadata has no general.architecture")
    if family == "clip":
        raise ParseError(f"it is {_PARTS['mmproj']}, not a whole one")
    _check_parts(headers)
    tensors = [tensor for header in headers for tensor in header.tensors]
    types = {row.id: row for row in matrix.block_types().values()}
    builder = _Builder(matrix, _Keys(metadata, family), tensors)
    said = metadata.get("general.name")
    shown = said.strip() if isinstance(said, str) and said.strip().isprintable() else ""
    return builder.model(shown[:100] or name, path, len(headers), types)


def _check_parts(headers: Sequence[GgufHeader]) -> None:
    parts = headers[0].metadata.get("split.count")
    if isinstance(parts, int) and parts > 1 and parts != len(headers):
        raise ParseError(f"it is one of {parts} parts, of which {len(headers)} are there")
    whole = headers[0].metadata.get("split.tensors.count")
    found = sum(len(header.tensors) for header in headers)
    if isinstance(whole, int) and len(headers) > 1 and whole != found:
        raise ParseError(f"its parts hold {found} tensors, and the first one says {whole}")


class _Builder:
    def __init__(self, matrix: Matrix, keys: _Keys, tensors: Sequence[GgufTensor]) -> None:
        self.matrix = matrix
        self.keys = keys
        self.all = tensors
        self.layers: dict[_Layer, dict[str, GgufTensor]] = {}
        self.outside: dict[str, GgufTensor] = {}
        for tensor in tensors:
            found = _IN_A_LAYER.match(tensor.name)
            if found is None:
                self.outside[tensor.name] = tensor
            else:
                side = "encoder" if found[1] == "enc" else "decoder"
                self.layers.setdefault((side, int(found[2])), {})[found[3]] = tensor
        self.notes: list[str] = []
        self.ahead = [layer for layer, here in self.layers.items() if any(key.startswith("nextn.") for key in here)]
        for layer in self.ahead:
            for key, tensor in self.layers.pop(layer).items():
                self.outside[f"ahead.{layer[1]}.{key}"] = tensor
        if self.ahead:
            self.notes.append("Layers that guess further tokens ahead are in the file; they keep no KV cache here.")

    def model(self, name: str, path: str, files: int, types: Mapping[int, BlockType]) -> Model:
        keys, family = self.keys, self.keys.family
        hidden = keys.needed("embedding_length")
        order = self._order()
        embedding = self.outside.get("token_embd.weight")
        vocabulary = embedding.shape[0] if embedding is not None and len(embedding.shape) == 2 else self._words()
        blocks, own = [], []
        per_layer = self._attentions(len([layer for layer in order if layer[0] == "decoder"]), hidden)
        for side, number in order:
            here = self.layers[(side, number)]
            made = _named(here)
            attention = per_layer(number, here, side)
            blocks.append(
                Block(
                    attention,
                    self._feed_forward(here),
                    tuple(made),
                    sum(tensor.copies for tensor in made if tensor.role == NORM and tensor.shape == (hidden,)),
                    keys.value("attention.layer_norm_rms_epsilon") is not None,
                    side,
                    self._cross(here, attention),
                )
            )
            own.append(_sizes(here))
        outside = _named(self.outside)
        encoder = any(side == "encoder" for side, _ in order)
        is_causal = keys.value("attention.causal")
        kind = ENCODER_DECODER if encoder else ENCODER if is_causal is False else DECODER
        architecture = build(
            *(name, kind, family, hidden, vocabulary, blocks, outside),
            tied="output.weight" not in self.outside and kind != ENCODER,
            max_context=keys.count("context_length") or None,
            source="the file's metadata and tensors",
        )
        by_type: dict[str, int] = {}
        for tensor in self.all:
            known = types.get(tensor.type)
            word = known.name if known else f"type-{tensor.type}"
            by_type[word] = by_type.get(word, 0) + tensor.size
        scheme = self._scheme(by_type, types)
        run_of: dict[_Layer, int] = {}
        for index, run in enumerate(architecture.layers):
            for number in range(run.first, run.first + run.number):
                run_of[(run.side, number)] = index
        sizes: dict[tuple[Any, ...], int] = {}
        place: dict[str, int] = {}
        for (side, _), found in zip(order, own):
            run_index = run_of[(side, place.get(side, 0))]
            place[side] = place.get(side, 0) + 1
            for key, size in found.items():
                sizes[(run_index, *key)] = sizes.get((run_index, *key), 0) + size
        for key, size in _sizes(self.outside).items():
            sizes[(None, *key)] = size
        stored = Stored(
            path,
            sum(tensor.size for tensor in self.all),
            by_type,
            sum(tensor.elements for tensor in self.all),
            scheme or "mixed",
            files,
            tuple(sizes[(one.layers, one.name, one.role, one.shape)] for one in architecture.tensors),
        )
        return Model(architecture, scheme or "Q4_K_M", stored, tuple(self.notes))

    def _order(self) -> list[_Layer]:
        """The layers, each side's in order. ParseError where one is missing."""
        claimed = {
            "decoder": self.keys.count("decoder_block_count") or self.keys.count("block_count"),
            "encoder": self.keys.count("block_count"),
        }
        found: list[_Layer] = []
        for side in ("encoder", "decoder"):
            numbers = sorted(number for at, number in self.layers if at == side)
            if not numbers:
                continue
            wanted = claimed[side]
            if wanted is not None and side == "decoder":
                wanted -= len(self.ahead)
            if wanted is None or wanted > _MOST_LAYERS or numbers != list(range(wanted)):
                raise ParseError(
                    f"its metadata says {wanted} layers, its tensors are of {len(numbers)}, up to number {numbers[-1]}"
                )
            found += [(side, number) for number in numbers]
        if not found:
            raise ParseError("it holds no layers of a model")
        return found

    def _words(self) -> int:
        tokens = self.keys.metadata.get("tokenizer.ggml.tokens")
        return tokens.length if isinstance(tokens, GgufArray) else self.keys.count("vocab_size") or 0

    def _attentions(self, layers: int, hidden: int) -> Any:
        """Gives the attention of a layer."""
        keys = self.keys
        heads = keys.counts("attention.head_count", layers)
        kv_heads = keys.counts("attention.head_count_kv", layers) or heads
        windows = self._windows(layers)
        with_cache = self._layers_with_a_cache(layers)
        kv_rank = keys.count("attention.kv_lora_rank") or 0
        head_dim = keys.count("attention.key_length") or 0
        value_dim = keys.count("attention.value_length") or 0

        def attention(number: int, here: Mapping[str, GgufTensor], side: str) -> Optional[Attention]:
            state = self._state() if any(name.startswith(("ssm_", "shortconv.", "time_mix")) for name in here) else 0
            attends = any(name.startswith(("attn_q", "attn_k", "attn_kv")) for name in here)
            at = number if heads is not None and number < len(heads) else 0
            of_layer = heads[at] if heads else 0
            if not attends or not of_layer:
                return Attention(LINEAR, 0, 0, 0, state=state) if state else None
            qk_norm = "attn_q_norm.weight" in here
            if kv_rank:
                return Attention(
                    *(LATENT, of_layer, of_layer),
                    head_dim=keys.count("attention.key_length_mla") or head_dim,
                    value_dim=keys.count("attention.value_length_mla") or value_dim,
                    kv_rank=kv_rank,
                    rope_dim=keys.count("rope.dimension_count") or 0,
                    q_rank=keys.count("attention.q_lora_rank") or 0,
                )
            size = head_dim
            if not size:
                size, rest = divmod(hidden, of_layer)
                if rest:
                    raise ParseError(f"its {of_layer} heads do not divide the {hidden} of embedding_length")
            window = windows[at] if side == "decoder" else 0
            if window:
                size = keys.count("attention.key_length_swa") or size
            own = kv_heads[at] if kv_heads else of_layer
            if side == "decoder" and number >= with_cache:
                own = 0
            elif not own or of_layer % own:
                raise ParseError(f"its {own} key heads do not divide the {of_layer} heads of layer {number}")
            return Attention(
                *(WINDOW if window else FULL, of_layer, own, size),
                value_dim=0 if value_dim in (0, size) or window else value_dim,
                window=window,
                state=state,
                qk_norm=qk_norm,
                packed="attn_qkv.weight" in here,
            )

        return attention

    def _layers_with_a_cache(self, layers: int) -> int:
        """The first of them have a cache of their own, the others use one of these."""
        shared = self.keys.count("attention.shared_kv_layers")
        if shared:
            return max(layers - shared, 0)
        known = self.matrix.window_pattern(self.keys.family)
        return known.cached_layers if known and known.cached_layers else layers

    def _windows(self, layers: int) -> list[int]:
        """Tokens that each layer sees; 0: all."""
        tokens = self.keys.count("attention.sliding_window") or 0
        own = self.keys.value("attention.sliding_window_pattern")
        if isinstance(own, GgufArray) and own.values:
            return [tokens if own.values[number % len(own.values)] else 0 for number in range(layers)]
        known = self.matrix.window_pattern(self.keys.family)
        every = own if isinstance(own, int) and not isinstance(own, bool) and own >= 0 else None
        if every is None:
            every = known.every if known else 1
        if known and not tokens:
            tokens = known.tokens
        return [tokens if not every or number % every < every - 1 else 0 for number in range(layers)]

    def _state(self) -> int:
        """Elements that a recurrent layer keeps of a sequence: those of its convolution, and its state."""
        keys = self.keys
        inner, state = keys.count("ssm.inner_size") or 0, keys.count("ssm.state_size") or 0
        kernel = keys.count("ssm.conv_kernel") or 0
        short = keys.count("shortconv.l_cache") or 0
        wkv = keys.count("wkv.head_size") or 0
        hidden = keys.count("embedding_length") or 0
        if wkv:
            return hidden * (keys.count("token_shift_count") or 2) + hidden * wkv
        if short:
            return hidden * (short - 1)
        groups = keys.count("ssm.group_count") or 0
        return max(kernel - 1, 0) * (inner + 2 * groups * state) + state * inner

    def _feed_forward(self, here: Mapping[str, GgufTensor]) -> Optional[FeedForward]:
        routed = here.get("ffn_down_exps.weight")
        old = [name for name in here if _OLD_EXPERT.match(name.rsplit(".", 1)[0])]
        if routed is not None and len(routed.shape) == 3:
            experts, width = routed.shape[0], routed.shape[2]
            shared = here.get("ffn_down_shexp.weight")
            gated = "ffn_gate_exps.weight" in here or "ffn_gate_up_exps.weight" in here
            return FeedForward(
                width, gated, experts, self._used(experts), shared.shape[-1] if shared is not None else 0
            )
        if old:
            down = [here[name] for name in old if name.startswith("ffn_down")]
            return FeedForward(down[0].shape[-1] if down else 0, True, len(down), self._used(len(down)))
        down_one = here.get("ffn_down.weight")
        if down_one is None or len(down_one.shape) != 2:
            return None
        width, up = down_one.shape[-1], here.get("ffn_up.weight")
        packed = up is not None and len(up.shape) == 2 and up.shape[0] == 2 * width
        return FeedForward(width, packed or "ffn_gate.weight" in here)

    def _used(self, experts: int) -> int:
        used = self.keys.count("expert_used_count") or experts
        if used > experts:
            raise ParseError(f"a token is to visit {used} experts, but there are {experts}")
        return used

    def _cross(self, here: Mapping[str, GgufTensor], own: Optional[Attention]) -> Optional[Attention]:
        return own._replace(window=0) if "cross_attn_k.weight" in here and own is not None else None

    def _scheme(self, by_type: Mapping[str, int], types: Mapping[int, BlockType]) -> str:
        """The mixture that the file says it is; where it does not, the type of most of its bytes. Empty: neither."""
        rows = self.matrix.storage_schemes()
        number = self.keys.metadata.get("general.file_type")
        for row in rows.values():
            if row.file_type is not None and row.file_type == number and not isinstance(number, bool):
                return row.name
        most = max(by_type, key=lambda word: by_type[word], default="")
        plain = {"F32": "fp32", "F16": "fp16", "BF16": "bf16"}
        if most in plain:
            return plain[most]
        fitting = [row.name for row in rows.values() if row.block_type == most]
        return next((name for name in fitting if name.endswith("_M")), fitting[0] if fitting else "")


def _named(found: Mapping[str, GgufTensor]) -> list[Tensor]:
    """The tensors of one layer, or those outside, in our names; alike ones together."""
    made: dict[tuple[str, str, tuple[int, ...]], int] = {}
    for key, copies in ((_key(name, tensor), _copies(name, tensor)) for name, tensor in sorted(found.items())):
        made[key] = made.get(key, 0) + copies
    return [Tensor(name, role, shape, copies) for (name, role, shape), copies in made.items()]


def _sizes(found: Mapping[str, GgufTensor]) -> dict[tuple[str, str, tuple[int, ...]], int]:
    made: dict[tuple[str, str, tuple[int, ...]], int] = {}
    for name, tensor in found.items():
        key = _key(name, tensor)
        made[key] = made.get(key, 0) + tensor.size
    return made


def _key(name: str, tensor: GgufTensor) -> tuple[str, str, tuple[int, ...]]:
    stem, _, ending = name.rpartition(".")
    plain = stem.replace(".", "_") if _PLAIN_NAME.match(stem) else "other"
    word, role = _NAMES.get(stem, (plain, ""))
    if _OLD_EXPERT.match(stem):
        word, role = _NAMES[stem.rpartition(".")[0]][0], EXPERT
    shape = tensor.shape
    if ending == "bias":
        return word + "_bias", BIAS, shape
    if role == EXPERT and len(shape) == 3:
        return word, role, shape[1:]
    if not role:
        if len(shape) < 2:
            role = NORM if stem.endswith("norm") else OTHER
        else:
            role = NORM if stem.endswith("_norm") else MATRIX
    if role == NORM and stem.endswith("norm"):
        word = {"attn_norm": "norm", "ffn_norm": "norm", "output_norm": "final_norm"}.get(stem, word)
        word = {"attn_q_norm": "q_norm", "attn_k_norm": "k_norm"}.get(stem, word)
    return word, role, shape


def _copies(name: str, tensor: GgufTensor) -> int:
    stem = name.rpartition(".")[0]
    is_expert = _NAMES.get(stem, ("", ""))[1] == EXPERT and not name.endswith(".bias")
    return tensor.shape[0] if is_expert and len(tensor.shape) == 3 else 1
