"""What the tests of the Python package share."""
import numpy as np
import pytest

import multihead


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.fixture
def randn(rng):
    return lambda *shape, dtype=np.float32: rng.standard_normal(shape).astype(dtype)


@pytest.fixture(autouse=True)
def same_settings():
    """A test that changes the threads or the rung leaves them as they were."""
    threads, rung = multihead.threads(), multihead.rung()
    yield
    multihead.set_threads(threads)
    multihead.use_rung(rung)
