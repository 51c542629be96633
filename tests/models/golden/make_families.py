#!/usr/bin/env python3
"""Writes tiny random Hugging Face folders with what transformers computes in f64.  usage: make_families.py [OUT [SEED [NAME…]]]

Each folder holds config.json and model.safetensors as save_pretrained writes them, and golden.safetensors: the inputs without
padding ("input.ids", "input.lengths", …) and the outputs by Hugging Face's names, rows of padding left out. Those of models
that write text hold generation.json too: what generate() writes of a few prompts.
"""
import json
import pathlib
import sys

import torch
import transformers as hf
from safetensors.torch import save_file

HERE = pathlib.Path(__file__).parent
LENGTHS = [7, 1, 4]
DECODER_LENGTHS = [3, 5, 2]

BERT = dict(vocab_size=19, hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=12, max_position_embeddings=11)
ROBERTA = dict(BERT, max_position_embeddings=13, pad_token_id=1, bos_token_id=0, eos_token_id=2)
ALBERT = dict(BERT, embedding_size=6, num_hidden_layers=3)
ELECTRA = dict(BERT, embedding_size=6)
DISTIL = dict(vocab_size=19, dim=8, n_layers=2, n_heads=2, hidden_dim=12, max_position_embeddings=11)
MODERN = dict(vocab_size=19, hidden_size=8, num_hidden_layers=4, num_attention_heads=2, intermediate_size=6, max_position_embeddings=32,
              local_attention=4, global_attn_every_n_layers=3, pad_token_id=0, bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2)
DEBERTA = dict(BERT, relative_attention=True, position_buckets=4, max_relative_positions=12, pos_att_type=["p2c", "c2p"], share_att_key=True,
               norm_rel_ebd="layer_norm", position_biased_input=False, type_vocab_size=0, pooler_hidden_size=8)
VIT = dict(hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=12, image_size=6, patch_size=2, num_channels=3)
CLIP = dict(text_config=dict(vocab_size=19, hidden_size=8, intermediate_size=12, num_hidden_layers=2, num_attention_heads=2, max_position_embeddings=11,
                             eos_token_id=18, bos_token_id=17, pad_token_id=18, projection_dim=6),
            vision_config=dict(hidden_size=12, intermediate_size=10, num_hidden_layers=2, num_attention_heads=3, image_size=6, patch_size=3, projection_dim=6),
            projection_dim=6)

IDS = dict(pad_token_id=0, bos_token_id=1, eos_token_id=2)
GPT2 = dict(IDS, vocab_size=23, n_embd=8, n_layer=2, n_head=2, n_positions=40)
LLAMA = dict(IDS, vocab_size=23, hidden_size=8, intermediate_size=12, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
             max_position_embeddings=40)
NEOX = dict(IDS, vocab_size=23, hidden_size=16, intermediate_size=12, num_hidden_layers=2, num_attention_heads=2, max_position_embeddings=40)
T5 = dict(vocab_size=23, d_model=8, d_kv=6, d_ff=12, num_layers=2, num_decoder_layers=2, num_heads=2, relative_attention_num_buckets=8,
          relative_attention_max_distance=12, pad_token_id=0, eos_token_id=1, decoder_start_token_id=0)
BART = dict(vocab_size=23, d_model=8, encoder_layers=2, decoder_layers=1, encoder_ffn_dim=12, decoder_ffn_dim=10, encoder_attention_heads=2,
            decoder_attention_heads=4, max_position_embeddings=40, pad_token_id=1, bos_token_id=0, eos_token_id=2, decoder_start_token_id=2,
            forced_eos_token_id=None)
MARIAN = dict(BART, pad_token_id=22, eos_token_id=0, decoder_start_token_id=22, scale_embedding=True)
PEGASUS = dict(BART, pad_token_id=0, eos_token_id=1, decoder_start_token_id=0, scale_embedding=True)


def heads(family, config_class, sizes, **classes):
    for head, (model_class, more) in classes.items():
        yield f"{family}_{head}", (config_class, {**sizes, **more}, model_class)


