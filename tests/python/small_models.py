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
    "vits": {"vocab_size": 120, "upsample_initial_channel": 32, "upsample_rates": [2, 2], "upsample_kernel_sizes": [4, 4],
             "resblock_kernel_sizes": [3], "resblock_dilation_sizes": [[1, 3]], "flow_size": 32, "spectrogram_bins": 33,
             "prior_encoder_num_flows": 2, "posterior_encoder_num_wavenet_layers": 1, "duration_predictor_filter_channels": 32,
             "speaking_rate": 100.0},
    "esm": {"vocab_size": 120, "pad_token_id": 1, "mask_token_id": 3},
    **dict.fromkeys(("hunyuan_v1_dense", "hunyuan_v1_moe", "hunyuan_vl_text"), {"head_dim": 8}),
    **dict.fromkeys(("nemotron",), {"num_key_value_heads": 2, "head_dim": 8}),
    **dict.fromkeys(("esmc", "dots3_note_text", "dots1"), {"num_key_value_heads": 4}),
    **dict.fromkeys(("autoformer", "informer", "time_series_transformer"),
                    {"prediction_length": 4, "context_length": 16, "num_time_features": 2}),
    **dict.fromkeys(("qwen2_vl_text", "qwen2_5_vl_text", "paddleocr_vl_text"), {"rope_parameters": MROPE}),
    **dict.fromkeys(("glm4v_text", "glm4v_moe_text", "glm_ocr_text", "glm_image_text", "glm46v_text"),
                    {"rope_parameters": {**MROPE, "partial_rotary_factor": 0.5, "mrope_section": [1, 1, 0]}}),
    "audio-spectrogram-transformer": {"max_length": 64},
    "bamba": {"attn_layer_indices": [1], "mamba_d_state": 8},
    "bros": {"hidden_size": 64},
    "deepseek_v2": {"num_experts_per_tok": 2, "n_group": 1, "topk_group": 1},
    "granitemoehybrid": {"layer_types": ["mamba", "attention"] * 2, "mamba_d_state": 8},
    "layoutlmv3": {"coordinate_size": 5, "shape_size": 6, "input_size": 32},
    "lilt": {"hidden_size": 48, "num_attention_heads": 4},
    "lxmert": {"visual_feat_dim": 16, "l_layers": 1, "x_layers": 1, "r_layers": 1},
    "mgp-str": {"num_bpe_labels": 40, "num_wordpiece_labels": 40},
    "ministral": {"rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}, "head_dim": 8},
    "moonshine": {"num_attention_heads": 4, "encoder_num_key_value_heads": 4, "decoder_num_key_value_heads": 4},
    "patchtst": {"ffn_dim": 48, "d_model": 32},
    "perceiver": {"num_self_attends_per_block": 1, "num_self_attention_heads": 4, "num_cross_attention_heads": 4, "d_model": 32},
    **dict.fromkeys(("pvt", "pvt_v2", "glpn"), {"num_attention_heads": [1, 2, 4, 8], "hidden_sizes": [8, 16, 32, 64]}),
    "speech_to_text": {"conv_channels": 32},
    "xmod": {"default_language": "en_XX"},
    "jamba": {"attn_layer_period": 2, "attn_layer_offset": 1},
    "zamba": {"layers_block_type": ["mamba", "hybrid"] * 2, "num_hidden_layers": 4},
    **dict.fromkeys(("sam_vision_model", "sam_hq_vision_model"), {"output_channels": 32, "num_pos_feats": 16, "global_attn_indexes": [1]}),
    **dict.fromkeys(("swin", "donut-swin", "swin2sr"),
                    {"image_size": 64, "embed_dim": 16, "num_heads": [2, 4, 4, 8], "depths": [1, 1, 1, 1], "window_size": 2}),
    "vitpose_backbone": {"image_size": [32, 32]},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"] * 2},
    "kimi_linear": {"layer_types": ["linear_attention", "full_attention"] * 2, "linear_head_dim": 8, "linear_num_heads": 4},
    "bailing_hybrid": {"layer_types": ["linear_attention", "full_attention"] * 2},
    "gemma3n_text": {"num_kv_shared_layers": 2, "layer_types": ["sliding_attention", "full_attention"] * 2},
    "zamba2": {"layers_block_type": ["mamba", "hybrid"] * 2, "num_hidden_layers": 4, "n_mamba_heads": 8, "mamba_d_state": 8, "adapter_rank": 4},
    "sam_hq_mask_decoder": {"vit_dim": 32},
    "mamba2": {"num_heads": 8, "head_dim": 8, "state_size": 8, "n_groups": 2, "chunk_size": 8},
    "mimi": {"upsample_groups": 32, "num_filters": 4, "codebook_size": 16, "vector_quantization_hidden_dimension": 32},
    "encodec": {"num_filters": 4, "codebook_size": 16},
    "dac": {"n_codebooks": 2},
    "reformer": {"axial_pos_shape": [4, 4], "axial_pos_embds_dim": [16, 16], "attn_layers": ["local", "lsh"], "attention_head_size": 8,
                 "local_attn_chunk_length": 4, "lsh_attn_chunk_length": 4, "num_buckets": 4, "max_position_embeddings": 16},
    "neomme": {"head_dim": 16},
    "patchtsmixer": {"context_length": 32},
    "vjepa2": {"crop_size": 32, "frames_per_clip": 4, "pred_hidden_size": 32, "pred_num_attention_heads": 4, "pred_num_hidden_layers": 2},
    "siglip2_vision_model": {"num_patches": 16, "patch_size": 4},
    "parakeet_encoder": {"num_key_value_heads": 4, "subsampling_conv_channels": 16},
    "recurrent_gemma": {"num_hidden_layers": 3},
}
NO_BACKWARD = {"rwkv": "eager's own backward pass fails: it changes a tensor in place",
               "reformer": "eager's own backward pass fails outside training"}
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


