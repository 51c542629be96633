"""multihead.torch.MultiheadAttention in the place of torch.nn.MultiheadAttention."""
import copy

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F

import multihead.torch as mt
from multihead.torch import _linear, _module
from multihead.torch._functional import attend
from multihead.torch._linear import linear

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


KINDS = {
    "self-attention": ({}, lambda x: [x[0]] * 3),
    "batch first": ({"batch_first": True}, lambda x: [x[0]] * 3),
    "keys and values of one": ({}, lambda x: [x[0], x[1], x[1]]),
    "no bias": ({"bias": False}, lambda x: [x[0]] * 3),
    "other widths": ({"kdim": 20, "vdim": 28}, lambda x: x),
    "every second": ({"batch_first": True}, lambda x: [x[0].repeat_interleave(2, -1)[..., ::2]] * 3),
    "one sequence": ({}, lambda x: [x[0][:, 0]] * 3),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("kind", KINDS)
def test_no_further_from_double_precision_than_pytorch(kind, dtype, monkeypatch):
    """Values and gradients; and no product is left to PyTorch."""
    torch.manual_seed(4)
    options, choose = KINDS[kind]
    theirs, ours = (layer.to(dtype) for layer in pair(options))
    exact = copy.deepcopy(theirs).double()
    given = choose([x.to(dtype) for x in inputs(options)])

    def run(layer):
        made = {}
        x = [made.setdefault(id(x), x.to(layer.out_proj.weight.dtype).requires_grad_()) for x in given]
        o, weights = layer(*x)
        gradients = torch.autograd.grad(o.square().sum(), [*made.values(), *layer.parameters()])
        return [t.double() for t in (o, weights, *gradients)]

    right, expected = run(exact), run(theirs)
    monkeypatch.setattr(F, "linear", None)
    monkeypatch.setitem(_linear._SMALLEST, torch.float32, 0)
    unit = {torch.float32: 2.0**-23, torch.bfloat16: 2.0**-7}[dtype]
    for got, peer, want in zip(run(ours), expected, right):
        limit = 2 * (peer - want).abs().max() + unit * want.abs().max()
        assert got.shape == want.shape and (got - want).abs().max() <= limit


@pytest.mark.parametrize("frozen", ["in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias", "all"])
def test_frozen_parameters(frozen):
    theirs, ours = pair({"batch_first": True})
    x = torch.randn(2, 9, 32, requires_grad=True)
    for layer in (theirs, ours):
        for name, parameter in layer.named_parameters():
            parameter.requires_grad_(frozen not in (name, "all"))
    got, want = (torch.autograd.grad(layer(x, x, x)[0].square().sum(), x, retain_graph=True)[0] for layer in (ours, theirs))
    assert torch.allclose(got, want, atol=1e-5)
    for layer in (theirs, ours):
        layer(x, x, x)[0].square().sum().backward()
    for (name, a), b in zip(ours.named_parameters(), theirs.parameters()):
        assert (a.grad is None) == (b.grad is None) == (frozen in (name, "all"))
        assert a.grad is None or torch.allclose(a.grad, b.grad, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize("recording", [False, True])
def test_heads_are_joined_where_attention_wrote_them(need_weights, recording, monkeypatch):
    """What the last product reads is what the kernels wrote: no copy between."""
    written, read = [], []
    monkeypatch.setattr(_module, "attend", lambda *given, **more: written.append(attend(*given, **more)) or written[0])
    monkeypatch.setattr(_module, "linear", lambda x, *more: read.append(x) or linear(x, *more))
    ours = mt.MultiheadAttention(32, 4, batch_first=True)
    x = torch.randn(2, 9, 32)
    with torch.set_grad_enabled(recording):
        ours(x, x, x, need_weights=need_weights)
    assert read[1].data_ptr() == written[0][0].data_ptr()


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