# name -> (config class, its arguments, model class)
CASES = dict([
    *heads("bert", hf.BertConfig, BERT, body=(hf.BertModel, {}), masked=(hf.BertForMaskedLM, dict(hidden_act="gelu_new")),
           sequence=(hf.BertForSequenceClassification, dict(num_labels=3)), token=(hf.BertForTokenClassification, dict(num_labels=5, hidden_act="relu")),
           question=(hf.BertForQuestionAnswering, dict(type_vocab_size=3)), choice=(hf.BertForMultipleChoice, {})),
    *heads("roberta", hf.RobertaConfig, ROBERTA, body=(hf.RobertaModel, dict(type_vocab_size=1)), masked=(hf.RobertaForMaskedLM, dict(type_vocab_size=1)),
           sequence=(hf.RobertaForSequenceClassification, dict(num_labels=3)), token=(hf.RobertaForTokenClassification, dict(num_labels=4)),
           question=(hf.RobertaForQuestionAnswering, {})),
    *heads("xlm_roberta", hf.XLMRobertaConfig, dict(ROBERTA, layer_norm_eps=1e-5), sequence=(hf.XLMRobertaForSequenceClassification, dict(num_labels=1)),
           masked=(hf.XLMRobertaForMaskedLM, {})),
    *heads("distilbert", hf.DistilBertConfig, DISTIL, body=(hf.DistilBertModel, {}), masked=(hf.DistilBertForMaskedLM, dict(activation="gelu")),
           sequence=(hf.DistilBertForSequenceClassification, dict(num_labels=2)), token=(hf.DistilBertForTokenClassification, dict(num_labels=5)),
           question=(hf.DistilBertForQuestionAnswering, dict(sinusoidal_pos_embds=True))),
    *heads("mpnet", hf.MPNetConfig, ROBERTA, body=(hf.MPNetModel, {}), masked=(hf.MPNetForMaskedLM, {}),
           sequence=(hf.MPNetForSequenceClassification, dict(num_labels=3)), token=(hf.MPNetForTokenClassification, dict(num_labels=3)),
           question=(hf.MPNetForQuestionAnswering, {})),
    *heads("electra", hf.ElectraConfig, ELECTRA, body=(hf.ElectraModel, {}), masked=(hf.ElectraForMaskedLM, {}),
           sequence=(hf.ElectraForSequenceClassification, dict(num_labels=3)), token=(hf.ElectraForTokenClassification, dict(num_labels=3, embedding_size=8)),
           question=(hf.ElectraForQuestionAnswering, {}), detector=(hf.ElectraForPreTraining, {})),
    *heads("albert", hf.AlbertConfig, ALBERT, body=(hf.AlbertModel, dict(num_hidden_groups=2, num_hidden_layers=4)), masked=(hf.AlbertForMaskedLM, {}),
           sequence=(hf.AlbertForSequenceClassification, dict(num_labels=3)), token=(hf.AlbertForTokenClassification, dict(num_labels=3)),
           question=(hf.AlbertForQuestionAnswering, {})),
    *heads("modernbert", hf.ModernBertConfig, MODERN, body=(hf.ModernBertModel, {}), masked=(hf.ModernBertForMaskedLM, {}),
           sequence=(hf.ModernBertForSequenceClassification, dict(num_labels=3, classifier_pooling="mean")),
           token=(hf.ModernBertForTokenClassification, dict(num_labels=3)), question=(hf.ModernBertForQuestionAnswering, {})),
    *heads("deberta", hf.DebertaV2Config, DEBERTA, body=(hf.DebertaV2Model, {}), masked=(hf.DebertaV2ForMaskedLM, dict(position_buckets=-1)),
           sequence=(hf.DebertaV2ForSequenceClassification, dict(num_labels=3, pooler_hidden_act="gelu")),
           token=(hf.DebertaV2ForTokenClassification, dict(num_labels=3, share_att_key=False, pos_att_type=["c2p", "p2c"])),
           question=(hf.DebertaV2ForQuestionAnswering, dict(pos_att_type=["c2p"], position_biased_input=True, type_vocab_size=2))),
    *heads("vit", hf.ViTConfig, VIT, body=(hf.ViTModel, {}), image=(hf.ViTForImageClassification, dict(num_labels=3, qkv_bias=False))),
    *heads("deit", hf.DeiTConfig, VIT, body=(hf.DeiTModel, {}), image=(hf.DeiTForImageClassification, dict(num_labels=3)),
           distilled=(hf.DeiTForImageClassificationWithTeacher, dict(num_labels=3))),
    *heads("clip", hf.CLIPConfig, CLIP, both=(hf.CLIPModel, {})),
    *heads("gpt2", hf.GPT2Config, GPT2, body=(hf.GPT2Model, dict(scale_attn_weights=False)), lm=(hf.GPT2LMHeadModel, dict(n_inner=12)),
           layers=(hf.GPT2LMHeadModel, dict(scale_attn_by_inverse_layer_idx=True, activation_function="relu", tie_word_embeddings=False)),
           sequence=(hf.GPT2ForSequenceClassification, dict(num_labels=3)), token=(hf.GPT2ForTokenClassification, dict(num_labels=3)),
           question=(hf.GPT2ForQuestionAnswering, {})),
    *heads("llama", hf.LlamaConfig, LLAMA, lm=(hf.LlamaForCausalLM, {}), body=(hf.LlamaModel, dict(attention_bias=True, mlp_bias=True)),
           tied=(hf.LlamaForCausalLM, dict(tie_word_embeddings=True, head_dim=6, hidden_act="gelu_new", rope_parameters=dict(rope_type="default", rope_theta=500.0))),
           sequence=(hf.LlamaForSequenceClassification, dict(num_labels=3)), token=(hf.LlamaForTokenClassification, dict(num_labels=3))),
    *heads("qwen2", hf.Qwen2Config, LLAMA, lm=(hf.Qwen2ForCausalLM, dict(tie_word_embeddings=True))),
    *heads("qwen3", hf.Qwen3Config, LLAMA, lm=(hf.Qwen3ForCausalLM, dict(head_dim=6))),
    *heads("gpt_neox", hf.GPTNeoXConfig, NEOX, lm=(hf.GPTNeoXForCausalLM, {}), body=(hf.GPTNeoXModel, dict(use_parallel_residual=False, attention_bias=False)),
           sequence=(hf.GPTNeoXForSequenceClassification, dict(num_labels=3))),
    *heads("t5", hf.T5Config, T5, lm=(hf.T5ForConditionalGeneration, {}), gated=(hf.T5ForConditionalGeneration, dict(feed_forward_proj="gated-gelu", tie_word_embeddings=False)),
           body=(hf.T5Model, dict(feed_forward_proj="gated-silu", num_decoder_layers=3)), encoder=(hf.T5EncoderModel, {})),
    *heads("mt5", hf.MT5Config, T5, lm=(hf.MT5ForConditionalGeneration, dict(feed_forward_proj="gated-gelu"))),
    *heads("bart", hf.BartConfig, BART, lm=(hf.BartForConditionalGeneration, {}), body=(hf.BartModel, dict(scale_embedding=True))),
    *heads("mbart", hf.MBartConfig, BART, lm=(hf.MBartForConditionalGeneration, dict(scale_embedding=True))),
    *heads("marian", hf.MarianConfig, MARIAN, lm=(hf.MarianMTModel, dict(activation_function="swish"))),
    *heads("pegasus", hf.PegasusConfig, PEGASUS, lm=(hf.PegasusForConditionalGeneration, dict(activation_function="relu"))),
    *heads("m2m_100", hf.M2M100Config, BART, lm=(hf.M2M100ForConditionalGeneration, {})),
    # At the end: a case's number is its seed.
    *heads("bart", hf.BartConfig, BART, sequence=(hf.BartForSequenceClassification, dict(decoder_start_token_id=0)), question=(hf.BartForQuestionAnswering, {})),
    *heads("mbart", hf.MBartConfig, dict(BART, decoder_start_token_id=None), sequence=(hf.MBartForSequenceClassification, dict(num_labels=2)),
           question=(hf.MBartForQuestionAnswering, {})),
])


