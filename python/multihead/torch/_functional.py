"""torch.nn.functional.scaled_dot_product_attention, by multihead's kernels."""

import math

import torch
from torch import Tensor
from torch.autograd import forward_ad

from multihead import _core

from . import _op

_PLAIN = {Tensor, torch.nn.Parameter}
_FLOATS = {torch.float32, torch.bfloat16, torch.float16}
_LONGEST_HEAD = 512
_compiling = torch.compiler.is_compiling
_grad_enabled = torch.is_grad_enabled
_autocast = torch.is_autocast_enabled
_transforms = torch._C._functorch.peek_interpreter_stack
_modes = torch._C._len_torch_dispatch_stack
_tracing = torch._C._get_tracing_state


def is_watched():
    """Whether something must see each operator of PyTorch's: a compiler, a transform of torch.func, a mode, torch.jit.trace."""
    return _compiling() or _transforms() is not None or _modes() != 0 or _tracing() is not None


def is_eager(tensors):
    """Whether the kernels may be called at once: plain tensors, and nobody watches."""
    return not is_watched() and {type(x) for x in tensors} <= _PLAIN


_CPU = torch.device("cpu")


def not_dense(name, x, place=_CPU):
    """Why a tensor's memory cannot be read, in a sentence; None where it can. place: where the others lie, the CPU or a GPU."""
    if place.type not in ("cpu", "cuda"):
        return f"{name} lies on {x.device}; expected the CPU or an NVIDIA GPU"
    if x.device != place:
        return f"{name} lies on {x.device}; expected {'the CPU' if place.type == 'cpu' else place}"
    if x.layout != torch.strided or x.is_nested:
        return f"{name} is not a dense tensor; expected one that is neither sparse nor nested"
    return None


def why_not(query, key, value, attn_mask=None, place=_CPU):
    """What keeps a call from multihead's kernels, in a sentence; None where nothing does."""
    for name, x in (("query", query), ("key", key), ("value", value), ("attn_mask", attn_mask)):
        if x is None:
            continue
        reason = not_dense(name, x, place)
        if reason is not None:
            return reason
        if name == "attn_mask":
            if x.dtype not in _FLOATS and x.dtype != torch.bool:
                return f"attn_mask holds {x.dtype}; expected bool, or floats of 16 or 32 bits"
        elif x.dtype not in _FLOATS:
            return f"{name} holds {x.dtype}; expected float32, bfloat16 or float16"
        elif x.dim() == 0:
            return f"{name} is a tensor without axes; expected (…, H, T, D)"
        elif not 1 <= x.shape[-1] <= _LONGEST_HEAD:
            return f"{name} is {tuple(x.shape)}; expected heads of 1 to {_LONGEST_HEAD} elements"
    return None


def _shapes(query, key, value, attn_mask):
    parts = [("query", query), ("key", key), ("value", value), ("attn_mask", attn_mask)]
    return ", ".join(f"{name} is {tuple(x.shape)}" for name, x in parts if x is not None)


def _fail(kind, what, *tensors):
    raise kind(f"scaled_dot_product_attention: {what}; {_shapes(*tensors)}")


def _four_axes(query, key, value, attn_mask, enable_gqa):
    """The tensors as (B, H, T, D), the mask with at most four axes, and what the result's leading axes are."""
    given = (query, key, value, attn_mask)
    if min(query.dim(), key.dim(), value.dim()) < 2:
        _fail(ValueError, "query, key and value need at least two axes", *given)
    grouped = enable_gqa and min(query.dim(), key.dim(), value.dim()) > 2
    if grouped and (key.shape[-3] != value.shape[-3] or key.shape[-3] == 0 or query.shape[-3] % key.shape[-3]):
        _fail(ValueError, "the heads of key and value must be the same number, and divide those of query", *given)
    if query.dim() == key.dim() == value.dim() == 4 and query.shape[0] == key.shape[0] == value.shape[0]:
        if query.shape[1] != 0 and (grouped or query.shape[1] == key.shape[1] == value.shape[1]):
            return query, key, value, attn_mask, None
    inner = 3 if grouped else 2  # axes that are not broadcast
    try:
        outer = torch.broadcast_shapes(query.shape[:-inner], key.shape[:-inner], value.shape[:-inner])
    except RuntimeError:
        _fail(ValueError, "the leading axes do not broadcast (enable_gqa=True lets key and value have fewer heads)", *given)
    lead = (*outer, query.shape[-3]) if grouped else outer
    heads = lead[-1] if lead else 1
    batch = math.prod(lead[:-1]) if heads else 0
    own = lambda x: x.shape[-3] if grouped else max(heads, 1)
    fold = lambda x: x.expand(*outer, *x.shape[-inner:]).reshape(batch, own(x), *x.shape[-2:])
    if attn_mask is not None and (attn_mask.dim() > 4 or len(lead) != 2 or heads == 0):
        scores = query.shape[-2], key.shape[-2]
        try:
            attn_mask = attn_mask.expand(*lead, *scores).reshape(batch, max(heads, 1), *scores)
        except RuntimeError:
            _fail(ValueError, "attn_mask does not broadcast to the scores", *given)
    return fold(query), fold(key), fold(value), attn_mask, lead


