"""multihead.torch.patch: what it takes, what it leaves to PyTorch, and that it says so."""
import subprocess
import sys
import textwrap

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F
from torch.nn.functional import scaled_dot_product_attention as imported_before

import multihead.torch as mt

THEIRS = F.scaled_dot_product_attention


def t(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1))


INF = float("inf")
SAMPLES = {  # arguments, options, whether they are taken
    "plain": ((t(2, 3, 5, 8),) * 3, {}, True),
    "three axes in groups": ((t(4, 5, 8), t(2, 6, 8), t(2, 6, 8)), {"enable_gqa": True}, True),
    "five axes in groups": ((t(2, 3, 4, 5, 8), t(2, 3, 2, 6, 8), t(2, 3, 2, 6, 8)), {"enable_gqa": True}, True),
    "groups of one size": ((t(2, 3, 5, 8),) * 3, {"enable_gqa": True}, True),
    "groups and batches that broadcast": ((t(2, 4, 5, 8), t(1, 2, 6, 8), t(1, 2, 6, 8)), {"enable_gqa": True}, True),
    "three axes with four": ((t(2, 3, 5, 8), t(3, 6, 8), t(3, 6, 8)), {}, True),
    "batches that broadcast": ((t(2, 3, 5, 8), t(1, 3, 6, 8), t(1, 3, 6, 8)), {}, True),
    "heads that broadcast": ((t(2, 3, 5, 8), t(2, 1, 6, 8), t(2, 1, 6, 8)), {}, True),
    "two axes": ((t(5, 8), t(6, 8), t(6, 8)), {}, True),
    "no heads": ((t(2, 0, 5, 8),) * 3, {}, True),
    "no heads, masked": ((t(2, 0, 5, 8),) * 3, {"attn_mask": t(5, 5) > 0}, True),
    "no batch": ((t(0, 3, 5, 8),) * 3, {}, True),
    "no queries": ((t(3, 0, 8), t(3, 5, 8), t(3, 5, 8)), {}, True),
    "a mask of five axes": ((t(2, 2, 3, 5, 8),) * 3, {"attn_mask": t(2, 1, 1, 5, 5)}, True),
    "an infinite scale": ((t(2, 3, 5, 8),) * 3, {"scale": INF}, False),
    "double": ((t(2, 3, 5, 8).double(),) * 3, {}, False),
    "wide heads": ((t(1, 1, 2, 600),) * 3, {}, False),
    "heads without elements": ((t(2, 3, 5, 0), t(2, 3, 5, 0), t(2, 3, 5, 8)), {"scale": 1.0}, False),
    "keys in groups, values not": ((t(1, 4, 5, 8), t(1, 2, 6, 8), t(1, 4, 6, 8)), {"enable_gqa": True}, False),
}
REFUSED_BY_BOTH = {
    "widths": ((t(2, 3, 5, 8), t(2, 3, 5, 4), t(2, 3, 5, 8)), {}),
    "a mask that does not fit": ((t(2, 3, 5, 8),) * 3, {"attn_mask": t(4, 5)}),
    "a mask for other leading axes": ((t(3, 5, 8),) * 3, {"attn_mask": t(2, 5, 5)}),
    "both masks": ((t(2, 3, 5, 8),) * 3, {"attn_mask": t(5, 5), "is_causal": True}),
    "one axis": ((t(8),) * 3, {}),
    "leading axes": ((t(2, 3, 5, 8), t(3, 3, 5, 8), t(3, 3, 5, 8)), {}),
}


def outcome(call, arguments, options):
    try:
        return call(*arguments, **options)
    except (RuntimeError, ValueError, NotImplementedError) as error:
        return type(error), str(error)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("recording", [False, True])
@pytest.mark.parametrize("name", SAMPLES)
def test_every_call_gives_what_pytorch_gives(name, recording):
    given, options, taken = SAMPLES[name]
    given = [x.clone().requires_grad_(recording) for x in given]
    want = THEIRS(*given, **options)
    with mt.patch() as patched:
        got = F.scaled_dot_product_attention(*given, **options)
    assert (patched.taken, sum(patched.left.values())) == ((1, 0) if taken else (0, 1)), str(patched)
    assert got.shape == want.shape and torch.allclose(got, want, atol=1e-5, equal_nan=True)
    assert got.requires_grad == recording
    if recording:
        gradients = [torch.autograd.grad(o.sum(), given, allow_unused=True) for o in (got, want)]
        for a, b in zip(*gradients):
            assert torch.allclose(a, b, atol=1e-5, equal_nan=True)


