"""How many threads a process takes: its cores, fewer where its environment says so."""

import os
import threading

import pytest

from protocol.threads import LIMIT, spread, threads


def test_a_process_takes_its_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(LIMIT, raising=False)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert threads() == cores
    for said, count in (("1", 1), ("0", 1), ("100000", cores), ("", cores), ("many", cores), ("-1", cores)):
        monkeypatch.setenv(LIMIT, said)
        assert threads() == count, said


@pytest.mark.parametrize("count", [1, 3])
def test_parts_come_back_in_order(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setattr("protocol.threads.threads", lambda: count)
    names, all_at_once = set[str](), threading.Barrier(count)

    def work(part: int) -> int:
        names.add(threading.current_thread().name)
        if part < count:
            all_at_once.wait(60)
        return part * part

    assert spread(work, range(20)) == [part * part for part in range(20)]
    assert spread(work, []) == []
    assert len(names) == count
    assert (names == {threading.current_thread().name}) == (count == 1)


def test_an_error_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("protocol.threads.threads", lambda: 2)
    with pytest.raises(ZeroDivisionError):
        spread(lambda part: 1 // part, [1, 0, 1])
    both = threading.Barrier(2)

    def fail(part: int) -> None:
        both.wait(60)
        raise ValueError(part)

    for _ in range(50):
        with pytest.raises(ValueError, match=r"^0$"):  # the first part's, whichever came first
            spread(fail, range(2))
