"""Named segments: names, permissions, damage, room; each refusal with its code."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.accelerator import accelerator

ra = accelerator()


@pytest.fixture
def folder(tmp_path: Path) -> str:
    tmp_path.chmod(0o700)
    return str(tmp_path)


@pytest.mark.parametrize("name", ["", "../x", "a/b", "A", ".x", "a b", "x" * 129, "ü", "a\0b"])
def test_a_name_with_a_way_out_is_refused(folder, name):
    with pytest.raises((ra.ArgumentError, ValueError)) as refused:
        ra.Ring.create(name, 1024, directory=folder)
    if isinstance(refused.value, ra.ArgumentError):
        assert refused.value.code == "INVALID_NAME"


def test_what_is_there_is_listed_and_unlinked_and_who_has_it_keeps_it(folder):
    ring = ra.Ring.create("a", 1024, directory=folder)
    ra.Counters.create("b", directory=folder)
    assert ra.segment_names(directory=folder) == ["a", "b"]
    assert oct(Path(folder, "a").stat().st_mode & 0o777) == "0o600"
    producer, consumer = ring.producer(), ring.consumer()
    assert ra.unlink("a", directory=folder)
    assert not ra.unlink("a", directory=folder)
    assert not ring.is_named
    producer.offer(b"still")
    assert consumer.take() == b"still"


def test_the_default_directory_is_of_this_user_alone():
    assert ra.default_directory().endswith(str(os.geteuid()))


def test_a_second_one_of_a_name_is_refused_and_a_stale_one_is_replaced(folder):
    ring = ra.Ring.create("a", 1024, directory=folder)
    for replace in (False, True):
        with pytest.raises(ra.StorageError) as refused:
            ra.Ring.create("a", 1024, directory=folder, replace_stale=replace)
        assert refused.value.code == "ALREADY_EXISTS"
    assert not ring.is_stale
    child = os.fork()
    if child == 0:
        ra.Ring.create("dead", 2048, directory=folder)
        os._exit(0)
    os.waitpid(child, 0)
    assert ra.Ring.open("dead", directory=folder).is_stale
    assert ra.Ring.create("dead", 4096, directory=folder, replace_stale=True).length == 4096


@pytest.mark.parametrize(("offset", "content", "code"), [
    (0, b"not ours", "INVALID_CHANNEL"),
    (0, bytes(8), "NOT_READY"),
    (8, b"\x63\0\0\0", "UNSUPPORTED_VERSION"),
    (12, b"\x01\0\0\0", "INVALID_TERM_LENGTH"),
    (12, b"\0\0\x01\0", "TERM_LENGTH_MISMATCH"),
    (16, b"\x04\0\0\0", "WRONG_KIND"),
])  # fmt: skip
def test_a_damaged_or_foreign_segment_is_refused_by_name(folder, offset, content, code):
    ra.Ring.create("a", 1024, directory=folder)
    with Path(folder, "a").open("r+b") as file:
        file.seek(offset)
        file.write(content)
    with pytest.raises(ra.AccelError) as refused:
        ra.Ring.open("a", directory=folder)
    assert refused.value.code == code
    assert "a" in str(refused.value)


def test_a_segment_is_opened_as_what_it_is_alone(folder):
    ra.Broadcast.create("b", 1024, directory=folder)
    ra.Channel.create("c", 4096, directory=folder)
    for name, kind in (("b", ra.Ring), ("b", ra.Counters), ("b", ra.MpscRing), ("c", ra.Ring), ("b", ra.Channel)):
        with pytest.raises(ra.SegmentError) as refused:
            kind.open(name, directory=folder)
        assert refused.value.code in ("WRONG_KIND", "INVALID_CHANNEL")


def test_a_directory_that_others_may_enter_a_link_and_a_missing_name_are_refused(folder, tmp_path):
    open_to_others = tmp_path / "open"
    open_to_others.mkdir()
    open_to_others.chmod(0o755)
    (tmp_path / "link").symlink_to(folder)
    for wrong in (open_to_others, tmp_path / "link"):
        with pytest.raises(ra.AccessError):
            ra.Ring.create("a", 1024, directory=str(wrong))
    with pytest.raises(ra.StorageError) as refused:
        ra.Ring.open("nobody", directory=folder)
    assert refused.value.code == "NOT_FOUND"


@pytest.mark.parametrize("length", [0, 63, 100, 2**31])
def test_a_length_that_is_not_allowed_is_refused_with_what_is(folder, length):
    with pytest.raises(ra.ArgumentError, match="power of two"):
        ra.Ring.create("a", length, directory=folder)
    assert ra.segment_names(directory=folder) == []


def test_a_file_that_was_cut_is_noticed(folder):
    ring = ra.Ring.create("a", 1 << 16, directory=folder)
    ring.verify_length()
    os.truncate(f"{folder}/a", 4096)
    with pytest.raises(ra.SegmentError) as cut:
        ring.verify_length()
    assert cut.value.code == "TERM_LENGTH_MISMATCH"


def test_the_heap_has_no_segment_to_ask_about():
    for made in (ra.Ring.heap(1024), ra.Channel.heap(4096), ra.MpscRing.heap(1024), ra.Counters.heap()):
        assert made.name is None
        with pytest.raises(ValueError, match="named segment"):
            _ = made.epoch_ns


@pytest.mark.parametrize("first", [b"", b"foreign!"], ids=["empty", "of another kind"])
def test_looking_at_a_foreign_file_with_holes_takes_no_memory_for_it(folder, first):
    path = Path(folder) / "holes"
    path.touch(0o600)
    path.write_bytes(first)
    os.truncate(path, 1 << 26)
    before = path.stat().st_blocks
    for kind in (ra.Ring, ra.Counters):
        with pytest.raises((ra.SegmentError, ra.BusyError)):
            kind.open("holes", directory=folder)
    assert path.stat().st_blocks == before
