"""Times training steps of the twin on random tokens: forward, backward, clipping, AdamW."""
import json
import statistics
import sys
import time

import torch

from machine import peak_memory, versions


def measure(twin, options, start_mib):
    """Prints a line of JSON: target tokens a second by the median of the steps, milliseconds a step, peak memory, and the
    memory in use before the model was made (start_mib).

    With --serve it says "ready" after the warm-up and then measures once for every line that comes in, so that whoever
    compares can let several programs take turns.
    """
    batch, length, steps = options.speed
    ids = torch.randint(4, twin.settings["model"]["vocabulary"], (3, batch, length)).to(options.device)
    tensors = (*ids.unbind(0), None)
    synchronize = torch.cuda.synchronize if options.device != "cpu" else lambda: None

    def timed():
        synchronize()
        began = time.perf_counter()
        twin.step([tensors], [1.0], 1e-4)
        synchronize()
        return time.perf_counter() - began

    for _ in range(5):
        timed()
    facts = {"precision": twin.precision, "compiled": options.compile, "threads": torch.get_num_threads(),
             **versions(options.device)}
    if options.serve:
        print("ready", flush=True)
    for _ in sys.stdin if options.serve else [None]:
        seconds = statistics.median(timed() for _ in range(steps))
        print(json.dumps({"tokens_per_second": round(batch * length / seconds, 1),
                          "ms_per_step": round(1000 * seconds, 2), "peak_mib": round(peak_memory()),
                          "start_mib": round(start_mib),
                          **facts}), flush=True)
