"""Translation with the PyTorch model: greedy and beam search, in batches, with cached keys and values."""
import torch
from torch.nn import functional

from seq2seq import BOS, EOS, PAD


def limit_of(source_tokens, max_length):
    """How many tokens a translation of so many source tokens may have at most, </s> counted in both."""
    return min(max_length, 2 * source_tokens + 10)


class Steps:
    """One target token at a time. Rows are sentences × beam; what the encoder gave is kept once a sentence."""

    def __init__(self, model, source, beam, length):
        self.model, self.beam = model, beam
        padding = source == PAD
        memory = model.encode(source, padding if padding.any() else None)
        sentences, width = len(source), memory.shape[-1]
        self.visible = None if not padding.any() else ~padding[:, None, None]
        self.heads = model.decoder.layers[0].self_attn.num_heads
        self.memory = []
        for layer in model.decoder.layers:
            attention = layer.multihead_attn
            keys_values = functional.linear(memory, attention.in_proj_weight[width:], attention.in_proj_bias[width:])
            self.memory.append([self.split(x) for x in keys_values.chunk(2, dim=-1)])
        shape = sentences * beam, self.heads, length, width // self.heads
        self.cache = [[memory.new_empty(shape), memory.new_empty(shape)] for _ in model.decoder.layers]

    def split(self, x):
        """(N, T, C) to (N, H, T, D)."""
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def follow(self, rows):
        """Row i goes on from what was row rows[i]."""
        self.cache = [[x.index_select(0, rows) for x in pair] for pair in self.cache]

    def self_attention(self, attention, x, cache, position):
        q, k, v = functional.linear(x, attention.in_proj_weight, attention.in_proj_bias).chunk(3, dim=-1)
        cache[0][:, :, position], cache[1][:, :, position] = self.split(k)[:, :, 0], self.split(v)[:, :, 0]
        y = functional.scaled_dot_product_attention(self.split(q), *(c[:, :, :position + 1] for c in cache))
        return attention.out_proj(y.transpose(1, 2).flatten(2))

    def cross_attention(self, attention, x, memory):
        width = x.shape[-1]
        q = functional.linear(x, attention.in_proj_weight[:width], attention.in_proj_bias[:width])
        q = self.split(q.view(-1, self.beam, width))  # the beam's rows are queries of one sentence
        y = functional.scaled_dot_product_attention(q, *memory, attn_mask=self.visible)
        return attention.out_proj(y.transpose(1, 2).reshape(-1, 1, width))

    def __call__(self, ids, position):
        """ids (N) at `position` to logits (N, V)."""
        model = self.model
        x = model.embed(model.embedding if model.tied else model.target_embedding, ids[:, None], position)
        for layer, cache, memory in zip(model.decoder.layers, self.cache, self.memory):
            attend = lambda y: self.self_attention(layer.self_attn, y, cache, position)  # noqa: E731
            look = lambda y: self.cross_attention(layer.multihead_attn, y, memory)  # noqa: E731
            feed = lambda y: layer.linear2(layer.activation(layer.linear1(y)))  # noqa: E731
            for sublayer, norm in ((attend, layer.norm1), (look, layer.norm2), (feed, layer.norm3)):
                x = x + sublayer(norm(x)) if layer.norm_first else norm(x + sublayer(x))
        return model.logits(model.decoder.norm(x))[:, 0]


def greedy(model, source, limits):
    """Ids without </s> for each row of `source` (B, Ts); limits (B) on the device."""
    most = int(limits.max())
    steps = Steps(model, source, 1, most)
    ids = torch.full((len(source),), BOS, device=source.device)
    done = torch.zeros_like(ids, dtype=torch.bool)
    taken = []
    for position in range(most):
        ids = steps(ids, position).argmax(-1).masked_fill(done, PAD)
        taken.append(ids)
        done = done | (ids == EOS) | (limits == position + 1)
        if done.all():
            break
    return [[i for i in row if i not in (EOS, PAD)] for row in torch.stack(taken, 1).tolist()]


def beam_search(model, source, limits, beam):
    """The best of what a beam found by score / length, </s> counted in both; ids without </s>.

    As `multihead translate`: of all continuations those among the best `beam` that end are finished, the best `beam`
    others go on. A sentence is done when `beam` are finished, when it has reached its limit, or when no continuation can
    beat its best: scores only fall, and length is at most the limit.
    """
    sentences, most, device = len(source), int(limits.max()), source.device
    steps = Steps(model, source, beam, most)
    ids = torch.full((sentences * beam,), BOS, device=device)
    score = torch.tensor([0.0] + [-torch.inf] * (beam - 1), device=device).repeat(sentences, 1)
    taken = torch.zeros(sentences, beam, 0, dtype=torch.int64, device=device)
    best = torch.full((sentences,), -torch.inf, device=device)
    done = torch.zeros(sentences, dtype=torch.bool, device=device)
    finished = torch.zeros(sentences, dtype=torch.int64, device=device)
    answers = [[] for _ in range(sentences)]
    first = torch.arange(sentences, device=device)[:, None] * beam
    for position in range(most):
        log_p = steps(ids, position).float().log_softmax(-1).view(sentences, beam, -1)
        found, flat = (score[:, :, None] + log_p).flatten(1).topk(2 * beam)
        parent, token = flat // log_p.shape[-1], flat % log_p.shape[-1]
        rows = torch.cat([taken.gather(1, parent[:, :, None].expand(-1, -1, position)), token[:, :, None]], 2)
        ends = token == EOS
        over = ends[:, :beam] | (limits == position + 1)[:, None]
        value, where = torch.where(over, found[:, :beam] / (position + 1), -torch.inf).max(1)
        better = (value > best) & ~done
        for i in better.nonzero()[:, 0].tolist():
            answers[i] = [t for t in rows[i, where[i]].tolist() if t != EOS]
        best = torch.where(better, value, best)
        finished += over.sum(1)
        score, going = torch.where(ends, -torch.inf, found).topk(beam)
        parent = parent.gather(1, going)
        taken = rows.gather(1, going[:, :, None].expand(-1, -1, position + 1))
        done |= (finished >= beam) | (score[:, 0] / limits <= best) | (limits == position + 1)
        if done.all():
            break
        ids = taken[:, :, -1].flatten()
        steps.follow((parent + first).flatten())
    return answers


@torch.inference_mode()
def translate(model, sources, beam=1, batch=64, max_length=256):
    """Lists of ids, each with its </s>, to lists of ids without one; sorted by length meanwhile."""
    order = sorted(range(len(sources)), key=lambda i: -len(sources[i]))
    device = model.embedding.weight.device
    out = [None] * len(sources)
    for begin in range(0, len(order), batch):
        rows = order[begin:begin + batch]
        source = torch.nn.utils.rnn.pad_sequence([torch.tensor(sources[i]) for i in rows], True, PAD).to(device)
        limits = torch.tensor([limit_of(len(sources[i]), max_length) for i in rows], device=device)
        found = greedy(model, source, limits) if beam == 1 else beam_search(model, source, limits, beam)
        for i, ids in zip(rows, found):
            out[i] = ids
    return out