def randomise(model, generator):
    """N(0, 0.3), norms 1 ± 0.2, so that a missing scale or bias shows."""
    made = {f"{name}.weight" for name, module in model.named_modules() if "Sinusoidal" in type(module).__name__}
    if hasattr(model, "final_logits_bias"):
        model.final_logits_bias.copy_(torch.randn(model.final_logits_bias.shape, generator=generator) * 0.3)
    for name, parameter in model.named_parameters():
        if name in made:
            continue
        values = torch.randn(parameter.shape, generator=generator) * 0.3
        if parameter.ndim == 1 and name.endswith("weight"):
            values = 1 + 0.2 * (2 * torch.rand(parameter.shape, generator=generator) - 1)
        parameter.data.copy_(values)


def text_inputs(config, generator, choice):
    vocabulary = getattr(config, "text_config", config).vocab_size
    longest, batch = max(LENGTHS), len(LENGTHS)
    pad = getattr(config, "text_config", config).pad_token_id or 0
    ids = torch.randint(3, vocabulary - 2, (batch, longest), generator=generator)
    mask = torch.zeros(batch, longest, dtype=torch.long)
    for b, length in enumerate(LENGTHS):
        mask[b, :length] = 1
        ids[b, length:] = pad
    out = dict(input_ids=ids, attention_mask=mask)
    types = getattr(config, "type_vocab_size", 0)
    if types > 1:
        out["token_type_ids"] = torch.randint(0, types, ids.shape, generator=generator) * mask
    if config.model_type == "clip":
        for b, length in enumerate(LENGTHS):
            ids[b, length - 1] = config.text_config.eos_token_id
    return {key: value[None] for key, value in out.items()} if choice else out


