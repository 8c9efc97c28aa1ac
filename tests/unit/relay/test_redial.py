"""When a connection is made anew."""

from __future__ import annotations

from relay.engine.redial import Redial


def test_only_a_failure_that_lasts_makes_it_anew_and_then_again_after_the_same_time() -> None:
    watch = Redial(after_ns=100)
    assert not watch.failed(0)
    assert not watch.failed(99)
    assert watch.failed(100)
    assert not watch.failed(199)
    assert watch.failed(200)


def test_whatever_goes_through_begins_the_time_anew() -> None:
    watch = Redial(after_ns=100)
    watch.failed(0)
    watch.worked()
    assert not watch.failed(150)
    assert watch.failed(250)
