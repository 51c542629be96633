"""The cells of the comparison: dtype × width × length × mask × batch × {forward, backward, decode}, and their tensors."""
from dataclasses import asdict, dataclass

import torch

DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16}
WIDTHS = (32, 64, 80, 128)
MASKS = ("full", "causal", "padding")
# (batch, heads) and the lengths that stay below about 0.1 s on one core: every cell is measured several times.
BATCHES = {(1, 1): (32, 128, 512, 2048, 4096), (1, 8): (32, 128, 512, 1024), (4, 16): (32, 128, 512)}
CACHES = (128, 1024, 8192, 32768)


@dataclass(frozen=True)
class Cell:
    kind: str  # forward, backward, decode; dropout and widths: forward where PyTorch leaves its fused path
    dtype: str
    D: int
    T: int
    mask: str
    batch: int
    heads: int

    @property
    def counted(self):
        """Whether the bar for single cells holds for it."""
        return self.T >= 128 or self.batch * self.heads >= 8

    def fields(self):
        return asdict(self)

    def inputs(self):
        """q, k, v and the mask of scaled_dot_product_attention."""
        torch.manual_seed(1)
        rows = 1 if self.kind == "decode" else self.T
        value_width = self.D // 2 if self.kind == "widths" else self.D
        made = [(rows, self.D), (self.T, self.D), (self.T, value_width)]
        q, k, v = (torch.randn(self.batch, self.heads, *shape).to(DTYPES[self.dtype]) for shape in made)
        mask = None
        if self.mask == "padding":  # sequences of 3/4 to all of the length
            lengths = torch.linspace(0.75, 1, self.batch).mul(self.T).long()
            mask = (torch.arange(self.T) < lengths[:, None])[:, None, None, :]
        return q, k, v, mask

    def options(self):
        return {"is_causal": self.mask == "causal", "dropout_p": 0.1 if self.kind == "dropout" else 0.0}


def cells(kinds, dtypes):
    made = []
    for dtype in dtypes:
        for kind in kinds:
            if kind == "decode":
                made += [Cell(kind, dtype, D, T, "full", 1, H) for D in (64, 128) for T in CACHES for H in (1, 8)]
            elif kind in ("dropout", "widths"):
                made += [Cell(kind, dtype, 64, T, mask, 1, 8) for T in (128, 512, 1024) for mask in ("full", "causal")]
            else:
                made += [Cell(kind, dtype, D, T, mask, B, H) for (B, H), lengths in BATCHES.items() for T in lengths
                         for D in WIDTHS for mask in MASKS]
    return made
