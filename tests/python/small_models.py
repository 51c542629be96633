"""Small models of every family that transformers knows, made by the names of their configurations' fields."""
import dataclasses
import inspect
import pathlib

import torch
import transformers
from transformers import CONFIG_MAPPING
from transformers.models.auto import modeling_auto
from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

# What a field of that name becomes where its default is a number. Widths are multiples of 4 heads of 8; what counts layers,
# experts or positions is as small as the families' own checks allow.
SIZES = {
    **dict.fromkeys(("hidden_size", "d_model", "n_embd", "embed_dim", "dim", "decoder_hidden_size", "encoder_hidden_size",
                     "embedding_size", "projection_dim", "hidden_dim", "encoder_hidden_dim", "output_hidden_size",
                     "out_hidden_size", "text_hidden_size", "projector_hidden_size", "fusion_hidden_size", "pooler_output_size",
                     "vision_hidden_size", "word_embed_proj_dim", "lstm_dim", "mm_hidden_size", "conv_hidden_size", "width",
                     "backbone_hidden_size", "emb_dim", "d_latents", "codebook_dim", "hidden_channels", "decoder_embed_dim", "n_embed"), 32),
    **dict.fromkeys(("num_attention_heads", "n_head", "n_heads", "num_heads", "encoder_attention_heads",
                     "decoder_attention_heads", "attention_heads", "decoder_num_attention_heads", "num_decoder_attention_heads",
                     "encoder_num_attention_heads", "text_num_attention_heads"), 4),
    **dict.fromkeys(("num_key_value_heads", "num_kv_heads", "multi_query_group_num", "decoder_num_key_value_heads",
                     "encoder_num_key_value_heads"), 2),
    **dict.fromkeys(("num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers", "decoder_layers",
                     "num_decoder_layers", "num_encoder_layers", "depth", "decoder_depth", "resampler_depth",
                     "num_block_records", "decoder_num_hidden_layers", "encoder_num_hidden_layers", "num_blocks"), 2),
    **dict.fromkeys(("intermediate_size", "d_ff", "n_inner", "encoder_ffn_dim", "decoder_ffn_dim", "ffn_dim", "mlp_dim",
                     "moe_intermediate_size", "shared_expert_intermediate_size", "shared_intermediate_size",
                     "decoder_intermediate_size", "encoder_intermediate_size", "expert_ffn_hidden_size", "ffn_hidden_size",
                     "moe_shared_expert_intermediate_size", "classifier_proj_size", "dim_feedforward"), 48),
    **dict.fromkeys(("vocab_size", "n_words", "vocab_size_per_layer_input", "text_vocab_size", "encoder_vocab_size", "decoder_vocab_size"), 120),
    **dict.fromkeys(("max_position_embeddings", "n_positions", "max_source_positions", "max_target_positions", "n_ctx",
                     "max_seq_len", "max_2d_position_embeddings", "max_encoder_position_embeddings", "seq_length",
                     "max_decoder_position_embeddings", "max_sequence_length"), 64),
    **dict.fromkeys(("head_dim", "d_kv", "attention_head_dim", "kv_channels", "v_head_dim", "index_head_dim",
                     "qk_nope_head_dim", "qk_rope_head_dim", "swa_head_dim", "global_head_dim", "d_head"), 8),
    **dict.fromkeys(("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"), 4),
    **dict.fromkeys(("num_experts_per_tok", "moe_topk", "moe_k", "top_k_experts", "n_group", "topk_group"), 2),
    **dict.fromkeys(("kv_lora_rank", "q_lora_rank", "index_topk"), 16),
    **dict.fromkeys(("image_size", "pretrain_image_size"), 32),
    **dict.fromkeys(("rotary_dim", "rotary_ndims"), 4),
    **dict.fromkeys(("entity_vocab_size", "num_buckets", "num_hash_buckets"), 40),
    **dict.fromkeys(("mamba_chunk_size", "mamba_n_heads", "mamba_d_head"), 8),
    **dict.fromkeys(("num_queries", "num_latents", "query_num"), 6),
}
LISTS = {  # by stages
    "depths": (1, 1, 1, 1),
    "hidden_sizes": (16, 32, 32, 64),
    "embed_dims": (16, 32, 32, 64),
    "num_heads": (2, 4, 4, 8),
}
MROPE = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 1, 1]}
OVERRIDES = {  # by type, of parts too, where sizes must fit one another in a way of the family's own
    "gpt_neo": {"attention_types": [[["global", "local"], 1]]},
    "led": {"attention_window": 4},
    "vits": {"vocab_size": 120},
    "esm": {"vocab_size": 120, "pad_token_id": 1, "mask_token_id": 3},
    **dict.fromkeys(("hunyuan_v1_dense", "hunyuan_v1_moe", "hunyuan_vl_text"), {"head_dim": 8}),
    **dict.fromkeys(("nemotron",), {"num_key_value_heads": 2, "head_dim": 8}),
    **dict.fromkeys(("esmc", "dots3_note_text", "dots1"), {"num_key_value_heads": 4}),
    "autoformer": {"prediction_length": 4},
    "informer": {"prediction_length": 4},
    "time_series_transformer": {"prediction_length": 4},
    **dict.fromkeys(("qwen2_vl_text", "qwen2_5_vl_text", "paddleocr_vl_text"), {"rope_parameters": MROPE}),
    **dict.fromkeys(("glm4v_text", "glm4v_moe_text", "glm_ocr_text", "glm_image_text", "glm46v_text"),
                    {"rope_parameters": {**MROPE, "partial_rotary_factor": 0.5, "mrope_section": [1, 1, 0]}}),
}
NO_BACKWARD = {"rwkv": "eager's own backward pass fails: it changes a tensor in place"}
# What stops the others: type | what their configuration or their call said.
_LISTED = (pathlib.Path(__file__).parent / "models_not_built.txt").read_text().splitlines()
NOT_BUILT = dict(line.split(" | ", 1) for line in _LISTED if line and not line.startswith("#"))


