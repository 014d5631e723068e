"""T2FNorm (Regmi et al., 2024): features of one length while training, as they are in prediction."""

import torch
import torch.nn.functional as F
from torch import Tensor

from ova.nn.formulation import softmax
from ova.nn.heads import Affine


class TrainedOnDirections(Affine):
    """z_k = w_k.f / (t ||f||) + b_k in training mode, z_k = w_k.f / t + b_k in evaluation mode.

    Training sees directions alone, so that nothing teaches the network to give unknown inputs long
    features; prediction then reads their length as a sign of the known.
    """

    temperature = 0.1  # t, the paper's

    def forward(self, f: Tensor) -> Tensor:
        """One matrix product; lengths in float32, where the square of a half could overflow."""
        if self.training:
            width = torch.promote_types(f.dtype, torch.float32)
            f = F.normalize(f.to(width), dim=-1).to(f.dtype)
        return super().forward(f / self.temperature)


FORMULATION = softmax("softmax, features of one length in training only", TrainedOnDirections)
