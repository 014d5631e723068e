"""The last layer in which every class is an island: none lies far out, and amid the classes too."""

from ova.nn.formulation import one_vs_all
from ova.nn.horizon import Horizon


class Island(Horizon):
    """z_k = b_k + e (||c_k - m||² / 2 - ||f - c_k||²), e > 0: a class ends on every side of its centre.

    `Horizon` is the same without the half, so a class there reaches from its centre as far as the
    mean m of all, and the emptiness amid the classes belongs to some of them. Here it reaches
    sqrt(1/2) of that way. In weights w_k = 2e (c_k - m), which learn as those of an affine layer do:
    z_k = w_k.(f - m) + b_k - ||w_k||² / 8e - e ||f - m||².
    """

    reach = 0.5


FORMULATION = one_vs_all(
    "squared distances to centres, none far out and amid them, sigmoid", Island
)
