"""Peers may use AMX where a hypervisor hides the CPUID leaves of its tiles: builds tile_leaves.c and says how to preload it."""
import ctypes
import os
import pathlib
import shutil
import subprocess

from machine import has_amx

SOURCE = pathlib.Path(__file__).resolve().with_suffix(".c")


def build(folder):
    """The library, or None where there is no C compiler."""
    compiler = os.environ.get("CC") or shutil.which("cc")
    library = pathlib.Path(folder) / "tile_leaves.so"
    command = [compiler, "-shared", "-fPIC", "-O2", "-o", str(library), str(SOURCE)]
    return library if compiler and subprocess.run(command).returncode == 0 else None


def preloaded(folder):
    """What the environment of the measuring process needs, built in the folder: {} where the leaves are not hidden."""
    if not has_amx():
        return {}
    library = build(folder)
    if library is None:
        print("attention: no C compiler for tile_leaves.c; peers that look for AMX in hidden leaves may fail", flush=True)
        return {}
    if not ctypes.CDLL(str(library)).tile_leaves_hidden():
        return {}
    return {"LD_PRELOAD": ":".join(filter(None, [str(library), os.environ.get("LD_PRELOAD")]))}
