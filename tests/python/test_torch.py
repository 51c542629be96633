"""multihead.torch.scaled_dot_product_attention beside PyTorch's own."""
import concurrent.futures
import doctest

import numpy as np
import pytest

torch = pytest.importorskip("torch")
hypothesis = pytest.importorskip("hypothesis")

import torch.nn.functional as F
from hypothesis import strategies as st
from torch.nn.attention import SDPBackend, sdpa_kernel

import multihead
import multihead.torch as mt
from multihead.torch import _functional, _op

UNIT = {torch.float32: 2.0**-23, torch.bfloat16: 2.0**-7, torch.float16: 2.0**-10}


def exact(q, k, v, *more, **options):
    """PyTorch's math path in double precision."""
    double = [x.detach().double() for x in (q, k, v)]
    more = [m.detach().double() if isinstance(m, torch.Tensor) and m.is_floating_point() else m for m in more]
    with sdpa_kernel(SDPBackend.MATH):
        return F.scaled_dot_product_attention(*double, *more, **options)


def close(got, want, dtype=torch.float32, terms=None):
    """terms: what want sums, each at its magnitude; rounding goes by it where they cancel."""
    terms = want if terms is None else terms
    limit = 8 * UNIT[dtype] * max(1.0, terms.abs().max().item() if terms.numel() else 0)
    difference = (got.double() - want.double()).abs().max().item() if want.numel() else 0
    assert got.shape == want.shape and difference <= limit, f"differs by {difference:.2e}, more than {limit:.2e}"


def gradient_terms(q, k, v, mask, d_o, **options):
    """The gradients of q, k, v and a float mask if no term cancelled another."""
    groups, options["enable_gqa"] = q.shape[1] // k.shape[1], False
    q, d_o = q.detach().double(), d_o.double().abs()
    k, v = (x.detach().double().repeat_interleave(groups, 1) for x in (k, v))
    p = exact(q, k, torch.eye(k.shape[2]).expand(*k.shape[:2], -1, -1), mask, **options)
    d_p = d_o @ v.abs().mT
    d_s = p * (d_p + (p * d_p).sum(-1, keepdim=True))
    scale = options["scale"] or q.shape[-1] ** -0.5
    shared = lambda x: x.unflatten(1, (-1, groups)).sum(2)
    terms = [scale * d_s @ k.abs(), shared(scale * d_s.mT @ q.abs()), shared(p.mT @ d_o)]
    return terms if mask is None or mask.dtype == torch.bool else [*terms, d_s.sum_to_size(mask.shape)]


@st.composite
def calls(draw):
    number = lambda low, high: draw(st.integers(low, high))
    B, Hkv, L, S, E, Ev = number(1, 3), number(1, 3), number(1, 40), number(1, 70), number(1, 40), number(1, 40)
    H = Hkv * draw(st.sampled_from([1, 1, 2, 3]))
    dtype = draw(st.sampled_from([torch.float32, torch.float32, torch.bfloat16, torch.float16]))
    torch.manual_seed(number(0, 10**6))
    strided = draw(st.booleans())

    def tensor(heads, T, D):
        return torch.randn(B, T, heads, D).transpose(1, 2).to(dtype) if strided else torch.randn(B, heads, T, D).to(dtype)

    kind = draw(st.sampled_from(["none", "causal", "bool", "float", "rows"]))
    mask = None
    shape = (draw(st.sampled_from([1, B])), draw(st.sampled_from([1, H])), draw(st.sampled_from([1, L])), S)
    if kind == "bool":
        mask = torch.rand(shape) < 0.7
    elif kind == "float":
        mask = torch.randn(shape).to(dtype)
    elif kind == "rows":  # some rows keep nothing
        mask = torch.randint(0, 2, (L, 1)).bool().expand(L, S)
    options = {"is_causal": kind == "causal", "scale": draw(st.sampled_from([None, 0.2])), "enable_gqa": H != Hkv}
    return tensor(H, L, E), tensor(Hkv, S, E), tensor(Hkv, S, Ev), mask, options


