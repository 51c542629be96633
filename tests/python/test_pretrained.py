"""multihead.load of Hugging Face folders: the golden folders in NumPy alone; fresh ones beside transformers where it is."""
import concurrent.futures
import json
import pickle
import shutil
import struct
import threading

import numpy as np
import pytest

import multihead
from program import MODEL
from tiny_folders import FAMILIES, WORDS

NAMES = sorted(path.name for path in FAMILIES.iterdir())
IMAGES = [name for name in NAMES if name.startswith(("vit", "deit"))]
WRITERS = [name for name in NAMES if (FAMILIES / name / "generation.json").exists()]


def tensors_of(path):
    """A safetensors file of f32 and i32, read here."""
    raw = path.read_bytes()
    size = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8 : 8 + size])
    header.pop("__metadata__", None)
    kinds = {"F32": np.float32, "I32": np.int32}
    return {
        name: np.frombuffer(raw[8 + size :][slice(*said["data_offsets"])], kinds[said["dtype"]]).reshape(said["shape"])
        for name, said in header.items()
    }


def rows_of(flat, lengths):
    return np.split(flat, np.cumsum(lengths)[:-1])


def padded(flat, lengths, width, left=False):
    ids, mask = np.full((len(lengths), width), 1), np.zeros((len(lengths), width), np.int64)
    for b, row in enumerate(rows_of(flat, lengths)):
        place = slice(width - len(row), width) if left else slice(0, len(row))
        ids[b, place], mask[b, place] = row, 1
    return ids, mask


def batch_of(golden, choice=False, extra=0, left=False):
    """The inputs of a golden folder, padded to `extra` columns more than they need."""
    out = {}
    for ids, mask, source, lengths in (("input_ids", "attention_mask", "ids", "lengths"), ("decoder_input_ids", "decoder_attention_mask", "decoder_ids", "decoder_lengths")):
        if "input." + source in golden:
            counts = golden["input." + lengths]
            out[ids], out[mask] = padded(golden["input." + source], counts, counts.max() + extra, left)
    if "input.types" in golden:
        out["token_type_ids"] = padded(golden["input.types"], golden["input.lengths"], out["input_ids"].shape[1], left)[0]
    if choice:
        out = {name: value[None] for name, value in out.items()}
    if "input.pixels" in golden:
        out["pixel_values"] = golden["input.pixels"]
    return out


def without_padding(name, value, batch, choice):
    """An output as the golden file has it: rows of padding left out, weights at the beginning of each."""
    masks = {key: batch[key].reshape(-1, batch[key].shape[-1]) for key in batch if key.endswith("mask")}
    read = masks.get("attention_mask")
    last = masks.get("decoder_attention_mask", read)
    mask = read if name.startswith(("encoder_", "text_")) else last
    if mask is None:
        return value
    if name.split(".")[0].endswith("attentions"):
        queries, keys = (last, read) if name.startswith("cross") else (mask, mask)
        nq, nk = queries.sum(1).max(), keys.sum(1).max()
        out = np.zeros((*value.shape[:2], nq, nk), value.dtype)
        for b in range(len(value)):
            kept = value[b][:, queries[b] == 1][:, :, keys[b] == 1]
            out[b, :, : kept.shape[1], : kept.shape[2]] = kept
        return out
    if value.ndim >= 2 and value.shape[:2] == mask.shape and not choice:
        return value[mask == 1]
    return value.reshape(-1, *value.shape[2:])[mask.reshape(-1) == 1] if choice and value.ndim > 2 else value


def worst_error(golden, out, batch, choice=False):
    worst = 0.0
    for name, expected in golden.items():
        kind, _, name = name.partition(".")
        if kind != "output":
            continue
        base, _, layer = name.partition(".")
        got = without_padding(name, out[base][int(layer)] if layer else out[base], batch, choice)
        assert got.size == expected.size, (name, got.shape, expected.shape)
        scale = max(1e-3, np.abs(expected).max())
        worst = max(worst, float(np.abs(got.reshape(expected.shape) - expected).max() / scale))
    return worst


