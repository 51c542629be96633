"""What models look at: Recording, of Hugging Face's folders and of our own."""
import json

import numpy as np
import pytest

import multihead
from tiny_folders import FAMILIES, tokenizer_json


def forward_weights(model, coded, name="attentions", **more):
    return model.forward([coded.ids], token_type_ids=[coded.type_ids] if "bert" in model.folder else None, output_attentions=True, **more)[name]


@pytest.mark.parametrize("name", ["bert_sequence", "gpt2_lm"])
def test_weights_are_those_of_forward(name, with_tokenizer):
    model = multihead.load(with_tokenizer(name))
    recording = model.record("Anna lives in é")
    coded = model.tokenizer.encode("Anna lives in é")
    assert recording.tokens == ["[CLS]", "Anna", "lives", "in", "é", "[SEP]"] and recording.words["text"] == [-1, 0, 1, 2, 3, -1]
    expected = forward_weights(model, coded)
    assert [layer.number for layer in recording.layers] == list(range(len(expected)))
    for layer, weights in zip(recording.layers, expected):
        assert layer.kind == ("decoder" if "gpt2" in name else "encoder") and layer.rows == layer.columns == recording.tokens
        found = layer.weights()
        assert found.dtype == np.float32 and found.shape == (layer.heads, 6, 6)
        np.testing.assert_allclose(found, weights[0], atol=1e-6)
        np.testing.assert_allclose(layer.weights(heads=[1], rows=np.array([4, 0])), weights[0][1:2][:, [4, 0]], atol=1e-6)
        p = weights[0].astype(np.float64)
        statistics = layer.statistics(top=2)
        np.testing.assert_allclose(statistics.received, p.sum(1), atol=1e-5)
        np.testing.assert_allclose(statistics.entropy, -(p * np.log(np.maximum(p, 1e-30))).sum(-1), atol=1e-5)
        np.testing.assert_allclose(statistics.top_weights[..., 0], p.max(-1), atol=1e-5)
    mixed = np.eye(6)
    for n, weights in enumerate(expected):
        mixed = (0.5 * weights[0].astype(np.float64).mean(0) + 0.5 * np.eye(6)) @ mixed
        np.testing.assert_allclose(recording.rollout()[n], mixed, atol=1e-5)


def test_a_pair_is_recorded_with_its_types(with_tokenizer):
    model = multihead.load(with_tokenizer("bert_sequence"))
    recording = model.record(("Anna", "in Bonn"))
    assert recording.tokens == ["[CLS]", "Anna", "[SEP]", "in", "Bonn", "[SEP]"] and recording.words["text"] == [-1, 0, -1, 1, 2, -1]
    expected = forward_weights(model, model.tokenizer.encode("Anna", "in Bonn"))
    np.testing.assert_allclose(recording.layers[-1].weights(), expected[-1][0], atol=1e-6)


@pytest.fixture
def t5(with_tokenizer):
    folder = with_tokenizer("t5_lm")
    said = json.loads(tokenizer_json())
    said["post_processor"] = None
    said["model"]["vocab"] |= {f"w{n}": n for n in range(len(said["model"]["vocab"]), 64)}
    (folder / "tokenizer.json").write_text(json.dumps(said))
    return multihead.load(folder)


def test_what_a_decoder_wrote_stands_beside_what_it_read(t5):
    recording = t5.record("anna lives", "in bonn c")
    source, target = t5.tokenizer.encode("anna lives").ids, t5.tokenizer.encode("in bonn c").ids
    start = t5.config["decoder_start_token_id"]
    out = t5.forward([source], decoder_input_ids=[[start, *target]], output_attentions=True)
    assert recording.texts["source"] == ["anna", "lives"] and recording.texts["read"][1:] == ["in", "bonn", "c"] == recording.texts["written"][:-1]
    for kind, name in (("encoder", "encoder_attentions"), ("decoder", "decoder_attentions"), ("cross", "cross_attentions")):
        layers = [layer for layer in recording.layers if layer.kind == kind]
        assert len(layers) == len(out[name]) > 0
        for layer, weights in zip(layers, out[name]):
            np.testing.assert_allclose(layer.weights(), weights[0], atol=1e-6)
    cross = [layer for layer in recording.layers if layer.kind == "cross"][0]
    assert cross.rows == recording.texts["written"] and cross.columns == recording.texts["source"]
    assert recording.rollout().shape[1:] == (2, 2) and recording.rollout("decoder").shape[1:] == (4, 4)


def test_without_what_was_written_the_model_writes(t5):
    (written,) = t5.generate([t5.tokenizer.encode("anna lives").ids])
    recording = t5.record("anna lives")
    assert written and recording.texts["written"][:-1] == [t5.tokenizer.id_to_token(each) for each in written]