def video(config):
    """Frames of two films."""
    side = first_of(config, "image_size", default=32)
    return torch.randn(2, first_of(config, "num_frames", default=4), first_of(config, "num_channels", default=3), side, side)


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
KINDS = [TEXT, (*TEXT, "pixel_values"), (*TEXT, "input_features"), ("pixel_values", "decoder_input_ids"), ("pixel_values",),
         ("input_values", "decoder_input_ids"), ("input_values",), ("input_features", "decoder_input_ids"), ("input_features",),
         ("hidden_states", "pixel_values", "grid_thw"), ("states", "actions", "rewards", "returns_to_go", "timesteps")]


def series(config):
    """Past and future of two series, as the forecasting families take them."""
    long = config.context_length + max(config.lags_sequence)
    return {name: torch.randn(2, long if "past" in name else config.prediction_length, *([config.num_time_features] * ("time" in name)))
            for name in ("past_values", "past_time_features", "future_values", "future_time_features")} | {
                "past_observed_mask": torch.ones(2, long)}


GIVEN = {  # by type, where the names do not say what the call needs
    "speecht5": lambda config: {"input_values": torch.randn(2, 12, config.hidden_size), "attention_mask": PADDED,
                                "decoder_input_values": torch.randn(2, 7, config.hidden_size)},
    "speech_to_text": lambda config: {"input_features": torch.randn(2, 48, 80), "decoder_input_ids": ids(7)},
    "wav2vec2-bert": lambda config: {"input_features": torch.randn(2, 12, 160), "attention_mask": PADDED},
    "audio-spectrogram-transformer": lambda config: {"input_values": torch.randn(2, config.max_length, config.num_mel_bins)},
    "mgp-str": lambda config: {"pixel_values": torch.randn(2, 3, 32, 128)},
    "layoutlmv3": lambda config: {"input_ids": ids(12), "attention_mask": PADDED, "bbox": INPUTS["bbox"](config)},
    "bros": lambda config: {"input_ids": ids(12), "attention_mask": PADDED, "bbox": torch.rand(2, 12, 4).sort(-1).values},
    "lxmert": lambda config: {"input_ids": ids(12), "attention_mask": PADDED, "visual_feats": torch.randn(2, 5, 16),
                              "visual_pos": torch.rand(2, 5, 4)},
    "perceiver": lambda config: {"inputs": torch.randn(2, 12, config.d_model), "attention_mask": PADDED},
    **dict.fromkeys(("patchtst", "patchtsmixer"), lambda config: {"past_values": torch.randn(2, config.context_length, 1)}),
    **dict.fromkeys(("mimi", "encodec", "dac"), lambda config: {"input_values": torch.randn(2, 1, 1600)}),
    "siglip2_vision_model": lambda config: {
        "pixel_values": torch.randn(2, 16, 48), "pixel_attention_mask": torch.tensor([[1] * 16, [1] * 12 + [0] * 4]),
        "spatial_shapes": torch.tensor([[4, 4], [3, 4]])},
    **dict.fromkeys(("parakeet_encoder", "parakeet_ctc"),
                    lambda config: {"input_features": torch.randn(2, 64, first_of(config, "num_mel_bins"))}),
    "siglip2": lambda config: {"input_ids": ids(12), "attention_mask": PADDED, **GIVEN["siglip2_vision_model"](config)},
    "pix2struct": lambda config: {"flattened_patches": torch.cat((torch.randint(1, 8, (2, 12, 2)), torch.randn(2, 12, 768)), -1),
                                  "attention_mask": PADDED, "decoder_input_ids": ids(7)},
    "timesfm": lambda config: {"past_values": torch.randn(2, 64), "past_values_padding": torch.zeros(2, 64),
                               "freq": torch.zeros(2, 1, dtype=torch.long)},
    "vjepa2": lambda config: {"pixel_values_videos": torch.randn(2, 4, 3, 32, 32)},
    **dict.fromkeys(("videomae", "timesformer", "vivit"), lambda config: {"pixel_values": video(config)}),
    **dict.fromkeys(("autoformer", "informer", "time_series_transformer"), series),
}


def inputs_of(model):
    """What the model's call needs: its type's own, or the first of the kinds it takes; a batch with padding where it reads text."""
    names = inspect.signature(model.forward).parameters
    if model.config.model_type in GIVEN:
        torch.manual_seed(2)
        return GIVEN[model.config.model_type](model.config)
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