def _small(name, value):
    """What a field with that default becomes; None where it stays."""
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return min(value, SIZES[name]) if name in SIZES else None
    if name in LISTS and isinstance(value, (list, tuple)) and all(isinstance(x, int) for x in value):
        return [min(x, y) for x, y in zip(value, LISTS[name])]
    if name == "rope_parameters" and isinstance(value, dict) and "mrope_section" in value:
        return {**value, "mrope_section": [2, 1, 1]}
    return None


def small_arguments(config_class):
    """Keyword arguments that make a small configuration of the class."""
    default = config_class()
    parts = getattr(config_class, "sub_configs", None) or {}
    arguments, token = {}, 119
    for field in dataclasses.fields(config_class):
        name, value = field.name, default.__dict__.get(field.name)
        if name in parts or name.startswith("_"):
            continue
        small = _small(name, value)
        if small is None and isinstance(value, int) and value >= 100 and name.endswith(("_token_id", "_token_index")):
            small, token = token, token - 1
        if name == "eos_token_id" and isinstance(value, int) and value >= 100:
            small = 2
        if small is not None and small != value:
            arguments[name] = small
    if "layer_types" in {f.name for f in dataclasses.fields(config_class)} and "num_hidden_layers" in arguments:
        arguments["num_hidden_layers"] = 4
    if "kv_lora_rank" in arguments:  # all heads read one latent
        arguments["num_key_value_heads"] = arguments["num_attention_heads"]
    for name in parts:
        part = getattr(default, name, None)
        if isinstance(part, transformers.PreTrainedConfig):
            arguments[name] = {"model_type": part.model_type, **small_arguments(type(part))}
    return arguments | OVERRIDES.get(config_class.model_type, {})


def parts_of(config):
    """A configuration and those inside it."""
    yield config
    for name in getattr(type(config), "sub_configs", None) or {}:
        part = getattr(config, name, None)
        if isinstance(part, transformers.PreTrainedConfig):
            yield from parts_of(part)


def first_of(config, *names, default=None):
    """The first number of those names in the configuration or its parts."""
    for part in parts_of(config):
        for name in names:
            value = part.__dict__.get(name)
            if isinstance(value, (list, tuple)) and value and isinstance(value[0], int):
                value = value[0]
            if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                return value
    return default


def _classes():
    """The classes of models by type: AutoModel's, and those with a head for types that it does not know."""
    named = {name: names for name, names in vars(modeling_auto).items() if name.startswith("MODEL_") and name.endswith("MAPPING_NAMES")}
    found = {}
    for name in sorted(named, key=lambda name: name != "MODEL_MAPPING_NAMES"):
        for model_type, made in named[name].items():
            found.setdefault(model_type, made[0] if isinstance(made, (list, tuple)) else made)
    return {t: c for t, c in found.items() if t in CONFIG_MAPPING_NAMES}


