"""What `cudadoctor fit --measure` runs in the patient's own interpreter: the model's class, without weights and without
a GPU.

transformers builds the class from the config, on torch's "meta" device; under FakeTensorMode it then runs with tensors
that have a shape and a type and no memory, on the CPU. Which of them is alive when is counted from the operators that
torch dispatches: what the graph of the forward pass holds, and the peak of each stretch of a step. A few layers are
run; how much more each further layer takes is told by the difference of two runs.

It stands alone like verify's child, whose reporter it uses: cudadoctor need not be there. It decides nothing, and no
code of a model's repository is run: classes come from transformers, and it may not ask the network.

    python dry_run.py MARK '{"config": {...}, "batch": 1, "tokens": 4096, "mode": "train", ...}'

Where CUDA's own operators keep something else than the CPU's, CUDA's way is taken: dropout keeps a mask of one byte,
attention with dropout keeps no mask, autocast keeps to fp32 what CUDA's list says. The amounts are bytes, each tensor
rounded up to the blocks of CUDA's allocator.
"""

# mypy: allow-untyped-defs, allow-untyped-calls, allow-subclassing-any, disable-error-code="attr-defined"
# (Of what is used here, torch, there are no types where this is checked.)

from __future__ import annotations

import contextlib
import importlib
import inspect
import json
import os
import sys
from typing import Any

# What torch's allocator for CUDA rounds to.
BLOCK = 512
# A layer that comes back after more than that is not looked for.
LONGEST_PERIOD = 12

DEPTHS = (
    *("num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers", "decoder_layers"),
    *("num_decoder_layers", "num_encoder_layers"),
)
NESTED = ("text_config", "llm_config", "language_config", "thinker_config")
# Layers of another kind in front, and how often another kind comes.
PREFIXES = ("first_k_dense_replace", "num_dense_layers", "moe_layer_start_index")
PERIODS = (
    *("sliding_window_pattern", "_sliding_window_pattern", "full_attn_every_n_layers", "full_attention_interval"),
    *("decoder_sparse_step", "moe_layer_freq", "interleave_moe_layer_step", "attn_layer_period", "expert_layer_period"),
    *("cross_attention_frequency", "global_attn_every_n_layers", "moe_layer_interval", "no_rope_layer_interval"),
)
# Names of modules by the names of tensors that cudadoctor uses.
MODULES = {
    "q": ("q_proj", "query", "q_lin", "wq", "q_a_proj", "q_b_proj"),
    "k": ("k_proj", "key", "k_lin", "wk"),
    "v": ("v_proj", "value", "v_lin", "wv"),
    "kv_a": ("kv_a_proj_with_mqa",),
    "kv_b": ("kv_b_proj",),
    "q_a": ("q_a_proj",),
    "q_b": ("q_b_proj",),
    "o": ("o_proj", "out_proj", "out_lin", "wo", "attn.c_proj", "attention.dense", "self_attn.dense"),
    "gate": ("gate_proj", "w1", "wi_0"),
    "up": ("up_proj", "w3", "wi_1", "wi", "fc1", "c_fc", "dense_h_to_4h"),
    "down": ("down_proj", "w2", "wo", "fc2", "mlp.c_proj", "dense_4h_to_h"),
    "gate_up": ("gate_up_proj",),
    "qkv": ("qkv_proj", "query_key_value", "c_attn", "Wqkv", "qkv"),
}
# A packed matrix holds each of these.
PACKED = {"q": "qkv", "k": "qkv", "v": "qkv", "gate": "gate_up", "up": "gate_up"}

# What CUDA's autocast computes in fp32, as far as models use it.
IN_FP32 = frozenset(
    (
        *("layer_norm", "group_norm", "rms_norm", "softmax", "log_softmax", "cross_entropy", "nll_loss", "mse_loss"),
        *("pow", "__pow__", "__rpow__", "exp", "log", "rsqrt", "norm", "cumsum", "sum", "prod", "softplus"),
    )
)


class Cannot(Exception):
    """It cannot be measured here, and that is no fault: what is missing, and why."""


# -- how deep --------------------------------------------------------------------------------------------------------


