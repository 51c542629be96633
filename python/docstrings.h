// The docstrings of the package: shapes, what holds at the edges, and an example that the tests run.
#pragma once

namespace mh::python::docs {

inline constexpr const char* kAttention = R"(softmax(scale · q kᵀ + bias) v, without ever holding the Tq × Tk matrix.

q is (B, H, Tq, Dk), k (B, Hkv, Tk, Dk), v (B, Hkv, Tk, Dv); Hkv divides H; float32, bfloat16 or float16, all of one
type, any strides with a last one of 1. NumPy arrays, PyTorch tensors on the CPU and whatever has __dlpack__ are read
without a copy; the result, (B, H, Tq, Dv), is of the kind of q. k may be a KVCache; v is left out then.

mask        a Mask: causal(), window(), prefix(), lengths(), documents(), keep(), drop(), joined with &
bias        added to the scores: an array that broadcasts to (B, H, Tq, Tk), alibi(), t5(), or a list of them
scale       default 1/√Dk
similarity  cosine() or euclidean(), in place of the dot product
softcap     > 0: s = softcap · tanh(s / softcap), before bias and mask
dropout     probability on the weights; seed: the same seed drops the same weights, on any machine. Without one it is
            drawn from the generator of NumPy or PyTorch
sink        (H,): a logit per head that joins the softmax and has no value
return_lse  also return log Σ exp(s), float32 (B, H, Tq)
out         an array for the result
cu_seqlens_q, cu_seqlens_k
            boundaries of packed sequences: q (ΣTq, H, Dk), k (ΣTk, Hkv, Dk), v (ΣTk, Hkv, Dv), lse (H, ΣTq)
score_mix   head_mix() or key_mix()

A row that keeps no key gives 0, and lse -inf. Raises ValueError with the shapes where they do not fit.

>>> import multihead, numpy as np
>>> q = np.random.randn(2, 8, 128, 64).astype(np.float32)
>>> k, v = np.random.randn(2, 2, 2, 256, 64).astype(np.float32)
>>> multihead.attention(q, k, v, mask=multihead.causal()).shape
(2, 8, 128, 64)
)";

inline constexpr const char* kMerge = R"(Joins results over disjoint sets of keys, exactly: [(o, lse), …] -> (o, lse).

o are (B, H, Tq, Dv), lse float32 (B, H, Tq), as attention(…, return_lse=True) gives them.

>>> import multihead, numpy as np
>>> q, k, v = np.random.randn(3, 1, 2, 64, 32).astype(np.float32)
>>> left = multihead.attention(q, k[:, :, :40], v[:, :, :40], return_lse=True)
>>> right = multihead.attention(q, k[:, :, 40:], v[:, :, 40:], return_lse=True)
>>> o, lse = multihead.merge([left, right])
>>> bool(np.allclose(o, multihead.attention(q, k, v), atol=1e-6))
True
)";

inline constexpr const char* kExplain =
    R"(What attention would do with these arguments: kernel, why not a faster one, FLOPs, bytes.

>>> import multihead, numpy as np
>>> q = k = v = np.zeros((1, 8, 512, 64), np.float32)
>>> multihead.explain(q, k, v, mask=multihead.causal()).kernel
'attention_forward'
)";

inline constexpr const char* kExplanation =
    "What explain() says: kernel, rung, why (not a faster one), composed, flops, bytes, scratch. str() is readable.";

inline constexpr const char* kWeights =
    R"(Exact rows of the weights of a call, before dropout: float32 (B, heads, rows, Tk).

q, k and the options are those of the call, lse what it gave with return_lse=True. heads and rows are lists of indices;
None means all. Packed: B sequences, rows counted inside each, Tk of the longest.

>>> import multihead, numpy as np
>>> q, k, v = np.random.randn(3, 1, 2, 64, 32).astype(np.float32)
>>> o, lse = multihead.attention(q, k, v, return_lse=True)
>>> multihead.attention_weights(q, k, lse, heads=[1], rows=[0, 63]).shape
(1, 1, 2, 64)
)";

