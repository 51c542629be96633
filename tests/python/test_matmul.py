"""multihead._core.matmul, which multihead.torch's projections are made of."""
import numpy as np
import pytest

from multihead._core import matmul


def close(got, a, w, bias=0):
    """Sums of K products in f32, in some order."""
    want = a.astype(np.float64) @ w + bias
    limit = (a.shape[-1] + 1) * 2.0**-24 * (np.abs(a).astype(np.float64) @ np.abs(w) + np.abs(bias))
    assert got.dtype == a.dtype and got.shape == want.shape and (np.abs(got - want) <= limit).all()


@pytest.mark.parametrize("lead", [(), (1,), (70,), (2, 3, 5), (4, 0)])
@pytest.mark.parametrize("K, N", [(1, 1), (40, 33), (300, 7), (0, 3), (5, 0)])
def test_values(randn, lead, K, N):
    a, w, bias = randn(*lead, K), randn(K, N), randn(N)
    close(matmul(a, w), a, w)
    close(matmul(a, w, bias), a, w, bias)


def test_strides_are_the_callers(randn):
    a, w, bias = randn(9, 3, 80).transpose(1, 0, 2)[:, ::-1, ::2], randn(66, 40)[::2].T, randn(66)[::-2]
    got = matmul(a, w, bias)
    close(got, a, w, bias)
    assert np.array_equal(got, matmul(*map(np.ascontiguousarray, (a, w, bias))))


def test_bf16(randn):
    kind = pytest.importorskip("ml_dtypes").bfloat16
    a, w, bias = (x.astype(kind) for x in (randn(5, 40), randn(40, 33), randn(33)))
    got = matmul(a, w, bias)
    wide = matmul(*(x.astype(np.float32) for x in (a, w, bias)))
    assert got.dtype == kind and np.allclose(got.astype(np.float32), wide, rtol=2.0**-8, atol=1e-5)


REFUSED = {
    "sizes": ((np.zeros((2, 5)), np.zeros((4, 3))), ValueError, r"a is \[2, 5\], w is \[4, 3\]"),
    "one axis": ((np.zeros((2, 5)), np.zeros(5)), ValueError, "w has rank 1"),
    "scalar": ((np.zeros(()), np.zeros((5, 3))), ValueError, "a is a scalar"),
    "bias": ((np.zeros((2, 5)), np.zeros((5, 3)), np.zeros(2)), ValueError, r"expected \[3\]"),
    "no array": (([1.0], np.zeros((1, 1))), TypeError, "a is a list"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    given, kind, words = REFUSED[name]
    with pytest.raises(kind, match=words):
        matmul(*(x.astype(np.float32) if isinstance(x, np.ndarray) else x for x in given))


@pytest.mark.parametrize("dtype, name", [(np.float16, "f16"), (np.float64, "f64"), (np.int32, "i32")])
def test_other_types_are_refused(dtype, name):
    with pytest.raises(NotImplementedError, match=f"matmul: a has elements of type {name}"):
        matmul(np.zeros((2, 5), dtype), np.zeros((5, 3), dtype))