@hypothesis.settings(max_examples=250, deadline=None)
@hypothesis.given(calls())
def test_random_calls_equal_the_math_path(call):
    q, k, v, mask, options = call
    close(mt.scaled_dot_product_attention(q, k, v, mask, **options), exact(q, k, v, mask, **options), q.dtype)


@hypothesis.settings(max_examples=150, deadline=None)
@hypothesis.given(calls())
def test_random_gradients_equal_the_math_path(call):
    q, k, v, mask, options = call
    inputs = [x.detach().requires_grad_() for x in (q, k, v)]
    if mask is not None and mask.is_floating_point():
        mask = mask.requires_grad_()
        inputs.append(mask)
    doubles = [x.detach().double().requires_grad_() for x in inputs]
    o = mt.scaled_dot_product_attention(*inputs[:3], mask, **options)
    d_o = torch.randn_like(o)
    got = torch.autograd.grad(o, inputs, d_o)
    with sdpa_kernel(SDPBackend.MATH):
        double_mask = doubles[3] if len(doubles) == 4 else mask
        want = torch.autograd.grad(F.scaled_dot_product_attention(*doubles[:3], double_mask, **options), doubles, d_o.double())
    for each, right, source, terms in zip(got, want, inputs, gradient_terms(q, k, v, mask, d_o, **options)):
        assert each.dtype == source.dtype
        close(each, right, q.dtype, terms)


@pytest.mark.parametrize("shape", [(7, 8), (3, 7, 8), (2, 3, 7, 8), (2, 1, 3, 7, 8), (0, 3, 7, 8), (2, 3, 0, 8)])
def test_any_number_of_axes(shape):
    q, k, v = (torch.randn(shape) for _ in range(3))
    close(mt.scaled_dot_product_attention(q, k, v), exact(q, k, v))


def test_leading_axes_broadcast():
    q, k, v = torch.randn(2, 3, 5, 8), torch.randn(1, 3, 6, 8), torch.randn(3, 6, 8)
    close(mt.scaled_dot_product_attention(q, k, v), exact(q, k.expand(2, 3, 6, 8), v.expand(2, 3, 6, 8)))


def test_a_last_stride_that_is_not_one():
    q, k, v = (torch.randn(2, 3, 8, 12).transpose(-1, -2).requires_grad_() for _ in range(3))
    mask = torch.randn(12, 12).t().requires_grad_()
    o = mt.scaled_dot_product_attention(q, k, v, mask)
    close(o, exact(q, k, v, mask))
    o.sum().backward()
    assert mask.grad.shape == (12, 12)
    close(mt.scaled_dot_product_attention(q, k, v, torch.tensor(0.5)), exact(q, k, v, torch.tensor(0.5)))


@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("causal", [False, True])
def test_gradcheck(causal, dropout):
    """In float32, the type the kernels have: differences of a thousandth, judged to a hundredth."""
    torch.manual_seed(5)
    q, k, v = torch.randn(1, 2, 5, 4), torch.randn(1, 1, 6, 4), torch.randn(1, 1, 6, 3)
    inputs = [x.requires_grad_() for x in (q, k, v)]

    def call(*inputs):
        torch.manual_seed(9)
        return mt.scaled_dot_product_attention(*inputs, dropout_p=dropout, is_causal=causal, enable_gqa=True)

    assert torch.autograd.gradcheck(call, inputs, eps=1e-3, atol=1e-2, rtol=1e-2)


def test_a_second_derivative_is_refused_in_words():
    q, k, v = (torch.randn(1, 1, 4, 4, requires_grad=True) for _ in range(3))
    (dq,) = torch.autograd.grad(mt.scaled_dot_product_attention(q, k, v).sum(), q, create_graph=True)
    with pytest.raises(NotImplementedError, match="differentiable once"):
        dq.sum().backward()


