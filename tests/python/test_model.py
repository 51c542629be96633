"""multihead.load: the shipped model says what the program says."""
import concurrent.futures
import json
import lzma
import pickle
import threading
import time

import numpy as np
import pytest

import multihead
from program import MODEL, ROOT, needs_program, run


@pytest.fixture(scope="module")
def model():
    return multihead.load(MODEL)


@pytest.fixture(scope="module")
def sources():
    with lzma.open(ROOT / "data/tatoeba/test.en-de.tsv.xz", "rt", encoding="utf-8") as file:
        lines = [line.split("\t")[0] for _, line in zip(range(48), file)]
    return lines + ["", "Two sentences. In one line!  And a third?"]


@needs_program
@pytest.mark.parametrize(
    "flags, options",
    [
        ([], {}),
        (["--beam", 1], {"beam": 1}),
        (["--length-penalty", "gnmt:0.8", "--patience", 2, "--whole"], {"length_penalty": "gnmt:0.8", "patience": 2.0, "whole": True}),
        (["--max-length", 6, "--min-length", 3, "--no-repeat", 2], {"max_length": 6, "min_length": 3, "no_repeat": 2}),
        (["--sample", "--seed", 7, "--top-k", 5], {"sample": True, "seed": 7, "top_k": 5}),
    ],
)
def test_translations_are_those_of_the_program(model, sources, flags, options):
    said = run("translate", MODEL, *flags, text="".join(line + "\n" for line in sources)).splitlines()
    assert model.translate(sources, **options) == said


@needs_program
def test_candidates_scores_and_alignments_are_those_of_the_program(model, sources):
    lines = sources[:10] + sources[-1:]
    flags = ["--nbest", 2, "--scores", "--alignments"]
    said = run("translate", MODEL, *flags, text="".join(line + "\n" for line in lines)).splitlines()
    mine = []
    for number, each in enumerate(model.translations(lines, n_best=2), 1):
        for candidate in each.candidates:
            pairs = " ".join(f"{i}-{j}" for i, j in model.align(candidate))
            mine.append(f"{number}\t{candidate.score:.4f}\t{candidate.text}\t{pairs}")
    assert mine == said


@needs_program
def test_attention_is_what_the_program_draws(model, sources):
    line = sources[0]
    shades = run("translate", MODEL, "--attention", text=line + "\n").splitlines()[3:-1]
    seen = model.attention(line)
    mean = seen.cross[-2].mean(0)
    margin = max(len(name) for name in seen.target)
    widths = [max(3, len(name)) for name in seen.source]
    drawn = []
    for name, row in zip(seen.target, mean):
        cells = [" ░▒▓█"[int(np.sqrt(weight) * 4 + 0.5)] * width for weight, width in zip(row, widths)]
        drawn.append(" ".join([name.rjust(margin), *cells]).rstrip())
    assert sum(widths) + len(widths) + margin < 80, "the drawing would be in several bands"
    assert drawn == shades


def test_attention_rows_sum_to_one_and_the_decoder_sees_no_later_token(model, sources):
    for line in sources[:8]:
        seen = model.attention(line)
        S, T = len(seen.source), len(seen.target)
        assert seen.source[-1] == seen.target[-1] == "</s>"
        assert seen.encoder.shape == (3, 4, S, S) and seen.decoder.shape == (3, 4, T, T) and seen.cross.shape == (3, 4, T, S)
        for weights in (seen.encoder, seen.decoder, seen.cross):
            assert weights.dtype == np.float32 and np.abs(weights.sum(-1) - 1).max() < 1e-5
        assert (seen.decoder[..., np.triu_indices(T, 1)[0], np.triu_indices(T, 1)[1]] == 0).all()


def test_recorded_cross_attention_is_the_translators_own_in_every_layer(model, sources):
    for line in sources[:8]:
        sentence = model.translations(line, whole=True).candidates[0].sentences[0]
        seen = model.attention(line, sentence)
        for layer in range(3):
            source, target, weights = model._inner.cross_attention(line, sentence.ids, layer)
            assert (seen.source, seen.target) == (source, target)
            assert np.array_equal(seen.cross[layer], weights)