inline constexpr const char* kAttentionStatistics =
    R"(What a call looked at, streamed: the Tq × Tk matrix is never held.

q, k and the options are those of the call, lse what it gave with return_lse=True; top is 0 to 64. Gives a Statistics.

>>> import multihead, numpy as np
>>> q, k, v = np.random.randn(3, 1, 2, 64, 32).astype(np.float32)
>>> o, lse = multihead.attention(q, k, v, return_lse=True)
>>> multihead.attention_statistics(q, k, lse, top=3).top_keys.shape
(1, 2, 64, 3)
)";

inline constexpr const char* kStatistics =
    "entropy (B, H, Tq) in nats; top_keys int32 and top_weights (B, H, Tq, top), the largest first; received (B, H, "
    "Tk): "
    "the sum over queries; distance (B, H, Tq): the mean of |position - key|.";

inline constexpr const char* kMask = R"(Which pairs of query and key are kept; pieces are joined with &.

>>> import multihead
>>> multihead.causal() & multihead.window(256, 0)
multihead.causal() & window(256, 0)
)";

inline constexpr const char* kCausal = R"(Keeps keys up to the position of the query, which is offset + i.

offset is a number, or one per sequence (B,). By default the last query sits at the last key (bottom-right, as
FlashAttention). causal(0) counts from the top left, as PyTorch's is_causal=True does.

>>> import multihead
>>> multihead.causal(offset=[3, 5])
multihead.causal([2])
)";

inline constexpr const char* kPositions =
    R"(Keeps everything and says where the queries sit, for window(), alibi() and t5().

>>> import multihead
>>> multihead.positions(0) & multihead.window(4, 4)
multihead.positions(0) & window(4, 4)
)";

inline constexpr const char* kPrefix =
    R"(Causal, but the first n keys are seen by all; n is a number, or one per sequence (B,).

>>> import multihead
>>> multihead.prefix(16)
multihead.prefix(16)
)";

inline constexpr const char* kWindow = R"(Keeps position - left <= key <= position + right; -1 is unbounded.

>>> import multihead
>>> multihead.window(128, -1)
multihead.window(128, -1)
)";

inline constexpr const char* kLengths = R"(Keeps the first counts[b] keys of sequence b; integers (B,).

>>> import multihead
>>> multihead.lengths([17, 40])
multihead.lengths([2])
)";

inline constexpr const char* kDocuments = R"(Keeps pairs of one document: integers (B, Tq) and (B, Tk).

With one array, (B, Tk), a query has the document of the key at its position.

>>> import multihead
>>> multihead.documents([[0, 0, 0, 1, 1]])
multihead.documents([1, 5])
)";

inline constexpr const char* kKeep =
    R"(Keeps pairs where the array is true: bool, broadcasts to (B, H, Tq, Tk). It is read at each call, not copied.

>>> import multihead, numpy as np
>>> multihead.keep(np.tri(4, dtype=bool))
multihead.keep([4, 4])
)";

inline constexpr const char* kDrop =
    R"(Drops pairs where the array is true: bool, broadcasts to (B, H, Tq, Tk). It is read at each call, not copied.

>>> import multihead, numpy as np
>>> multihead.drop(np.zeros((2, 1, 1, 8), bool))
multihead.drop([2, 1, 1, 8])
)";

inline constexpr const char* kSimilarity = "How a query and a key are compared: cosine(), euclidean().";
inline constexpr const char* kCosine =
    R"(tau · q·k / (|q| |k|), in place of scale · q·k; tau is a number, or one per head (H,).

>>> import multihead
>>> multihead.cosine(20.0)
multihead.cosine(20)
)";
inline constexpr const char* kEuclidean = R"(-scale · |q - k|², in place of scale · q·k.

>>> import multihead
>>> multihead.euclidean()
multihead.euclidean()
)";

