"""Numbers past 32 bits are refused in a sentence: none wraps to a small one."""
import numpy as np
import pytest

import multihead

PAST = 2**32 + 3  # 3 to whoever reads 32 bits
Q = np.zeros((1, 2, 5, 8), np.float32)
PACKED = np.zeros((5, 2, 8), np.float32)


def packed(bounds, other=(0, 5)):
    return multihead.attention(PACKED, PACKED, PACKED, cu_seqlens_q=bounds, cu_seqlens_k=other)


CALLS = {
    "lengths": lambda n: multihead.lengths(n),
    "documents": lambda n: multihead.documents([[0, 0, 0, 0, *n]]),
    "documents of the keys": lambda n: multihead.documents([[0] * 5], np.array([[0, 0, 0, 0, *n]])),
    "causal": lambda n: multihead.causal(n),
    "positions": lambda n: multihead.positions(n),
    "prefix": lambda n: multihead.prefix(n),
    "cu_seqlens_q": lambda n: packed([0, *n]),
    "cu_seqlens_k": lambda n: packed([0, 5], [0, *n]),
}
NUMBERS = {
    "causal": multihead.causal,
    "positions": multihead.positions,
    "prefix": multihead.prefix,
    "window to the left": lambda n: multihead.window(n, 0),
    "window to the right": lambda n: multihead.window(0, n),
    "max_distance": lambda n: multihead.t5(np.zeros((8, 2), np.float32), max_distance=n),
}
KINDS = {
    "a list": lambda n: [n],
    "an array": lambda n: np.array([n]),
    "every second of an array": lambda n: np.array([n, 0, 0])[:2:2],
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("number", [PAST, -(2**31) - 1, 2**31, 2**62])
@pytest.mark.parametrize("name", CALLS)
def test_arrays(name, number, kind):
    with pytest.raises(ValueError, match=rf"holds {number}; expected integers from -2147483648 to 2147483647"):
        CALLS[name](KINDS[kind](number))


@pytest.mark.parametrize("name", CALLS)
def test_what_64_bits_do_not_hold_either(name):
    for number in (2**63, 2**70):
        # NumPy makes an array of Python objects of such a number, which is refused by its type.
        with pytest.raises((ValueError, NotImplementedError), match="expected .*integers"):
            CALLS[name]([number])


@pytest.mark.parametrize("number", [PAST, 2**31])
@pytest.mark.parametrize("name", NUMBERS)
def test_numbers(name, number):
    with pytest.raises(ValueError, match=f"{number}; expected"):
        NUMBERS[name](number)


@pytest.mark.parametrize("number", [PAST, 2**70])
def test_indices(number):
    """Where a list of indices is asked for, a number that fits no index is none."""
    o, lse = multihead.attention(Q, Q, Q, return_lse=True)
    cache = multihead.KVCache(2, 2, 8, capacity=16)
    for call in (
        lambda: multihead.attention_weights(Q, Q, lse, heads=[number]),
        lambda: multihead.attention_weights(Q, Q, lse, rows=[number]),
        lambda: multihead.attention_statistics(Q, Q, lse, top=number),
        lambda: cache.append(Q, Q, sequences=[number]),
        lambda: cache.choose([number]),
        lambda: cache.truncate(number, 0),
        lambda: cache.copy(0, number),
        lambda: multihead.set_threads(number),
    ):
        with pytest.raises((ValueError, TypeError)):
            call()
    assert cache.lengths == [0, 0]


def test_the_largest_that_fit_are_taken():
    most = 2**31 - 1
    mask = multihead.causal([most]) & multihead.window(most, most)
    assert np.array_equal(multihead.attention(Q, Q, Q, mask=mask), multihead.attention(Q, Q, Q))
    ids = [[most, most, -most - 1, -most - 1, 0]]
    assert multihead.attention(Q, Q, Q, mask=multihead.documents(ids)).shape == Q.shape
