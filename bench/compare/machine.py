"""What a figure was measured on: processor, threads, versions."""
import importlib.metadata
import os
import pathlib
import platform
import re
import resource


def cpu_fields():
    """The first processor's lines of /proc/cpuinfo."""
    first = pathlib.Path("/proc/cpuinfo").read_text().split("\n\n")[0]
    return {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in first.splitlines())}


def processor():
    return cpu_fields().get("model name", platform.machine())


def has_amx():
    return "amx_bf16" in cpu_fields().get("flags", "").split()


def slug():
    """The name `multihead bench --record` gives this kind of machine."""
    fields = cpu_fields()
    name = re.sub("[^a-z0-9]+", "-", processor().lower()).strip("-")
    return f"{name}-f{fields['cpu family']}-m{fields['model']}" if "cpu family" in fields else name


def versions(device="cpu"):
    found = {"processor": processor(), "cpus": len(os.sched_getaffinity(0)), "python": platform.python_version()}
    for package in ("torch", "ctranslate2", "sacrebleu", "tokenizers", "transformers", "onnxruntime", "jax"):
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