inline constexpr const char* kBias = "What is added to the scores by relative position: alibi(), t5().";
inline constexpr const char* kAlibi = R"(-slopes[h] · |position - key|; slopes are floats (H,).

>>> import multihead
>>> multihead.alibi([0.5, 0.25])
multihead.alibi([2])
)";
inline constexpr const char* kT5 = R"(table[bucket(key - position)][h], with T5's buckets; table is (buckets, H).

>>> import multihead, numpy as np
>>> multihead.t5(np.zeros((32, 8), np.float32), bidirectional=False)
multihead.t5([32, 8])
)";

inline constexpr const char* kScoreMix =
    "A learned mixing of the scores after the cap, before bias and mask: head_mix(), key_mix().";
inline constexpr const char* kHeadMix =
    R"(s'[h] = Σ matrix[h][g] · s[g]: talking heads; matrix is (H, H). Composed: not at fused speed.

>>> import multihead, numpy as np
>>> multihead.head_mix(np.eye(8))
multihead.head_mix([8, 8])
)";
inline constexpr const char* kKeyMix =
    R"(s'[j] = Σ s[l] · matrix[l][j]; matrix is (Tk, Tk). Refused with causal masks. Composed: not at fused speed.

>>> import multihead, numpy as np
>>> multihead.key_mix(np.eye(16))
multihead.key_mix([16, 16])
)";

inline constexpr const char* kKVCache = R"(Keys and values that grow, for decoding.

KVCache(batch, key_heads, key_width, value_width=None, *, capacity, dtype='float32', page=0): capacity is in keys, of
each sequence, or of all together where page > 0: then memory is taken in pages of that many keys as sequences grow.
dtype is float32, bfloat16, float16 or int8 (one scale per key head and token).

>>> import multihead, numpy as np
>>> cache = multihead.KVCache(1, 2, 64, capacity=1024, dtype='int8', page=16)
>>> k, v = np.random.randn(2, 1, 2, 10, 64).astype(np.float32)
>>> cache.append(k, v)
>>> q = np.random.randn(1, 8, 1, 64).astype(np.float32)
>>> multihead.attention(q, cache).shape, cache.lengths
((1, 8, 1, 64), [10])
)";
inline constexpr const char* kAppend =
    "Adds k (B, Hkv, T, Dk) and v (B, Hkv, T, Dv), of any float type, behind what is there; with sequences, row n goes "
    "to "
    "sequences[n]. Raises ValueError, and writes nothing, where there is no room.";
inline constexpr const char* kTruncate = "Forgets the keys of a sequence past length, and gives its pages back.";
inline constexpr const char* kCopy =
    "Makes sequence target a copy of source; pages are shared until one of them grows.";
inline constexpr const char* kChoose =
    "Makes the sequences those that parents names, in its order (beam search); the batch becomes as long as the list.";
inline constexpr const char* kCacheLengths = "How many keys each sequence holds.";
inline constexpr const char* kBytes = "Bytes of memory the cache holds.";
inline constexpr const char* kBlockTable =
    "Paged: int32 (B, most pages of a sequence), a copy; None where memory is not paged.";

inline constexpr const char* kSetThreads =
    R"(How many threads calls use from now on, 1 to 1024; results do not depend on it.

>>> import multihead
>>> multihead.set_threads(multihead.threads())
)";
inline constexpr const char* kThreads =
    "How many threads calls use: the CPUs this process may run on, MH_THREADS, or what set_threads() said.";
inline constexpr const char* kRung = "The instruction set in use: baseline, avx2, avx512, amx, neon.";
inline constexpr const char* kUseRung =
    "Chooses an instruction set. Raises ValueError where there is none such or the machine lacks it.";
inline constexpr const char* kMachine =
    "The CPU, how many of them may be used, the instruction set in use, and all there are: (name, usable, why not).";
inline constexpr const char* kBuildInfo = "version, compiler, nanobind, stable_abi.";

}  // namespace mh::python::docs
