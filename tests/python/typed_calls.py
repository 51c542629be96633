"""Calls as the documentation writes them, for mypy --strict and pyright: checked, never run."""

import numpy as np
import numpy.typing as npt
import torch
from typing_extensions import assert_type

import multihead as mh
import multihead.torch as mt

Floats = npt.NDArray[np.float32]


def arrays(q: Floats, k: Floats, v: Floats, ask: bool) -> None:
    assert_type(mh.attention(q, k, v), Floats)
    assert_type(mh.attention(q, k, v, return_lse=False), Floats)
    assert_type(mh.attention(q, k, v, return_lse=True), tuple[Floats, Floats])
    assert_type(mh.attention(q, k, v, return_lse=ask), Floats | tuple[Floats, Floats])
    mh.attention(q, k, v, mask=mh.causal() & mh.lengths([100, 60]), out=q)
    mh.attention(q, k, v, bias=[q, mh.alibi(np.ones(8))], scale=0.1, softcap=30, sink=np.zeros(8))
    mh.attention(q, k, v, similarity=mh.cosine(tau=20.0), dropout=0.1, seed=42, score_mix=mh.head_mix(np.eye(8)))
    mh.attention(q, k, v, cu_seqlens_q=[0, 120, 300], cu_seqlens_k=np.array([0, 120, 300]))
    o, lse = mh.attention(q, k, v, mask=mh.window(16, 16), return_lse=True)
    assert_type(mh.attention_weights(q, k, lse, heads=[0, 5], rows=[99], mask=mh.causal()), Floats)
    print(mh.attention_statistics(q, k, lse, top=4).top_keys)
    assert_type(mh.merge([(o, lse)]), tuple[Floats, Floats])
    assert_type(mh.explain(q, k, v, mask=mh.causal()).kernel, str)
    print(mh.documents([[0, 0, 1]]), mh.prefix(3), mh.positions([1, 2]), mh.keep(np.tri(4, dtype=bool)), mh.drop(q > 0))
    print(mh.t5(np.zeros((32, 8)), bidirectional=True, max_distance=128), mh.euclidean(), mh.key_mix(np.eye(4)))


def decoding(k: Floats, v: Floats) -> None:
    cache = mh.KVCache(2, 8, 64, capacity=1024, dtype="float16", page=16)
    cache.append(k, v, sequences=[0, 1])
    cache.choose([0, 0])
    cache.truncate(1, 10)
    cache.copy(0, 1)
    assert_type(cache.lengths, list[int])
    assert_type(mh.attention(k, cache), Floats)
    assert_type(mh.attention(k, cache, return_lse=True), tuple[Floats, Floats])


def models(lines: list[str]) -> None:
    model = mh.load("models/en-de", precision="bf16")
    assert_type(model.translate("a"), str)
    assert_type(model.translate(lines, 1, max_length=9, whole=True), list[str])
    assert_type(model.translate((line for line in lines), sample=True, top_k=5), list[str])
    assert_type(model.translations("a", n_best=2), mh.Translation)
    assert_type(model.translations(lines)[0].candidates[0].sentences[0].ids, list[int])
    assert_type(model.align(model.translations("a").candidates[0]), list[tuple[int, int]])
    assert_type(model.attention("a", "b").cross, Floats)
    assert_type(model.tokenizer.encode("a", "b").type_ids, list[int])
    assert_type(mh.Tokenizer.load("models/en-de").encode("a").offsets, list[tuple[int, int]])
    assert_type(mh.Tokenizer.train(["a", "b"], vocab_size=300, columns=[1]).token_to_id("a"), int | None)


def pretrained(ids: npt.NDArray[np.int64]) -> None:
    model = mh.load("bert")
    print(model.forward(ids, attention_mask=ids, output_attentions=True)["attentions"][0].shape, model("text"), model(["a", "b"]))
    print(model.forward([[1, 2], [3]], decoder_input_ids=[[0], [0]], pixel_values=None), model.forward(torch.zeros(1, 2)))
    print(model.generate("text", max_new_tokens=3), model.generate(ids, ids, num_beams=4, seed=1))
    mh.save(model, "copy")
    if isinstance(model, mh.Pretrained):
        assert_type(model.labels, list[str])


def training(event: mh.TrainEvent) -> bool:
    if isinstance(event, mh.TrainStep):
        assert_type(event.loss, float)
    done = mh.train({"data": {"train": "x"}}, set={"train.steps": 3}, resume=True, callback=training, progress=False)
    assert_type(done.best_validation, float | None)
    assert_type(mh.train("run.toml", callback=print).model, mh.Model)
    return True


def machine() -> None:
    assert_type(mh.__version__, str)
    assert_type(mh.threads(), int)
    assert_type(mh.rung(), str)
    mh.set_threads(2)
    mh.use_rung(mh.rung())
    print(mh.machine()["cpu"], mh.build_info()["version"])


def tensors(q: torch.Tensor, ask: bool) -> None:
    assert_type(mh.attention(q, q, q), torch.Tensor)
    assert_type(mt.scaled_dot_product_attention(q, q, q, is_causal=True), torch.Tensor)
    assert_type(mt.attention(q, q, q, bias=mh.alibi(q), sink=q), torch.Tensor)
    assert_type(mt.attention(q, q, q, return_lse=True), tuple[torch.Tensor, torch.Tensor])
    assert_type(mt.attention(q, q, q, return_lse=ask), torch.Tensor | tuple[torch.Tensor, torch.Tensor])
    layer = mt.MultiheadAttention(512, 8, batch_first=True)
    o, weights = layer.forward(q, q, q)
    assert_type(o, torch.Tensor)
    assert_type(weights, torch.Tensor | None)
    with mt.patch(warn=True) as patched:
        print(patched.taken, patched.left.most_common(), patched)
    assert_type(mt.share_threads(True), bool)


def registered() -> None:
    import multihead.huggingface

    multihead.huggingface.register()
    multihead.huggingface.register("other")
