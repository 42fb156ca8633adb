"""The lite adapter: two small heads that put EfficientNet features into the space of MiniLM sentence embeddings."""

from __future__ import annotations

import math
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional

SHARPNESS = 20.0  # of the soft maximum over cells


class LiteAdapter(nn.Module):
    """Maps (B, 64, 1280) frozen grid features to region embeddings, and region embeddings x text to log-odds.

    One head reads the mean of the grid, one reads every cell; the similarity to a text is a learned mix of the first
    head's cosine and a soft maximum over the second head's. It is trained so that sigmoid(log-odds) is the
    probability that the image shows what the text names.
    """

    def __init__(self, *, features: int = 1280, hidden: int = 512, dim: int = 384, dropout: float = 0.3) -> None:
        super().__init__()

        def head() -> nn.Sequential:
            return nn.Sequential(
                nn.LayerNorm(features),
                nn.Linear(features, hidden),
                nn.GELU(),
                nn.Dropout(dropout),
                nn.Linear(hidden, dim),
            )

        self.whole, self.cell = head(), head()
        self.mix = nn.Parameter(torch.tensor(0.0))
        self.log_scale = nn.Parameter(torch.tensor(math.log(20.0)))
        self.bias = nn.Parameter(torch.tensor(-6.0))

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """(B, 1 + cells, dim) unit region embeddings, the whole image first."""
        whole = self.whole(features.mean(1, keepdim=True))
        return functional.normalize(torch.cat([whole, self.cell(features)], 1), dim=-1)

    def log_odds(self, regions: torch.Tensor, text: torch.Tensor) -> torch.Tensor:
        """(B, T) log-odds that each of B images shows each of T texts, from unit embeddings."""
        cosine = regions @ text.T
        cells = torch.logsumexp(SHARPNESS * cosine[:, 1:], 1) / SHARPNESS
        cells = cells - math.log(regions.shape[1] - 1) / SHARPNESS
        mix = torch.sigmoid(self.mix)
        return (mix * cosine[:, 0] + (1 - mix) * cells) * self.log_scale.exp() + self.bias


def load_adapter(path: str | Path) -> LiteAdapter:
    """The adapter saved at `path` (safetensors), in float32 and evaluation mode."""
    from safetensors.torch import load_file

    state = load_file(path)
    hidden, features = state["whole.1.weight"].shape
    adapter = LiteAdapter(features=features, hidden=hidden, dim=state["whole.4.weight"].shape[0])
    adapter.load_state_dict({name: tensor.float() for name, tensor in state.items()})
    return adapter.eval()
