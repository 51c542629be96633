"""What PyTorch watches, or asks in ways of its own: tracing, batched gradients, tensors that are not dense, torch.func."""
import io

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F

import multihead
import multihead.torch as mt


def heads(*shape):
    return torch.randn(*shape or (2, 3, 9, 8))


SDPA = {
    "plain": lambda q, k, v: mt.scaled_dot_product_attention(q, k, v),
    "causal": lambda q, k, v: mt.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.3),
    "masked": lambda q, k, v: mt.scaled_dot_product_attention(q, k, v, (q[:, :1, :, :1] > 0) | torch.eye(9, dtype=torch.bool)),
    "three axes": lambda q, k, v: mt.scaled_dot_product_attention(q[0], k[0], v[0]),
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("recording", [False, True])
@pytest.mark.parametrize("name", SDPA)
def test_a_trace_computes_anew(name, recording):
    """With other inputs, with gradients, and after it was written to a file and read again."""
    first = [heads().requires_grad_(recording) for _ in range(3)]
    traced = torch.jit.trace(SDPA[name], first, check_trace=False)
    file = io.BytesIO()
    torch.jit.save(traced, file)
    file.seek(0)
    for graph in (traced, torch.jit.load(file)):
        other = [heads().requires_grad_(recording) for _ in range(3)]
        got, want = graph(*other), SDPA[name](*other)
        assert torch.allclose(got, want, atol=1e-6) and not torch.allclose(got, SDPA[name](*first), atol=1e-2)
        if recording:
            for a, b in zip(torch.autograd.grad(got.square().sum(), other), torch.autograd.grad(want.square().sum(), other)):
                assert torch.allclose(a, b, atol=1e-5)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning")
