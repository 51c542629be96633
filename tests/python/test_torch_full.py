"""multihead.torch.attention: gradients of every option, beside the same formula in double precision by PyTorch's autograd."""
import doctest

import pytest

torch = pytest.importorskip("torch")

import multihead
import multihead.torch as mt
from multihead.torch import _full

B, H, L, S, D, Dv = 2, 3, 21, 33, 8, 12


def leaf(*shape, seed, low=None):
    made = torch.randn(*shape, generator=torch.Generator().manual_seed(seed))
    return (made if low is None else made.abs() + low).requires_grad_()


def distance():
    """position - j, the last query at the last key."""
    return torch.arange(L)[:, None] + (S - L) - torch.arange(S)


def buckets(count, longest):
    """T5's buckets of j - position where the future has none of its own."""
    past = distance().clamp(min=0)
    exact = count // 2
    far = exact + (torch.log(past.clamp(min=1) / exact) / torch.log(torch.tensor(longest / exact)) * (count - exact)).long()
    return torch.where(past < exact, past, far.clamp(max=count - 1))


def formula(q, k, v, *, keep=None, bias=None, slopes=None, table=None, softcap=0.0, sink=None, tau=None, mix=None, euclidean=False):
    """o and lse of docs/semantics.md, of plain operators."""
    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
    s = q @ k.mT / q.shape[-1] ** 0.5
    if tau is not None:
        s = tau[:, None, None] * torch.nn.functional.normalize(q, dim=-1) @ torch.nn.functional.normalize(k, dim=-1).mT
    if euclidean:
        s = -(q[:, :, :, None] - k[:, :, None]).square().sum(-1) / q.shape[-1] ** 0.5
    s = softcap * torch.tanh(s / softcap) if softcap else s
    s = torch.einsum("hg,bgij->bhij", mix, s) if mix is not None else s
    s = s if bias is None else s + bias
    s = s if slopes is None else s - slopes[:, None, None] * distance().abs()
    s = s if table is None else s + table[buckets(len(table), 20)].permute(2, 0, 1)
    s = s if keep is None else s.masked_fill(~keep, float("-inf"))
    if sink is not None:
        s = torch.cat([s, sink[:, None, None].expand(*s.shape[:3], 1)], -1)
    return torch.softmax(s, -1)[..., : k.shape[2]] @ v, torch.logsumexp(s, -1)


CASES = {
    "plain": lambda: ({}, {}, {}),
    "softcap": lambda: ({"softcap": 1.5}, {"softcap": 1.5}, {}),
    "sink": lambda: ({}, {}, {"sink": leaf(H, seed=4)}),
    "alibi": lambda: ({}, {}, {"slopes": leaf(H, seed=5, low=0.1)}),
    "t5": lambda: ({}, {}, {"table": leaf(8, H, seed=6)}),
    "dense bias": lambda: ({}, {}, {"bias": leaf(H, 1, S, seed=7)}),
    "dense bias and alibi": lambda: ({}, {}, {"bias": leaf(B, 1, L, S, seed=8), "slopes": leaf(H, seed=9, low=0.1)}),
    "cosine": lambda: ({}, {}, {"tau": leaf(H, seed=10, low=1.0)}),
    "euclidean": lambda: ({"similarity": multihead.euclidean()}, {"euclidean": True}, {}),
    "mixed heads": lambda: ({}, {}, {"mix": leaf(H, H, seed=11)}),
    "all at once": lambda: (
        {"softcap": 2.0, "mask": multihead.causal()},
        {"softcap": 2.0, "keep": distance() >= 0},
        {"sink": leaf(H, seed=12), "slopes": leaf(H, seed=13, low=0.1), "bias": leaf(H, L, S, seed=14)},
    ),
}


def ours(q, k, v, given, learned):
    biases = [learned[name] for name in ("bias",) if name in learned]
    biases += [multihead.alibi(learned["slopes"])] if "slopes" in learned else []
    biases += [multihead.t5(learned["table"], bidirectional=False, max_distance=20)] if "table" in learned else []
    more = {"bias": biases} if biases else {}
    more |= {"sink": learned["sink"]} if "sink" in learned else {}
    more |= {"similarity": multihead.cosine(learned["tau"])} if "tau" in learned else {}
    more |= {"score_mix": multihead.head_mix(learned["mix"])} if "mix" in learned else {}
    return mt.attention(q, k, v, return_lse=True, **given, **more)


