"""Calls with text: embedders, gaps, questions; models of our own that classify, tag and continue texts."""
import json
import pickle

import numpy as np
import pytest

import multihead
from program import needs_program, run
from tiny_folders import WORDS


def rows_of(model, coded):
    return model.forward([coded.ids], token_type_ids=[coded.type_ids])["last_hidden_state"][0].astype(np.float64)


def test_an_encoder_gives_the_mean_of_its_rows(with_tokenizer):
    model = multihead.load(with_tokenizer("bert_body"))
    texts = ["Anna lives in Bonn", "a"]
    vectors = model(texts)
    assert vectors.dtype == np.float32 and vectors.shape == (2, 8)
    for text, vector in zip(texts, vectors):
        np.testing.assert_allclose(vector, rows_of(model, model.tokenizer.encode(text)).mean(0), atol=1e-5)
    np.testing.assert_array_equal(model("a"), vectors[1])
    assert model([]).shape == (0, 8)
    with pytest.warns(UserWarning, match=r"texts\[1\] is too long"):
        model(["a", "a b " * 400])


def put_modules(folder, leaves=False):
    """Pooling of the first row, a dense layer, normalisation, prompts; the dense weights."""
    rng = np.random.default_rng(3)
    weight, bias = rng.standard_normal((5, 8)).astype(np.float32), rng.standard_normal(5).astype(np.float32)
    module = lambda n, path, kind: {"idx": n, "name": str(n), "path": path, "type": f"sentence_transformers.models.{kind}"}
    inner = "../out" if leaves else "2_Dense"
    modules = [module(0, "", "Transformer"), module(1, "1_Pooling", "Pooling"), module(2, inner, "Dense"), module(3, "3_Normalize", "Normalize")]
    (folder / "modules.json").write_text(json.dumps(modules))
    pooling = {"word_embedding_dimension": 8, "pooling_mode_cls_token": True}
    dense = {"in_features": 8, "out_features": 5, "bias": True, "activation_function": "torch.nn.modules.activation.Tanh"}
    for name, config in (("1_Pooling", pooling), ("2_Dense", dense)):
        (folder / name).mkdir()
        (folder / name / "config.json").write_text(json.dumps(config))
    tensor = lambda shape, begin, end: {"dtype": "F32", "shape": shape, "data_offsets": [begin, end]}
    header = json.dumps({"linear.weight": tensor([5, 8], 0, 160), "linear.bias": tensor([5], 160, 180)}).encode()
    (folder / "2_Dense/model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + weight.tobytes() + bias.tobytes())
    (folder / "config_sentence_transformers.json").write_text(json.dumps({"prompts": {"query": "a b "}, "default_prompt_name": None}))
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 6, "do_lower_case": False}))
    return weight.astype(np.float64), bias.astype(np.float64)


def test_a_folder_of_sentence_transformers_keeps_its_modules_when_saved(with_tokenizer, tmp_path):
    folder = with_tokenizer("bert_body")
    weight, bias = put_modules(folder)
    model = multihead.load(folder)
    multihead.save(model, tmp_path / "saved")
    saved = multihead.load(tmp_path / "saved")
    for text, options, read in (("Anna lives", {}, "Anna lives"), ("in", {"prompt_name": "query"}, "a b in"), ("in", {"prompt": "c "}, "c in")):
        expected = np.tanh(rows_of(model, model.tokenizer.encode(read))[0] @ weight.T + bias)
        expected /= np.linalg.norm(expected)
        for each in (model, saved):
            np.testing.assert_allclose(each(text, **options), expected, atol=1e-5)
    for each in (model, saved):
        with pytest.warns(UserWarning, match="too long"):  # max_seq_length of sentence_bert_config.json
            each("a b c d e f g")
    names = lambda where: {path.relative_to(where).as_posix() for path in where.rglob("*") if path.is_file()} - {"golden.safetensors"}
    assert names(tmp_path / "saved") == names(folder)
    multihead.save(saved, tmp_path / "saved")  # over itself


def test_modules_that_lead_out_of_the_folder_are_not_saved(with_tokenizer, tmp_path):
    folder = with_tokenizer("bert_body")
    put_modules(folder, leaves=True)
    with pytest.raises(OSError, match="leads out of the folder"):
        multihead.save(multihead.load(folder), tmp_path / "saved")


