"""Who is compared: each makes, of a cell, a call that can be timed and gives back what it computed."""
import functools
import importlib.util
import math

import torch
import torch.nn.functional as F

import multihead.torch
import onednn_peer


def _calls(function, cell):
    """The forward, or the backward alone, of a function with PyTorch's signature."""
    q, k, v, mask = cell.inputs()
    if cell.kind != "backward":
        def call():
            with torch.no_grad():
                return function(q, k, v, mask, **cell.options())
        return call
    inputs = [x.requires_grad_() for x in (q, k, v)]
    o = function(*inputs, mask, **cell.options())
    torch.manual_seed(2)
    d_o = torch.randn_like(o)
    return lambda: torch.cat([g.flatten() for g in torch.autograd.grad(o, inputs, d_o, retain_graph=True)])


def ours(cell):
    return _calls(multihead.torch.scaled_dot_product_attention, cell)


def pytorch(cell):
    return _calls(F.scaled_dot_product_attention, cell)


def pytorch_math(cell):
    def by_math(*arguments, **options):
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
            return F.scaled_dot_product_attention(*arguments, **options)
    return _calls(by_math, cell)


def flex_attention(cell):
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention as flex
    if cell.kind != "forward" or cell.mask == "padding":
        return None
    q, k, v, _ = cell.inputs()
    block = None
    if cell.mask == "causal":
        block = create_block_mask(lambda b, h, i, j: i >= j, None, None, cell.T, cell.T, device="cpu")
    compiled = torch.compile(flex)

    def call():
        with torch.no_grad():
            return compiled(q, k, v, block_mask=block)
    return call


def onnx_runtime(cell):
    import numpy as np
    import onnx
    import onnxruntime
    if cell.kind != "forward" or cell.dtype != "f32" or cell.mask == "padding":
        return None
    flat = (cell.batch, cell.T, cell.heads * cell.D)
    node = onnx.helper.make_node("MultiHeadAttention", ["q", "k", "v"], ["o"], domain="com.microsoft", num_heads=cell.heads,
                                 unidirectional=int(cell.mask == "causal"))
    value = lambda name: onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, flat)
    graph = onnx.helper.make_graph([node], "attention", [value(n) for n in "qkv"], [value("o")])
    opsets = [onnx.helper.make_opsetid("", 20), onnx.helper.make_opsetid("com.microsoft", 1)]
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=10)
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    q, k, v, _ = cell.inputs()
    given = {n: np.ascontiguousarray(x.transpose(1, 2).reshape(flat).numpy()) for n, x in zip("qkv", (q, k, v))}

    def call():
        o = torch.from_numpy(session.run(None, given)[0])
        return o.view(cell.batch, cell.T, cell.heads, cell.D).transpose(1, 2)
    return call


def jax_attention(cell):
    import jax
    if cell.kind != "forward" or cell.mask == "padding":
        return None
    q, k, v, _ = cell.inputs()
    given = [jax.numpy.from_dlpack(x.transpose(1, 2).contiguous()) for x in (q, k, v)]
    compiled = jax.jit(lambda q, k, v: jax.nn.dot_product_attention(q, k, v, is_causal=cell.mask == "causal"))
    return lambda: torch.from_dlpack(compiled(*given).block_until_ready()).transpose(1, 2)


OTHERS = {"PyTorch math": pytorch_math, "FlexAttention compiled": flex_attention,
          "ONNX Runtime MultiHeadAttention": onnx_runtime, "JAX dot_product_attention": jax_attention,
          "oneDNN matmul, softmax, matmul": onednn_peer.onednn}
HERE = {"ONNX Runtime MultiHeadAttention": lambda: importlib.util.find_spec("onnxruntime"),
        "JAX dot_product_attention": lambda: importlib.util.find_spec("jax"),
        "oneDNN matmul, softmax, matmul": onednn_peer.library}


@functools.cache
def present():
    absent = [name for name, found in HERE.items() if found() is None]
    for name in absent:
        print(f"  {name}: not installed", flush=True)
    return {name: make for name, make in OTHERS.items() if name not in absent}


def agree(cell, first, second):
    """The largest difference of two results, and what is allowed: roundings of the type, of sums as long as the row."""
    unit = 2.0**-23 if cell.dtype == "f32" else 2.0**-7
    top = max(1.0, second.abs().max().item())
    steps = 16 if cell.kind != "backward" else 4 * math.sqrt(cell.T)
    return (first.double() - second.double()).abs().max().item(), steps * unit * top