@pytest.mark.parametrize("recording", [False, True])
@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_a_derivative_forwards_is_refused_in_words(dropout, recording):
    q, k, v = torch.randn(3, 1, 2, 5, 8)
    plain = mt.scaled_dot_product_attention(q, k, v)
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(q.clone().requires_grad_(recording), torch.randn_like(q))
        with pytest.raises(NotImplementedError, match="backwards"):
            mt.scaled_dot_product_attention(dual, k, v, dropout_p=dropout)
        assert torch.equal(mt.scaled_dot_product_attention(q, k, v), plain)


def test_dropout_obeys_the_generator_and_keeps_the_mean():
    q, k, v = torch.randn(3, 1, 4, 256, 16)
    call = lambda: mt.scaled_dot_product_attention(q, k, v, dropout_p=0.25)
    torch.manual_seed(1)
    first, second = call(), call()
    torch.manual_seed(1)
    assert torch.equal(first, call()) and not torch.equal(first, second)
    mean = torch.stack([call() for _ in range(200)]).mean(0)
    assert (mean - mt.scaled_dot_product_attention(q, k, v)).abs().mean() < 0.02


CHECKED = {
    "plain": lambda q, k, v: (q, k, v, None, None, 0.0, False, None),
    "causal, scaled, dropped": lambda q, k, v: (q, k, v, None, torch.tensor(5), 0.5, True, 0.3),
    "bool": lambda q, k, v: (q, k, v, torch.rand(2, 1, 9, 11) < 0.5, None, 0.0, False, None),
    "float with a gradient": lambda q, k, v: (q, k, v, torch.randn(4, 1, 11, requires_grad=True), None, 0.0, False, None),
}


@pytest.mark.parametrize("name", CHECKED)
def test_opcheck(name):
    tensor = lambda heads, T: torch.randn(2, heads, T, 8, requires_grad=True)
    torch.library.opcheck(_op.attention, CHECKED[name](tensor(4, 9), tensor(2, 11), tensor(2, 11)))


def test_opcheck_of_the_rest():
    q, k, v = torch.randn(3, 2, 4, 9, 8)
    o, lse = _op.attention(q, k, v, None, None, 0.0, False, None)
    torch.library.opcheck(_op.attention_weights, (q, k, lse, None, True, None))
    torch.library.opcheck(_op.mean_weights, (q, k, lse, None, False, None))
    wants = [True, False, True, False]
    torch.library.opcheck(_op.attention_backward, (q, k, v, o, lse, o, None, None, None, 0.0, False, None, wants))


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_compile_without_a_break(backend):
    def model(q, k, v, mask):
        return torch.tanh(mt.scaled_dot_product_attention(q * 2, k, v, mask, scale=0.5))

    q, k, v = (torch.randn(2, 3, 10, 8, requires_grad=True) for _ in range(3))
    mask = torch.rand(2, 1, 10, 10) < 0.8
    compiled = torch.compile(model, fullgraph=True, backend=backend)
    for length in (10, 7):
        cut = [x[:, :, :length] for x in (q, k, v)] + [mask[:, :, :length, :length]]
        got, want = compiled(*cut), model(*cut)
        close(got, want)
        for a, b in zip(torch.autograd.grad(got.sum(), (q, k, v)), torch.autograd.grad(want.sum(), (q, k, v))):
            close(a, b)