@pytest.mark.parametrize("name", NAMES)
def test_forward_is_the_golden_one(name):
    golden, model = tensors_of(FAMILIES / name / "golden.safetensors"), multihead.load(FAMILIES / name)
    choice = name.endswith("choice")
    assert isinstance(model, multihead.Pretrained) and model.unused == []
    for extra, left in ((0, False), (3, False), (2, True)):
        batch = batch_of(golden, choice, extra, left)
        asked = {"output_hidden_states": True, "output_attentions": True}
        assert worst_error(golden, model.forward(**batch, **asked), batch, choice) < 2e-5, (extra, left)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("bert_choice", "clip_both", *IMAGES)])
def test_lists_of_different_lengths_and_one_sequence_alone(name):
    golden, model = tensors_of(FAMILIES / name / "golden.safetensors"), multihead.load(FAMILIES / name)
    batch = batch_of(golden)
    together = model.forward(**batch)
    keys = {"input_ids": ("ids", "lengths"), "decoder_input_ids": ("decoder_ids", "decoder_lengths"), "token_type_ids": ("types", "lengths")}
    lists = {key: [row.tolist() for row in rows_of(golden["input." + a], golden["input." + b])] for key, (a, b) in keys.items() if key in batch}
    ragged = model.forward(**lists)
    alone = model.forward(**{key: [rows[2]] for key, rows in lists.items()})
    for key, value in together.items():
        np.testing.assert_array_equal(value, ragged[key])
        single = alone[key][0]
        cut = tuple(slice(0, n) for n in single.shape)
        np.testing.assert_allclose(value[2][cut], single, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", WRITERS)
def test_what_it_writes_is_what_generate_writes(name):
    model, wanted = multihead.load(FAMILIES / name), json.loads((FAMILIES / name / "generation.json").read_text())
    for case in wanted["cases"]:
        ends = case["options"]["eos_token_id"]
        for prompt, expected in zip(wanted["prompts"], case["written"]):
            (written,) = model.generate([prompt], **case["options"])
            assert written == [t for t in expected if t != ends], (case["options"], prompt)
    plain = wanted["cases"][0]["options"]
    prompts = wanted["prompts"]
    width = max(map(len, prompts))
    ids = np.array([[1] * (width - len(p)) + p for p in prompts])
    mask = np.array([[0] * (width - len(p)) + [1] * len(p) for p in prompts])
    assert model.generate(ids, mask, **plain) == model.generate(prompts, **plain) == [model.generate([p], **plain)[0] for p in prompts]


def test_sampling_follows_its_seed():
    model = multihead.load(FAMILIES / "gpt2_lm")
    draw = lambda seed: model.generate([[5, 6]], max_new_tokens=20, do_sample=True, seed=seed)
    assert draw(1) == draw(1) and draw(1) != draw(2)
    several = model.generate([[5, 6]], max_new_tokens=np.int64(4), num_beams=3, num_return_sequences=2)
    assert len(several) == 1 and len(several[0]) == 2


def test_a_batch_of_none_and_arrays_of_torch():
    model = multihead.load(FAMILIES / "bert_body")
    assert model.forward(np.zeros((0, 3), int))["last_hidden_state"].shape == (0, 3, 8)
    torch = pytest.importorskip("torch")
    ids, mask = torch.tensor([[5, 6, 7], [8, 9, 0]]), torch.tensor([[True, True, True], [True, True, False]])
    theirs, ours = model.forward(ids, mask), model.forward([[5, 6, 7], [8, 9]])
    np.testing.assert_array_equal(theirs["last_hidden_state"], ours["last_hidden_state"])
    pixels = torch.randn(2, 3, 6, 6).bfloat16()
    image = multihead.load(FAMILIES / "vit_image")
    np.testing.assert_array_equal(image.forward(pixel_values=pixels)["logits"], image.forward(pixel_values=pixels.float().numpy())["logits"])


def test_threads_share_a_model():
    model = multihead.load(FAMILIES / "bert_body")
    batch = batch_of(tensors_of(FAMILIES / "bert_body/golden.safetensors"))
    expected = model.forward(**batch)["last_hidden_state"]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for out in pool.map(lambda _: model.forward(**batch), range(16)):
            np.testing.assert_array_equal(out["last_hidden_state"], expected)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.forward(**batch)["last_hidden_state"], expected)


