"""Threads and forks beside PyTorch: each in a process of its own."""
import subprocess
import sys
import textwrap

import pytest

torch = pytest.importorskip("torch")


def run(code):
    """What a fresh Python prints; it has time enough for a busy machine."""
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


THREADS = """
    import os, threading
    import numpy as np, torch, multihead, multihead.torch
    multihead.set_threads(3)
    torch.set_num_threads({asked})
    q = np.random.default_rng(1).standard_normal((4, 8, 300, 64), dtype=np.float32)
    def call():
        before = len(os.listdir("/proc/self/task"))
        multihead.attention(q, q, q)
        print(len(os.listdir("/proc/self/task")) - before)
    call()
"""


@pytest.mark.parametrize("asked", [1, 2, 3, 5])
def test_set_num_threads_is_obeyed(asked):
    """OpenMP starts as many threads as it is asked for and keeps them: the process shows how many."""
    assert run(THREADS.format(asked=asked)) == [str(min(asked, 3) - 1)]


@pytest.mark.parametrize("asked", [1, 2])
def test_set_num_threads_is_obeyed_by_other_threads(asked):
    code = THREADS.format(asked=asked).replace("    call()\n", "    other = threading.Thread(target=call)\n    other.start()\n    other.join()\n")
    assert run(code) == [str(asked - 1)]


FORK = """
    import os, signal, threading
    import numpy as np, torch, multihead, multihead.torch
    multihead.set_threads(2)
    torch.set_num_threads(2)
    {before}
    stop, others = threading.Event(), []
    q = np.random.default_rng(1).standard_normal((2, 8, 300, 64), dtype=np.float32)
    want = multihead.attention(q, q, q)
    {also}
    child = os.fork()
    if child == 0:
        signal.alarm(200)
        good = np.array_equal(multihead.attention(q, q, q), want)
        x = torch.randn(600, 600)
        good = good and torch.isfinite(x @ x).all() and np.array_equal(multihead.attention(q, q, q), want)
        os._exit(0 if good else 1)
    print(os.waitpid(child, 0)[1])
    print(np.array_equal(multihead.attention(q, q, q), want))
    print(bool(torch.isfinite(torch.randn(600, 600) @ torch.randn(600, 600)).all()))
    stop.set()
    for each in others: each.join()
"""
BUSY = """
    def work():
        while not stop.is_set(): multihead.attention(q, q, q)
    others += [threading.Thread(target=work) for _ in range(2)]
    for each in others: each.start()
"""
SCENES = {
    "after our calls": ("", ""),
    "after calls of both": ("", "torch.randn(600, 600) @ torch.randn(600, 600)"),
    "on our own threads": ("multihead.torch.share_threads(False)", ""),
    "while other threads call": ("", BUSY.strip()),
    "while other threads call, on our own threads": ("multihead.torch.share_threads(False)", BUSY.strip()),
}


@pytest.mark.parametrize("name", SCENES)
def test_a_child_of_a_process_with_threads_does_not_hang(name):
    """Nor does PyTorch in it: OpenMP would wait for threads that a child does not have."""
    before, also = SCENES[name]
    assert run(FORK.format(before=before, also=also)) == ["0", "True", "True"]
