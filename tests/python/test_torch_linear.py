"""The projections of multihead.torch beside torch.nn.functional.linear."""
import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F

from multihead import _core
from multihead.torch import _linear
from multihead.torch._linear import linear

SMALLEST = 2**20
ROUNDING = {torch.float32: 2.0**-24, torch.bfloat16: 2.0**-8}
INPUTS = {
    "rows": lambda: torch.randn(70, 40),
    "a batch": lambda: torch.randn(3, 17, 40),
    "one row": lambda: torch.randn(40),
    "transposed": lambda: torch.randn(17, 3, 40).transpose(0, 1),
    "every second": lambda: torch.randn(3, 17, 80)[..., ::2],
    "expanded": lambda: torch.randn(40).expand(3, 17, 40),
    "none": lambda: torch.randn(0, 40),
}


def close(got, product, *factors, more=0.0):
    """Products of both factors, summed in f32 in some order and rounded once to their type."""
    a, b = (x.detach().double() for x in factors)
    want, terms = product(a, b) + more, product(a.abs(), b.abs()) + abs(more)
    count = a.numel() + b.numel()  # no sum has more terms
    limit = count * 2.0**-24 * terms + ROUNDING[got.dtype] * want.abs()
    assert got.shape == want.shape and ((got.double() - want).abs() <= limit).all()


@pytest.fixture(autouse=True)
def products(monkeypatch):
    """The calls of our product, which takes small ones too."""
    monkeypatch.setitem(_linear._SMALLEST, torch.float32, 0)
    calls, product = [], _core.matmul
    monkeypatch.setattr(_core, "matmul", lambda *given: calls.append(given) or product(*given))
    return calls


@pytest.mark.parametrize("with_bias", [True, False])
@pytest.mark.parametrize("dtype", ROUNDING)
@pytest.mark.parametrize("name", INPUTS)
def test_values_and_gradients(name, dtype, with_bias, products):
    torch.manual_seed(5)
    x = INPUTS[name]().to(dtype).requires_grad_()
    weight = torch.randn(33, 40, dtype=dtype, requires_grad=True)
    bias = torch.randn(33, dtype=dtype, requires_grad=True) if with_bias else None
    y = linear(x, weight, bias)
    close(y, lambda a, b: a @ b.T, x, weight, more=bias.detach().double() if with_bias else 0.0)
    with torch.no_grad():
        assert torch.equal(linear(x, weight, bias), y)
    for dy in (torch.randn(y.shape).to(dtype), torch.ones((), dtype=dtype).expand(y.shape)):
        dx, dw, *db = torch.autograd.grad(y, [t for t in (x, weight, bias) if t is not None], dy, retain_graph=True)
        rows = lambda t: t.reshape(-1, t.shape[-1])
        close(dx, lambda a, b: a @ b, dy, weight)
        close(dw, lambda a, b: rows(a).T @ rows(b), dy, x)
        for each in db:
            close(each, lambda a, b: (rows(a) * b).sum(0), dy, torch.ones(1))
    assert len(products) == 6


@pytest.mark.parametrize("wanted", [{0}, {1}, {2}, {0, 1}, {1, 2}])
def test_only_gradients_that_are_wanted(wanted, products):
    given = [torch.randn(*shape).requires_grad_(n in wanted) for n, shape in enumerate([(2, 7, 8), (6, 8), (6,)])]
    linear(*given).square().sum().backward()
    want = [t.detach().requires_grad_(t.requires_grad) for t in given]
    F.linear(*want).square().sum().backward()
    for ours, theirs in zip(given, want):
        assert (ours.grad is None) == (theirs.grad is None)
        assert ours.grad is None or torch.allclose(ours.grad, theirs.grad, atol=1e-4)
    assert len(products) == 1 + len(wanted - {2})


def test_second_derivatives():
    given = [torch.randn(*shape, requires_grad=True) for shape in [(2, 7, 8), (6, 8), (6,)]]

    def second(call):
        first = torch.autograd.grad(call(*given).pow(3).sum(), given, create_graph=True)
        return torch.autograd.grad(sum(g.square().sum() for g in first), given)

    for ours, theirs in zip(second(linear), second(F.linear)):
        assert torch.allclose(ours, theirs, rtol=1e-4, atol=1e-3 * theirs.abs().max().item())


