"""KVCache: appended, paged, int8."""
import numpy as np
import pytest
import reference

import multihead


@pytest.mark.parametrize("page", [0, 16])
@pytest.mark.parametrize("dtype,limit", [("float32", 1e-5), ("float16", 2e-3), ("bfloat16", 2e-2), ("int8", 2e-2)])
def test_a_growing_cache_equals_one_call(randn, dtype, limit, page):
    k, v = randn(2, 2, 37, 32), randn(2, 2, 37, 48)
    cache = multihead.KVCache(2, 2, 32, 48, capacity=128, dtype=dtype, page=page)
    for begin, end in [(0, 20), (20, 21), (21, 37)]:
        cache.append(k[:, :, begin:end], v[:, :, begin:end])
    assert cache.lengths == [37, 37] and cache.nbytes > 0
    q = randn(2, 8, 3, 32)
    o, lse = multihead.attention(q, cache, mask=multihead.causal(), return_lse=True)
    want, want_lse, _ = reference.attention(q, k, v, keep=np.arange(37) <= reference.positions(3, 37)[:, None])
    assert np.abs(o - want).max() < limit * 4 and np.abs(lse - want_lse).max() < limit * 4
    assert (cache.block_table is None) == (page == 0)


def test_sequences_of_their_own_length(randn):
    cache = multihead.KVCache(3, 1, 8, capacity=64, page=4)
    k, v = randn(2, 3, 1, 10, 8)
    cache.append(k[:2], v[:2], [2, 0])
    cache.append(k[2:, :, :4], v[2:, :, :4], sequences=[1])
    assert cache.lengths == [10, 4, 10]
    q = randn(3, 1, 1, 8)
    o = multihead.attention(q, cache)
    for b, row, n in [(0, 1, 10), (1, 2, 4), (2, 0, 10)]:
        reference.close(o[b:b + 1], reference.attention(q[b:b + 1], k[row:row + 1, :, :n], v[row:row + 1, :, :n])[0])
    cache.truncate(2, 3)
    cache.choose([2, 0, 0, 1])
    assert cache.lengths == [3, 10, 10, 4]
    cache.copy(3, 0)
    assert cache.lengths == [4, 10, 10, 4]
    assert "batch=4" in repr(cache) and cache.block_table.shape[0] == 4


def test_what_does_not_fit_is_refused_and_nothing_changes(randn):
    cache = multihead.KVCache(1, 2, 8, capacity=16)
    cache.append(randn(1, 2, 10, 8), randn(1, 2, 10, 8))
    with pytest.raises(ValueError, match="16"):
        cache.append(randn(1, 2, 7, 8), randn(1, 2, 7, 8))
    with pytest.raises(ValueError, match=r"\[1, 3, 1, 8\]"):
        cache.append(randn(1, 3, 1, 8), randn(1, 3, 1, 8))
    assert cache.lengths == [10]
    with pytest.raises(ValueError, match="int4"):
        multihead.KVCache(1, 1, 8, capacity=8, dtype="int4")
    with pytest.raises(ValueError):
        multihead.attention(randn(1, 2, 1, 8), cache, dropout=0.5, seed=1)
