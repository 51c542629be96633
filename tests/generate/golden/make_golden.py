#!/usr/bin/env python3
"""Writes writing.json beside it: what transformers' generate() writes with every option of generation_config.json.

usage: make_golden.py        needs torch and transformers (README.md)
The model is a table: a token's logits depend on the two before it and are made of whole numbers, so that the C++ test
computes the same ones to the last bit (tests/generate/table_model.h).
"""
import json
import pathlib
import random
import warnings

import torch
import transformers
from transformers import GenerationConfig, GenerationMixin, PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import CausalLMOutput

HERE = pathlib.Path(__file__).parent
VOCABULARY = 24
transformers.logging.set_verbosity_error()
warnings.filterwarnings("ignore")


def logit(before, last, token):
    h = (before * 73856093 ^ last * 19349663 ^ token * 83492791) & 0xFFFFFFFF
    h = (h ^ h >> 13) * 0x5BD1E995 & 0xFFFFFFFF
    h ^= h >> 15
    return (h & 0xFFFFFF) / 4194304


TABLE = torch.tensor(
    [[[logit(a, b, v) for v in range(VOCABULARY)] for b in range(VOCABULARY)] for a in range(VOCABULARY + 1)])


class Table(PreTrainedModel, GenerationMixin):
    config_class = PretrainedConfig

    def __init__(self, config):
        super().__init__(config)
        self.weight = torch.nn.Parameter(torch.zeros(1))
        self.post_init()

    def prepare_inputs_for_generation(self, input_ids, **kwargs):
        return {"input_ids": input_ids}

    def forward(self, input_ids, **kwargs):
        before = torch.nn.functional.pad(input_ids, (1, 0), value=VOCABULARY)[:, :-1]
        return CausalLMOutput(logits=TABLE[before, input_ids])


def cases():
    n = random.Random(5)
    plain = [{}, {"max_new_tokens": 1}, {"eos_token_id": None}, {"eos_token_id": [2, 5]}, {"max_length": 12}]
    rules = [
        {"repetition_penalty": 1.7}, {"repetition_penalty": 0.8}, {"no_repeat_ngram_size": 1},
        {"no_repeat_ngram_size": 2}, {"no_repeat_ngram_size": 3}, {"encoder_no_repeat_ngram_size": 1},
        {"encoder_no_repeat_ngram_size": 2}, {"bad_words_ids": [[4], [6, 7], [8, 3, 9], [2]]}, {"min_length": 9},
        {"min_new_tokens": 6}, {"forced_bos_token_id": 7}, {"forced_eos_token_id": 2},
        {"forced_eos_token_id": [2, 3], "eos_token_id": [2, 3]}, {"suppress_tokens": [3, 4, 5, 6]}, {"begin_suppress_tokens": [2, 8, 9, 10]},
        {"begin_suppress_tokens": [2, 8, 9, 10], "forced_bos_token_id": 7},
    ]
    beams = [{"num_beams": b, "early_stopping": s, "length_penalty": p}
             for b in (2, 4) for s in (False, True, "never") for p in (0.0, 1.0, 2.0, -0.5)]
    for options in plain + rules:
        for search in ({}, {"num_beams": 4}, {"num_beams": 3, "early_stopping": True}):
            yield {"max_new_tokens": 10, **search, **options}
    for search in beams:
        yield {"max_new_tokens": 14, "num_return_sequences": 2, **search}
        yield {"max_new_tokens": 8, **search, **n.choice(rules), **n.choice(rules)}
    for _ in range(60):
        mixed = {"max_new_tokens": n.randrange(2, 14), "eos_token_id": n.choice([2, [2, 5], [11, 2, 3]])}
        for more in (n.choice(beams + [{}]), n.choice(rules), n.choice(rules), n.choice(rules)):
            mixed.update(more)
        yield mixed


def main():
    model = Table(PretrainedConfig(vocab_size=VOCABULARY))
    prompts = [[1], [1, 6, 3], [9, 4, 4, 9, 4], [5, 12, 13, 2, 8, 3]]
    out = []
    for options in cases():
        options = {"eos_token_id": 2, "pad_token_id": 0, **options}
        if "max_length" in options:
            del options["max_new_tokens"]
        if options["eos_token_id"] is None:
            del options["eos_token_id"]
        written = []
        for prompt in prompts:
            config = GenerationConfig(use_cache=False, **options)
            ids = model.generate(torch.tensor([prompt]), generation_config=config)[:, len(prompt):]
            written.append(ids.tolist())
        out.append({"options": options, "written": written})
    lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in out)
    text = '{"prompts":%s,"cases":[\n%s\n]}\n' % (json.dumps(prompts, separators=(",", ":")), lines)
    (HERE / "writing.json").write_text(text, encoding="utf-8")


main()
