"""What a figure was measured on: processor, threads, versions."""
import importlib.metadata
import os
import pathlib
import platform
import resource


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def versions(device="cpu"):
    found = {"processor": processor(), "cpus": len(os.sched_getaffinity(0)), "python": platform.python_version()}
    for package in ("torch", "ctranslate2", "sacrebleu", "tokenizers"):
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    if device != "cpu":
        import torch
        found["gpu"] = torch.cuda.get_device_name(device)
    return found


def peak_memory():
    """The largest resident size of this process so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