def test_vmap_and_grad_of_torch_func():
    a, b, c = torch.randn(5, 2, 4, 9, 8), torch.randn(2, 4, 9, 8), torch.randn(2, 5, 4, 9, 8)
    mask = torch.randn(5, 4, 9, 9)
    call = lambda q, k, v, m: mt.scaled_dot_product_attention(q, k, v, m)
    got = torch.func.vmap(call, in_dims=(0, None, 1, 0))(a, b, c, mask)
    want = torch.stack([call(a[n], b, c[:, n], mask[n]) for n in range(5)])
    close(got, want)
    loss = lambda q, m: call(q, b, b, m).square().sum()
    per_sample = torch.func.vmap(torch.func.grad(loss, argnums=(0, 1)))(a, mask)
    for n in range(5):
        for each, alone in zip(per_sample, torch.func.grad(loss, argnums=(0, 1))(a[n], mask[n])):
            close(each[n], alone)
    with pytest.raises(NotImplementedError, match="vmap"):
        torch.func.vmap(lambda q: mt.scaled_dot_product_attention(q, b, b, dropout_p=0.5), randomness="same")(a)
    with pytest.raises(NotImplementedError, match="once"):
        torch.func.jacrev(torch.func.grad(lambda q: call(q, b, b, None).sum()))(b)


def test_autocast_computes_in_its_type():
    q, k, v = (torch.randn(2, 3, 10, 8, requires_grad=True) for _ in range(3))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        o = mt.scaled_dot_product_attention(q, k, v, torch.randn(10, 10))
        assert o.dtype == F.scaled_dot_product_attention(q, k, v).dtype == torch.bfloat16
    o.float().sum().backward()
    assert q.grad.dtype == torch.float32