def test_gradients_in_batches():
    x, weight = torch.randn(7, 8, requires_grad=True), torch.randn(6, 8, requires_grad=True)
    dy = torch.randn(3, 7, 6)
    got = torch.autograd.grad(linear(x, weight), (x, weight), dy, is_grads_batched=True)
    want = torch.autograd.grad(F.linear(x, weight), (x, weight), dy, is_grads_batched=True)
    for a, b in zip(got, want):
        assert torch.allclose(a, b, atol=1e-5)


@pytest.mark.parametrize("shape", [(0, 3), (4, 0), (0, 0)])
def test_axes_without_elements(shape, products):
    given = [torch.randn(5, shape[1]), torch.randn(*shape), torch.randn(shape[0])]
    ours, theirs = ([t.clone().requires_grad_() for t in given] for _ in range(2))
    y, want = linear(*ours), F.linear(*theirs)
    assert torch.equal(y, want)
    y.sum().backward(), want.sum().backward()
    assert all(torch.equal(a.grad, b.grad) for a, b in zip(ours, theirs)) and len(products) == 3


def test_signs_that_wait_in_a_view_are_minded():
    view = lambda *shape: torch.randn(*shape, dtype=torch.complex64).conj().imag  # PyTorch negates it when it is read
    for x, weight in ((view(7, 8), torch.randn(6, 8)), (torch.randn(7, 8), view(6, 8))):
        assert x.is_neg() or weight.is_neg()
        assert torch.allclose(linear(x, weight), F.linear(x, weight), atol=1e-5)


@pytest.mark.parametrize("recording", [False, True])
def test_derivatives_forwards(recording):
    x, along, weight = torch.randn(7, 8), torch.randn(7, 8), torch.randn(6, 8, requires_grad=recording)
    with torch.autograd.forward_ad.dual_level():
        y = linear(torch.autograd.forward_ad.make_dual(x, along), weight)
        got = torch.autograd.forward_ad.unpack_dual(y).tangent
        assert got is not None and torch.allclose(got, F.linear(along, weight), atol=1e-5)


class Marked(torch.Tensor):
    """A tensor of a type of its own."""


def autocast(x, weight):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return linear(x, weight)


LEFT = {
    "f16": lambda x, w: linear(x.half(), w.half()),
    "f64": lambda x, w: linear(x.double(), w.double()),
    "autocast": autocast,
    "vmap": lambda x, w: torch.func.vmap(linear, in_dims=(0, None))(x, w),
    "grad": lambda x, w: torch.func.grad(lambda x: linear(x, w).sum())(x),
    "compiled": lambda x, w: torch.compile(linear, fullgraph=True, backend="aot_eager")(x, w),
    "subclass": lambda x, w: linear(x.as_subclass(Marked), w),
    "nested": lambda x, w: linear(torch.nested.nested_tensor([x, x[:4]]), w),
    "meta": lambda x, w: linear(x.to("meta"), w.to("meta")),
}


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("name", LEFT)
def test_left_to_pytorch(name, products):
    assert LEFT[name](torch.randn(7, 8), torch.randn(6, 8)) is not None and not products


@pytest.mark.parametrize("dtype, rows, ours", [(torch.float32, 127, 0), (torch.float32, 128, 1), (torch.bfloat16, 1, 1)])
def test_small_products_of_f32_are_left_to_pytorch(dtype, rows, ours, products, monkeypatch):
    monkeypatch.setitem(_linear._SMALLEST, torch.float32, SMALLEST)
    linear(torch.randn(rows, 64, dtype=dtype), torch.randn(128, 64, dtype=dtype))
    assert len(products) == ours


def test_what_does_not_fit_is_refused_with_the_shapes():
    with pytest.raises(ValueError, match=r"a is \[2, 5\], w is \[4, 3\]"):
        linear(torch.randn(2, 5), torch.randn(3, 4))
