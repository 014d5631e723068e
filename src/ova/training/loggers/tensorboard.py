"""Files for TensorBoard in the folder of the run."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from ova.training.loggers.board import Logged, Write
from ova.training.run_folder import TENSORBOARD


@contextmanager
def opened(what: Logged) -> Iterator[Write]:
    """The files of a run, new ones for each process that goes on with it."""
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(what.folder / TENSORBOARD)) as board:

        def write(numbers: Mapping[str, float], epoch: int) -> None:
            for name, value in numbers.items():
                board.add_scalar(name, value, epoch)

        yield write