@pytest.mark.parametrize("need_weights", [False, True])
def test_a_layer_in_a_trace_computes_anew(need_weights):
    class Attend(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = mt.MultiheadAttention(32, 4, batch_first=True)

        def forward(self, x):
            return self.layer(x, x, x, need_weights=need_weights)[int(need_weights)]

    attend = Attend().eval()
    traced = torch.jit.trace(attend, torch.randn(2, 9, 32), check_trace=False)
    x = torch.randn(2, 9, 32)
    assert torch.allclose(traced(x), attend(x), atol=1e-6)


Q = heads()
LSE = multihead.attention(Q, Q, Q, return_lse=True)[1]
UNSEEN = {
    "multihead.attention": lambda x: multihead.attention(x, x, x),
    "attention_weights": lambda x: multihead.attention_weights(x, x, LSE),
    "attention_statistics": lambda x: multihead.attention_statistics(x, x, LSE).entropy,
    "merge": lambda x: multihead.merge([(x, LSE)])[0],
    "KVCache": lambda x: multihead.KVCache(2, 3, 8, capacity=32).append(x, x) or x,
    "multihead.torch.attention": lambda x: mt.attention(x, x, x, softcap=2.0),
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", UNSEEN)
def test_what_a_trace_would_not_see_is_refused(name):
    assert UNSEEN[name](Q).shape[0] == 2
    with pytest.raises(NotImplementedError, match="scaled_dot_product_attention"):
        torch.jit.trace(UNSEEN[name], Q, check_trace=False)


@pytest.mark.parametrize("name", UNSEEN)
def test_what_torch_func_would_not_see_is_refused(name):
    for watch in (
        lambda: torch.func.vmap(UNSEEN[name])(heads(2, 2, 3, 9, 8)),
        lambda: torch.func.grad(lambda x: UNSEEN[name](x).sum())(Q),
        lambda: torch.func.jvp(UNSEEN[name], (Q,), (Q,)),
    ):
        with pytest.raises(NotImplementedError, match="scaled_dot_product_attention") as caught:
            watch()
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", UNSEEN)
def test_a_derivative_forwards_is_not_lost(name):
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(Q, torch.randn_like(Q))
        with pytest.raises(NotImplementedError, match="backwards"):
            UNSEEN[name](dual)
        assert UNSEEN[name](Q).shape[0] == 2


def test_jvp_of_torch_func_is_refused_in_words():
    call = lambda q: mt.scaled_dot_product_attention(q, Q, Q)
    for watch in (
        lambda: torch.func.jvp(call, (Q,), (Q,)),
        lambda: torch.func.jacfwd(call)(Q),
        lambda: torch.func.jvp(torch.func.grad(lambda q: call(q).sum()), (Q,), (Q,)),
    ):
        with pytest.raises(NotImplementedError, match="backwards|once") as caught:
            watch()
        assert "\n" not in str(caught.value)


def test_weights_lose_no_gradient_in_silence():
    x = heads().requires_grad_()
    for name in ("attention_weights", "attention_statistics"):
        with pytest.raises(ValueError, match="q requires a gradient"):
            UNSEEN[name](x)
        with torch.no_grad():
            assert UNSEEN[name](x).shape[0] == 2


OURS = {
    "scaled_dot_product_attention": (mt.scaled_dot_product_attention, F.scaled_dot_product_attention),
    "dropout": (lambda *x: mt.scaled_dot_product_attention(*x, dropout_p=0.5), None),
    "attention": (lambda *x: mt.attention(*x, softcap=2.0), None),
}


@pytest.mark.parametrize("name", OURS)
def test_gradients_in_batches(name):
    inputs = [heads(1, 2, 5, 4).requires_grad_() for _ in range(3)]
    o = OURS[name][0](*inputs)
    directions = torch.randn(4, *o.shape)
    got = torch.autograd.grad(o, inputs, directions, is_grads_batched=True, retain_graph=True)
    alone = [torch.autograd.grad(o, inputs, d, retain_graph=True) for d in directions]
    for n, one in enumerate(alone):
        for a, b in zip(got, one):
            assert torch.allclose(a[n], b, atol=1e-6)


def test_jacobians_by_batches():
    inputs = tuple(heads(1, 2, 4, 3) for _ in range(3))
    mask = torch.rand(4, 4) < 0.7
    mask |= torch.eye(4, dtype=torch.bool)
    for call, peer in (
        (mt.scaled_dot_product_attention, F.scaled_dot_product_attention),
        (lambda *x: mt.scaled_dot_product_attention(*x, mask), lambda *x: F.scaled_dot_product_attention(*x, mask)),
    ):
        got = torch.autograd.functional.jacobian(call, inputs, vectorize=True)
        want = torch.autograd.functional.jacobian(peer, inputs)
        for a, b in zip(got, want):
            assert torch.allclose(a, b, atol=1e-5)


def nested():
    return torch.nested.nested_tensor([torch.randn(3, 5, 8), torch.randn(3, 5, 8)])


STRANGE = {
    "nested": nested,
    "jagged": lambda: torch.nested.nested_tensor([torch.randn(5, 8), torch.randn(3, 8)], layout=torch.jagged),
    "sparse": lambda: heads().to_sparse(),
    "rows of a sparse matrix": lambda: torch.randn(5, 8).to_sparse_csr(),
    "no axes": lambda: torch.tensor(1.0),
    "complex": lambda: heads().to(torch.complex64),
    "quantised": lambda: torch.quantize_per_tensor(heads(), 0.1, 0, torch.qint8),
}
CALLS = {
    "sdpa": lambda x: mt.scaled_dot_product_attention(x, x, x),
    "sdpa with a gradient": lambda x: mt.scaled_dot_product_attention(heads().requires_grad_(), x, x),
    "sdpa's mask": lambda x: mt.scaled_dot_product_attention(Q, Q, Q, x),
    "attention": lambda x: mt.attention(x, x, x),
    "MultiheadAttention": lambda x: mt.MultiheadAttention(8, 2)(x, x, x),
    "multihead.attention": lambda x: multihead.attention(x, x, x),
    "multihead.attention's bias": lambda x: multihead.attention(Q, Q, Q, bias=x),
    "keep": lambda x: multihead.keep(x),
    "append": lambda x: multihead.KVCache(2, 3, 8, capacity=32).append(x, x),
    "merge": lambda x: multihead.merge([(x, x)]),
}
TAKEN = {("no axes", "sdpa's mask"), ("no axes", "multihead.attention's bias")}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("kind", STRANGE)
def test_tensors_that_are_not_dense_are_refused_in_one_sentence(kind, call):
    if (kind, call) in TAKEN:
        return
    with pytest.raises((ValueError, NotImplementedError)) as caught:
        CALLS[call](STRANGE[kind]())
    text = str(caught.value)
    assert "\n" not in text and "expected" in text or "cannot be" in text, text
    assert "frame #" not in text and "Exception raised" not in text