def test_pages_are_made_when_asked_for(with_tokenizer, tmp_path):
    recording = multihead.load(with_tokenizer("bert_body")).record("Anna lives <b>")
    recording.save(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>") and page == recording.page().html and "Anna" in page
    assert recording._repr_html_().startswith("<iframe") and "2 layers, 7 tokens" in repr(recording)
    assert recording.page(heads="1.1").html.startswith("<!doctype html>")


def test_long_texts_keep_no_weights(tmp_path):
    """12 heads over 6,000 tokens: a matrix of weights of one layer alone would be 1.7 GB."""
    resource = pytest.importorskip("resource")
    (tmp_path / "text.txt").write_text("".join(f"the cat {n} sat\n" for n in range(50)), encoding="utf-8")
    model = multihead.train(
        {
            "task": {"kind": "language_model"},
            "model": {"width": 24, "heads": 12, "feed_forward": 16, "decoder_layers": 2, "max_length": 6000},
            "tokenizer": {"vocabulary": 270},
            "data": {"train": tmp_path / "text.txt", "hold_out": 5, "max_length": 32},
            "train": {"output": tmp_path / "lm", "steps": 1},
        },
        progress=False,
    ).model
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    recording = model.record("x " * 9000)
    assert recording.cut and len(recording.tokens) == 6000
    row = recording.layers[1].weights(heads=[3], rows=[5000])
    assert row.shape == (1, 1, 6000) and row.sum() == pytest.approx(1, abs=1e-4) and not row[0, 0, 5001:].any()
    assert recording.layers[0].statistics().entropy.shape == (12, 6000)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000  # kB


@pytest.mark.parametrize("kind, layers", [("classify", "encoder_layers"), ("tag", "encoder_layers")])
def test_our_own_models_are_recorded(kind, layers, tmp_path):
    data = {"classify": "".join(f"sun {n}\tgood\nrain {n}\tbad\n" for n in range(40)), "tag": "".join(f"Anna B-PER\n{n} O\n\n" for n in range(40))}
    (tmp_path / "data.txt").write_text(data[kind], encoding="utf-8")
    sizes = {"width": 16, "heads": 2, "feed_forward": 16, layers: 2}
    config = {"task": {"kind": kind}, "model": sizes, "tokenizer": {"vocabulary": 270}, "data": {"train": tmp_path / "data.txt", "hold_out": 10}}
    model = multihead.train(config | {"train": {"output": tmp_path / "m", "steps": 2}}, progress=False).model
    recording = model.record("Anna rain")
    n = len(recording.tokens)
    assert "".join(recording.tokens).replace(" ", "") == "Annarain" and len(recording.layers) == 2
    np.testing.assert_allclose(recording.layers[1].weights().sum(-1), np.ones((2, n)), atol=1e-5)
    with pytest.raises(ValueError, match="has no decoder behind an encoder"):
        model.record("a", "b")


@pytest.mark.parametrize(
    "call, error, said",
    [
        (lambda m: m.record(""), None, ""),
        (lambda m: m.record(3), TypeError, "neither a str nor a tuple of two"),
        (lambda m: m.record("a", "b"), ValueError, "a bert body has no decoder behind an encoder"),
        (lambda m: m.record("a").layers[0].weights(heads=[2]), ValueError, "heads names 2; expected numbers from 0 to 1"),
        (lambda m: m.record("a").layers[0].weights(rows=[-1]), ValueError, "rows names -1"),
        (lambda m: m.record("a").layers[0].weights(rows=[]), ValueError, "the list of rows is empty"),
        (lambda m: m.record("a").layers[0].weights(heads=1), TypeError, "heads is a int"),
        (lambda m: m.record("a").layers[0].statistics(top="2"), TypeError, "top is a str"),
        (lambda m: m.record("a").rollout("cross"), ValueError, "expected one of encoder"),
        (lambda m: m.record("a").page(heads="9.1"), ValueError, "layer 9"),
    ],
)
def test_what_cannot_be_recorded_is_refused(call, error, said, with_tokenizer):
    model = multihead.load(with_tokenizer("bert_body"))
    if error is None:
        assert call(model).tokens == ["[CLS]", "[SEP]"]
    else:
        with pytest.raises(error, match=said):
            call(model)


def test_images_and_folders_without_a_tokenizer_are_refused():
    with pytest.raises(OSError, match="no tokenizer"):
        multihead.load(FAMILIES / "bert_body").record("a")
    with pytest.raises(OSError, match="no tokenizer"):
        multihead.load(FAMILIES / "vit_body").record("a")
