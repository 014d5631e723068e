"""LogitNorm (Wei et al., 2022): a softmax loss of logits of one length, so that it rewards none."""

import torch
from torch import Tensor

from ova.nn.formulation import softmax
from ova.nn.heads import Affine
from ova.nn.losses import softmax_loss, wide

TEMPERATURE = 0.04  # the paper's for CIFAR-10
TINY = 1e-7  # added to the length, as the authors do


def logit_norm_loss(z: Tensor, y: Tensor, smoothing: float = 0.0) -> Tensor:
    """The cross-entropy of softmax(z / (t ||z||)); prediction takes z as it is.

    >>> z, y = torch.tensor([[3.0, 4.0]]), torch.tensor([1])
    >>> torch.allclose(logit_norm_loss(z, y), softmax_loss(z / 5 / 0.04, y))
    True
    """
    z = wide(z)
    length = torch.linalg.vector_norm(z, dim=-1, keepdim=True) + TINY
    return softmax_loss(z / (TEMPERATURE * length), y, smoothing)


FORMULATION = softmax("softmax, logits of one length in the loss only", Affine, logit_norm_loss)
