"""bench/compare/attention.py runs, agrees with its peer, and leaves its record; what it preloads answers for hidden leaves."""
import ctypes
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

import pytest

pytest.importorskip("torch")

SCRIPT = pathlib.Path(__file__).parents[2] / "bench/compare/attention.py"


def test_a_part_of_the_comparison(tmp_path):
    command = [sys.executable, SCRIPT, "--kinds", "decode", "dropout", "--dtypes", "f32", "--threads", "1", "--rounds", "1", "--output", tmp_path]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
    assert done.returncode == 0, done.stdout + done.stderr
    (record,) = tmp_path.glob("*.attention.json")
    rows = json.loads(record.read_text())["rows"]
    assert len(rows) == 22 and all(row["ratio"] > 0 for row in rows)
    assert record.with_suffix(".md").is_file() and record.with_suffix(".svg").read_text().startswith("<svg")


@pytest.fixture
def modules(monkeypatch):
    """The scripts of bench/compare can be imported."""
    monkeypatch.syspath_prepend(str(SCRIPT.parent))


@pytest.fixture
def tile_leaves(tmp_path, modules):
    if os.uname().machine != "x86_64" or shutil.which("cc") is None:
        pytest.skip("tile_leaves.c needs x86-64 and a C compiler")
    import tile_leaves as module
    return module.build(tmp_path)


@pytest.mark.parametrize("causal", [False, True])
def test_onednn_agrees_where_it_is_installed(modules, causal):
    import onednn_peer
    import torch
    if onednn_peer.library() is None:
        pytest.skip("oneDNN 2 is not installed (Debian: libdnnl-dev)")
    q, k, v = torch.randn(3, 2, 3, 40, 16)
    want = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
    assert torch.allclose(onednn_peer.Call(q, k, v, causal)(), want, atol=1e-5)


def test_hidden_leaves_are_filled_in_and_others_left(tile_leaves):
    fill = ctypes.CDLL(str(tile_leaves)).tile_leaves_fill

    def filled(leaf, subleaf, *said):
        registers = (ctypes.c_uint32 * 4)(*said)
        fill(leaf, subleaf, registers)
        return list(registers)

    assert filled(0, 0, 0x1C, 1, 2, 3) == [0x1E, 1, 2, 3] and filled(0, 0, 0x20, 1, 2, 3) == [0x20, 1, 2, 3]
    assert filled(0x1D, 0, 9, 9, 9, 9) == [1, 0, 0, 0]
    tile_bytes, tiles = 16 * 64, 8
    assert filled(0x1D, 1, 0, 0, 0, 0) == [tile_bytes << 16 | tiles * tile_bytes, tiles << 16 | 64, 16, 0]
    assert filled(0x1E, 0, 0, 0, 0, 0) == [0, 64 << 8 | 16, 0, 0]
    assert filled(7, 0, 1, 2, 3, 4) == [1, 2, 3, 4]


def test_a_real_fault_still_ends_the_process(tile_leaves):
    """Whether CPUID can be made to fault here or not."""
    program = f"import ctypes; ctypes.CDLL({str(tile_leaves)!r}).tile_leaves_install(); ctypes.string_at(8)"
    assert subprocess.run([sys.executable, "-c", program], timeout=60).returncode == -signal.SIGSEGV
    program = f"import ctypes; print(ctypes.CDLL({str(tile_leaves)!r}).tile_leaves_hidden())"
    run = lambda **more: subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env={**os.environ, **more})
    assert run(LD_PRELOAD=str(tile_leaves)).returncode == 0
