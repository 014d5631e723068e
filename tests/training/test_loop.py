"""Early stopping; that training resumes exactly is in test_resume.py."""

from ova.training.loop import stops_early


def test_patience_ends_after_so_many_epochs_without_better_loss() -> None:
    def log(*losses: float) -> list[dict[str, float]]:
        return [{"validation_loss": loss} for loss in losses]

    assert not stops_early(log(), 1)
    assert not stops_early(log(3, 2, 1), 1)
    assert stops_early(log(3, 2, 2), 1)
    assert not stops_early(log(3, 2, 2), 2)
    assert stops_early(log(1, 2, 3, 4), 3)
    assert not stops_early(log(*range(1000)), 0)
