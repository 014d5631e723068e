"""The smallest inputs that each model takes."""

SHAPES = {
    "convnet": (1, 8, 8),
    "convnet-medium": (1, 8, 8),
    "convnet-small": (1, 8, 8),
    "quick": (3, 9, 9),
    "quick-wide": (3, 9, 9),
    "resnet50": (3, 64, 64),
    "bert-mini": (60, 32),
    "bert-mini-mean": (60, 32),
    "text-cnn": (60, 32),
}
IMAGE = (3, 32, 32)


def shape_of(name: str) -> tuple[int, ...]:
    return (2,) if name.startswith("mlp") else SHAPES.get(name, IMAGE)
