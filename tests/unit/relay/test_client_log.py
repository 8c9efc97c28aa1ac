"""The client library's messages, thinned out."""

from __future__ import annotations

import logging

from relay.eventlog.client_log import RepeatFilter


class Told:
    """A logger behind the filter, at a time that the test sets."""

    def __init__(self) -> None:
        self.now = 0.0
        self.lines: list[str] = []
        self._filter = RepeatFilter(30.0, clock=lambda: self.now)

    def say(self, text: str, *args: object, level: int = logging.ERROR) -> None:
        record = logging.LogRecord("kafka", level, __file__, 1, text, args, None)
        if self._filter.filter(record):
            self.lines.append(record.getMessage())


def test_one_message_of_a_kind_passes_in_an_interval_and_the_next_tells_how_many_were_left_out() -> None:
    told = Told()
    for number in range(41):
        told.now = number * 0.5
        told.say("FAIL %s refused", "broker-1")
    told.now = 30.0
    told.say("FAIL %s refused", "broker-1")
    assert told.lines == ["FAIL broker-1 refused", "FAIL broker-1 refused (and 40 like it since the last)"]


def test_other_kinds_and_levels_pass_beside_it() -> None:
    told = Told()
    told.say("FAIL refused")
    told.say("ERROR 1/1 brokers are down")
    told.say("FAIL refused", level=logging.WARNING)
    told.say("FAIL refused")
    assert told.lines == ["FAIL refused", "ERROR 1/1 brokers are down", "FAIL refused"]


def test_after_a_quiet_interval_nothing_is_said_to_be_left_out() -> None:
    told = Told()
    told.say("FAIL refused")
    told.now = 31.0
    told.say("FAIL refused")
    assert told.lines == ["FAIL refused", "FAIL refused"]
