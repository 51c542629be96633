#!/usr/bin/env python3
"""Times our attention beside PyTorch's cuDNN and FlashAttention on one GPU and records the ratios.

usage: table.py LIBRARY RESULT.json [--only forward|backward|decode|window|options] [--d D] [--peers cudnn,flash] [--rounds N]

Calls of all sides are interleaved in CUDA graphs, so that they meet the same clocks; the time of a side is its median.
Ratio: the peer's time over ours. FLOPs: forward 4·B·H·S²·D (half if causal), backward 2.5 × that.
"""
import argparse
import ctypes
import json
import time

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

BACKENDS = {"cudnn": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION}
POINTERS = ("q", "k", "v", "o", "lse", "d_o", "dq", "dk", "dv", "workspace", "stream", "scale")
NUMBERS = ("B", "H", "Hkv", "Tq", "Tk", "D", "type", "causal", "behind", "generic",
           "forward_shape", "dq_shape", "dkv_shape")


class Plain(ctypes.Structure):
    _fields_ = ([(name, ctypes.c_void_p) for name in POINTERS] + [(name, ctypes.c_int) for name in NUMBERS] +
                [("bias", ctypes.c_void_p), ("slopes", ctypes.c_void_p), ("cap", ctypes.c_float), ("drop", ctypes.c_float)])


class Ours:
    def __init__(self, library, q, k, v, d_o=None, causal=False, behind=-1):
        self.library, (B, H, Tq, D) = library, q.shape
        self.tensors = {"q": q, "k": k, "v": v, "o": torch.full_like(q, float("nan")), "d_o": d_o if d_o is not None else q,
                        "lse": torch.empty(B, H, Tq, device="cuda"), "scale": torch.full((H,), D ** -0.5, device="cuda")}
        if d_o is not None:
            for name, like in (("dq", q), ("dk", k), ("dv", v)):
                self.tensors[name] = torch.full_like(like, float("nan"))
        self.call = Plain(B=B, H=H, Hkv=k.shape[1], Tq=Tq, Tk=k.shape[2], D=D, type={torch.bfloat16: 1, torch.float16: 2, torch.float32: 0}[q.dtype],
                          causal=int(causal), behind=behind, forward_shape=-1, dq_shape=-1, dkv_shape=-1)
        for name, tensor in self.tensors.items():
            setattr(self.call, name, tensor.data_ptr())
        library.mh_plain_workspace.restype = ctypes.c_longlong
        self.tensors["workspace"] = torch.empty(library.mh_plain_workspace(ctypes.byref(self.call)), dtype=torch.uint8, device="cuda")
        self.call.workspace = self.tensors["workspace"].data_ptr()

    def run(self, name):
        self.call.stream = torch.cuda.current_stream().cuda_stream
        error = getattr(self.library, name)(ctypes.byref(self.call))
        if error:
            raise RuntimeError(f"{name}: CUDA error {error}")

    def forward(self):
        self.run("mh_plain_forward")

    def backward(self):
        self.run("mh_plain_backward")


def graph_of(function):
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(2):
            function()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        function()
    return graph.replay


