"""multihead.attention on NumPy arrays, against double precision."""
import numpy as np
import pytest
import reference

import multihead

SIZES = [(1, 1, 1, 1, 1, 1, 1), (2, 4, 2, 17, 33, 16, 16), (1, 8, 1, 5, 130, 64, 64), (2, 3, 3, 64, 64, 80, 32), (1, 2, 2, 300, 7, 31, 65)]


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("B,H,Hkv,Tq,Tk,Dk,Dv", SIZES)
def test_value(randn, B, H, Hkv, Tq, Tk, Dk, Dv, dtype):
    q, k, v = randn(B, H, Tq, Dk, dtype=dtype), randn(B, Hkv, Tk, Dk, dtype=dtype), randn(B, Hkv, Tk, Dv, dtype=dtype)
    o, lse = multihead.attention(q, k, v, return_lse=True)
    want_o, want_lse, _ = reference.attention(q, k, v)
    assert isinstance(o, np.ndarray) and o.dtype == dtype and o.shape == (B, H, Tq, Dv)
    assert lse.dtype == np.float32 and lse.shape == (B, H, Tq)
    reference.close(o, want_o, dtype)
    reference.close(lse, want_lse)


def test_bfloat16_of_ml_dtypes(randn):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    q, k, v = (randn(2, 4, 40, 32).astype(ml_dtypes.bfloat16) for _ in range(3))
    o = multihead.attention(q, k, v, mask=multihead.causal())
    assert o.dtype == ml_dtypes.bfloat16
    want = reference.attention(*(x.astype(np.float32) for x in (q, k, v)), keep=np.tri(40, dtype=bool))[0]
    reference.close(o, want, ml_dtypes.bfloat16)


def test_similarities(randn):
    q, k, v = randn(2, 4, 20, 24), randn(2, 2, 30, 24), randn(2, 2, 30, 16)
    taus = np.array([1, 2, 5, 10], np.float32)
    for given, meaning in [
        ({"scale": 0.3}, {"scale": 0.3}),
        ({"similarity": multihead.cosine(7.0)}, {"similarity": "cosine", "tau": 7.0}),
        ({"similarity": multihead.cosine(taus)}, {"similarity": "cosine", "tau": taus}),
        ({"similarity": multihead.euclidean()}, {"similarity": "euclidean"}),
        ({"similarity": multihead.euclidean(), "scale": 0.05}, {"similarity": "euclidean", "scale": 0.05}),
    ]:
        reference.close(multihead.attention(q, k, v, **given), reference.attention(q, k, v, **meaning)[0])


def test_bias_cap_and_sink(randn):
    q, k, v, bias, sink = randn(2, 4, 20, 24), randn(2, 2, 30, 24), randn(2, 2, 30, 16), randn(4, 1, 30), randn(4)
    slopes = np.array([0.5, 0.25, 0.125, 1], np.float32)
    distance = np.abs(reference.positions(20, 30)[:, None] - np.arange(30))
    alibi = -slopes[:, None, None] * distance
    reference.close(multihead.attention(q, k, v, bias=bias), reference.attention(q, k, v, bias=bias)[0])
    reference.close(multihead.attention(q, k, v, bias=multihead.alibi(slopes)), reference.attention(q, k, v, bias=alibi)[0])
    both = multihead.attention(q, k, v, bias=[bias, multihead.alibi(slopes)], softcap=2.0, sink=sink)
    reference.close(both, reference.attention(q, k, v, bias=bias + alibi, softcap=2.0, sink=sink)[0])


def test_t5_buckets_are_exact_up_to_half(randn):
    q, k, v, table = randn(1, 2, 6, 8), randn(1, 2, 6, 8), randn(1, 2, 6, 8), randn(32, 2)
    away = np.arange(6) - np.arange(6)[:, None]
    bias = table[np.where(away > 0, 16 + away, -away)].transpose(2, 0, 1)
    reference.close(multihead.attention(q, k, v, bias=multihead.t5(table)), reference.attention(q, k, v, bias=bias)[0])


def test_score_mixing(randn):
    q, k, v = randn(1, 3, 9, 8), randn(1, 3, 9, 8), randn(1, 3, 9, 8)
    matrix = randn(3, 3)
    s = np.einsum("hg,bgij->bhij", matrix, reference.scores(q, k))
    p = np.exp(s) / np.exp(s).sum(-1, keepdims=True)
    reference.close(multihead.attention(q, k, v, score_mix=multihead.head_mix(matrix)), p @ v)


def test_strided_views_need_no_copy(randn):
    packed = randn(2, 50, 3, 4, 32)  # (B, T, 3, H, D), as a projection of q, k and v together leaves it
    q, k, v = (packed[:, :, n].transpose(0, 2, 1, 3) for n in range(3))
    assert not q.flags.c_contiguous
    dense = [np.ascontiguousarray(x) for x in (q, k, v)]
    assert np.array_equal(multihead.attention(q, k, v), multihead.attention(*dense))
    backwards = [x[:, :, ::-1] for x in dense]
    assert np.array_equal(multihead.attention(*backwards), multihead.attention(*map(np.ascontiguousarray, backwards)))


