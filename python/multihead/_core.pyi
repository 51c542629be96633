"""Types of the compiled part."""

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias, TypedDict, TypeVar, overload

from typing_extensions import Unpack

# Any array on the CPU: numpy.ndarray, torch.Tensor, or an object with __dlpack__.
Array: TypeAlias = Any
ArrayT = TypeVar("ArrayT")
Integers: TypeAlias = Any
Floats: TypeAlias = Any

class Mask:
    def __and__(self, other: Mask) -> Mask: ...

class Similarity:
    @property
    def given(self) -> Array | None: ...

class Bias:
    @property
    def given(self) -> Array | None: ...

class ScoreMix:
    @property
    def given(self) -> Array | None: ...

class Options(TypedDict, total=False):
    mask: Mask | None
    bias: Array | Bias | Sequence[Array | Bias] | None
    scale: float | None
    similarity: Similarity | None
    softcap: float
    dropout: float
    seed: int | None
    sink: Floats | None
    cu_seqlens_q: Integers | None
    cu_seqlens_k: Integers | None
    score_mix: ScoreMix | None

class Explanation:
    @property
    def kernel(self) -> str: ...
    @property
    def rung(self) -> str: ...
    @property
    def why(self) -> str: ...
    @property
    def composed(self) -> bool: ...
    @property
    def flops(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    @property
    def scratch(self) -> int: ...

class Statistics:
    @property
    def entropy(self) -> Array: ...
    @property
    def top_keys(self) -> Array: ...
    @property
    def top_weights(self) -> Array: ...
    @property
    def received(self) -> Array: ...
    @property
    def distance(self) -> Array: ...

class KVCache:
    def __init__(
        self,
        batch: int,
        key_heads: int,
        key_width: int,
        value_width: int | None = None,
        *,
        capacity: int,
        dtype: str = "float32",
        page: int = 0,
    ) -> None: ...
    def append(self, k: Array, v: Array, sequences: Sequence[int] | None = None) -> None: ...
    def truncate(self, sequence: int, length: int) -> None: ...
    def copy(self, source: int, target: int) -> None: ...
    def choose(self, parents: Sequence[int]) -> None: ...
    @property
    def lengths(self) -> list[int]: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def block_table(self) -> Array | None: ...

__version__: str

@overload
def attention(
    q: ArrayT,
    k: Array | KVCache,
    v: Array | None = None,
    *,
    mask: Mask | None = None,
    bias: Array | Bias | Sequence[Array | Bias] | None = None,
    scale: float | None = None,
    similarity: Similarity | None = None,
    softcap: float = 0.0,
    dropout: float = 0.0,
    seed: int | None = None,
    sink: Floats | None = None,
    return_lse: Literal[False] = False,
    out: ArrayT | None = None,
    cu_seqlens_q: Integers | None = None,
    cu_seqlens_k: Integers | None = None,
    score_mix: ScoreMix | None = None,
) -> ArrayT: ...
@overload
def attention(
    q: ArrayT,
    k: Array | KVCache,
    v: Array | None = None,
    *,
    return_lse: Literal[True],
    out: ArrayT | None = None,
    **options: Unpack[Options],
) -> tuple[ArrayT, ArrayT]: ...
def merge(parts: Sequence[tuple[ArrayT, ArrayT]]) -> tuple[ArrayT, ArrayT]: ...
def explain(q: Array, k: Array | KVCache, v: Array | None = None, **options: Unpack[Options]) -> Explanation: ...
def attention_weights(
    q: ArrayT,
    k: Array,
    lse: Array,
    *,
    heads: Sequence[int] | None = None,
    rows: Sequence[int] | None = None,
    **options: Unpack[Options],
) -> ArrayT: ...
def attention_statistics(q: Array, k: Array, lse: Array, *, top: int = 1, **options: Unpack[Options]) -> Statistics: ...
def attention_gradients(
    q: ArrayT,
    k: Array,
    v: Array,
    o: Array,
    lse: Array,
    d_o: Array,
    d_lse: Array | None,
    *,
    wants: Sequence[bool],
    **options: Unpack[Options],
) -> tuple[ArrayT | None, ...]: ...
def attention_mean(
    q: ArrayT, k: Array, v: Array, *, out: ArrayT | None = None, **options: Unpack[Options]
) -> tuple[ArrayT, ArrayT, ArrayT]: ...
def plain_backward(
    q: ArrayT,
    k: Array,
    v: Array,
    mask: Array | None,
    o: Array,
    lse: Array,
    d_o: Array,
    causal: bool,
    scale: float | None,
    want_q: bool,
    want_k: bool,
    want_v: bool,
) -> tuple[ArrayT | None, ArrayT | None, ArrayT | None] | None: ...
def plain_attention(
    q: ArrayT, k: Array, v: Array, mask: Array | None, causal: bool, scale: float | None, grouped: bool, recording: bool
) -> ArrayT | None: ...
def matmul(a: ArrayT, w: Array, bias: Array | None = None) -> ArrayT: ...
def causal(offset: int | Integers | None = None) -> Mask: ...
def positions(offset: int | Integers) -> Mask: ...
def prefix(n: int | Integers) -> Mask: ...
def window(left: int, right: int) -> Mask: ...
def lengths(counts: Integers) -> Mask: ...
def documents(ids: Integers, key_ids: Integers | None = None) -> Mask: ...
def keep(where: Array) -> Mask: ...
def drop(where: Array) -> Mask: ...
def cosine(tau: float | Floats = 1.0) -> Similarity: ...
def euclidean() -> Similarity: ...
def alibi(slopes: Floats) -> Bias: ...
def t5(table: Floats, *, bidirectional: bool = True, max_distance: int = 128) -> Bias: ...
def head_mix(matrix: Floats) -> ScoreMix: ...
def key_mix(matrix: Floats) -> ScoreMix: ...
def set_threads(count: int) -> None: ...
def share_threads(on: bool) -> bool: ...
def threads() -> int: ...
def rung() -> str: ...
def use_rung(name: str) -> None: ...
def machine() -> dict[str, Any]: ...
def build_info() -> dict[str, Any]: ...
