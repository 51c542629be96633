"""multihead.torch.MultiheadAttention takes the masks that torch.nn.MultiheadAttention takes, and refuses the others."""
import itertools

import pytest

torch = pytest.importorskip("torch")

import multihead.torch as mt

B, H, L, S, E = 2, 4, 3, 5, 32
SIZES = (B, L, S, H, B * H)
SHAPES = [shape for axes in (1, 2, 3) for shape in itertools.product(SIZES, repeat=axes)]
INTEGERS = [torch.int64, torch.int32, torch.uint8]


def layers(batch_first):
    torch.manual_seed(3)
    theirs = torch.nn.MultiheadAttention(E, H, batch_first=batch_first)
    ours = mt.MultiheadAttention(E, H, batch_first=batch_first)
    ours.load_state_dict(theirs.state_dict())
    return theirs, ours


def inputs(batched, batch_first):
    if not batched:
        return torch.randn(L, E), *[torch.randn(S, E)] * 2
    order = (lambda T: (B, T, E)) if batch_first else (lambda T: (T, B, E))
    return torch.randn(order(L)), *[torch.randn(order(S))] * 2


def outcome(layer, x, masks):
    """What comes out, or None where it is refused."""
    try:
        return layer(*x, **masks)[0]
    except (AssertionError, RuntimeError, ValueError):
        return None


def same(theirs, ours, x, masks, what):
    """One sentence where PyTorch refuses, the same numbers where it does not."""
    want = outcome(theirs, x, masks)
    if want is None:
        with pytest.raises(ValueError, match="MultiheadAttention: .*expected"):
            ours(*x, **masks)
            pytest.fail(f"{what}: taken, and PyTorch refuses it")
    else:
        assert torch.allclose(ours(*x, **masks)[0], want, atol=1e-5), what
    return want is not None


@pytest.mark.filterwarnings("ignore:Support for mismatched")
@pytest.mark.parametrize("batched, batch_first", [(True, True), (True, False), (False, True), (False, False)])
@pytest.mark.parametrize("name", ["attn_mask", "key_padding_mask"])
def test_shapes(name, batched, batch_first):
    theirs, ours = layers(batch_first)
    x = inputs(batched, batch_first)
    good = [s for s in SHAPES if same(theirs, ours, x, {name: torch.zeros(s, dtype=torch.bool)}, s)]
    expected = {"attn_mask": [(L, S), (B * H if batched else H, L, S)], "key_padding_mask": [(B, S) if batched else (S,)]}
    assert good == expected[name]


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name, shape", [("attn_mask", (L, S)), ("attn_mask", (B * H, L, S)), ("key_padding_mask", (B, S))])
def test_integers_are_refused_as_pytorch_does(name, shape, dtype):
    theirs, ours = layers(True)
    masks = {name: torch.ones(shape, dtype=dtype)}
    assert not same(theirs, ours, inputs(True, True), masks, dtype)
    with pytest.raises(ValueError, match=f"{name} holds {dtype}; expected bool, where True drops, or floats"):
        ours(*inputs(True, True), **masks)


SHAPES_OF_INPUTS = {
    "another batch of keys": [(B, L, E), (1, S, E), (1, S, E)],
    "fewer values than keys": [(B, L, E), (B, S, E), (B, L, E)],
    "a narrow query": [(B, L, E - 4), (B, S, E), (B, S, E)],
    "narrow keys": [(B, L, E), (B, S, E - 4), (B, S, E)],
    "keys without a batch": [(B, L, E), (S, E), (S, E)],
    "a query without a batch": [(L, E), (B, S, E), (B, S, E)],
    "one axis": [(E,)] * 3,
    "four axes": [(B, 1, L, E)] * 3,
}


@pytest.mark.parametrize("name", SHAPES_OF_INPUTS)
def test_inputs_that_pytorch_refuses(name):
    theirs, ours = layers(True)
    x = [torch.randn(shape) for shape in SHAPES_OF_INPUTS[name]]
    assert outcome(theirs, x, {}) is None
    with pytest.raises(ValueError, match="query is"):
        ours(*x)
