"""Tensors of an NVIDIA GPU: the same results as on the CPU. Without a GPU: what is said about it."""

import json
import os
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

import multihead
import multihead.torch
from multihead import _core

has_gpu = torch.cuda.is_available() and not _core.gpu_facts()["missing"]
on_gpu = pytest.mark.skipif(not has_gpu, reason="no GPU that the kernels run on")


def facts_with(library):
    """What a fresh process finds where the variable names this library."""
    code = "import json; from multihead import _core; print(json.dumps(_core.gpu_facts()))"
    environment = {**os.environ, "MULTIHEAD_CUDA_LIBRARY": library}
    return json.loads(subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True).stdout)


def test_missing_library_is_named():
    assert "/nowhere/libmultihead_cuda.so is not found" in facts_with("/nowhere/libmultihead_cuda.so")["missing"]


def test_library_of_another_version_is_refused():
    assert "belongs to another version" in facts_with("libm.so.6")["missing"]


def test_tensors_of_the_cpu_are_refused():
    q, o = torch.zeros(1, 1, 2, 8), torch.zeros(1, 1, 2, 8)
    with pytest.raises(ValueError, match="q lies on the CPU; expected the GPU"):
        _core.gpu_attention(q, q, q, o, None, 0)


def close(got, want, what):
    assert got.is_cuda and not want.is_cuda, what
    got, want = got.detach().float().cpu(), want.detach().float()
    worst = (got - want).abs().max().item()
    assert torch.equal(got.isfinite(), want.isfinite()) and worst <= 0.02 * max(1.0, want.abs().max().item()), f"{what}: differs by {worst}"


def both(call, *shapes, dtype=torch.bfloat16, leaves=()):
    """One call on both devices from the same numbers; f32 on the CPU. `leaves`: further tensors of f32 that stay on the CPU."""
    torch.manual_seed(1)
    base = [torch.randn(shape).to(dtype) for shape in shapes]
    results = []
    for device in ("cpu", "cuda"):
        tensors = [x.to(device, torch.float32 if device == "cpu" else dtype).detach().clone().requires_grad_() for x in base]
        own = [x.clone().requires_grad_() for x in leaves]
        o = call(*tensors, *own)
        torch.manual_seed(2)
        o.backward(torch.randn(o.shape).to(o.device, o.dtype))
        results.append([o] + [x.grad for x in tensors] + [x.grad for x in own])
    for n, (want, got) in enumerate(zip(*results)):
        close(got.cuda(), want, f"result {n}")


GROUPED = ((2, 8, 200, 64), (2, 2, 260, 64), (2, 2, 260, 64))


@on_gpu
def test_plain_call_equals_the_cpu():
    for D in (64, 80, 128):
        shape = (2, 4, 300, D)
        both(multihead.torch.scaled_dot_product_attention, shape, shape, shape)
        both(lambda q, k, v: multihead.torch.scaled_dot_product_attention(q, k, v, is_causal=True), shape, shape, shape)


@on_gpu
def test_grouped_heads_and_types():
    for dtype in (torch.bfloat16, torch.float16, torch.float32):
        both(lambda q, k, v: multihead.torch.scaled_dot_product_attention(q, k, v, enable_gqa=True, scale=0.2), *GROUPED, dtype=dtype)


@on_gpu
def test_masks_and_biases_on_either_side():
    where = torch.rand(2, 1, 200, 260) > 0.3
    both(lambda q, k, v: multihead.torch.scaled_dot_product_attention(q, k, v, attn_mask=where.to(q.device), enable_gqa=True), *GROUPED)
    both(lambda q, k, v: multihead.torch.attention(q, k, v, mask=multihead.keep(where)), *GROUPED)
    both(lambda q, k, v, b: multihead.torch.scaled_dot_product_attention(q, k, v, attn_mask=b, enable_gqa=True), *GROUPED, (8, 200, 260))