def softmax(logits):
    p = np.exp(logits - logits.max())
    return p / p.sum()


def test_gaps_are_filled_by_the_likeliest_tokens(with_tokenizer):
    model = multihead.load(with_tokenizer("bert_masked"))
    text = "é [MASK] lives in [MASK]"
    found = model(text, k=3)
    ids = model.tokenizer.encode(text).ids
    logits = model.forward([ids])["logits"][0].astype(np.float64)
    assert [text[gap.begin : gap.end] for gap in found.gaps] == ["[MASK]"] * 2 and not found.cut
    for gap, row in zip(found.gaps, [n for n, each in enumerate(ids) if WORDS[each] == "[MASK]"]):
        p = softmax(logits[row])
        assert [one.id for one in gap.fillings] == list(np.argsort(-p, kind="stable")[:3])
        for one in gap.fillings:
            assert one.token == WORDS[one.id] and one.score == pytest.approx(p[one.id], abs=1e-5)
            assert one.text == text[: gap.begin] + one.token + text[gap.end :]
    assert len(model(["a", text])[1].gaps[0].fillings) == 5 and model("a b").gaps == []


def test_a_question_is_answered_with_a_part_of_the_context(with_tokenizer):
    model = multihead.load(with_tokenizer("bert_question"))
    question, context = "a b", "é Anna lives in Bonn"
    coded = model.tokenizer.encode(question, context)
    out = model.forward([coded.ids], token_type_ids=[coded.type_ids])
    inside = [n for n in range(len(coded.ids)) if coded.type_ids[n] == 1 and coded.tokens[n] != "[SEP]"]
    counted = [0, *inside]
    start, end = (dict(zip(counted, softmax(out[name][0].astype(np.float64)[counted]))) for name in ("start_logits", "end_logits"))
    score, a, b = max((start[a] * end[b], a, b) for a in inside for b in inside if a <= b < a + 2)
    answer = model((question, context), longest=2)
    assert (answer.begin, answer.end) == (coded.offsets[a][0], coded.offsets[b][1])
    assert answer.text == context[answer.begin : answer.end] and answer.score == pytest.approx(score, abs=1e-5)
    assert model([f"{question}\t{context}", (question, context)], longest=2) == [answer, answer]
    none = model((question, context), no_answer=True)
    best = max(start[a] * end[b] for a in inside for b in inside if a <= b)
    assert (none.text == "") == (start[0] * end[0] >= best)


@pytest.mark.parametrize(
    "name, call, error, said",
    [
        ("bert_masked", lambda m: m("a", top=3), TypeError, "there is no option top; a bert masked language model has k"),
        ("bert_sequence", lambda m: m("a", k=3), TypeError, "there is no option k; a bert text classifier has none"),
        ("bert_masked", lambda m: m("[MASK]", k=1.5), TypeError, "k is a float; expected an integer"),
        ("bert_masked", lambda m: m("[MASK]", k=0), ValueError, "expected"),
        ("bert_question", lambda m: m("a b"), ValueError, "a question stands alone"),
        ("bert_question", lambda m: m(["a\tb", ("a", 3)]), ValueError, "a question stands alone"),
        ("bert_question", lambda m: m("a\tb", no_answer=1), TypeError, "no_answer is a int; expected a bool"),
        ("bert_question", lambda m: m("a\tb", longest=0), ValueError, "longest_answer 0"),
        ("bert_body", lambda m: m("a", prompt_name="query"), ValueError, r"prompt_name is 'query'; expected one of \[\]"),
        ("bert_body", lambda m: m("a", prompt="a", prompt_name="b"), ValueError, "both given"),
        ("bert_body", lambda m: m("a", prompt=3), TypeError, "prompt is a int; expected a str"),
        ("bert_body", lambda m: m(["a", 3]), TypeError, r"texts\[1\] is a int"),
    ],
)
def test_what_does_not_fit_a_task_is_refused(name, call, error, said, with_tokenizer):
    with pytest.raises(error, match=said):
        call(multihead.load(with_tokenizer(name)))


# Models of our own.