def test_products_in_bf16_are_near():
    for name, key in (("bert_body", "last_hidden_state"), ("t5_lm", "logits")):
        batch = batch_of(tensors_of(FAMILIES / name / "golden.safetensors"))
        exact, near = (multihead.load(FAMILIES / name, precision=p).forward(**batch)[key] for p in ("f32", "bf16"))
        error = np.abs(near - exact).max() / np.abs(exact).max()
        assert near.dtype == np.float32 and 1e-6 < error < 0.1
    (written,) = multihead.load(FAMILIES / "gpt2_lm", precision="bf16").generate([[5, 6]], max_new_tokens=5)
    assert 1 <= len(written) <= 5
    with pytest.raises(ValueError, match="precision is 'f16'; expected 'f32' or 'bf16'"):
        multihead.load(FAMILIES / "gpt2_lm", precision="f16")


def test_forward_lets_other_threads_run():
    model, ticks, done = multihead.load(FAMILIES / "bert_body"), [0], threading.Event()

    def tick():
        while not done.is_set():
            ticks[0] += 1

    inputs = {"input_ids": np.ones(11 * 20000, np.int32), "lengths": [11] * 20000, "decoder_input_ids": None, "decoder_lengths": [],
              "token_type_ids": None, "pixel_values": None, "hidden_states": False, "attentions": False}  # fmt: skip
    other = threading.Thread(target=tick)
    other.start()
    try:
        before = ticks[0]
        model._core.forward(inputs)
        assert ticks[0] > before + 100
    finally:
        done.set()
        other.join()


@pytest.mark.parametrize("name", ["bert_sequence", "t5_lm", "vit_image", "gpt2_lm"])
def test_a_saved_folder_has_the_same_bits(name, tmp_path):
    model = multihead.load(FAMILIES / name)
    multihead.save(model, tmp_path / "new")
    before, after = (tensors_of(folder / "model.safetensors") for folder in (FAMILIES / name, tmp_path / "new"))
    assert before.keys() == after.keys()
    for key, value in before.items():
        np.testing.assert_array_equal(after[key], value)
    assert json.loads((tmp_path / "new/config.json").read_text()) == json.loads((FAMILIES / name / "config.json").read_text())
    beside = {"config.json", "model.safetensors"} | {path.name for path in (FAMILIES / name).glob("generation_config.json")}
    assert {path.name for path in (tmp_path / "new").iterdir()} == beside
    again = multihead.load(tmp_path / "new")
    multihead.save(again, tmp_path / "new")  # over itself
    batch = batch_of(tensors_of(FAMILIES / name / "golden.safetensors"))
    for key, value in model.forward(**batch).items():
        np.testing.assert_array_equal(multihead.load(tmp_path / "new").forward(**batch)[key], value)


def test_a_saved_translator_translates(tmp_path):
    if not (MODEL / "model.safetensors").exists():
        pytest.skip("the shipped model is not there")
    model = multihead.load(MODEL)
    multihead.save(model, tmp_path / "copy")
    assert multihead.load(tmp_path / "copy")("Good morning!", beam=1) == model.translate("Good morning!", beam=1)
    for call in (model.forward, model.generate):
        with pytest.raises(NotImplementedError, match="a translation model of our own; expected a Hugging Face folder"):
            call([[1]])


def test_tokenizers_are_loaded_from_folders_with_offsets(with_tokenizer):
    folder = with_tokenizer("bert_sequence")
    coded = multihead.Tokenizer.load(folder).encode("é Anna", "in Bonn")
    assert coded.tokens == ["[CLS]", "é", "anna", "[SEP]", "in", "bonn", "[SEP]"]
    assert coded.ids == [WORDS.index(word) for word in coded.tokens]
    assert coded.type_ids == [0, 0, 0, 0, 1, 1, 1]
    assert coded.offsets == [(0, 0), (0, 1), (2, 6), (0, 0), (0, 2), (3, 7), (0, 0)]
    assert multihead.Tokenizer.load(folder / "tokenizer.json").encode("Anna").ids == [2, 4, 3]


