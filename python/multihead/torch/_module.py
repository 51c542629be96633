"""torch.nn.MultiheadAttention, by multihead's kernels."""

import torch
from torch import Tensor
from torch.nn import functional as F

from . import _op
from ._functional import attend, not_dense, why_not
from ._linear import linear


def _dropped(mask, kind):
    """A mask of nn.MultiheadAttention as one of scaled_dot_product_attention: there True keeps, here it drops."""
    return ~mask if mask.dtype == torch.bool else mask.to(kind)


def _check_mask(name, mask, shapes):
    """Refuses what nn.MultiheadAttention refuses."""
    if mask is None:
        return
    if mask.dtype != torch.bool and not mask.is_floating_point():
        raise ValueError(f"MultiheadAttention: {name} holds {mask.dtype}; expected bool, where True drops, or floats, which are added")
    if tuple(mask.shape) not in shapes:
        raise ValueError(f"MultiheadAttention: {name} is {tuple(mask.shape)}; expected {' or '.join(map(str, shapes))}")


def _joined(a, b):
    if a is None or b is None:
        return b if a is None else a
    if a.dtype == torch.bool and b.dtype == torch.bool:
        return a & b
    as_floats = lambda m, kind: m if m.dtype != torch.bool else torch.zeros_like(m, dtype=kind).masked_fill_(~m, float("-inf"))
    kind = b.dtype if a.dtype == torch.bool else a.dtype
    return as_floats(a, kind) + as_floats(b, kind)


class MultiheadAttention(torch.nn.MultiheadAttention):
    """A drop-in for torch.nn.MultiheadAttention: same arguments, same parameters, same state dict.

    need_weights=True takes the mean over heads in the same pass, without ever holding the weights of all heads. The weights are
    those before dropout and carry no gradient; everything else does.

    >>> import torch, multihead.torch
    >>> layer = multihead.torch.MultiheadAttention(64, 4, batch_first=True)
    >>> _ = layer.load_state_dict(torch.nn.MultiheadAttention(64, 4).state_dict())
    >>> x = torch.randn(2, 10, 64)
    >>> o, weights = layer(x, x, x)
    >>> o.shape, weights.shape
    (torch.Size([2, 10, 64]), torch.Size([2, 10, 10]))
    """

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        batched = query.dim() == 3
        self._check(query, key, value, key_padding_mask, attn_mask)
        if is_causal and attn_mask is None:
            raise ValueError("MultiheadAttention: is_causal is a hint about attn_mask; expected attn_mask beside it")
        if not batched and key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
        q, k, v = self._heads(query, key, value)
        mask = self._mask(q, k, key_padding_mask, attn_mask)
        reason = why_not(q, k, v, mask)
        if reason is not None:
            raise NotImplementedError(f"MultiheadAttention: {reason}")
        mean = need_weights and average_attn_weights
        o, lse, weights = attend(q, k, v, mask, self.dropout if self.training else 0.0, False, None, with_mean=mean, in_rows=True)
        B, H, L, D = o.shape
        o = linear(o.transpose(1, 2).reshape(B, L, H * D), self.out_proj.weight, self.out_proj.bias)
        if need_weights and not average_attn_weights:
            with torch.no_grad():
                weights = _op.attention_weights(q, k, lse, mask, False, None)
        weights = None if weights is None else weights.to(q.dtype)
        if not batched:
            return o.squeeze(0), None if weights is None else weights.squeeze(0)
        return (o if self.batch_first else o.transpose(0, 1)), weights

    def _check(self, query, key, value, key_padding_mask, attn_mask):
        for name, x in (("query", query), ("key", key), ("value", value)):
            reason = not_dense(name, x)
            if reason is not None:
                raise NotImplementedError(f"MultiheadAttention: {reason}")
        shapes = lambda: f"query is {tuple(query.shape)}, key is {tuple(key.shape)}, value is {tuple(value.shape)}"
        if query.dim() not in (2, 3) or key.dim() != query.dim() or value.dim() != query.dim():
            raise ValueError(f"MultiheadAttention: expected (L, E) or three axes of all; {shapes()}")
        widths = self.embed_dim, self.kdim, self.vdim
        if (query.shape[-1], key.shape[-1], value.shape[-1]) != widths or key.shape[:-1] != value.shape[:-1]:
            raise ValueError(f"MultiheadAttention: expected widths {widths}, and as many keys as values; {shapes()}")
        at = 0 if self.batch_first else 1
        B = query.shape[at] if query.dim() == 3 else 1
        if query.dim() == 3 and key.shape[at] != B:
            raise ValueError(f"MultiheadAttention: expected one batch size; {shapes()}")
        L, S = query.shape[-2 if self.batch_first else 0], key.shape[-2 if self.batch_first else 0]
        _check_mask("key_padding_mask", key_padding_mask, [(B, S) if query.dim() == 3 else (S,)])
        _check_mask("attn_mask", attn_mask, [(L, S), (B * self.num_heads, L, S)])

    def _heads(self, query, key, value):
        """q, k and v as (B, H, T, D), with the learned and the zero key where the layer has them."""
        if self._qkv_same_embed_dim and query is key and key is value:
            q, k, v = self._split(linear(query, self.in_proj_weight, self.in_proj_bias)).chunk(3, 1)
        else:
            weights = self.in_proj_weight.chunk(3) if self._qkv_same_embed_dim else (
                self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
            biases = (None,) * 3 if self.in_proj_bias is None else self.in_proj_bias.chunk(3)
            q, k, v = (self._split(linear(x, w, b)) for x, w, b in zip((query, key, value), weights, biases))
        if self.bias_k is not None:
            one_more = lambda x, own: torch.cat([x, self._split(own.to(x.dtype)).expand(x.shape[0], -1, -1, -1)], 2)
            k, v = one_more(k, self.bias_k), one_more(v, self.bias_v)
        if self.add_zero_attn:
            k, v = F.pad(k, (0, 0, 0, 1)), F.pad(v, (0, 0, 0, 1))
        return q, k, v

    def _split(self, x):
        """Heads (B, H, T, D), however many, of (T, H·D), (T, B, H·D) or (B, T, H·D)."""
        x = x.unflatten(-1, (-1, self.head_dim))
        if x.dim() == 3:
            return x.transpose(0, 1).unsqueeze(0)
        return x.transpose(1, 2) if self.batch_first else x.permute(1, 2, 0, 3)

    def _mask(self, q, k, key_padding_mask, attn_mask):
        more = (self.bias_k is not None) + bool(self.add_zero_attn)  # keys of the layer's own: never masked
        mask = None
        if attn_mask is not None:
            mask = _dropped(attn_mask, q.dtype)
            if mask.dim() == 3:
                mask = mask.unflatten(0, (-1, self.num_heads))
            mask = F.pad(mask, (0, more), value=mask.dtype == torch.bool) if more else mask
        if key_padding_mask is not None:
            padding = _dropped(key_padding_mask, q.dtype)
            padding = F.pad(padding, (0, more), value=padding.dtype == torch.bool) if more else padding
            mask = _joined(mask, padding[:, None, None, :])
        return mask