def race(functions, rounds, calls=4):
    """The median time of each, in seconds."""
    graphs = [graph_of(f) for f in functions]
    times = [[] for _ in functions]
    for _ in range(rounds):
        for graph, mine in zip(graphs, times):
            graph()
            events = [(torch.cuda.Event(True), torch.cuda.Event(True)) for _ in range(calls)]
            for start, end in events:
                start.record()
                graph()
                end.record()
            torch.cuda.synchronize()
            mine += [start.elapsed_time(end) * 1e-3 for start, end in events]
    return [sorted(t)[len(t) // 2] for t in times]


def difference(a, b):
    return ((a.float() - b.float()).norm() / b.float().norm()).item()


def peer_calls(peer, q, k, v, d_o, causal):
    """(forward, backward, output, gradients) of a back end of PyTorch."""
    aten = torch.ops.aten
    if peer == "cudnn":
        forward = lambda: aten._scaled_dot_product_cudnn_attention(q, k, v, None, True, 0.0, causal, False)
        r = forward()
        backward = lambda: aten._scaled_dot_product_cudnn_attention_backward(d_o, q, k, v, r[0], r[1], r[6], r[7], None, None, None, q.shape[2], k.shape[2], 0.0, causal)
    else:
        forward = lambda: aten._scaled_dot_product_flash_attention(q, k, v, 0.0, causal, False)
        r = forward()
        backward = lambda: aten._scaled_dot_product_flash_attention_backward(d_o, q, k, v, r[0], r[1], r[2], r[3], r[4], r[5], 0.0, causal, r[6], r[7])
    return forward, backward, r, backward()


def cell(args, library, D, causal, S, passes, rows):
    B, H = 16384 // S, 2048 // D
    q, k, v, d_o = (torch.randn(B, H, S, D, device="cuda", dtype=torch.bfloat16) for _ in range(4))
    ours = Ours(library, q, k, v, d_o, causal)
    ours.forward()
    flops = 4 * B * H * S * S * D * (0.5 if causal else 1)
    for peer in args.peers:
        forward, backward, result, gradients = peer_calls(peer, q, k, v, d_o, causal)
        ours.backward()
        torch.cuda.synchronize()
        apart = [difference(ours.tensors["o"], result[0])] + [difference(ours.tensors[n], g) for n, g in zip(("dq", "dk", "dv"), gradients)]
        for name, theirs, mine, times in (("forward", forward, ours.forward, 1), ("backward", backward, ours.backward, 2.5)):
            if name not in passes:
                continue
            t = race([theirs, mine], args.rounds)
            rows.append({"pass": name, "D": D, "mask": "causal" if causal else "full", "S": S, "peer": peer, "ratio": round(t[0] / t[1], 4),
                         "tflops": round(times * flops / t[1] / 1e12, 1), "peer_tflops": round(times * flops / t[0] / 1e12, 1),
                         "us": round(t[1] * 1e6, 2), "differences": [float(f"{x:.2e}") for x in apart]})
            print(json.dumps(rows[-1]), flush=True)


def decode(args, library, rows):
    for B, S in ((1, 8192), (16, 4096), (64, 4096), (1, 131072)):
        q = torch.randn(B, 32, 1, 128, device="cuda", dtype=torch.bfloat16)
        k, v = (torch.randn(B, 8, S, 128, device="cuda", dtype=torch.bfloat16) for _ in range(2))
        ours = Ours(library, q, k, v)

        def peer_of(backend):
            def call():
                with sdpa_kernel(backend):
                    return torch.nn.functional.scaled_dot_product_attention(q, k, v, enable_gqa=True)
            return call

        ours.forward()
        for peer in args.peers:
            theirs = peer_of(BACKENDS[peer])
            apart = difference(ours.tensors["o"], theirs())
            t = race([theirs, ours.forward], args.rounds, 20)
            rows.append({"pass": "decode", "D": 128, "mask": "full", "S": S, "B": B, "peer": peer, "ratio": round(t[0] / t[1], 4),
                         "gbs": round(4 * k.numel() / t[1] / 1e9), "peer_gbs": round(4 * k.numel() / t[0] / 1e9), "us": round(t[1] * 1e6, 2),
                         "differences": [float(f"{apart:.2e}")]})
            print(json.dumps(rows[-1]), flush=True)


def window(args, library, rows):
    """A window of 1,024 keys beside the causal call: in proportion to the tiles it keeps."""
    for D in args.d:
        for S in (4096, 16384):
            q, k, v, d_o = (torch.randn(16384 // S, 2048 // D, S, D, device="cuda", dtype=torch.bfloat16) for _ in range(4))
            whole, part = Ours(library, q, k, v, d_o, True), Ours(library, q, k, v, d_o, True, 1023)
            whole.forward(), part.forward()
            t = race([whole.forward, part.forward, whole.backward, part.backward], args.rounds)
            share = (1024 * S - 1024 * 1023 / 2) / (S * (S + 1) / 2)
            for n, name in enumerate(("forward", "backward")):
                rows.append({"pass": name, "D": D, "mask": "window 1024", "S": S, "peer": "ours, causal", "ratio": round(t[2 * n] / t[2 * n + 1], 4),
                             "kept_share": round(share, 4)})
                print(json.dumps(rows[-1]), flush=True)


def options(args, library, rows):
    """Forward calls whose options change scores pair by pair, beside the plain call; and wide heads, beside PyTorch's."""
    S = 4096
    for D in args.d:
        q, k, v = (torch.randn(16384 // S, 2048 // D, S, D, device="cuda", dtype=torch.bfloat16) for _ in range(3))
        bias, slopes = torch.randn(S, S, device="cuda"), torch.rand(2048 // D, device="cuda")
        plain = Ours(library, q, k, v)
        for name, given in (("bias", {"bias": bias.data_ptr()}), ("alibi", {"slopes": slopes.data_ptr()}), ("soft-cap", {"cap": 30.0}), ("dropout", {"drop": 0.1})):
            own = Ours(library, q, k, v)
            for field, value in given.items():
                setattr(own.call, field, value)
            own.forward()
            t = race([plain.forward, own.forward], args.rounds)
            rows.append({"pass": "forward", "D": D, "mask": name, "S": S, "peer": "ours, plain", "ratio": round(t[0] / t[1], 4), "us": round(t[1] * 1e6, 2)})
            print(json.dumps(rows[-1]), flush=True)
    for D in (192, 256):
        q, k, v = (torch.randn(4, 8, S, D, device="cuda", dtype=torch.bfloat16) for _ in range(3))
        own, theirs = Ours(library, q, k, v), lambda: torch.ops.aten._scaled_dot_product_flash_attention(q, k, v, 0.0, False, False)
        own.forward()
        t = race([theirs, own.forward], args.rounds)
        rows.append({"pass": "forward", "D": D, "mask": "full", "S": S, "peer": "flash", "ratio": round(t[0] / t[1], 4), "us": round(t[1] * 1e6, 2),
                     "tflops": round(4 * 32 * S * S * D / t[1] / 1e12, 1), "differences": [float(f"{difference(own.tensors['o'], theirs()[0]):.2e}")]})
        print(json.dumps(rows[-1]), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("result")
    parser.add_argument("--only", choices=("forward", "backward", "decode", "window", "options"))
    parser.add_argument("--d", type=int, action="append")
    parser.add_argument("--peers", default="cudnn", type=lambda text: text.split(","))
    parser.add_argument("--rounds", default=6, type=int)
    args = parser.parse_args()
    args.d = args.d or [128, 64]
    library = ctypes.CDLL(args.library)
    rows = []
    machine = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "cudnn": torch.backends.cudnn.version(), "date": time.strftime("%Y-%m-%d")}
    warm = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    for _ in range(100):
        warm @ warm
    try:
        passes = [args.only] if args.only in ("forward", "backward") else ["forward", "backward"]
        if args.only in (None, "forward", "backward"):
            for D in args.d:
                for causal in (False, True):
                    for S in (512, 1024, 2048, 4096, 8192, 16384):
                        cell(args, library, D, causal, S, passes, rows)
        if args.only in (None, "decode"):
            decode(args, library, rows)
        if args.only in (None, "window"):
            window(args, library, rows)
        if args.only in (None, "options"):
            options(args, library, rows)
    finally:
        with open(args.result, "w") as file:
            lines = ",\n".join(json.dumps(row) for row in rows)
            file.write(f'{{\n"machine": {json.dumps(machine)},\n"rows": [\n{lines}\n]\n}}\n')
        for name in ("forward", "backward", "decode"):
            ratios = [r["ratio"] for r in rows if r["pass"] == name and r["peer"] == "cudnn"]
            if ratios:
                mean = torch.tensor(ratios).log().mean().exp().item()
                print(f"{name}: ratio to cuDNN {min(ratios):.3f} to {max(ratios):.3f}, geometric mean {mean:.3f}, {len(ratios)} cells")


if __name__ == "__main__":
    main()