@pytest.mark.parametrize("name", CASES)
def test_outputs_and_gradients(name):
    given, formula_given, learned = CASES[name]()
    heads = H if name == "mixed heads" else 1
    tensors = [leaf(B, H, L, D, seed=1), leaf(B, heads, S, D, seed=2), leaf(B, heads, S, Dv, seed=3), *learned.values()]
    doubles = [x.detach().double().requires_grad_() for x in tensors]
    got = ours(*tensors[:3], given, learned)
    want = formula(*doubles[:3], **formula_given, **dict(zip(learned, doubles[3:])))
    d_o, d_lse = torch.randn(B, H, L, Dv), torch.randn(B, H, L)
    (got[0] * d_o).sum().add((got[1] * d_lse).sum()).backward()
    (want[0] * d_o).sum().add((want[1] * d_lse).sum()).backward()
    for a, b in [*zip(got, want), *((x.grad, y.grad) for x, y in zip(tensors, doubles))]:
        assert a.shape == b.shape and torch.allclose(a.double(), b, atol=2e-5 * max(1.0, b.abs().max().item()), rtol=0)


@pytest.mark.filterwarnings("ignore:Input #")
def test_gradients_are_those_of_differences():
    sink, slopes = leaf(2, seed=4), leaf(2, seed=5, low=0.2)
    q, k, v = (leaf(1, 2, 5, 4, seed=n) for n in range(3))
    call = lambda q, k, v, sink, slopes: mt.attention(q, k, v, softcap=3.0, sink=sink, bias=multihead.alibi(slopes))
    assert torch.autograd.gradcheck(call, (q, k, v, sink, slopes), eps=1e-2, atol=1e-2, rtol=1e-2)


def test_packed_sequences_dropout_and_types():
    q, k, v = (leaf(30, 2, 8, seed=n) for n in range(3))
    bounds = [0, 11, 30]
    options = dict(cu_seqlens_q=bounds, cu_seqlens_k=bounds, softcap=4.0)
    mt.attention(q, k, v, **options).square().sum().backward()
    packed = q.grad.clone()
    q.grad = None
    for a, b in zip(bounds, bounds[1:]):
        alone = [x[a:b].transpose(0, 1).unsqueeze(0) for x in (q, k, v)]
        mt.attention(*alone, softcap=4.0).square().sum().backward()
    assert torch.allclose(q.grad, packed, atol=1e-5)
    torch.manual_seed(3)
    first = mt.attention(q, k, v, dropout=0.5, **options)
    assert not torch.equal(first, mt.attention(q, k, v, dropout=0.5, **options))
    torch.manual_seed(3)
    assert torch.equal(first, mt.attention(q, k, v, dropout=0.5, **options))
    half = [x.detach().bfloat16().requires_grad_() for x in (q, k, v)]
    sink = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    mt.attention(*half, sink=sink.float(), **options).sum().backward()
    assert half[0].grad.dtype == torch.bfloat16 and sink.grad.dtype == torch.float64 and sink.grad.abs().sum() > 0


def test_what_is_lost_elsewhere_is_refused_by_name():
    q = torch.randn(1, 2, 4, 8)
    learned = torch.rand(2, requires_grad=True)
    for option in ({"bias": multihead.alibi(learned)}, {"sink": learned}, {"similarity": multihead.cosine(learned)}):
        with pytest.raises(ValueError, match="multihead.torch.attention"):
            multihead.attention(q, q, q, **option)
        with torch.no_grad():
            assert multihead.attention(q, q, q, **option).shape == q.shape
    x = q.clone().requires_grad_()
    (first,) = torch.autograd.grad(mt.attention(x, x, x, softcap=2.0).sum(), x, create_graph=True)
    with pytest.raises(NotImplementedError, match="differentiable once"):
        first.sum().backward()


def test_docstrings():
    assert doctest.testmod(_full).failed == 0