def families(all_of_them=False):
    """The types of models that can be built small."""
    return [name for name in sorted(_classes()) if all_of_them or name not in NOT_BUILT]


def small_config(name):
    config_class = CONFIG_MAPPING[name]
    return config_class(**small_arguments(config_class))


def _made(name, implementation):
    torch.manual_seed(1)
    kind = getattr(transformers, _classes()[name])
    return kind._from_config(small_config(name), attn_implementation=implementation).eval()


def eager(name):
    """A small model with eager attention whose output depends on every weight."""
    model = _made(name, "eager")
    randomise(model)
    return model


def ours(name, theirs):
    """The same by us, with the weights of the other."""
    model = _made(name, "multihead")
    model.load_state_dict(theirs.state_dict())
    return model


def image(config):
    side = first_of(config, "image_size", default=32)
    return torch.randn(2, first_of(config, "num_channels", "in_channels", "in_chans", default=3), side, side)


PADDED = torch.tensor([[1] * 12, [0] * 4 + [1] * 8])


def ids(length):
    """Tokens, behind padding where there is some; the last one ends the sentence, which is where some look."""
    made = torch.randint(10, 60, (2, length))
    if length == PADDED.shape[1]:
        made = made.where(PADDED.bool(), 1)
        made[:, -1] = 2
    return made


def features(config):
    return torch.randn(2, first_of(config, "num_mel_bins", "feature_size", default=80), 2 * first_of(config, "max_source_positions", default=64))


def patches(config):
    """Sixteen patches of each of two images, flat."""
    side = first_of(config, "patch_size", default=14)
    channels = first_of(config, "num_channels", "in_channels", "in_chans", default=3)
    return torch.randn(32, channels * side * side * first_of(config, "temporal_patch_size", default=1))


INPUTS = {
    "input_ids": lambda config: ids(12),
    "attention_mask": lambda config: PADDED,
    "decoder_input_ids": lambda config: ids(7),
    "bbox": lambda config: torch.randint(0, 60, (2, 12, 4)).sort(-1).values,
    "pixel_values": image,
    "input_values": lambda config: torch.randn(2, 1600),
    "input_features": features,
    "grid_thw": lambda config: torch.tensor([[1, 4, 4], [1, 4, 4]]),
    "states": lambda config: torch.randn(2, 12, config.state_dim),
    "actions": lambda config: torch.randn(2, 12, config.act_dim),
    "rewards": lambda config: torch.randn(2, 12, 1),
    "returns_to_go": lambda config: torch.randn(2, 12, 1),
    "timesteps": lambda config: torch.arange(12).expand(2, 12),
}
TEXT = ("input_ids", "attention_mask", "decoder_input_ids", "bbox")
KINDS = [TEXT, (*TEXT, "pixel_values"), (*TEXT, "input_features"), ("pixel_values",), ("input_values",), ("input_features",),
         ("hidden_states", "pixel_values", "grid_thw"), ("states", "actions", "rewards", "returns_to_go", "timesteps")]


def inputs_of(model):
    """What the model's call needs: the first of the kinds it takes; a batch with padding where it reads text."""
    names = inspect.signature(model.forward).parameters
    problem = None
    for kind in KINDS:
        wanted = [name for name in kind if name in names]
        if kind[0] not in names and kind[0] != "hidden_states" or (len(kind) == 3 and "grid_thw" not in names):
            continue
        torch.manual_seed(2)
        flat = "grid_thw" in wanted
        given = {n: patches(model.config) if flat and n != "grid_thw" else INPUTS[n](model.config) for n in wanted}
        try:
            with torch.no_grad():
                model(**given)
            return given
        except Exception as error:
            problem = problem or error
    raise problem or NotImplementedError(f"takes {', '.join(names)}; none of these is made here")


def randomise(model):
    """Weights large enough that a pair of query and key more or less changes what comes out."""
    generator = torch.Generator().manual_seed(3)
    for name, weight in model.state_dict().items():
        if weight.is_floating_point() and weight.dim() >= 2:
            weight.normal_(0, weight.shape[-1] ** -0.5 if weight.dim() == 2 else 0.2, generator=generator)
        elif weight.is_floating_point() and weight.numel() and name.endswith("bias"):
            weight.normal_(0, 0.1, generator=generator)
