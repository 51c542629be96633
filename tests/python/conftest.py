"""What the tests of the Python package share."""
import multiprocessing

import numpy as np
import pytest

import multihead
from tiny_folders import put_folder


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.fixture
def randn(rng):
    return lambda *shape, dtype=np.float32: rng.standard_normal(shape).astype(dtype)


def _send(pipe, q):
    pipe.send(multihead.attention(q, q, q))


@pytest.fixture
def in_forked_child():
    """attention(q, q, q) as a forked child computes it."""

    def compute(q):
        mine, theirs = multiprocessing.Pipe()
        child = multiprocessing.get_context("fork").Process(target=_send, args=(theirs, q))
        child.start()
        assert mine.poll(30), "the child did not answer"
        result = mine.recv()
        child.join(30)
        assert child.exitcode == 0
        return result

    return compute


@pytest.fixture(autouse=True)
def same_settings():
    """A test that changes the threads or the rung leaves them as they were."""
    threads, rung = multihead.threads(), multihead.rung()
    yield
    multihead.set_threads(threads)
    multihead.use_rung(rung)


@pytest.fixture
def with_tokenizer(tmp_path):
    """A golden folder with a tokenizer beside it."""
    return lambda name: put_folder(tmp_path, name)
