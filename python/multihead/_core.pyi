"""Types of the compiled part."""

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias, TypedDict, TypeVar, overload

from typing_extensions import Never, Unpack, disjoint_base

# Any array on the CPU: numpy.ndarray, torch.Tensor, or an object with __dlpack__.
_Array: TypeAlias = Any
_ArrayT = TypeVar("_ArrayT")
_Integers: TypeAlias = Any
_Floats: TypeAlias = Any

class _Type(type): ...  # nanobind's

@disjoint_base
class Mask(metaclass=_Type):
    def __init__(self, *args: Never, **kwargs: Never) -> None: ...
    def __and__(self, other: Mask, /) -> Mask: ...
    def __bool__(self) -> Never: ...

@disjoint_base
class Similarity(metaclass=_Type):
    def __init__(self, *args: Never, **kwargs: Never) -> None: ...
    @property
    def given(self) -> _Array | None: ...

@disjoint_base
class Bias(metaclass=_Type):
    def __init__(self, *args: Never, **kwargs: Never) -> None: ...
    @property
    def given(self) -> _Array | None: ...

@disjoint_base
class ScoreMix(metaclass=_Type):
    def __init__(self, *args: Never, **kwargs: Never) -> None: ...
    @property
    def given(self) -> _Array | None: ...

class _Options(TypedDict, total=False):
    mask: Mask | None
    bias: _Array | Bias | Sequence[_Array | Bias] | None
    scale: float | None
    similarity: Similarity | None
    softcap: float
    dropout: float
    seed: int | None
    sink: _Floats | None
    cu_seqlens_q: _Integers | None
    cu_seqlens_k: _Integers | None
    score_mix: ScoreMix | None

@disjoint_base
class Explanation(metaclass=_Type):
    def __init__(self, *args: Never, **kwargs: Never) -> None: ...
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

@disjoint_base
class Statistics(metaclass=_Type):
    def __init__(self, *args: Never, **kwargs: Never) -> None: ...
    @property
    def entropy(self) -> _Array: ...
    @property
    def top_keys(self) -> _Array: ...
    @property
    def top_weights(self) -> _Array: ...
    @property
    def received(self) -> _Array: ...
    @property
    def distance(self) -> _Array: ...

@disjoint_base
class KVCache(metaclass=_Type):
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
    def append(self, k: _Array, v: _Array, sequences: Sequence[int] | None = None) -> None: ...
    def truncate(self, sequence: int, length: int) -> None: ...
    def copy(self, source: int, target: int) -> None: ...
    def choose(self, parents: Sequence[int]) -> None: ...
    @property
    def lengths(self) -> list[int]: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def block_table(self) -> _Array | None: ...

__version__: str