REFUSED = {
    "both masks": (dict(attn_mask=torch.ones(5, 5, dtype=torch.bool), is_causal=True), ValueError, "(2, 3, 5, 8)"),
    "mask shape": (dict(attn_mask=torch.ones(4, 5, dtype=torch.bool)), ValueError, "[4, 5]"),
    "heads": (dict(key=torch.randn(2, 2, 5, 8), value=torch.randn(2, 2, 5, 8)), ValueError, "enable_gqa=True"),
    "heads that do not divide": (dict(key=torch.randn(2, 2, 5, 8), value=torch.randn(2, 2, 5, 8), enable_gqa=True), ValueError, "divide"),
    "width": (dict(key=torch.randn(2, 3, 5, 4)), ValueError, "[2, 3, 5, 4]"),
    "one axis": (dict(query=torch.randn(8)), ValueError, "(8,)"),
    "dropout": (dict(dropout_p=2.0), ValueError, "dropout_p is 2.0"),
    "types": (dict(key=torch.randn(2, 3, 5, 8).bfloat16()), ValueError, "bf16"),
    "double": (dict(query=torch.randn(2, 3, 5, 8).double()), NotImplementedError, "float64"),
    "device": (dict(query=torch.randn(2, 3, 5, 8, device="meta")), NotImplementedError, "meta"),
    "no tensor": (dict(query=np.zeros((2, 3, 5, 8), np.float32)), TypeError, "query is a ndarray; expected a torch.Tensor"),
    "no key": (dict(key=None), TypeError, "key is a NoneType"),
    "wide heads": (dict(query=torch.randn(1, 1, 2, 600), key=torch.randn(1, 1, 2, 600)), NotImplementedError, "600"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    change, kind, text = REFUSED[name]
    arguments = {x: torch.randn(2, 3, 5, 8) for x in ("query", "key", "value")} | change
    with pytest.raises(kind) as caught:
        mt.scaled_dot_product_attention(**arguments)
    assert text in str(caught.value)


def test_no_gradient_is_lost_by_the_plain_op():
    q = torch.randn(1, 1, 4, 8, requires_grad=True)
    with pytest.raises(ValueError, match="q requires a gradient"):
        multihead.attention(q, q, q)
    with torch.no_grad():
        assert isinstance(multihead.attention(q, q, q), torch.Tensor)
    with pytest.raises(ValueError, match="bias requires a gradient"):
        multihead.attention(q.detach(), q.detach(), q.detach(), bias=torch.zeros(4, 4, requires_grad=True))


def test_tensors_in_and_out_of_the_plain_op():
    q, k, v = (torch.randn(2, 9, 3, 8).transpose(1, 2) for _ in range(3))
    for dtype in UNIT:
        o, lse = multihead.attention(q.to(dtype), k.to(dtype), v.to(dtype), mask=multihead.causal(), return_lse=True)
        assert o.dtype == dtype and lse.dtype == torch.float32
        close(o, exact(q.to(dtype), k.to(dtype), v.to(dtype), is_causal=True), dtype)
        weights = multihead.attention_weights(q.to(dtype), k.to(dtype), lse, mask=multihead.causal())
        assert isinstance(weights, torch.Tensor) and weights.shape == (2, 3, 9, 9)
    out = torch.empty(2, 3, 9, 8)
    assert multihead.attention(q, k, v, mask=multihead.lengths(torch.tensor([9, 4])), out=out) is out
    mask = torch.rand(9, 9) < 0.5
    close(multihead.attention(q, k, v, mask=multihead.keep(mask)), exact(q, k, v, mask))


def test_eight_threads_backward():
    inputs = [[torch.randn(1, 2, 32 + n, 16, requires_grad=True) for _ in range(3)] for n in range(8)]
    call = lambda x: torch.autograd.grad(mt.scaled_dot_product_attention(*x, is_causal=True).sum(), x)
    alone = [call(x) for x in inputs]
    same = lambda n: all(all(map(torch.equal, call(inputs[n]), alone[n])) for _ in range(50))
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert all(pool.map(same, range(8)))


@pytest.mark.parametrize("thing", [mt, mt.scaled_dot_product_attention, mt.MultiheadAttention, mt.patch], ids=lambda t: t.__name__)
def test_examples_run(thing):
    examples = doctest.DocTestParser().get_doctest(thing.__doc__, {}, thing.__name__, None, 0)
    assert examples.examples and doctest.DocTestRunner().run(examples).failed == 0


def test_ten_thousand_calls_with_gradients_leave_nothing_behind():
    import resource

    q, k, v = (torch.randn(1, 2, 16, 16, requires_grad=True) for _ in range(3))
    mask = torch.rand(16, 16) < 0.9

    def calls(count):
        for _ in range(count):
            torch.autograd.grad(mt.scaled_dot_product_attention(q, k, v, mask).sum(), (q, k, v))

    calls(500)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    calls(10_000)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 2048, f"{grown} KiB more after 10,000 calls"


def test_the_short_way_and_the_long_way_agree():
    """The plainest call takes a way of its own; the result is that of the others, to the bit."""
    q, k, v = torch.randn(3, 2, 4, 20, 16)
    short = mt.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.3)
    assert torch.equal(short, _functional.attend(q, k, v, None, 0.0, True, 0.3)[0])
    assert torch.equal(short, _op.attention(q, k, v, None, None, 0.0, True, 0.3)[0])
    padding = torch.arange(20) < torch.tensor([[20], [13]])
    for mask in (padding[:, None, None], torch.randn(4, 20, 20), torch.randn(20, 20).t(), torch.ones(1, 1, dtype=torch.bool)):
        short = mt.scaled_dot_product_attention(q, k, v, mask)
        assert torch.equal(short, _functional.attend(q, k, v, mask, 0.0, False, None)[0])
        leaf = q.clone().requires_grad_()
        long = mt.scaled_dot_product_attention(leaf, k, v, mask)
        assert torch.equal(long, short) and long.requires_grad


def test_shared_threads_give_the_same_bits_also_in_a_forked_child(in_forked_child):
    import numpy as np

    q = np.random.default_rng(1).standard_normal((2, 4, 300, 64), dtype=np.float32)
    assert mt.share_threads(False) is False
    want = multihead.attention(q, q, q)
    assert mt.share_threads(True) is True
    torch.randn(512, 512) @ torch.randn(512, 512)  # PyTorch's threads are there
    assert np.array_equal(multihead.attention(q, q, q), want)
    assert np.array_equal(in_forked_child(q), want)