def test_a_classifier_gives_labels_and_scores(with_tokenizer):
    model = multihead.load(with_tokenizer("bert_sequence"))
    texts = ["Anna lives in Bonn", "a b", ("a", "b c")]
    done = model(texts)
    for text, each in zip(texts, done):
        pair = text if isinstance(text, tuple) else (text,)
        coded = model.tokenizer.encode(*pair)
        logits = model.forward([coded.ids], token_type_ids=[coded.type_ids])["logits"][0].astype(np.float64)
        p = np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()
        np.testing.assert_allclose(list(each.scores.values()), p, atol=1e-5)
        assert list(each.scores) == model.labels and each.label == model.labels[p.argmax()] and not each.cut
        assert each.score == max(each.scores.values())
    assert model("a b") == done[1]


def test_labels_that_do_not_exclude_one_another_are_each_for_themselves(with_tokenizer):
    folder = with_tokenizer("bert_sequence")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"problem_type": "multi_label_classification"}))
    model = multihead.load(folder)
    done = model("Anna lives in Bonn")
    ids = model.tokenizer.encode("Anna lives in Bonn").ids
    logits = model.forward([ids])["logits"][0].astype(np.float64)
    np.testing.assert_allclose(list(done.scores.values()), 1 / (1 + np.exp(-logits)), atol=1e-5)


def test_a_tagger_gives_entities_in_characters(with_tokenizer):
    model = multihead.load(with_tokenizer("bert_token"))
    text = "é Anna lives in Bonn"
    tags = model(text)
    assert tags.words == text.split() and len(tags.tags) == 5 and tags.entities
    for entity in tags.entities:
        assert entity.text == text[entity.begin : entity.end] and 0 <= entity.score <= 1
    assert model([text, text]) == [tags, tags]


def test_a_language_model_writes_text(with_tokenizer):
    model = multihead.load(with_tokenizer("gpt2_lm"))
    ids = model.tokenizer.encode("a b").ids
    (written,) = model.generate([ids], max_new_tokens=6)
    assert written and max(written) < len(WORDS)
    text = model.generate("a b", max_new_tokens=6)
    assert isinstance(text, str) and text.split() == [WORDS[n] for n in written if n > 3]
    assert model("a b", max_new_tokens=6) == text and model.generate(["a b", "c"], max_new_tokens=6)[0] == text


@pytest.mark.parametrize(
    "name, call, error, said",
    [
        ("bert_body", lambda m: m("text"), OSError, "has no tokenizer"),
        ("bert_choice", lambda m: m("text"), NotImplementedError, "has no call with text in Python; forward"),
        ("vit_image", lambda m: m("text"), NotImplementedError, "has no call with text in Python; forward"),
        ("bart_body", lambda m: m("text"), NotImplementedError, "expected a model that reads one text and writes none"),
        ("bert_sequence", lambda m: m("text"), OSError, "tokenizer"),
        ("bert_body", lambda m: m.generate([[1, 2]]), ValueError, "writes no text"),
        ("gpt2_lm", lambda m: m.generate("text"), OSError, "tokenizer"),
        ("gpt2_lm", lambda m: m.generate([[1]], max_tokens=3), TypeError, "did you mean max_new_tokens"),
        ("gpt2_lm", lambda m: m.generate([[1]], seed=3), ValueError, "seed goes with do_sample=True"),
        ("gpt2_lm", lambda m: m.generate([[1]], num_beams="4"), ValueError, "generate: num_beams is .*4.*; expected whole numbers"),
        ("gpt2_lm", lambda m: m.generate([[1]], num_beams=object()), TypeError, "an option is a object"),
        ("gpt2_lm", lambda m: m.generate([[99]]), ValueError, "99"),
        ("gpt2_lm", lambda m: m.generate([[2**40]]), ValueError, "32 bits"),
        ("bert_body", lambda m: m.forward([1, 2, 3]), ValueError, r"shape \(3,\); expected \(batch, tokens\)"),
        ("bert_body", lambda m: m.forward([[1.5]]), TypeError, "float64; expected integers"),
        ("bert_body", lambda m: m.forward([[1, 2, 3]], [[1, 0, 1]]), ValueError, "row 0 of attention_mask has a gap"),
        ("bert_body", lambda m: m.forward([[1, 2, 3]], [[1, 0]]), ValueError, "expected the same"),
        ("bert_body", lambda m: m.forward([[1, 2]], [[0, 0]]), ValueError, "sequence 0 is empty"),
        ("bert_body", lambda m: m.forward([[1, 2]], token_type_ids=[[0]]), ValueError, "token_type_ids has the shape"),
        ("bert_body", lambda m: m.forward([[1] * 30]), ValueError, "30"),
        ("bert_body", lambda m: m.forward(), ValueError, "tokens are missing"),
        ("bert_body", lambda m: m.forward(attention_mask=[[1]]), ValueError, "without input_ids"),
        ("vit_body", lambda m: m.forward([[1]]), ValueError, "pixels"),
        ("t5_lm", lambda m: m.forward([[1]]), ValueError, "the decoder's tokens are missing"),
        ("gpt2_lm", lambda m: m.translate("text"), NotImplementedError, "a gpt2 language model; expected a translation model"),
    ],
)
def test_what_does_not_fit_is_refused(name, call, error, said):
    with pytest.raises(error, match=said):
        call(multihead.load(FAMILIES / name))


