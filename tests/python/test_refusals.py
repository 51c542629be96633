"""A wrong argument gives an exception whose text names the argument and the shapes."""
import numpy as np
import pytest

import multihead

Q = np.zeros((2, 12, 128, 64), np.float32)


def attention(q=Q, k=Q, v=Q, **options):
    return multihead.attention(q, k, v, **options)


READ_ONLY = np.zeros_like(Q)
READ_ONLY.flags.writeable = False

REFUSED = {
    "heads": (dict(k=np.zeros((2, 5, 128, 64), np.float32)), ValueError, "[2, 5, 128, 64]"),
    "widths": (dict(k=Q[..., :32]), ValueError, "[2, 12, 128, 32]"),
    "batches": (dict(v=Q[:1]), ValueError, "[1, 12, 128, 64]"),
    "rank": (dict(q=Q[0]), ValueError, "q has rank 3"),
    "scalar": (dict(q=np.array(1, np.float32)), ValueError, "q has rank 0"),
    "too many axes": (dict(q=Q[None, None, None]), ValueError, "rank 7"),
    "types differ": (dict(k=Q.astype(np.float16)), ValueError, "f16"),
    "double": (dict(q=Q.astype(np.float64), k=Q.astype(np.float64), v=Q.astype(np.float64)), NotImplementedError, "f64"),
    "complex": (dict(q=Q.astype(np.complex64)), NotImplementedError, "q holds elements of the type 'Zf'"),
    "byte order": (dict(q=Q.astype(">f4")), NotImplementedError, "byte order"),
    "last stride": (dict(q=Q[..., ::2], k=Q[..., ::2]), ValueError, "last stride of 2"),
    "no array": (dict(q=[[1.0]]), TypeError, "q is a list"),
    "a mask that says not what True means": (dict(mask=np.ones((128, 128), bool)), TypeError, "True keeps"),
    "mask shape": (dict(mask=multihead.keep(np.ones((3, 128), bool))), ValueError, "[3, 128]"),
    "bias shape": (dict(bias=np.zeros((3, 128), np.float32)), ValueError, "[3, 128]"),
    "lengths past the keys": (dict(mask=multihead.lengths([129, 1])), ValueError, "129"),
    "sink": (dict(sink=np.zeros(3)), ValueError, "[3]"),
    "dropout": (dict(dropout=1.5, seed=1), ValueError, "1.5"),
    "softcap": (dict(softcap=-1.0), ValueError, "-1"),
    "scale with cosine": (dict(similarity=multihead.cosine(), scale=2.0), ValueError, "tau"),
    "similarity": (dict(similarity="cosine"), TypeError, "similarity is a str"),
    "scale": (dict(scale="x"), TypeError, "scale is a str; expected a number"),
    "a seed that is not a number": (dict(dropout=0.5, seed="x"), TypeError, "seed is 'x'; expected a whole number"),
    "a negative seed": (dict(dropout=0.5, seed=-1), ValueError, "seed is -1; expected a whole number"),
    "score mixing": (dict(score_mix=Q), TypeError, "score_mix is a ndarray; expected multihead.head_mix"),
    "one boundary": (dict(cu_seqlens_q=[0, 1]), ValueError, "cu_seqlens_k"),
    "boundaries that are no integers": (dict(cu_seqlens_q=[0.5], cu_seqlens_k=[0]), ValueError, "integers"),
    "out shape": (dict(out=np.zeros((2, 12, 128, 32), np.float32)), ValueError, "[2, 12, 128, 32]"),
    "out type": (dict(out=np.zeros_like(Q, np.float16)), ValueError, "f16"),
    "out read-only": (dict(out=READ_ONLY), ValueError, "out cannot be written"),
    "out is an input": (dict(out=Q), ValueError, "shares memory"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    arguments, kind, text = REFUSED[name]
    with pytest.raises(kind) as caught:
        attention(**arguments)
    assert text in str(caught.value) and str(caught.value).startswith("attention: ")


def test_pieces_refuse_too():
    with pytest.raises(ValueError, match="window"):
        multihead.window(-2, 0)
    with pytest.raises(ValueError, match="prefix"):
        multihead.prefix(-1)
    with pytest.raises(ValueError, match="f32"):
        multihead.keep(np.zeros(3, np.float32))
    with pytest.raises(ValueError, match="offset"):
        multihead.causal(1) & multihead.causal(2)
    with pytest.raises(TypeError, match="joined with &"):
        multihead.causal() and multihead.window(4, 0)
    with pytest.raises(ValueError, match="1024"):
        multihead.set_threads(0)
    with pytest.raises(ValueError, match="mmx"):
        multihead.use_rung("mmx")
    with pytest.raises(TypeError, match="flavour"):
        multihead.explain(Q, Q, Q, flavour=1)
    with pytest.raises(ValueError, match="merge"):
        multihead.merge([])
    with pytest.raises(ValueError, match=r"\(o, lse\)"):
        multihead.merge([(Q, Q, Q)])


def test_a_refusal_writes_nothing():
    out = np.full_like(Q, 7)
    with pytest.raises(ValueError):
        attention(v=Q[..., :32], out=out)
    assert (out == 7).all()
