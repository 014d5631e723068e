"""1 x 1 convolutions that give logits: the last layer of fully convolutional networks."""

from torch import Tensor, nn

from ova.errors import BadInput
from ova.nn.modules import Head

CUTTING = (nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.GELU, nn.SiLU, nn.Sigmoid, nn.Tanh, nn.Softmax)


class Pointwise(nn.Module):
    """A head at every place of a feature map: B x D x H x W to B x K x H x W.

    >>> import torch
    >>> Pointwise(Head("ova", 8, 3))(torch.zeros(2, 8, 5, 4)).shape
    torch.Size([2, 3, 5, 4])
    """

    def __init__(self, head: Head) -> None:
        super().__init__()
        self.head = head

    def forward(self, f: Tensor) -> Tensor:
        """Every place is a row of its own."""
        places = f.movedim(-3, -1)
        z: Tensor = self.head(places.reshape(-1, places.shape[-1]))
        return z.reshape(*places.shape[:-1], -1).movedim(-1, -3)


def pointwise(model: nn.Module) -> dict[str, nn.Conv2d]:
    """The convolutions that look at one place only, by name."""
    return {n: m for n, m in model.named_modules() if isinstance(m, nn.Conv2d) and n and single(m)}


def single(layer: nn.Conv2d) -> bool:
    """Whether every output is of one place and of all its channels."""
    plain = layer.groups == 1 and not isinstance(layer, nn.LazyConv2d)
    return plain and layer.kernel_size == layer.stride == (1, 1) and layer.padding == (0, 0)


def check_after(model: nn.Module, name: str) -> None:
    """Refuse an activation right behind the layer: what it cuts off are logits."""
    path, _, child = name.rpartition(".")
    parent = model.get_submodule(path)
    if not isinstance(parent, nn.Sequential):
        return
    children = list(parent.named_children())
    place = [n for n, _ in children].index(child) + 1
    if place < len(children) and isinstance(children[place][1], CUTTING):
        full = f"{path}.{children[place][0]}".lstrip(".")
        kind = type(children[place][1]).__name__
        raise BadInput(
            f"a {kind} ({full!r}) follows the layer {name!r} and would change its logits; replace it first: "
            f"model.set_submodule({full!r}, torch.nn.Identity())"
        )