def refuse_forwards(ctx, *tangents):
    raise NotImplementedError("scaled_dot_product_attention: its derivatives run backwards; one that runs forwards was asked for")


class _Backward(torch.autograd.Function):
    """The backward pass where its own derivative may be asked for: it has none, and says so."""

    generate_vmap_rule = True

    @staticmethod
    def forward(*given):
        return _op.attention_backward(*given[:-4], list(given[-4:]))

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, *gradients):
        raise NotImplementedError("scaled_dot_product_attention: it is differentiable once; a second derivative was asked for")


def _run(q, k, v, scale, given, with_mean, in_rows):
    """(o, lse, the mean of the weights over heads or None), by the kernels."""
    out = None
    if in_rows and q.shape[2] > 1:  # one row lies in both orders at once
        B, H, L, _ = q.shape
        out = q.new_empty(B, L, H, v.shape[-1]).transpose(1, 2)
    if with_mean:
        return _core.attention_mean(q, k, v, out=out, scale=scale, **given)
    return *_core.attention(q, k, v, out=out, scale=scale, return_lse=True, **given), None


_is_batched = torch._C._functorch.is_legacy_batchedtensor


def in_batches(*gradients):
    """Whether torch.autograd.grad(…, is_grads_batched=True) asks, as jacobian(…, vectorize=True) does."""
    return any(g is not None and _is_batched(g) for g in gradients)


def one_by_one(backward, *gradients):
    """What backward gives for each gradient of a batch, batched again."""
    level = torch._C._vmapmode_increment_nesting() - 1
    torch._C._vmapmode_decrement_nesting()
    batched = [in_batches(g) for g in gradients]
    plain = [torch._remove_batch_dim(g, level, 1, 0) if own else g for g, own in zip(gradients, batched)]
    size = next(len(g) for g, own in zip(plain, batched) if own)
    each = [backward(*(g[n] if own else g for g, own in zip(plain, batched))) for n in range(size)]
    joined = [None if parts[0] is None else torch.stack(parts) for parts in zip(*each)]
    return tuple(None if g is None else torch._add_batch_dim(g, 0, level) for g in joined)


class _Attention(torch.autograd.Function):
    """The eager call with gradients: shorter than the way through the dispatcher."""

    @staticmethod
    def forward(ctx, q, k, v, mask, dropout, seed, causal, scale, with_mean, in_rows):
        given = _op.options_of(mask, causal)
        if dropout > 0:
            given.update(dropout=dropout, seed=seed)
        o, lse, mean = _run(q, k, v, scale, given, with_mean, in_rows)
        ctx.save_for_backward(q, k, v, o, lse, mask)
        ctx.rest = dropout, seed, causal, scale
        ctx.given = given
        ctx.set_materialize_grads(False)
        if with_mean:
            ctx.mark_non_differentiable(mean)
        return o, lse, mean

    jvp = staticmethod(refuse_forwards)

    @staticmethod
    def backward(ctx, d_o, d_lse, d_mean):
        if d_o is None and d_lse is None:
            return (None,) * 10
        if in_batches(d_o, d_lse):
            return one_by_one(lambda *one: _Attention.backward(ctx, *one, None), d_o, d_lse)
        q, k, v, o, lse, mask = ctx.saved_tensors
        dropout, seed, causal, scale = ctx.rest
        wants = ctx.needs_input_grad[:4]
        if not _grad_enabled():
            if dropout == 0 and d_lse is None and not wants[3]:
                gradients = _core.plain_backward(q, k, v, mask, o, lse, d_o, causal, scale, *wants[:3])
                if gradients is not None:
                    return (*gradients, None, *(None,) * 6)
            d_o = torch.zeros_like(o) if d_o is None else d_o
            return (*_op.backward(q, k, v, o, lse, d_o, d_lse, wants, scale, ctx.given), *(None,) * 6)
        d_o = torch.zeros_like(o) if d_o is None else d_o
        gradients = _Backward.apply(q, k, v, o, lse, d_o, d_lse, mask, torch.tensor(seed), dropout, causal, scale, *wants)
        return (*(g if w else None for g, w in zip(gradients, wants)), *(None,) * 6)


class _Transformed(torch.autograd.Function):
    """The same inside torch.func's transforms, made of operators that they see through."""

    generate_vmap_rule = True

    @staticmethod
    def forward(q, k, v, mask, seed, dropout, causal, scale):
        return _op.attention(q, k, v, mask, seed, dropout, causal, scale)

    setup_context = staticmethod(_op.setup_context)
    jvp = staticmethod(refuse_forwards)

    @staticmethod
    def backward(ctx, d_o, d_lse):
        return _op.backward_formula(ctx, d_o, d_lse, lambda *given: _Backward.apply(*given[:-1], *given[-1]))