class Side:
    """A stack of layers of a config: where its depth stands, and how its kinds of layers follow each other."""

    def __init__(self, path, key, number, prefix, period):
        self.path = path
        self.key = key
        self.number = number
        self.prefix = prefix
        self.period = period

    @property
    def small(self):
        return min(self.number, self.prefix + self.period * (2 if self.period == 1 else 1))

    @property
    def large(self):
        return min(self.number, self.small + self.period)


def whole(value):
    return isinstance(value, int) and not isinstance(value, bool)


def value(config, name, key):
    inner = config.get(name)
    return inner.get(key) if isinstance(inner, dict) else None


def sides(config):
    """The stacks of layers that the config speaks of."""
    found = []
    speak = [name for name in NESTED if any(whole(value(config, name, key)) for key in DEPTHS)]
    path = speak[:1]
    within = config[path[0]] if path else config
    for key in DEPTHS:
        number = within.get(key)
        if not whole(number) or number < 1 or (key == "num_hidden_layers" and "encoder_layers" in within):
            continue
        prefix = sum(within[name] for name in PREFIXES if whole(within.get(name)) and 0 < within[name] < number)
        found.append(Side(path, key, number, min(prefix, LONGEST_PERIOD), period_of(within, number)))
    return found


def period_of(config, number):
    kinds = config.get("layer_types")
    if isinstance(kinds, list) and len(kinds) == number:
        # The last turn may be cut short.
        for period in range(1, LONGEST_PERIOD + 1):
            if all(kind == kinds[place % period] for place, kind in enumerate(kinds)):
                return period
        return 1
    period = len(turn_of(config))
    for key in PERIODS:
        value = config.get(key)
        if whole(value) and 1 < value <= LONGEST_PERIOD:
            period = max(period, value)
    return period


def turn_of(config):
    """The kinds of attention in GPT-Neo's way to say it: [[["global", "local"], 12]]; else one kind."""
    types = config.get("attention_types")
    first = types[0] if isinstance(types, list) and len(types) == 1 else None
    kinds = first[0] if isinstance(first, list) and first else None
    return kinds if isinstance(kinds, list) and 0 < len(kinds) <= LONGEST_PERIOD else [None]


