"""What is larger than one call: a layer that gives its weights, and an encoder of BERT-base's shape."""
import copy

import torch

import multihead.torch


def _row(kind, T, threads, peer, times, **more):
    mine, theirs = times
    return {"kind": kind, "dtype": "f32", "D": 64, "T": T, "mask": "full", "batch": 1, "heads": 8, "threads": threads,
            "peer": peer, "us": 1e6 * mine, "peer_us": 1e6 * theirs, **more}


# Of results that are at most about 1: f32 sums in another order; weights that PyTorch rounds to bf16 on their way.
WEIGHTS_TYPES = {"f32": (torch.float32, 1e-4), "bf16": (torch.bfloat16, 2e-2)}


def measure_weights(options, threads, take_turns):
    """torch.nn.MultiheadAttention with need_weights, projections and all."""
    for name in options.dtypes:
        dtype, allowed = WEIGHTS_TYPES[name]
        for T in (512, 1024, 2048):
            theirs = torch.nn.MultiheadAttention(512, 8, batch_first=True, dtype=dtype)
            ours = multihead.torch.MultiheadAttention(512, 8, batch_first=True, dtype=dtype)
            ours.load_state_dict(theirs.state_dict())
            x = torch.randn(1, T, 512, dtype=dtype)
            with torch.no_grad():
                for a, b in zip(ours(x, x, x), theirs(x, x, x)):
                    if (a - b).abs().max() > allowed:
                        raise SystemExit("attention: the layers differ")
                times = take_turns([lambda: ours(x, x, x), lambda: theirs(x, x, x)], options.rounds)
            yield _row("weights", T, threads, "torch.nn.MultiheadAttention", times, dtype=name)


def measure_encoder(options, threads, take_turns):
    """transformers' BERT, 12 heads of 64, two of its layers, random weights: sdpa against ours."""
    try:
        import transformers

        import multihead.huggingface
    except ImportError:
        print("  transformers is not installed: no encoder is measured", flush=True)
        return
    multihead.huggingface.register()
    config = transformers.BertConfig(num_hidden_layers=2, max_position_embeddings=2048)
    # A model writes the implementation into the config it is given: each gets its own.
    theirs = transformers.BertModel._from_config(copy.deepcopy(config), attn_implementation="sdpa").eval()
    ours = transformers.BertModel._from_config(copy.deepcopy(config), attn_implementation="multihead").eval()
    implementations = [model.config._attn_implementation for model in (theirs, ours)]
    if implementations != ["sdpa", "multihead"]:
        raise SystemExit(f"attention: the encoders run {implementations}; expected sdpa and multihead")
    ours.load_state_dict(theirs.state_dict())
    for T in (128, 512, 2048):
        ids = torch.randint(0, config.vocab_size, (1, T))
        with torch.no_grad():
            if (ours(ids)[0] - theirs(ids)[0]).abs().max() > 1e-3:
                raise SystemExit("attention: the encoders differ")
            times = take_turns([lambda: ours(ids), lambda: theirs(ids)], options.rounds)
        yield _row("encoder", T, threads, "transformers with sdpa", times, heads=12)