@overload
def attention(
    q: _ArrayT,
    k: _Array | KVCache,
    v: _Array | None = None,
    *,
    mask: Mask | None = None,
    bias: _Array | Bias | Sequence[_Array | Bias] | None = None,
    scale: float | None = None,
    similarity: Similarity | None = None,
    softcap: float = 0.0,
    dropout: float = 0.0,
    seed: int | None = None,
    sink: _Floats | None = None,
    return_lse: Literal[False] = False,
    out: _ArrayT | None = None,
    cu_seqlens_q: _Integers | None = None,
    cu_seqlens_k: _Integers | None = None,
    score_mix: ScoreMix | None = None,
) -> _ArrayT: ...
@overload
def attention(
    q: _ArrayT,
    k: _Array | KVCache,
    v: _Array | None = None,
    *,
    mask: Mask | None = None,
    bias: _Array | Bias | Sequence[_Array | Bias] | None = None,
    scale: float | None = None,
    similarity: Similarity | None = None,
    softcap: float = 0.0,
    dropout: float = 0.0,
    seed: int | None = None,
    sink: _Floats | None = None,
    return_lse: Literal[True],
    out: _ArrayT | None = None,
    cu_seqlens_q: _Integers | None = None,
    cu_seqlens_k: _Integers | None = None,
    score_mix: ScoreMix | None = None,
) -> tuple[_ArrayT, _ArrayT]: ...
@overload
def attention(
    q: _ArrayT,
    k: _Array | KVCache,
    v: _Array | None = None,
    *,
    mask: Mask | None = None,
    bias: _Array | Bias | Sequence[_Array | Bias] | None = None,
    scale: float | None = None,
    similarity: Similarity | None = None,
    softcap: float = 0.0,
    dropout: float = 0.0,
    seed: int | None = None,
    sink: _Floats | None = None,
    return_lse: bool,
    out: _ArrayT | None = None,
    cu_seqlens_q: _Integers | None = None,
    cu_seqlens_k: _Integers | None = None,
    score_mix: ScoreMix | None = None,
) -> _ArrayT | tuple[_ArrayT, _ArrayT]: ...
def merge(parts: Sequence[tuple[_ArrayT, _ArrayT]]) -> tuple[_ArrayT, _ArrayT]: ...
def explain(q: _Array, k: _Array | KVCache, v: _Array | None = None, **options: Unpack[_Options]) -> Explanation: ...
def attention_weights(
    q: _ArrayT,
    k: _Array,
    lse: _Array,
    *,
    heads: Sequence[int] | None = None,
    rows: Sequence[int] | None = None,
    **options: Unpack[_Options],
) -> _ArrayT: ...
def attention_statistics(q: _Array, k: _Array, lse: _Array, *, top: int = 1, **options: Unpack[_Options]) -> Statistics: ...
def attention_gradients(
    q: _ArrayT,
    k: _Array,
    v: _Array,
    o: _Array,
    lse: _Array,
    d_o: _Array,
    d_lse: _Array | None,
    *,
    wants: Sequence[bool],
    **options: Unpack[_Options],
) -> tuple[_ArrayT | None, ...]: ...
def attention_mean(
    q: _ArrayT, k: _Array, v: _Array, *, out: _ArrayT | None = None, **options: Unpack[_Options]
) -> tuple[_ArrayT, _ArrayT, _ArrayT]: ...
def plain_backward(
    q: _ArrayT,
    k: _Array,
    v: _Array,
    mask: _Array | None,
    o: _Array,
    lse: _Array,
    d_o: _Array,
    causal: bool,
    scale: float | None,
    want_q: bool,
    want_k: bool,
    want_v: bool,
) -> tuple[_ArrayT | None, _ArrayT | None, _ArrayT | None] | None: ...
def plain_attention(
    q: _ArrayT, k: _Array, v: _Array, mask: _Array | None, causal: bool, scale: float | None, grouped: bool, recording: bool
) -> _ArrayT | None: ...
def matmul(a: _ArrayT, w: _Array, bias: _Array | None = None) -> _ArrayT: ...
def causal(offset: int | _Integers | None = None) -> Mask: ...
def positions(offset: int | _Integers) -> Mask: ...
def prefix(n: int | _Integers) -> Mask: ...
def window(left: int, right: int) -> Mask: ...
def lengths(counts: _Integers) -> Mask: ...
def documents(ids: _Integers, key_ids: _Integers | None = None) -> Mask: ...
def keep(where: _Array) -> Mask: ...
def drop(where: _Array) -> Mask: ...
def cosine(tau: float | _Floats = 1.0) -> Similarity: ...
def euclidean() -> Similarity: ...
def alibi(slopes: _Floats) -> Bias: ...
def t5(table: _Floats, *, bidirectional: bool = True, max_distance: int = 128) -> Bias: ...
def head_mix(matrix: _Floats) -> ScoreMix: ...
def key_mix(matrix: _Floats) -> ScoreMix: ...
def set_threads(count: int) -> None: ...
def share_threads(on: bool) -> bool: ...
def threads() -> int: ...
def rung() -> str: ...
def use_rung(name: str) -> None: ...
def machine() -> dict[str, Any]: ...
def build_info() -> dict[str, Any]: ...
def add_to_type(type: type, name: str, value: object) -> None: ...