def ragged(value, mask):
    """Rows of padding left out; weights of padded keys and queries zero."""
    if value.ndim == 4:
        return value * mask[:, None, None, :] * mask[:, None, :, None]
    return torch.cat([value[b, : int(mask[b].sum())] for b in range(len(mask))])


def alone(model, inputs, asked):
    """Each sequence by itself, padded afterwards: a window full of padding gives NaN."""
    longest, parts = max(LENGTHS), []
    for b, length in enumerate(LENGTHS):
        parts.append(model(**{key: value[b : b + 1, :length] for key, value in inputs.items()}, **asked))

    def padded(values):
        if isinstance(values[0], tuple):
            return tuple(padded(list(each)) for each in zip(*values))
        out = []
        for value, length in zip(values, LENGTHS):
            for axis in range(1, value.ndim):
                if value.shape[axis] == length and (axis == 1 or value.ndim == 4 and axis > 1):
                    more = list(value.shape)
                    more[axis] = longest - length
                    value = torch.cat([value, value.new_zeros(more)], axis)
            out.append(value)
        return torch.cat(out)

    return {name: padded([part[name] for part in parts]) for name in parts[0]}


def decoder_inputs(config, generator):
    ids = torch.randint(3, config.vocab_size - 2, (len(DECODER_LENGTHS), max(DECODER_LENGTHS)), generator=generator)
    ids[:, 0] = config.decoder_start_token_id
    mask = torch.zeros_like(ids)
    for b, length in enumerate(DECODER_LENGTHS):
        mask[b, :length] = 1
        ids[b, length:] = config.pad_token_id
    return ids, mask


def without_padding(name, value, mask, decoder_mask):
    """An output of an encoder-decoder."""
    if name == "cross_attentions":
        return value * decoder_mask[:, None, :, None] * mask[:, None, None, :]
    return ragged(value, mask if name.startswith("encoder_") else decoder_mask)


def generation(model, generator):
    """What generate() writes of four prompts, each alone."""
    config = model.config
    prompts = [torch.randint(3, config.vocab_size - 2, (n,), generator=generator).tolist() for n in (1, 4, 9)]
    if config.is_encoder_decoder:
        prompts = [prompt + [config.eos_token_id] for prompt in prompts]
    constrained = dict(num_beams=3, early_stopping="never", repetition_penalty=1.3, no_repeat_ngram_size=2, min_new_tokens=4,
                       bad_words_ids=[[4], [5, 6]], length_penalty=0.7)
    if config.is_encoder_decoder:
        constrained |= dict(forced_bos_token_id=9, encoder_no_repeat_ngram_size=2)
    if config.model_type == "m2m_100":  # which gives padding no position, even where it was written
        constrained["suppress_tokens"] = [config.pad_token_id]
    cases = []
    for options in (dict(max_new_tokens=12), dict(max_new_tokens=9, num_beams=4), dict(max_new_tokens=10, **constrained),
                    dict(max_new_tokens=7, num_beams=4, early_stopping=True, length_penalty=2.0, forced_eos_token_id=config.eos_token_id)):
        options |= dict(eos_token_id=config.eos_token_id, pad_token_id=config.pad_token_id)
        if config.is_encoder_decoder:
            options["decoder_start_token_id"] = config.decoder_start_token_id
        written = []
        for prompt in prompts:
            ids = model.generate(torch.tensor([prompt]), generation_config=hf.GenerationConfig(**options), attention_mask=torch.ones(1, len(prompt), dtype=torch.long))
            written.append(ids[0, 1 if config.is_encoder_decoder else len(prompt):].tolist())
        cases.append(dict(options=options, written=written))
    return json.dumps(dict(prompts=prompts, cases=cases), separators=(",", ":")) + "\n"