@pytest.mark.parametrize("recording", [False, True])
@pytest.mark.parametrize("name", REFUSED_BY_BOTH)
def test_what_pytorch_refuses_is_refused_by_pytorch(name, recording):
    given, options = REFUSED_BY_BOTH[name]
    given = [x.clone().requires_grad_(recording) for x in given]
    want = outcome(THEIRS, given, options)
    with mt.patch():
        assert outcome(F.scaled_dot_product_attention, given, options) == want


def test_pytorch_s_own_samples():
    """OpInfo's, of every kind that the kernels have, with and without gradients."""
    methods = pytest.importorskip("torch.testing._internal.common_methods_invocations")
    (info,) = [op for op in methods.op_db if op.name == "nn.functional.scaled_dot_product_attention"]
    count = 0
    for dtype, limit in ((torch.float32, 1e-5), (torch.bfloat16, 5e-2)):
        for recording in (False, True):
            for sample in info.sample_inputs("cpu", dtype, requires_grad=recording):
                if sample.kwargs.get("dropout_p"):
                    continue
                given = (sample.input, *sample.args)
                with mt.patch():
                    got = F.scaled_dot_product_attention(*given, **sample.kwargs)
                want = THEIRS(*given, **sample.kwargs)
                assert torch.allclose(got, want, atol=limit, rtol=limit, equal_nan=True), sample
                count += 1
    assert count > 50


def test_says_what_it_left_and_puts_everything_back():
    q = t(2, 3, 5, 8)
    before = F.multi_head_attention_forward, torch.backends.mha.get_fastpath_enabled()
    with mt.patch(warn=True) as patched:
        assert torch.equal(F.scaled_dot_product_attention(q, q, q), mt.scaled_dot_product_attention(q, q, q))
        layer = torch.nn.MultiheadAttention(24, 3, batch_first=True)
        layer(t(2, 5, 24), t(2, 5, 24), t(2, 5, 24), need_weights=False)
        with pytest.warns(UserWarning, match="float64") as said:
            for _ in range(3):
                F.scaled_dot_product_attention(q.double(), q.double(), q.double())
        assert len(said) == 1
    assert F.scaled_dot_product_attention is THEIRS
    assert (F.multi_head_attention_forward, torch.backends.mha.get_fastpath_enabled()) == before
    assert patched.taken == 2 and sum(patched.left.values()) == 3 and "3 × query holds torch.float64" in str(patched)


def test_everything_is_put_back_after_an_error():
    with pytest.raises(RuntimeError), mt.patch():
        with mt.patch():
            F.scaled_dot_product_attention(t(8), t(8), t(8))
    assert F.scaled_dot_product_attention is THEIRS is imported_before and torch.backends.mha.get_fastpath_enabled()


def test_names_imported_before_are_reached():
    q = t(2, 3, 5, 8)
    with mt.patch() as patched:
        imported_before(q, q, q)
    assert patched.taken == 1 and imported_before is THEIRS


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("recording", [False, True])
def test_an_encoder_in_eval_mode_is_reached(recording):
    """Its layers have a way of their own then, past the function."""
    layer = torch.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
    encoder = torch.nn.TransformerEncoder(layer, 2).eval()
    x, padding = t(2, 9, 32), torch.arange(9) >= torch.tensor([[9], [6]])
    with torch.set_grad_enabled(recording):
        want = encoder(x, src_key_padding_mask=padding)
        with mt.patch() as patched:
            got = encoder(x, src_key_padding_mask=padding)
    assert patched.taken == 2 and not patched.left
    assert torch.allclose(got[~padding], want[~padding], atol=1e-5)


def test_a_layer_that_wants_weights_is_left_and_said():
    layer = torch.nn.MultiheadAttention(24, 3, batch_first=True).eval()
    x = t(2, 5, 24)
    want = layer(x, x, x)
    with mt.patch() as patched:
        got = layer(x, x, x)
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(got, want))
    assert patched.taken == 0 and "need_weights=True" in str(patched)


def test_compiled_inside():
    q = t(2, 3, 5, 8)
    call = lambda q: F.scaled_dot_product_attention(q, q, q) * 2
    with mt.patch():
        got = torch.compile(call, backend="aot_eager")(q)
    assert torch.allclose(got, call(q), atol=1e-6)