def cut(config, depths):
    """The config with so many layers on each side: pairs of Side and number."""
    config = json.loads(json.dumps(config))
    for side, number in depths:
        within = config
        for name in side.path:
            within = within[name]
        within[side.key] = number
        for key, value in list(within.items()):
            # A list with an entry for each layer.
            if isinstance(value, list) and len(value) == side.number and key != "architectures":
                within[key] = value[:number]
        turn = turn_of(within)
        if turn != [None]:
            within["attention_types"] = [[turn, max(1, number // len(turn))]]
        if within.get("num_kv_shared_layers"):
            within["num_kv_shared_layers"] = 0
    return config


def depths_to_run(found):
    """The smallest run, and one more for each side that goes deeper."""
    base = [side.small for side in found]
    runs = [base]
    for place, side in enumerate(found):
        if side.large > side.small:
            runs.append([*base[:place], side.large, *base[place + 1 :]])
    return runs


# -- the model -------------------------------------------------------------------------------------------------------


def import_of(name):
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name == name:
            raise Cannot(f"{name} is not installed in this environment") from None
        raise Cannot(f"{name} cannot be imported: {error}") from None


def config_of(transformers, config):
    family = config.get("model_type")
    if not isinstance(family, str) or not family:
        raise Cannot("the config names no model_type")
    known = importlib.import_module("transformers.models.auto.configuration_auto").CONFIG_MAPPING
    if family not in known:
        raise Cannot(f"transformers {transformers.__version__} has no class for {family!a}")
    # Neither where remote code lies nor how the weights are packed concerns the class.
    dropped = (
        *("auto_map", "quantization_config", "model_type", "torch_dtype", "dtype", "_name_or_path"),
        *("attn_implementation", "_attn_implementation"),
    )
    return known[family](**{key: value for key, value in config.items() if key not in dropped})


def class_of(transformers, config, named):
    """The class that the config names, if it is one of transformers' own, else the one for its usual task."""
    auto = importlib.import_module("transformers.models.auto.modeling_auto")
    base = transformers.PreTrainedModel
    for name in named if isinstance(named, list) else ():
        found = getattr(transformers, name, None) if isinstance(name, str) else None
        if isinstance(found, type) and issubclass(found, base):
            return found
    # Encoders and those with two sides first: most of them have a class that generates text, too.
    tasks = ("SPEECH_SEQ_2_SEQ", "SEQ_TO_SEQ_CAUSAL_LM", "MASKED_LM", "CAUSAL_LM", "IMAGE_TEXT_TO_TEXT")
    for task in (*tasks, "IMAGE_CLASSIFICATION", ""):
        mapping = getattr(auto, f"MODEL_FOR_{task}_MAPPING" if task else "MODEL_MAPPING", None)
        if mapping is not None and type(config) in mapping:
            found = mapping[type(config)]
            return found[0] if isinstance(found, (tuple, list)) else found
    raise Cannot(f"transformers {transformers.__version__} has no model for {type(config).__name__}")


def build(torch, transformers, config, request):
    """The model, on the meta device: with parameters that have a shape only."""
    made = config_of(transformers, config)
    chosen = class_of(transformers, made, config.get("architectures"))
    dtype = {"fp32": torch.float32, "mixed": torch.float32, "fp16": torch.float32}
    dtype = dtype.get(request["precision"], torch.bfloat16)
    if request["mode"] == "train" and request.get("lora") and request["precision"] != "fp32":
        dtype = torch.bfloat16
    attention = "eager" if request["attention"] == "eager" else "sdpa"
    with torch.device("meta"):
        before = torch.get_default_dtype()
        torch.set_default_dtype(dtype)
        try:
            try:
                model = chosen._from_config(made, attn_implementation=attention)
            except (ValueError, ImportError):
                if attention == "eager":
                    raise
                # The class has no other: then nobody can run it with one.
                attention = "eager"
                model = chosen._from_config(made, attn_implementation=attention)
        finally:
            torch.set_default_dtype(before)
        model.to(dtype)
        model.train(request["mode"] == "train")
        if request["mode"] == "train" and request["checkpointing"]:
            model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        if request["mode"] == "train" and request.get("lora"):
            model = adapted(model, request["lora"], request["checkpointing"])
            if request.get("quantised"):
                quantise(torch, model, request["quantised"])
    return model, attention


def adapted(model, wanted, checkpointing):
    peft = import_of("peft")
    settings = peft.LoraConfig(
        r=wanted["rank"],
        lora_alpha=2 * wanted["rank"],
        lora_dropout=wanted["dropout"],
        target_modules=target_modules(model, wanted["targets"]),
    )
    model = peft.get_peft_model(model, settings, autocast_adapter_dtype=wanted["width"] == 4)
    if checkpointing:
        model.enable_input_require_grads()
    model.train()
    return model


def quantise(torch, model, kind):
    """Lets the frozen matrices of the layers work as bitsandbytes' do: a matrix is unpacked for as long as it is used,
    the input is not kept, and the result is as wide as the input. `kind` "upcast": what is not quantised is in fp32,
    as peft prepares a model for it."""
    base: Any = torch.autograd.Function

    class Packed(base):
        @staticmethod
        def forward(context, given, weight):
            context.save_for_backward(weight)
            unpacked = torch.empty_like(weight)
            out = given.new_empty((*given.shape[:-1], weight.shape[0]), dtype=weight.dtype)
            del unpacked
            return out

        @staticmethod
        def backward(context, gradient):
            (weight,) = context.saved_tensors
            unpacked = torch.empty_like(weight)
            out = gradient.new_empty((*gradient.shape[:-1], weight.shape[1]))
            del unpacked
            return out, None

    def forward_of(layer):
        def forward(given, *args, **kwargs):
            out = Packed.apply(given.to(layer.weight.dtype), layer.weight)
            return (out if layer.bias is None else out + layer.bias.to(out.dtype)).to(given.dtype)

        return forward

    packed = set()
    head = model.get_output_embeddings()
    for module in model.modules():
        frozen = isinstance(module, torch.nn.Linear) and not module.weight.requires_grad
        if frozen and module is not head and getattr(head, "base_layer", None) is not module:
            module.forward = forward_of(module)
            packed.add(id(module.weight))
        if hasattr(module, "lora_A") and hasattr(module, "_cast_input_dtype"):
            # Under autocast, the layers for bitsandbytes leave that to it.
            module._cast_input_dtype = lambda given, dtype: given
    if kind == "upcast":
        for parameter in model.parameters():
            if id(parameter) not in packed and not parameter.requires_grad:
                parameter.data = parameter.data.float()


def target_modules(model, targets):
    if "all" in targets:
        return "all-linear"
    names: set[str] = set()
    for target in targets:
        names.update(MODULES.get(target, (target,)))
        names.update(MODULES.get(PACKED.get(target, ""), ()))
    there = [name for name, _ in model.named_modules()]
    found = sorted(name for name in names if any(one == name or one.endswith("." + name) for one in there))
    if not found:
        raise Cannot(f"the model has no matrices called {', '.join(targets)}")
    return found


def materialise(torch, model):
    """Gives each parameter and buffer, once, a tensor of the mode that is on."""
    seen = {}
    for module in model.modules():
        for table in (module._parameters, module._buffers):
            for name, old in table.items():
                if old is None:
                    continue
                if id(old) not in seen:
                    new = torch.empty(old.shape, dtype=old.dtype, device="cpu")
                    if isinstance(old, torch.nn.Parameter):
                        new = torch.nn.Parameter(new, requires_grad=old.requires_grad)
                    seen[id(old)] = (new, old)
                table[name] = seen[id(old)][0]
    for module in model.modules():
        # Some classes keep such tensors beside.
        for name, value in list(vars(module).items()):
            if isinstance(value, torch.Tensor) and value.device.type == "meta":
                setattr(module, name, torch.empty(value.shape, dtype=value.dtype, device="cpu"))
    return model


def inputs_of(torch, model, config, request):
    """What the model is fed with, and the labels."""
    batch, tokens = request["batch"], request["tokens"]
    name = getattr(model, "main_input_name", "input_ids")
    ids = torch.zeros(batch, tokens, dtype=torch.long)
    dtype = next(parameter.dtype for parameter in model.parameters() if parameter.is_floating_point())
    if name == "pixel_values":
        size = getattr(config, "image_size", 224)
        height, width = size if isinstance(size, (tuple, list)) else (size, size)
        image = torch.zeros(batch, getattr(config, "num_channels", 3), height, width, dtype=dtype)
        return {name: image, "labels": torch.zeros(batch, dtype=torch.long)}
    if name == "input_features":
        length = 2 * getattr(config, "max_source_positions", 1500)
        sound = torch.zeros(batch, getattr(config, "num_mel_bins", 80), length, dtype=dtype)
        return {name: sound, "labels": ids}
    given = {"input_ids": ids, "labels": ids}
    if request["padded"]:
        given["attention_mask"] = torch.ones(batch, tokens, dtype=torch.long)
    return given


# -- what is alive when ----------------------------------------------------------------------------------------------


def ledger_of(torch):
    """A mode that hears of every operator, and keeps account of the storages that are alive."""
    import weakref

    mode: Any = importlib.import_module("torch.utils._python_dispatch").TorchDispatchMode
    tree_flatten = importlib.import_module("torch.utils._pytree").tree_flatten
    probe = torch.empty(1)
    if probe.untyped_storage() is not probe.untyped_storage():
        raise Cannot(f"the storages of torch {torch.__version__} cannot be followed")

    class Ledger(mode):
        def __init__(self):
            super().__init__()
            self.alive = {}
            self.now = 0
            self.base = 0
            self.stretch = ""
            self.peaks = {}

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            out = function(*args, **(kwargs or {}))
            for one in tree_flatten(out)[0]:
                if isinstance(one, torch.Tensor):
                    self.note(one)
            return out

        def note(self, tensor):
            storage = tensor.untyped_storage()
            key = storage._cdata
            if key in self.alive:
                return
            size = -(-storage.nbytes() // BLOCK) * BLOCK

            def gone(_, key=key, size=size):
                if self.alive.pop(key, None) is not None:
                    self.now -= size

            self.alive[key] = weakref.ref(storage, gone)
            self.now += size
            self.seen()

        def seen(self):
            self.peaks[self.stretch] = max(self.peaks.get(self.stretch, 0), self.now - self.base)

        def begin(self, stretch):
            """What comes from here on belongs to this stretch of the step."""
            self.stretch = stretch
            self.seen()

    return Ledger()


def attention_of(torch):
    """Attention as CUDA's fused kernels keep it for the backward pass: queries, keys, values, output, one number a head
    and token, and a mask in the queries' type where there is one."""

    base: Any = torch.autograd.Function

    class Attention(base):
        @staticmethod
        def forward(context, query, key, value, mask):
            batch, heads, length, width = query.shape
            if mask is None and value.shape[-1] == width:
                out = torch.empty_like(query)  # flash attention: laid out as the queries are
            else:
                out = query.new_empty((batch, length, heads, value.shape[-1])).transpose(1, 2)
            sums = query.new_empty((batch, heads, length), dtype=torch.float32)
            context.save_for_backward(query, key, value, mask, out, sums)
            return out

        @staticmethod
        def backward(context, gradient):
            query, key, value, mask = context.saved_tensors[:4]
            wide = [torch.empty_like(query) for _ in range(2) if key.shape[1] != query.shape[1]]
            of_mask = torch.empty_like(mask) if context.needs_input_grad[3] else None
            found = torch.empty_like(query), torch.empty_like(key), torch.empty_like(value), of_mask
            del wide  # one for each head, before those that share a key are summed
            return found

    return Attention


def in_autocast(torch):
    try:
        return torch.is_autocast_enabled("cpu")
    except TypeError:  # an older torch asks by another name
        return torch.is_autocast_cpu_enabled()


def as_cuda_does(torch):
    """What CUDA keeps otherwise than the CPU, for whoever calls torch by its public names."""
    functional = torch.nn.functional
    attention = attention_of(torch)

    def sdpa(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
        # Of dropout, CUDA's kernels keep the state of the random numbers, not a mask.
        if in_autocast(torch):
            query, key, value = (one.to(torch.bfloat16) for one in (query, key, value))
        if attn_mask is not None and attn_mask.dtype != query.dtype:
            attn_mask = torch.zeros_like(attn_mask, dtype=query.dtype)  # in every layer anew
        return attention.apply(query, key, value, attn_mask)

    def dropout(input, p=0.5, training=True, inplace=False):
        return torch.native_dropout(input, p, True)[0] if training and p > 0 else input

    functional.scaled_dot_product_attention = sdpa
    functional.dropout = dropout
    with contextlib.suppress(ImportError, AttributeError):
        # It would read numbers out of a tensor that has none; sequences are not packed here.
        masks = importlib.import_module("transformers.masking_utils")
        masks.find_packed_sequence_indices = lambda position_ids: None


@contextlib.contextmanager
def autocast(torch, request):
    """Mixed precision as CUDA has it: the CPU's own list of what stays in fp32 is shorter."""
    if request["precision"] not in ("mixed", "fp16"):
        yield
        return
    mode: Any = importlib.import_module("torch.overrides").TorchFunctionMode

    def widened(value):
        narrow = (torch.bfloat16, torch.float16)
        return value.float() if isinstance(value, torch.Tensor) and value.dtype in narrow else value

    class Wide(mode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            kwargs = kwargs or {}
            if getattr(function, "__name__", "") in IN_FP32 and in_autocast(torch):
                args = tuple(widened(value) for value in args)
                kwargs = {key: widened(value) for key, value in kwargs.items()}
                with torch.autocast("cpu", enabled=False):
                    return function(*args, **kwargs)
            return function(*args, **kwargs)

    with Wide(), torch.autocast("cpu", dtype=torch.bfloat16):
        yield


def stacks(torch, model, numbers):
    """The stacks of layers: lists of modules as long as one of those that were asked for."""
    found: list[tuple[str, object]] = []
    for name, module in model.named_modules():
        inside = any(name.startswith(outer + ".") for outer, _ in found)
        if isinstance(module, torch.nn.ModuleList) and len(module) in numbers and not inside:
            found.append((name, module))
    return [module for _, module in found]


def first_tensor(torch, value):
    if isinstance(value, torch.Tensor):
        return value
    if isinstance(value, (tuple, list)):
        return next((one for one in value if isinstance(one, torch.Tensor)), None)
    return None


def mark_layers(torch, ledger, model, numbers):
    """Tells the ledger which stretch of the backward pass runs: from the loss to the last layer, that layer, what is
    between, the first layer. In each of them the peak grows evenly with the number of layers."""

    def watched(begins):
        def hook(module, args, out):
            tensor = first_tensor(torch, out)
            if tensor is not None and tensor.requires_grad and torch.is_grad_enabled():
                tensor.register_hook(lambda gradient: ledger.begin(begins))

        return hook

    for place, stack in enumerate(stacks(torch, model, numbers)):
        stack[-1].register_forward_hook(watched(f"backward {place} last"))
        if len(stack) > 2:
            stack[-2].register_forward_hook(watched(f"backward {place} between"))
        if len(stack) > 1:
            stack[0].register_forward_hook(watched(f"backward {place} first"))


# -- the runs --------------------------------------------------------------------------------------------------------


def parameters_of(model):
    own = list(model.parameters())
    return own, [parameter for parameter in own if parameter.requires_grad]


def held(tensors):
    return sum(-(-tensor.numel() * tensor.element_size() // BLOCK) * BLOCK for tensor in tensors)


def optimizer_of(torch, request, trained):
    name, fused = request.get("optimizer"), request.get("fused")
    # for each tensor alone: what `fused` needs without its kernel
    way = {"foreach": not fused}
    if name == "adamw":
        return torch.optim.AdamW(trained, **way)
    if name == "sgd":
        return torch.optim.SGD(trained, **way)
    if name == "sgd_momentum":
        return torch.optim.SGD(trained, momentum=0.9, **way)
    return None


def train(torch, model, request, config, numbers):
    """One step as it is once the optimizer has its states. Bytes beside parameters and inputs."""
    ledger = ledger_of(torch)
    every, trained = parameters_of(model)
    buffers = list(model.buffers())
    inputs = inputs_of(torch, model, config, request)
    for tensor in (*every, *buffers, *inputs.values()):
        ledger.note(tensor)
    with ledger:
        optimizer = optimizer_of(torch, request, trained)
        if optimizer is not None:
            for parameter in trained:
                parameter.grad = torch.empty_like(parameter)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        if request["accumulation"]:
            for parameter in trained:
                parameter.grad = torch.empty_like(parameter)
        mark_layers(torch, ledger, model, numbers)
        states = ledger.now
        inner = getattr(model, "get_base_model", lambda: model)()
        ledger.peaks.clear()
        ledger.base = held(every) + held(buffers) + held(inputs.values())
        ledger.begin("forward")
        with autocast(torch, request):
            keys = inspect.signature(inner.forward).parameters
            extra = {"use_cache": False} if "use_cache" in keys or has_rest(keys) else {}
            if request["loss"] == "plain":
                loss = model(**inputs, **extra).loss
            else:
                # The logits are computed otherwise: what the layers hold alone.
                inputs.pop("labels", None)
                loss = inner.base_model(**inputs, **extra)[0]
        if loss is None:
            raise Cannot("the class computes no loss")
        activations = ledger.now - states
        ledger.begin("backward loss")
        if loss.dim():
            loss.backward(loss.detach())
        else:
            loss.backward()
        del loss
        gradients = held([parameter.grad for parameter in trained if parameter.grad is not None])
        if optimizer is not None:
            ledger.begin("step")
            optimizer.step()
    return {
        "parameters": sum(parameter.numel() for parameter in every),
        "trained": sum(parameter.numel() for parameter in trained),
        "weights": held(every) + held(buffers),
        "adapters": held(trained) if request.get("lora") else 0,
        "gradients": gradients,
        "optimizer": states - ledger.base - (gradients if request["accumulation"] else 0),
        "activations": activations,
        "stretches": {name: size for name, size in ledger.peaks.items() if name},
        "step": optimizer is not None,
    }


def has_rest(keys):
    return any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in keys.values())


def infer(torch, model, request, config, numbers):
    """The prompt in one pass, and one token after the whole context. Bytes beside parameters and inputs."""
    ledger = ledger_of(torch)
    every, _ = parameters_of(model)
    buffers = list(model.buffers())
    keys = inspect.signature(model.forward).parameters
    kept = next((name for name in ("past_key_values", "cache") if name in keys), "")
    decodes = bool(kept) and "input_ids" in keys
    extra: dict[str, object] = {}
    if decodes:
        extra["use_cache"] = True
        if "logits_to_keep" in keys:
            extra["logits_to_keep"] = 1
        elif "num_logits_to_keep" in keys:
            extra["num_logits_to_keep"] = 1
    for tensor in (*every, *buffers):
        ledger.note(tensor)
    cache = 0
    with ledger, torch.no_grad():
        ledger.base = ledger.now
        ledger.begin("prefill")
        inputs = inputs_of(torch, model, config, {**request, "tokens": request["prompt"]})
        inputs.pop("labels")
        if "decoder_input_ids" in keys:
            inputs["decoder_input_ids"] = torch.zeros(request["batch"], 1, dtype=torch.long)
        out = model(**inputs, **extra)
        del out
        if decodes and getattr(model, "main_input_name", "") == "input_ids" and "decoder_input_ids" not in keys:
            inputs = {"input_ids": torch.zeros(request["batch"], max(1, request["tokens"] - 1), dtype=torch.long)}
            ledger.stretch = "filling"
            out = model(**inputs, **extra)
            past = {kept: getattr(out, kept)}
            del out, inputs
            inputs = {"input_ids": torch.zeros(request["batch"], 1, dtype=torch.long)}
            ledger.peaks.pop("filling", None)
            ledger.begin("decode")
            out = model(**inputs, **past, **extra)
            del out
            cache = ledger.now - ledger.base
    ledger.peaks.pop("filling", None)
    return {
        "parameters": sum(parameter.numel() for parameter in every),
        "trained": 0,
        "weights": held(every) + held(buffers),
        "adapters": 0,
        "gradients": 0,
        "optimizer": 0,
        "activations": 0,
        "cache": cache,
        "stretches": {name: size for name, size in ledger.peaks.items() if name},
        "step": False,
    }


def dry_run(torch, transformers, request, depths, found):
    fake = importlib.import_module("torch._subclasses.fake_tensor").FakeTensorMode
    config = cut(request["config"], list(zip(found, depths)))
    model, attention = build(torch, transformers, config, request)
    with fake(allow_non_fake_inputs=True):
        model = materialise(torch, model)
        text = model.config.get_text_config() if hasattr(model.config, "get_text_config") else model.config
        run = train if request["mode"] == "train" else infer
        shown = model.config if getattr(model, "main_input_name", "") != "input_ids" else text
        result = run(torch, model, request, shown, set(depths))
    result.update(depths=depths, attention=attention, model_class=class_name(model))
    return result


def class_name(model):
    inner = getattr(model, "get_base_model", lambda: model)()
    return type(inner).__name__


# -- from the first line to the last ---------------------------------------------------------------------------------


def limit_memory(size):
    """What this process may allocate, in bytes; without such a limit on Windows."""
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (size, size))
    except (ImportError, ValueError, OSError, AttributeError):
        pass


def environment():
    """No GPU, and no network, whatever the person's variables say."""
    os.environ.update(
        CUDA_VISIBLE_DEVICES="-1",
        HF_HUB_OFFLINE="1",
        TRANSFORMERS_OFFLINE="1",
        HF_HUB_DISABLE_TELEMETRY="1",
        TOKENIZERS_PARALLELISM="false",
        TRANSFORMERS_VERBOSITY="error",
    )


def measured(reporter, request):
    torch = import_of("torch")
    transformers = import_of("transformers")
    reporter.say(event="versions", torch=str(torch.__version__), transformers=str(transformers.__version__))
    as_cuda_does(torch)
    found = sides(request["config"])
    for depths in depths_to_run(found):
        result = dry_run(torch, transformers, request, depths, found)
        reporter.say(event="run", **result)
    return {"sides": [[side.key, side.number, side.period] for side in found]}


def main(arguments):
    # The file beside this one: verify's child, for how it reports.
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    child = importlib.import_module("verify_child")
    del sys.path[0]
    mark, request = arguments[0], json.loads(arguments[1])
    reporter = child.Reporter(mark)
    child.die_with_caller(request.get("caller", 1))
    environment()
    limit_memory(request["memory"])
    reporter.say(event="python", version=".".join(str(part) for part in sys.version_info[:3]))

    def run():
        try:
            return measured(reporter, request)
        except Cannot as reason:
            return {"status": "cannot", "reason": str(reason)[: child.LONGEST]}
        except MemoryError:
            return {"status": "error", "error": "it took more memory than it may"}
        except Exception as error:
            if type(error).__name__ in ("DynamicOutputShapeException", "DataDependentOutputException"):
                return {"status": "cannot", "reason": "the model's class looks at values, and a dry run has none"}
            raise

    reporter.run("dry-run", run)
    reporter.say(event="end")
    return 0


if __name__ == "__main__":
    # The folder of this file holds nothing that anybody wants to import.
    sys.path[:1] = []
    code = main(sys.argv[1:])
    sys.stderr.flush()
    os._exit(code)
