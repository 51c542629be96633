"""Every family that transformers can build small, with attn_implementation="multihead": what eager gives, forwards and backwards."""
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import small_models
from packaging.version import Version

import multihead.huggingface

multihead.huggingface.register()
LISTED = Version("5.23.99")  # the newest transformers that small_models.NOT_BUILT was written for
MOST_NOT_BUILT = 180


def floats(out):
    """All tensors of floats that a model's output holds, in order."""
    if isinstance(out, torch.Tensor):
        return [out] if out.is_floating_point() else []
    if isinstance(out, dict):
        out = list(out.values())
    return [x for each in out for x in floats(each)] if isinstance(out, (list, tuple)) else []


def read(model, given):
    """What a model says of the tokens that are not padding: nobody reads the others."""
    torch.manual_seed(4)  # some draw noise
    padding = given.get("attention_mask")
    said = floats(model(**given))
    if padding is None:
        return said
    return [x[padding.bool()] if x.dim() > 2 and x.shape[:2] == padding.shape else x[0] for x in said if x.dim() > 1]


def distance(got, want):
    """The largest difference, as a part of the largest number."""
    return ((got - want).abs().max() / want.abs().max().clamp(min=1e-6)).item() if want.numel() else 0.0


def gradients(model, given):
    """Of all parameters, along a random direction of the first output."""
    model.zero_grad()
    said = [x for x in read(model, given) if x.requires_grad]
    if said:
        direction = torch.randn(said[0].shape, generator=torch.Generator().manual_seed(5))
        (said[0] * direction).sum().backward()
    return {name: p.grad for name, p in model.named_parameters() if p.grad is not None and p.numel()}


def built(name):
    try:
        return small_models.eager(name)
    except Exception as error:
        if Version(transformers.__version__) > LISTED:
            pytest.skip(f"{name} is newer than the list of those that cannot be built small: {error}")
        raise


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", small_models.families())
def test_equals_eager(name):
    theirs = built(name)
    given = small_models.inputs_of(theirs)
    ours = small_models.ours(name, theirs)
    with torch.no_grad():
        for change in (None, "a late token"):
            if change and "input_ids" in given:
                given["input_ids"][:, -2] = given["input_ids"][:, -2] % 50 + 10
            want, got = read(theirs, given), read(ours, given)
            assert len(got) == len(want) > 0 and all(torch.isfinite(x).all() for x in want[:1])
            for a, b in zip(got, want):
                assert a.shape == b.shape and distance(a, b) < 1e-3
    if name in small_models.NO_BACKWARD:
        return
    want, got = gradients(theirs, given), gradients(ours, given)
    largest = max((g.abs().max().item() for g in want.values()), default=0.0)
    assert want.keys() == got.keys()
    for path in want:
        assert (got[path] - want[path]).abs().max() <= 1e-2 * want[path].abs().max() + 1e-4 * largest, path


def test_the_list_of_what_cannot_be_built_does_not_grow():
    known = set(small_models.families(all_of_them=True))
    if Version(transformers.__version__) <= LISTED:
        assert set(small_models.NOT_BUILT) <= known
    assert len(small_models.NOT_BUILT) <= MOST_NOT_BUILT and all(small_models.NOT_BUILT.values())