def make(folder, config_class, arguments, model_class, seed):
    generator = torch.Generator().manual_seed(seed)
    config = config_class(**arguments)
    model = model_class._from_config(config, attn_implementation="eager").eval()
    randomise(model, generator)
    model.save_pretrained(folder)
    model = model.double()
    text, image = hasattr(config, "vocab_size") or config.model_type == "clip", hasattr(config, "image_size") or config.model_type == "clip"
    choice = model_class.__name__.endswith("MultipleChoice")
    inputs, golden, mask = {}, {}, None
    both = getattr(config, "is_encoder_decoder", False) and not model_class.__name__.endswith("EncoderModel")
    if text:
        inputs |= text_inputs(config, generator, choice)
        mask = inputs["attention_mask"][0] if choice else inputs["attention_mask"]
        flat = {key: value[0] if choice else value for key, value in inputs.items()}
        golden["input.ids"] = ragged(flat["input_ids"], mask).int()
        golden["input.lengths"] = torch.tensor(LENGTHS, dtype=torch.int32)
        if "token_type_ids" in flat:
            golden["input.types"] = ragged(flat["token_type_ids"], mask).int()
    if image:
        size = getattr(config, "vision_config", config).image_size
        pixels = torch.randn(2, 3, size, size, generator=generator)
        golden["input.pixels"] = pixels.clone()
        inputs["pixel_values"] = pixels.double()
    reads_twice = both and model_class.__name__.endswith(("SequenceClassification", "QuestionAnswering"))
    if reads_twice:  # transformers makes the decoder's ids of the text's, each of which ends as a text does
        for b, length in enumerate(LENGTHS):
            inputs["input_ids"][b, length - 1] = config.eos_token_id
        golden["input.ids"], decoder_mask = ragged(inputs["input_ids"], mask).int(), mask
    elif both:
        ids, decoder_mask = decoder_inputs(config, generator)
        inputs |= dict(decoder_input_ids=ids, decoder_attention_mask=decoder_mask)
        golden["input.decoder_ids"] = ragged(ids, decoder_mask).int()
        golden["input.decoder_lengths"] = torch.tensor(DECODER_LENGTHS, dtype=torch.int32)
    asked = {} if config.model_type == "clip" else dict(output_hidden_states=True, output_attentions=True)
    if getattr(config, "use_cache", False):
        asked["use_cache"] = False
    with torch.no_grad():
        outputs = alone(model, inputs, asked) if config.model_type == "modernbert" else model(**inputs, **asked)
    for name, value in outputs.items():
        if name == "past_key_values":
            continue
        if name == "vision_model_output" or name == "text_model_output":
            continue
        for suffix, each in ([(f".{n}", v) for n, v in enumerate(value)] if isinstance(value, tuple) else [("", value)]):
            if each is None:
                continue
            if both and name == "logits" and reads_twice:
                golden["output." + name] = each.float().contiguous()
                continue
            if both:
                golden["output." + name + suffix] = without_padding(name, each, mask, decoder_mask).float().contiguous()
                continue
            if text and not image and each.ndim in (2, 3, 4) and each.shape[:1] == mask.shape[:1] and each.shape[1:2] != () and \
                    name in ("last_hidden_state", "hidden_states", "attentions", "start_logits", "end_logits") or \
                    text and name == "logits" and each.ndim >= 2 and each.shape[:2] == mask.shape:
                each = ragged(each, mask)
            if image and not text and each.ndim == 3:
                each = each.reshape(-1, each.shape[-1])
            golden["output." + name + suffix] = each.float().contiguous()
    save_file(golden, str(folder / "golden.safetensors"))
    if model_class.__name__.endswith(("LMHeadModel", "ForCausalLM", "ForConditionalGeneration", "MTModel")):
        (folder / "generation.json").write_text(generation(model, generator), encoding="utf-8")


def main():
    out = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else HERE / "families")
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    for number, (name, case) in enumerate(CASES.items()):
        if len(sys.argv) > 3 and not any(name.startswith(wanted) for wanted in sys.argv[3:]):
            continue
        make(out / name, *case, seed * 1000 + number)
        print(name)


if __name__ == "__main__":
    main()