def test_a_rule_without_effect_is_said(tmp_path):
    shutil.copytree(FAMILIES / "gpt2_lm", tmp_path / "m")
    (tmp_path / "m/generation_config.json").write_text('{"typical_p": 0.5, "max_new_tokens": 2}')
    with pytest.warns(UserWarning, match="typical_p has no effect"):
        (written,) = multihead.load(tmp_path / "m").generate([[5]])
    assert 1 <= len(written) <= 2


# Beside transformers, with fresh weights.


def made_by_transformers(folder, seed, config, kind):
    torch = pytest.importorskip("torch")
    torch.manual_seed(seed)
    model = kind._from_config(config, attn_implementation="eager").eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.3 + (parameter.ndim == 1 and name.endswith("weight")))
    model.save_pretrained(folder)
    return kind.from_pretrained(folder, attn_implementation="eager").double().eval()


SMALL = dict(vocab_size=41, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24, max_position_embeddings=32)
BOTH = dict(vocab_size=41, d_model=16, encoder_layers=2, decoder_layers=2, encoder_ffn_dim=24, decoder_ffn_dim=20, encoder_attention_heads=2,
            decoder_attention_heads=4, max_position_embeddings=32, pad_token_id=1, bos_token_id=0, eos_token_id=2, decoder_start_token_id=2,
            forced_eos_token_id=None)  # fmt: skip
FRESH = {
    "bert": ("Bert", "ForSequenceClassification", dict(SMALL, num_labels=3)),
    "roberta": ("Roberta", "ForTokenClassification", dict(SMALL, max_position_embeddings=34, pad_token_id=1, num_labels=5)),
    "distilbert": ("DistilBert", "ForQuestionAnswering", dict(vocab_size=41, dim=16, n_layers=2, n_heads=2, hidden_dim=24, max_position_embeddings=32)),
    "gpt2": ("GPT2", "LMHeadModel", dict(vocab_size=41, n_embd=16, n_layer=2, n_head=2, n_positions=48, pad_token_id=0, bos_token_id=1, eos_token_id=2)),
    "llama": ("Llama", "ForCausalLM", dict(SMALL, num_key_value_heads=1, max_position_embeddings=48, pad_token_id=0, bos_token_id=1, eos_token_id=2)),
    "t5": ("T5", "ForConditionalGeneration", dict(vocab_size=41, d_model=16, d_kv=6, d_ff=20, num_layers=2, num_heads=2, decoder_start_token_id=0)),
    "bart": ("Bart", "ForConditionalGeneration", BOTH),
    "vit": ("ViT", "ForImageClassification", dict(hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24, image_size=8, patch_size=4, num_labels=3)),
}  # fmt: skip