@on_gpu
def test_options_equal_the_cpu():
    lengths, documents = multihead.lengths([260, 90]), multihead.documents(torch.arange(260).repeat(2, 1) // 50)
    for mask in (multihead.causal(), multihead.window(40, 0), lengths & multihead.causal(), multihead.prefix(30), documents):
        both(lambda q, k, v: multihead.torch.attention(q, k, v, mask=mask), *GROUPED)
    both(lambda q, k, v: multihead.torch.attention(q, k, v, softcap=5.0, mask=multihead.causal()), *GROUPED)
    both(lambda q, k, v: multihead.torch.attention(q, k, v, dropout=0.3, seed=7), *GROUPED)
    both(lambda q, k, v, s: multihead.torch.attention(q, k, v, sink=s), *GROUPED, leaves=[torch.randn(8)])
    both(lambda q, k, v, s: multihead.torch.attention(q, k, v, bias=multihead.alibi(s)), *GROUPED, leaves=[torch.rand(8)])
    both(lambda q, k, v, t: multihead.torch.attention(q, k, v, bias=multihead.t5(t)), *GROUPED, leaves=[torch.randn(32, 8)])
    both(lambda q, k, v, t: multihead.torch.attention(q, k, v, similarity=multihead.cosine(t)), *GROUPED, leaves=[torch.rand(8) + 3])


@on_gpu
def test_packed_batches_equal_the_cpu():
    bounds = [0, 70, 70, 200]
    both(lambda q, k, v: multihead.torch.attention(q, k, v, cu_seqlens_q=bounds, cu_seqlens_k=bounds, mask=multihead.causal()), (200, 4, 64), (200, 2, 64), (200, 2, 64))


@on_gpu
def test_same_dropout_from_pytorchs_seed():
    q, k, v = torch.randn(3, 1, 4, 100, 64, device="cuda", dtype=torch.bfloat16)
    runs = []
    for _ in range(2):
        torch.manual_seed(5)
        runs.append(multihead.torch.scaled_dot_product_attention(q, k, v, dropout_p=0.5))
    assert torch.equal(*runs)


@on_gpu
def test_work_runs_on_the_current_stream():
    q, k, v = torch.randn(3, 2, 8, 512, 64, device="cuda", dtype=torch.bfloat16)
    want = multihead.attention(q, k, v)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        torch.cuda._sleep(20_000_000)
        late = q * 1  # behind the sleep: a call on another stream would read what is not there yet
        got = multihead.attention(late, k, v)
    assert not side.query()
    side.synchronize()
    assert torch.equal(got, want)


@on_gpu
def test_calls_are_captured_in_cuda_graphs():
    q, k, v = torch.randn(3, 2, 8, 300, 64, device="cuda", dtype=torch.bfloat16)
    call = lambda: multihead.attention(q, k, v, mask=multihead.causal() & multihead.lengths([300, 90]))
    call()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = call()
    q.normal_()
    graph.replay()
    assert torch.equal(captured, call())


@on_gpu
def test_refusals_on_a_gpu():
    q = torch.randn(1, 2, 8, 64, device="cuda")
    with pytest.raises(NotImplementedError, match="key lies on cpu; expected cuda:0"):
        multihead.torch.scaled_dot_product_attention(q, q.cpu(), q)
    with pytest.raises(ValueError, match="requires a gradient"):
        multihead.attention(q.clone().requires_grad_(), q, q)
    with pytest.raises(ValueError, match="mask does not lie in the CPU's memory"):
        multihead.attention(q.cpu(), q.cpu(), q.cpu(), mask=multihead.keep(torch.ones(8, 8, dtype=torch.bool, device="cuda")))


@on_gpu
def test_compiled_calls_run():
    q, k, v = torch.randn(3, 1, 4, 64, 64, device="cuda", dtype=torch.bfloat16)
    call = lambda q, k, v: multihead.torch.scaled_dot_product_attention(q * 2, k, v, is_causal=True) + 1
    assert torch.allclose(torch.compile(call)(q, k, v), call(q, k, v))