def test_the_encoders_weights_follow_from_the_file(model):
    """The first layer by hand: embedding, positions, norm, projections, softmax, in double precision."""
    safetensors = read_weights(MODEL / "model.safetensors")
    ids = model.tokenizer.encode("The weather is fine.").ids + [model.config["end"]]
    C, H = model.config["width"], model.config["heads"]
    rates = 10000.0 ** (-np.arange(0, C, 2) / C)
    angles = np.arange(len(ids))[:, None] * rates
    positions = np.stack([np.sin(angles), np.cos(angles)], -1).reshape(len(ids), C)
    x = safetensors["embedding.weight"][ids] * np.sqrt(C) + positions
    at = "encoder.layers.0."
    x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    x = x * safetensors[at + "norm1.weight"] + safetensors[at + "norm1.bias"]
    qkv = x @ safetensors[at + "self_attn.in_proj_weight"].T + safetensors[at + "self_attn.in_proj_bias"]
    q, k = (qkv[:, n * C : (n + 1) * C].reshape(-1, H, C // H).swapaxes(0, 1) for n in (0, 1))
    s = q @ k.swapaxes(1, 2) / np.sqrt(C // H)
    p = np.exp(s - s.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    # Scores of a few tens in f32 are off by about 1e-5, and a weight by that fraction of itself.
    assert np.abs(model.attention("The weather is fine.").encoder[0] - p).max() < 1e-4


def read_weights(path):
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    kinds = {"F16": np.float16, "F32": np.float32}
    out = {}
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            raw = np.frombuffer(data[8 + size + begin : 8 + size + end], kinds[entry["dtype"]])
            out[name] = raw.reshape(entry["shape"]).astype(np.float64)
    return out


def test_what_goes_in_has_the_shape_of_what_comes_out(model):
    one = model.translate("Good morning!")
    assert one == "Guten Morgen!"
    assert model.translate(["Good morning!"]) == [one] and model.translate(()) == [] and model.translate("") == ""
    assert model.translate(line for line in ["Good morning!", ""]) == [one, ""]
    assert isinstance(model.translations("Good morning!"), multihead.Translation)


def test_rounds_and_batches_change_nothing(model, sources):
    many = (sources * 6)[:270]  # more than the first round
    alone = [model.translate(line, beam=1) for line in sources]
    assert model.translate(many, beam=1) == (alone * 6)[:270]
    drawn = model.translate(many, sample=True, seed=3)
    assert drawn == model.translate(many, sample=True, seed=3, batch=300)
    assert drawn != model.translate(many, sample=True, seed=4)


def test_the_model_tells_what_it_is(model):
    assert model.config["width"] == 256 and model.config["kind"] == "transformer"
    assert model.tokenizer == multihead.Tokenizer.from_file(MODEL / "tokenizer.json")
    assert "width 256, 4 heads, 3 + 3 layers" in repr(model)
    assert pickle.loads(pickle.dumps(model)).translate("Good morning!") == "Guten Morgen!"


def test_a_target_may_be_given(model):
    seen = model.attention("Good morning!", "Guten Abend!")
    assert "".join(seen.target).replace(" ", "") == "GutenAbend!</s>"
    candidate = model.translations("Good morning! How are you?").candidates[0]
    assert [len(model.attention(s.source, s).target) for s in candidate.sentences] == [len(s.ids) + 1 for s in candidate.sentences]


def test_other_threads_run_while_it_translates(model, sources):
    multihead.set_threads(1)
    moments, stop = [], threading.Event()

    def count():
        while not stop.is_set():
            moments.append(time.perf_counter())
            time.sleep(0.001)

    other = threading.Thread(target=count)
    other.start()
    begin = time.perf_counter()
    model.translate(sources)
    end = time.perf_counter()
    stop.set()
    other.join()
    assert [m for m in moments if begin + 0.2 * (end - begin) < m < end - 0.2 * (end - begin)]


def test_threads_may_share_a_model(model, sources):
    want = model.translate(sources[:12], beam=1)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert all(each == want for each in pool.map(lambda _: model.translate(sources[:12], beam=1), range(8)))
        seen = list(pool.map(lambda _: multihead.load(MODEL).attention("Good morning!").cross, range(4)))
    assert all(np.array_equal(each, seen[0]) for each in seen)


REFUSED = {
    "beam": (dict(beam=0), ValueError, "a beam of 0; expected 1 to 63"),
    "beam type": (dict(beam=2.5), TypeError, "beam is a float; expected an integer"),
    "unknown": (dict(max_lenght=3), TypeError, "no option max_lenght; did you mean max_length?"),
    "penalty": (dict(length_penalty="cube:1"), ValueError, "expected power[:ALPHA] or gnmt[:ALPHA]"),
    "alpha": (dict(length_penalty="power:-101"), ValueError, "alpha -101; expected -100 to 100"),
    "sampling alone": (dict(top_k=3), ValueError, "top_k goes with sample=True"),
    "search and sampling": (dict(beam=4, sample=True), ValueError, "beam goes without sample=True"),
    "temperature": (dict(sample=True, temperature=0), ValueError, "a temperature of 0"),
    "seed": (dict(sample=True, seed=-1), ValueError, "seed is -1"),
    "large": (dict(batch=2**70), ValueError, "expected an integer of 64 bits"),
    "flag": (dict(whole=1), TypeError, "whole is a int; expected a bool"),
    "lengths": (dict(max_length=2, min_length=3), ValueError, "min_length 3 is above max_length 2"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_options(model, name):
    options, kind, text = REFUSED[name]
    with pytest.raises(kind) as caught:
        model.translate("Hello.", **options)
    assert text in str(caught.value)


def test_refused_inputs(model, tmp_path):
    with pytest.raises(TypeError, match="line 2 is a int"):
        model.translate(["a", 1])
    with pytest.raises(TypeError, match="bytes"):
        model.translate(b"a")
    with pytest.raises(ValueError, match="surrogates"):
        model.translate("\udc80")
    with pytest.raises(ValueError, match="white space alone"):
        model.attention(" ")
    with pytest.raises(ValueError, match="layer"):
        model.align(model.translations("Hello.").candidates[0], layer=3)
    with pytest.raises(OSError, match="is not there; expected a folder with model.safetensors"):
        multihead.load(tmp_path / "none")
    with pytest.raises(OSError, match="holds no model"):
        multihead.load(tmp_path)
    with pytest.raises(ValueError, match="precision"):
        multihead.load(MODEL, precision="f64")
