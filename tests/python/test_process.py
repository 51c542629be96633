"""The package inside a process: several threads, the GIL, forks, memory over many calls."""
import concurrent.futures
import resource
import sys
import threading
import time

import numpy as np

import multihead


def test_eight_threads_at_once_give_the_same_bits(randn):
    inputs = [randn(3, 1, 2, 64 + 16 * n, 32) for n in range(8)]
    call = lambda x: multihead.attention(*x, mask=multihead.causal())
    alone = [call(x) for x in inputs]

    def often(n):
        return all(np.array_equal(call(inputs[n]), alone[n]) for _ in range(100))

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert all(pool.map(often, range(8)))


def test_threads_may_share_a_cache(randn):
    cache = multihead.KVCache(1, 1, 16, capacity=100_000, page=16)
    k = randn(1, 1, 1, 16)
    cache.append(k, k)
    done = threading.Event()

    def read():
        while not done.is_set():
            o = multihead.attention(k, cache)
            assert np.allclose(o, k, atol=1e-6)  # every value is the same one

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        readers = [pool.submit(read) for _ in range(3)]
        for _ in range(2000):
            cache.append(k, k)
        done.set()
        for each in readers:
            each.result()
    assert cache.lengths == [2001]


def test_the_gil_is_released(randn):
    """Another thread runs Python while a call computes on one core."""
    q, k, v = randn(3, 1, 8, 2048, 64)
    multihead.set_threads(1)
    multihead.attention(q, k, v)
    moments = []
    stop = threading.Event()

    def count():
        while not stop.is_set():
            moments.append(time.perf_counter())
            time.sleep(0.001)

    other = threading.Thread(target=count)
    other.start()
    begin = time.perf_counter()
    multihead.attention(q, k, v)
    end = time.perf_counter()
    stop.set()
    other.join()
    inside = [m for m in moments if begin + 0.1 * (end - begin) < m < end - 0.1 * (end - begin)]
    assert inside, f"no other thread ran during a call of {end - begin:.3f} s"


def test_a_forked_child_computes_too(randn, in_forked_child):
    q = randn(1, 4, 200, 64)
    want = multihead.attention(q, q, q)
    assert np.array_equal(in_forked_child(q), want)


def test_ten_thousand_calls_leave_nothing_behind(randn):
    q, k, v = randn(3, 1, 2, 32, 32)
    keep, bias = np.tri(32, dtype=bool), randn(32, 32)
    cache = multihead.KVCache(1, 2, 32, capacity=64, page=8)

    def calls(count):
        for _ in range(count):
            o, lse = multihead.attention(q, k, v, mask=multihead.keep(keep) & multihead.causal(), bias=bias, return_lse=True)
            multihead.attention_weights(q, k, lse, rows=[0])
            cache.append(k, v)
            multihead.attention(q, cache)
            cache.truncate(0, 0)
            try:
                multihead.attention(q, k[..., :3], v)
            except ValueError:
                pass

    calls(500)
    counts = [sys.getrefcount(x) for x in (q, k, v, keep, bias)]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    calls(10_000)
    assert [sys.getrefcount(x) for x in (q, k, v, keep, bias)] == counts
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 2048, f"{grown} KiB more after 10,000 calls"
