"""multihead.torch.MultiheadAttention in the place of torch.nn.MultiheadAttention."""
import pytest

torch = pytest.importorskip("torch")

import multihead.torch as mt

LAYERS = {
    "plain": {},
    "batch first": {"batch_first": True},
    "no bias": {"bias": False, "batch_first": True},
    "other widths": {"kdim": 20, "vdim": 28, "batch_first": True},
    "keys of its own": {"add_bias_kv": True, "add_zero_attn": True, "batch_first": True},
}
MASKS = {
    "none": {},
    "bool": {"attn_mask": torch.ones(6, 9).triu(4).bool()},
    "float": {"attn_mask": torch.randn(6, 9)},
    "by head": {"attn_mask": torch.rand(2 * 4, 6, 9) < 0.3},
    "padding": {"key_padding_mask": torch.arange(9) >= torch.tensor([[9], [5]])},
    "both": {"attn_mask": torch.randn(6, 9), "key_padding_mask": (torch.arange(9) >= torch.tensor([[9], [5]])).float() * -1e4},
    "padding and causal": {"attn_mask": torch.ones(6, 9).triu(4).bool(), "key_padding_mask": torch.arange(9) >= torch.tensor([[9], [5]])},
}


def pair(options):
    theirs = torch.nn.MultiheadAttention(32, 4, **options)
    ours = mt.MultiheadAttention(32, 4, **options)
    ours.load_state_dict(theirs.state_dict())
    return theirs, ours


def inputs(options):
    first = options.get("batch_first", False)
    made = [torch.randn(2, 6, 32), torch.randn(2, 9, options.get("kdim", 32)), torch.randn(2, 9, options.get("vdim", 32))]
    return [x if first else x.transpose(0, 1) for x in made]


@pytest.mark.filterwarnings("ignore:Support for mismatched")
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("layer", LAYERS)
def test_outputs_weights_and_gradients(layer, mask):
    torch.manual_seed(3)
    theirs, ours = pair(LAYERS[layer])
    x = inputs(LAYERS[layer])
    for average in (True, False):
        want, want_weights = theirs(*x, average_attn_weights=average, **MASKS[mask])
        got, weights = ours(*x, average_attn_weights=average, **MASKS[mask])
        assert torch.allclose(got, want, atol=1e-5) and torch.allclose(weights, want_weights, atol=1e-5)
    got.square().sum().backward()
    want.square().sum().backward()
    for (name, a), b in zip(ours.named_parameters(), theirs.parameters()):
        assert torch.allclose(a.grad, b.grad, atol=1e-4, rtol=1e-4), name
    none = ours(*x, need_weights=False, **MASKS[mask])
    assert none[1] is None and torch.allclose(none[0], want, atol=1e-5)


@pytest.mark.parametrize("recording", [False, True])
def test_weights_leave_the_output_as_it_is(recording):
    """Past one block of queries and of keys: the mean comes from the pass that makes the output."""
    ours = mt.MultiheadAttention(48, 3, batch_first=True)
    x = torch.randn(2, 130, 48)
    padding = torch.arange(130) >= torch.tensor([[130], [77]])
    with torch.set_grad_enabled(recording):
        o, mean = ours(x, x, x, key_padding_mask=padding)
        again, all_heads = ours(x, x, x, key_padding_mask=padding, average_attn_weights=False)
        alone, _ = ours(x, x, x, key_padding_mask=padding, need_weights=False)
    assert torch.equal(o, alone) and torch.equal(o, again) and not mean.requires_grad
    assert torch.allclose(mean, all_heads.mean(1), atol=1e-6) and (mean[1, :, 77:] == 0).all()


def test_weights_are_those_before_dropout():
    ours = mt.MultiheadAttention(32, 4, dropout=0.5, batch_first=True)
    x = torch.randn(2, 70, 32)
    weights = ours(x, x, x)[1]
    assert torch.allclose(weights, ours.eval()(x, x, x)[1], atol=1e-6) and torch.allclose(weights.sum(-1), torch.ones(2, 70))


def test_one_sequence_without_a_batch():
    theirs, ours = pair({})
    x = torch.randn(7, 32)
    for got, want in zip(ours(x, x, x), theirs(x, x, x)):
        assert torch.allclose(got, want, atol=1e-5)


def test_inside_an_encoder_layer_and_compiled():
    layer = torch.nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
    x = torch.randn(2, 9, 32)
    want = layer(x)
    ours = mt.MultiheadAttention(32, 4, batch_first=True)
    ours.load_state_dict(layer.self_attn.state_dict())
    layer.self_attn = ours
    assert torch.allclose(layer(x), want, atol=1e-5)
    compiled = torch.compile(ours, fullgraph=True, backend="aot_eager")
    for got, right in zip(compiled(x, x, x), ours(x, x, x)):
        assert torch.allclose(got, right, atol=1e-5)


def test_dropout_only_in_training():
    layer = mt.MultiheadAttention(32, 4, dropout=0.5, batch_first=True)
    x = torch.randn(2, 9, 32)
    call = lambda: layer(x, x, x, need_weights=False)[0]
    assert not torch.equal(call(), call())
    layer.eval()
    assert torch.equal(call(), call())


def test_refused():
    layer = mt.MultiheadAttention(32, 4)
    with pytest.raises(ValueError, match=r"\(3,\)"):
        layer(torch.randn(3), torch.randn(3), torch.randn(3))
    with pytest.raises(ValueError, match="attn_mask"):
        layer(*[torch.randn(4, 2, 32)] * 3, is_causal=True)