def attend(q, k, v, mask, dropout, causal, scale, with_mean=False, in_rows=False):
    """(o, lse, None) of tensors (B, H, T, D) that fit, by the shortest way there is; with_mean: (o, lse, the mean of the
    weights over heads), which has no gradient; in_rows: o may lie in memory as (B, T, H, D), where the next product reads it."""
    q, k, v = _op.unit(q), _op.unit(k), _op.unit(v)
    if not is_eager((q, k, v) if mask is None else (q, k, v, mask)):
        seed = _op.drawn_seed() if dropout > 0 else None
        call = _op.attention if _compiling() or _transforms() is None else _Transformed.apply
        o, lse = call(q, k, v, mask, seed, dropout, causal, scale)
        if not with_mean:
            return o, lse, None
        with torch.no_grad():
            return o, lse, _op.mean_weights(q, k, lse, mask, causal, scale)
    seed = int(_op.drawn_seed()) if dropout > 0 else 0
    records = q.requires_grad or k.requires_grad or v.requires_grad or (mask is not None and mask.requires_grad)
    if (records and _grad_enabled()) or forward_ad._current_level >= 0:
        return _Attention.apply(q, k, v, mask, dropout, seed, causal, scale, with_mean, in_rows)
    given = _op.options_of(mask, causal)
    if dropout > 0:
        given.update(dropout=dropout, seed=seed)
    return _run(q, k, v, scale, given, with_mean, in_rows)


@torch.compiler.disable
def _attend_on_gpu(q, k, v, mask, dropout, causal, scale):
    """The same on an NVIDIA GPU; torch.compile leaves the call as it is."""
    if is_watched():
        raise NotImplementedError("scaled_dot_product_attention: torch.func, torch.jit.trace and modes of PyTorch do not see into a call on a GPU; expected none of them")
    from ._full import attend_fully

    options = {"scale": scale, **_op.options_of(mask, causal)}
    if dropout > 0:
        options.update(dropout=dropout, seed=int(_op.drawn_seed()))
    dense = options.get("bias")
    return attend_fully((_op.unit(q), _op.unit(k), _op.unit(v), dense, None, None, None, None), options)


def _lowered(query, key, value, attn_mask, place="cpu"):
    """Under autocast PyTorch computes attention in its lower precision; so do we."""
    dtype = torch.get_autocast_dtype(place)
    lower = lambda x: x.to(dtype) if x is not None and x.dtype in _FLOATS else x
    return lower(query), lower(key), lower(value), lower(attn_mask)


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """What torch.nn.functional.scaled_dot_product_attention gives, on the CPU or an NVIDIA GPU: same arguments, same meaning.

    query is (…, H, L, E), key (…, H, S, E), value (…, H, S, Ev); enable_gqa lets key and value have fewer heads. attn_mask
    broadcasts to (…, H, L, S): where a bool is True the pair is kept, floats are added. is_causal counts from the top left.
    Gradients reach query, key, value and a float mask. Dropout draws its seed from PyTorch's generator. Raises ValueError
    with the shapes where they do not fit, NotImplementedError for what the kernels do not take (float64, other devices).

    >>> import torch, multihead.torch
    >>> q = torch.randn(2, 8, 128, 64, requires_grad=True)
    >>> k, v = torch.randn(2, 2, 8, 128, 64)
    >>> multihead.torch.scaled_dot_product_attention(q, k, v, is_causal=True).sum().backward()
    >>> q.grad.shape
    torch.Size([2, 8, 128, 64])
    """
    plain = dropout_p == 0.0 and type(query) is type(key) is type(value) is Tensor
    plain = plain and (attn_mask is None or (type(attn_mask) is Tensor and attn_mask.is_cpu and not is_causal))
    plain = plain and not _compiling() and not _autocast("cpu") and query.is_cpu and forward_ad._current_level < 0
    if plain and not is_watched():
        try:
            o = _core.plain_attention(query, key, value, attn_mask, is_causal, scale, enable_gqa, _grad_enabled())
        except ValueError:  # said again below, in PyTorch's own names
            o = None
        if o is not None:
            return o
    for name, x in (("query", query), ("key", key), ("value", value), ("attn_mask", attn_mask)):
        if not isinstance(x, Tensor) and (x is not None or name != "attn_mask"):
            raise TypeError(f"scaled_dot_product_attention: {name} is a {type(x).__name__}; expected a torch.Tensor")
    place = query.device
    if place.type in ("cpu", "cuda") and _autocast(place.type):
        query, key, value, attn_mask = _lowered(query, key, value, attn_mask, place.type)
    reason = why_not(query, key, value, attn_mask, place)
    if reason is not None:
        raise NotImplementedError(f"scaled_dot_product_attention: {reason}")
    given = (query, key, value, attn_mask)
    if is_causal and attn_mask is not None:
        _fail(ValueError, "attn_mask and is_causal=True are both given; expected one of them", *given)
    if not 0.0 <= dropout_p <= 1.0:
        _fail(ValueError, f"dropout_p is {dropout_p}; expected 0 to 1", *given)
    q, k, v, mask, lead = _four_axes(*given, enable_gqa)
    run = _attend_on_gpu if query.is_cuda else attend
    o = run(q, k, v, mask, float(dropout_p), is_causal, scale)[0]
    return o if lead is None else o.reshape(*lead, *o.shape[-2:])
