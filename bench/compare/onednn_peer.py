"""oneDNN as a peer, where it is installed: onednn_attention.cpp built beside the measurement and called through ctypes."""
import ctypes
import functools
import os
import pathlib
import shutil
import subprocess
import tempfile

import torch

SOURCE = pathlib.Path(__file__).resolve().with_name("onednn_attention.cpp")


@functools.cache
def library():
    """The built library; None where there is no compiler or no oneDNN of version 2 (Debian: libdnnl-dev)."""
    compiler = os.environ.get("CXX") or shutil.which("c++")
    if compiler is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        built = os.path.join(folder, "onednn_attention.so")
        command = [compiler, "-std=c++17", "-O2", "-shared", "-fPIC", "-o", built, str(SOURCE), "-ldnnl"]
        if subprocess.run(command, capture_output=True).returncode != 0:
            return None
        made = ctypes.CDLL(built)
    made.onednn_make.restype = ctypes.c_void_p
    made.onednn_make.argtypes = [ctypes.c_int64] * 3 + [ctypes.c_int, ctypes.POINTER(ctypes.c_void_p)]
    made.onednn_run.argtypes = made.onednn_free.argtypes = [ctypes.c_void_p]
    return made


class Call:
    """One attention call over tensors it keeps; calling it runs it and gives o."""

    def __init__(self, q, k, v, causal):
        self.tensors = [x.contiguous() for x in (q, k, v)] + [torch.empty_like(q)]
        B, H, T, D = q.shape
        addresses = (ctypes.c_void_p * 4)(*(x.data_ptr() for x in self.tensors))
        self.call = library().onednn_make(B * H, T, D, causal, addresses)
        if not self.call:
            raise NotImplementedError(f"oneDNN refuses {tuple(q.shape)}")

    def __call__(self):
        library().onednn_run(self.call)
        return self.tensors[3]

    def __del__(self):
        if self.call:
            library().onednn_free(self.call)


def onednn(cell):
    if cell.kind != "forward" or cell.dtype != "f32" or cell.mask == "padding":
        return None
    q, k, v, _ = cell.inputs()
    return Call(q, k, v, cell.mask == "causal")
