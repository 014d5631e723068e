"""The batcher: everything taken is answered once, in order, together where it waited, alone where it failed."""

from concurrent.futures import wait
from threading import Event, Thread

import pytest

from ova.modelfolder.server.batcher import Batcher
from ova.modelfolder.server.refused import Refused


class Work:
    """Squares numbers; holds still while it is closed, and remembers its batches."""

    def __init__(self) -> None:
        self.open, self.begun = Event(), Event()
        self.batches: list[list[int]] = []

    def __call__(self, asked):
        self.batches.append(list(asked))
        self.begun.set()
        assert self.open.wait(60)
        if 13 in asked:
            raise ArithmeticError("13")
        if 666 in asked:
            raise KeyboardInterrupt
        return [n * n for n in asked]


def held(work: Work, **options: int) -> Batcher[int, int]:
    """A batcher that works on the number 0, and does not get on with it."""
    batches = Batcher[int, int](work, **{"batch": 100, "waiting": 1000, **options})
    batches.ask(0, 1)
    assert work.begun.wait(60)
    return batches


def test_what_waits_is_answered_together_up_to_the_largest_batch() -> None:
    work = Work()
    batches = held(work, batch=5)
    asked = [batches.ask(n, 2) for n in range(1, 6)]
    asked.append(batches.ask(6, 7))  # larger than a batch, all the same answered
    work.open.set()
    assert [each.result(60) for each in asked] == [1, 4, 9, 16, 25, 36]
    assert work.batches == [[0], [1, 2], [3, 4], [5], [6]]
    batches.close()


def test_only_what_is_alike_is_answered_together_and_nothing_is_overtaken_for_ever() -> None:
    work = Work()
    batches = held(work)
    asked = [batches.ask(n, 1, n % 2) for n in range(1, 7)]
    work.open.set()
    assert [each.result(60) for each in asked] == [n * n for n in range(1, 7)]
    assert work.batches == [[0], [1, 3, 5], [2, 4, 6]]
    batches.close()


def test_whose_fault_it_is_fails_alone_and_the_thread_lives() -> None:
    work = Work()
    batches = held(work)
    asked = {n: batches.ask(n, 1) for n in (1, 13, 2, 666, 3)}
    work.open.set()
    assert [asked[n].result(60) for n in (1, 2, 3)] == [1, 4, 9]
    with pytest.raises(ArithmeticError):
        asked[13].result(60)
    with pytest.raises(KeyboardInterrupt):
        asked[666].result(60)
    assert batches.ready
    assert batches.ask(4, 1).result(60) == 16
    batches.close()


def test_who_comes_when_it_is_full_is_refused_and_told_when_to_come_again() -> None:
    work = Work()
    batches = held(work, waiting=10)
    one = batches.ask(1, 99)  # alone it would never fit
    assert not batches.ready
    with pytest.raises(Refused, match="99 rows are waiting") as refused:
        batches.ask(2, 1)
    assert refused.value.status == 503
    assert int(refused.value.headers["Retry-After"]) >= 1
    work.open.set()
    assert one.result(60) == 1
    batches.close()


def test_what_is_cancelled_while_it_waits_is_not_worked_on() -> None:
    work = Work()
    batches = held(work)
    gone, kept = batches.ask(1, 1), batches.ask(2, 1)
    assert gone.cancel()
    work.open.set()
    assert kept.result(60) == 4
    assert work.batches == [[0], [2]]
    batches.close()


def test_closing_answers_all_that_was_taken_and_takes_nothing_more() -> None:
    work = Work()
    batches = held(work, batch=2)
    asked = [batches.ask(n, 1) for n in range(1, 8)]
    closing = Thread(target=batches.close)
    closing.start()
    work.open.set()
    closing.join(60)
    assert [each.result(0) for each in asked] == [n * n for n in range(1, 8)]
    assert not batches.ready
    with pytest.raises(Refused, match="stops"):
        batches.ask(1, 1)


def test_many_threads_each_get_their_own_answers() -> None:
    work = Work()
    work.open.set()
    batches = Batcher[int, int](work, batch=7, waiting=100_000)
    found: dict[int, int] = {}

    def client(which: int) -> None:
        asked = {n: batches.ask(n, 1 + n % 3, n % 2) for n in range(1000 + which, 3000, 8)}
        wait(asked.values(), 60)
        found.update({n: each.result(0) for n, each in asked.items()})

    threads = [Thread(target=client, args=(which,)) for which in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found == {n: n * n for n in range(1000, 3000)}
    assert sorted(n for batch in work.batches for n in batch) == list(range(1000, 3000))
    batches.close()