@pytest.fixture(params=sorted(FRESH))
def fresh(request, tmp_path):
    hf = pytest.importorskip("transformers")
    name, head, sizes = FRESH[request.param]
    config = getattr(hf, name + "Config")(**sizes)
    return request.param, tmp_path / "m", made_by_transformers(tmp_path / "m", 11, config, getattr(hf, name + head))


def fresh_inputs(name):
    torch = pytest.importorskip("torch")
    generator = torch.Generator().manual_seed(5)
    if name == "vit":
        return {"pixel_values": torch.randn(3, 3, 8, 8, generator=generator)}
    out = {"input_ids": torch.randint(3, 41, (3, 9), generator=generator), "attention_mask": torch.ones(3, 9, dtype=torch.long)}
    out["attention_mask"][1, 5:] = 0
    out["attention_mask"][2, 1:] = 0
    if name in ("t5", "bart"):
        out["decoder_input_ids"] = torch.randint(3, 41, (3, 4), generator=generator)
    if name == "bert":
        out["token_type_ids"] = torch.randint(0, 2, (3, 9), generator=generator)
    return out


def test_fresh_folders_answer_as_transformers_does(fresh):
    torch = pytest.importorskip("torch")
    name, folder, theirs = fresh
    inputs = fresh_inputs(name)
    asked = {"output_hidden_states": True, "output_attentions": True}
    doubled = {key: value.double() if value.is_floating_point() else value for key, value in inputs.items()}
    with torch.no_grad():
        expected = theirs(**doubled, **asked, **({"use_cache": False} if name in ("gpt2", "llama", "t5", "bart") else {}))
    out = multihead.load(folder).forward(**inputs, **asked)
    mask = inputs["attention_mask"].numpy() == 1 if "attention_mask" in inputs else None
    compared = 0
    for key, value in expected.items():
        if isinstance(value, tuple) and not value:
            continue
        for mine, other in zip(out[key], value) if isinstance(value, tuple) else [(out[key], value)]:
            other = other.detach().numpy()
            assert mine.shape == other.shape, key
            rows = mask is not None and other.shape[:2] == mask.shape and not key.startswith("decoder")
            if rows and not ("decoder_input_ids" in inputs and not key.startswith("encoder")):
                mine, other = mine[mask], other[mask]
            elif mask is not None and key in ("attentions", "encoder_attentions"):
                keep = (mask[:, None, :, None] & mask[:, None, None, :]) * np.ones_like(other)
                mine, other = mine * keep, other * keep
            np.testing.assert_allclose(mine, other, atol=2e-5 * max(1.0, np.abs(other).max()), err_msg=key)
            compared += 1
    assert compared > 4


@pytest.mark.parametrize("fresh", ["gpt2", "llama", "t5", "bart"], indirect=True)
def test_fresh_folders_write_what_transformers_writes(fresh):
    torch = pytest.importorskip("torch")
    name, folder, theirs = fresh
    model = multihead.load(folder)
    for length in (1, 4, 9):
        prompt = fresh_inputs(name)["input_ids"][:1, :length]
        for beams in (1, 4):
            options = dict(max_new_tokens=14, num_beams=beams, do_sample=False)
            written = theirs.generate(prompt, attention_mask=torch.ones_like(prompt), **options)[0]
            written = written[1 if name in ("t5", "bart") else length :].tolist()
            end = theirs.config.eos_token_id
            expected = written[: written.index(end)] if end in written else written
            assert model.generate(prompt, **options) == [expected], (length, beams)


def test_saved_folders_are_loaded_by_transformers_with_equal_logits(fresh, tmp_path):
    torch = pytest.importorskip("torch")
    name, folder, theirs = fresh
    multihead.save(multihead.load(folder), tmp_path / "saved")
    again, said = type(theirs).from_pretrained(tmp_path / "saved", attn_implementation="eager", output_loading_info=True)
    assert not said["missing_keys"] and not said["unexpected_keys"]
    inputs = {key: value.double() if value.is_floating_point() else value for key, value in fresh_inputs(name).items()}
    with torch.no_grad():
        before, after = theirs(**inputs), again.double().eval()(**inputs)
    key = "start_logits" if name == "distilbert" else "logits"
    assert torch.equal(before[key], after[key])