def test_out_is_written_and_returned(randn):
    q, k, v = randn(3, 1, 2, 16, 8)
    out = np.full((1, 2, 16, 8), np.nan, np.float32)
    assert multihead.attention(q, k, v, out=out) is out
    assert np.array_equal(out, multihead.attention(q, k, v))
    wide = np.zeros((1, 2, 16, 20), np.float32)
    multihead.attention(q, k, v, out=wide[..., 4:12])
    assert np.array_equal(wide[..., 4:12], out) and not wide[..., :4].any() and not wide[..., 12:].any()


def test_packed_sequences_equal_each_alone(randn):
    q, k, v = randn(30, 4, 16), randn(45, 2, 16), randn(45, 2, 24)
    cu_q, cu_k = [0, 10, 10, 30], np.array([0, 5, 20, 45])
    o, lse = multihead.attention(q, k, v, mask=multihead.causal(), cu_seqlens_q=cu_q, cu_seqlens_k=cu_k, return_lse=True)
    assert o.shape == (30, 4, 24) and lse.shape == (4, 30)
    for begin, end, first, last in zip(cu_q, cu_q[1:], cu_k, cu_k[1:]):
        one = [x[None].swapaxes(1, 2) for x in (q[begin:end], k[first:last], v[first:last])]
        alone, alone_lse = multihead.attention(*one, mask=multihead.causal(), return_lse=True)
        assert np.array_equal(alone[0].swapaxes(0, 1), o[begin:end])
        assert np.array_equal(alone_lse[0], lse[:, begin:end])


def test_rows_and_calls_without_keys(randn):
    q, k, v = randn(1, 2, 4, 8), randn(1, 2, 4, 8), randn(1, 2, 4, 8)
    o, lse = multihead.attention(q, k, v, mask=multihead.lengths([0]), return_lse=True)
    assert not o.any() and np.isneginf(lse).all()
    assert not multihead.attention(q, k[:, :, :0], v[:, :, :0]).any()
    assert multihead.attention(q[:, :, :0], k, v).shape == (1, 2, 0, 8)


def test_dropout_follows_its_seed_and_numpys(randn):
    q, k, v = randn(3, 1, 2, 64, 16)
    call = lambda **more: multihead.attention(q, k, v, dropout=0.25, **more)
    assert np.array_equal(call(seed=5), call(seed=5)) and not np.array_equal(call(seed=5), call(seed=6))
    np.random.seed(3)
    first, second = call(), call()
    np.random.seed(3)
    assert np.array_equal(first, call()) and not np.array_equal(first, second)
    assert not multihead.attention(q, k, v, dropout=1.0, seed=1).any()


def test_merge_joins_disjoint_keys(randn):
    q, k, v = randn(2, 4, 20, 16), randn(2, 2, 50, 16), randn(2, 2, 50, 16)
    cuts = [(0, 20), (20, 21), (21, 50)]
    parts = [multihead.attention(q, k[:, :, a:b], v[:, :, a:b], return_lse=True) for a, b in cuts]
    o, lse = multihead.merge(parts)
    want_o, want_lse, _ = reference.attention(q, k, v)
    reference.close(o, want_o)
    reference.close(lse, want_lse)


def test_weights_and_statistics(randn):
    q, k, v = randn(2, 4, 20, 16), randn(2, 2, 50, 16), randn(2, 2, 50, 16)
    options = {"mask": multihead.causal(), "softcap": 5.0}
    o, lse = multihead.attention(q, k, v, return_lse=True, **options)
    position = reference.positions(20, 50)
    keep = np.arange(50) <= position[:, None]
    p = reference.attention(q, k, v, keep=keep, softcap=5.0)[2]
    reference.close(multihead.attention_weights(q, k, lse, **options), p)
    reference.close(multihead.attention_weights(q, k, lse, heads=[3, 0], rows=[19], **options), p[:, [3, 0]][:, :, [19]])
    s = multihead.attention_statistics(q, k, lse, top=3, **options)
    reference.close(s.received, p.sum(2))
    reference.close(s.entropy, -(p * np.log(np.where(p > 0, p, 1))).sum(-1))
    reference.close(s.distance / 50, (p * np.abs(position[:, None] - np.arange(50))).sum(-1) / 50)
    assert s.top_keys.dtype == np.int32 and np.array_equal(s.top_keys[..., 0], p.argmax(-1))
    reference.close(s.top_weights, -np.sort(-p, -1)[..., :3])


def test_explain_says_what_would_run(randn):
    q, k, v = randn(3, 1, 4, 128, 64)
    said = multihead.explain(q, k, v)
    assert said.kernel == "attention_forward" and said.rung == multihead.rung() and not said.composed
    assert said.flops == 4 * 4 * 128 * 128 * 64 and said.bytes >= q.nbytes * 4 and "FLOP" in str(said)
    mixed = multihead.explain(q, k, v, score_mix=multihead.head_mix(np.eye(4)))
    assert mixed.composed and mixed.why


def test_threads_and_rungs_do_not_change_the_value(randn):
    q, k, v = randn(3, 2, 4, 200, 64)
    multihead.set_threads(1)
    one = multihead.attention(q, k, v)
    multihead.set_threads(2)
    assert multihead.threads() == 2 and np.array_equal(one, multihead.attention(q, k, v))
    want = reference.attention(q, k, v)[0]
    for name, usable, _ in multihead.machine()["rungs"]:
        if usable:
            multihead.use_rung(name)
            assert multihead.rung() == name
            reference.close(multihead.attention(q, k, v), want)