def train(folder, kind, data):
    (folder / "data.txt").write_text(data, encoding="utf-8")
    model = {"width": 16, "heads": 2, "feed_forward": 32, "max_length": 32}
    layers = {"decoder_layers": 1} if kind == "language_model" else {"encoder_layers": 1}
    return multihead.train(
        {
            "task": {"kind": kind},
            "model": model | layers,
            "tokenizer": {"vocabulary": 270},
            "data": {"train": folder / "data.txt", "hold_out": 20},
            "train": {"output": folder / "model", "steps": 30, "validate_every": 30},
        },
        progress=False,
    )


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    sentences = {
        "classify": "".join(f"the sun {n} is good\tgood\nthe rain {n} is bad\tbad\n" for n in range(60)),
        "tag": "".join(f"Anna B-PER\nlives O\nin O\nBonn B-LOC\n{n} O\n\nit O\nrains O\n{n} O\n\n" for n in range(60)),
        "language_model": "".join(f"the cat {n} sat on the mat\n" for n in range(200)),
    }
    return {kind: train(tmp_path_factory.mktemp(kind), kind, data).model for kind, data in sentences.items()}


@needs_program
def test_our_own_models_answer_as_the_program_does(trained):
    texts = ["the sun is good", "the rain"]
    labels = run("classify", trained["classify"].folder, "--json", "--all", text="\n".join(texts) + "\n").splitlines()
    for line, mine in zip(labels, trained["classify"](texts)):
        said = json.loads(line)
        assert mine.label == said["label"] and mine.scores == pytest.approx(said["scores"], abs=1e-6)
        assert set(mine.scores) == {"good", "bad"} == set(trained["classify"].labels)
    texts = ["é Anna lives in Bonn", "it rains"]
    found = run("tag", trained["tag"].folder, "--json", text="\n".join(texts) + "\n").splitlines()
    for text, line, mine in zip(texts, found, trained["tag"](texts)):
        said = [(each["label"], each["begin"], each["end"], each["text"]) for each in json.loads(line)]
        assert [(each.label, each.begin, each.end, each.text) for each in mine.entities] == said
        assert mine.words == text.split()
    model = trained["language_model"]
    greedy = run("generate", model.folder, "-p", "the cat", "-n", "6", "--greedy", "--json")
    assert model("the cat", do_sample=False, max_new_tokens=6) == json.loads(greedy)["text"]
    drawn = run("generate", model.folder, "-p", "the cat", "--seed", "3", "--json")
    assert model.generate("the cat", seed=3) == model.generate(["the cat"], seed=3)[0] == json.loads(drawn)["text"]


def test_our_own_models_are_saved_pickled_and_described(trained, tmp_path):
    for kind, model in trained.items():
        assert isinstance(model, multihead.TaskModel) and model.config["width"] == 16 and model.config["kind"] == kind
        multihead.save(model, tmp_path / kind)
        text, options = "the sun", {} if kind != "language_model" else {"max_new_tokens": 4, "do_sample": False}
        expected = model(text, **options)
        assert multihead.load(tmp_path / kind)(text, **options) == pickle.loads(pickle.dumps(model))(text, **options) == expected
        assert len(model.tokenizer) > 256 and "of our own, f32)" in repr(model)


@pytest.mark.parametrize(
    "kind, call, error, said",
    [
        ("classify", lambda m: m.translate("a"), NotImplementedError, "is a text classifier of our own; expected a translation model"),
        ("tag", lambda m: m.generate("a"), NotImplementedError, "is a token classifier of our own; expected a language model"),
        ("tag", lambda m: m.forward([[1]]), NotImplementedError, "expected a Hugging Face folder"),
        ("language_model", lambda m: m([[1, 2]]), TypeError, r"texts\[0\] is a list; expected a str"),
        ("language_model", lambda m: m("a", max_tokens=3), TypeError, "did you mean max_new_tokens"),
        ("language_model", lambda m: m("a", num_beams=2, seed=1), ValueError, "seed goes with do_sample=True"),
        ("classify", lambda m: m(b"a"), TypeError, "int"),
    ],
)
def test_what_our_own_models_do_not_do_is_refused(kind, call, error, said, trained):
    with pytest.raises(error, match=said):
        call(trained[kind])


def test_a_damaged_folder_is_refused_when_it_is_loaded(trained, tmp_path):
    multihead.save(trained["classify"], tmp_path / "m")
    (tmp_path / "m/tokenizer.json").unlink()
    with pytest.raises(OSError, match="tokenizer.json"):
        multihead.load(tmp_path / "m")
