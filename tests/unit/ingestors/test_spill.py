"""Records that wait on disk: in order, bounded, over a restart, and never misread."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingestors.live.spill import LogEntry, Spill
from relay.errors import SettingsError, StorageError


def entry(number: int, size: int = 20) -> LogEntry:
    return LogEntry("market-tick", b"BTC/USDT.BINANCE", number.to_bytes(4, "big") * (size // 4), number, number)


def drained(spill: Spill) -> list[int]:
    numbers = []
    while (waiting := spill.peek()) is not None:
        assert waiting == entry(waiting.first, len(waiting.value))
        numbers.append(waiting.first)
        spill.take()
    return numbers


def test_what_is_appended_comes_back_in_order_over_segments(tmp_path: Path) -> None:
    spill = Spill(tmp_path, bytes_max=1 << 20, segment_bytes=500)
    assert not spill
    for number in range(100):
        assert spill.append(entry(number))
    assert len(list(tmp_path.glob("*.spill"))) > 5
    assert drained(spill) == list(range(100))
    assert not spill
    assert spill.waiting_bytes == 0
    assert not list(tmp_path.glob("*.spill"))


def test_reading_and_writing_go_on_side_by_side(tmp_path: Path) -> None:
    spill, seen = Spill(tmp_path, bytes_max=1 << 20, segment_bytes=300), []
    for number in range(60):
        spill.append(entry(number))
        if number % 3 == 0:
            waiting = spill.peek()
            assert waiting is not None
            seen.append(waiting.first)
            spill.take()
    assert seen + drained(spill) == list(range(60))


def test_what_waited_at_a_crash_waits_at_the_next_start(tmp_path: Path) -> None:
    first = Spill(tmp_path, bytes_max=1 << 20)
    for number in range(10):
        first.append(entry(number))
    first.close()
    second = Spill(tmp_path, bytes_max=1 << 20)
    second.append(entry(10))
    assert drained(second) == list(range(11))


def test_two_ingestors_do_not_share_a_folder(tmp_path: Path) -> None:
    spill = Spill(tmp_path, bytes_max=1 << 20)
    with pytest.raises(SettingsError, match="in use by another ingestor"):
        Spill(tmp_path, bytes_max=1 << 20)
    spill.close()
    Spill(tmp_path, bytes_max=1 << 20).close()


def test_the_bound_holds_and_leaves_room_for_what_explains_the_rest(tmp_path: Path) -> None:
    spill = Spill(tmp_path, bytes_max=2_000)
    kept = 0
    while spill.append(entry(kept)):
        kept += 1
    assert spill.waiting_bytes <= 2_000
    assert spill.append(entry(kept), is_kept=True)
    assert not spill.append(entry(0, 400), is_kept=True)
    assert drained(spill) == list(range(kept + 1))
    assert spill.append(entry(0))


def test_a_full_disk_is_an_error_and_what_was_kept_stays_readable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spill = Spill(tmp_path, bytes_max=1 << 20)
    spill.append(entry(1))

    class Full:
        def write(self, data: bytes) -> int:
            raise OSError(28, "No space left on device")

        def close(self) -> None:
            return None

    monkeypatch.setattr(spill, "_writer", Full())
    with pytest.raises(StorageError, match="make room"):
        spill.append(entry(2))
    spill.append(entry(3))
    assert drained(spill) == [1, 3]


@settings(max_examples=150, deadline=None)
@given(cut=st.integers(0, 600), flip=st.one_of(st.none(), st.tuples(st.integers(0, 599), st.integers(0, 7))))
def test_a_cut_or_damaged_segment_gives_its_whole_frames_and_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, cut: int, flip: tuple[int, int] | None
) -> None:
    folder = tmp_path_factory.mktemp("spill")
    spill = Spill(folder, bytes_max=1 << 20)
    for number in range(8):
        spill.append(entry(number))
    spill.close()
    (path,) = folder.glob("*.spill")
    data = bytearray(path.read_bytes())[: max(0, len(path.read_bytes()) - cut)]
    if flip is not None and flip[0] < len(data):
        data[flip[0]] ^= 1 << flip[1]
    path.write_bytes(data)
    again = Spill(folder, bytes_max=1 << 20)
    again.append(entry(99))
    numbers = drained(again)
    assert numbers[-1] == 99
    assert numbers[:-1] == list(range(len(numbers) - 1))
    again.close()


@given(st.binary(max_size=80))
def test_any_payload_is_an_entry_or_a_value_error(payload: bytes) -> None:
    try:
        found = LogEntry.decode(payload)
    except ValueError:
        return
    assert found.encode() == payload
