"""The golden memory images, read by the Python face: whole ones say what their index says, damaged ones never crash."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.accelerator import accelerator

ra = accelerator()

IMAGES = Path(__file__).resolve().parents[3] / "proto" / "golden" / "memory"
INDEX = {image["file"]: image for image in json.loads((IMAGES / "index.json").read_text())}
FACES = {"channel": "Channel", "spsc": "Ring", "mpsc": "MpscRing", "fixed": "FixedRing"}
STEP = 64
FLIPS = 300
PAGE = 4096


@pytest.fixture
def opened(tmp_path: Path) -> Callable[[str, bytes], object]:
    """Puts bytes into a folder as a segment and opens it as what its image is."""
    tmp_path.chmod(0o700)
    path = tmp_path / "image"

    def put(file: str, content: bytes) -> object:
        path.unlink(missing_ok=True)
        path.touch(0o600)
        path.write_bytes(content)
        return getattr(ra, FACES[INDEX[file]["kind"]]).open("image", directory=str(tmp_path), pre_fault=False)

    return put


def unread(segment: object) -> list[tuple[int, bytes]]:
    """All that a consumer reads, at most a thousand messages; items have no type."""
    consumer = segment.consumer()
    if isinstance(segment, ra.FixedRing):
        return [(0, bytes(item)) for item in consumer.pop_batch(1000)]
    return consumer.poll_batch(1000).messages()


def expected(file: str) -> list[tuple[int, bytes]]:
    return [(message["type_id"], bytes.fromhex(message["payload"])) for message in INDEX[file]["unread"]]


def used(segment: object) -> list[tuple[int, bytes]]:
    """Reads, writes and reads again, as a process does that trusts what it opened; errors are values or AccelErrors."""
    got = unread(segment)
    producer = segment.producer()
    if isinstance(segment, ra.FixedRing):
        producer.push(bytes(segment.item_length))
    else:
        producer.offer(b"written behind it", 9)
        producer.counts()
    return got + unread(segment)


def test_every_image_of_the_folder_is_in_its_index():
    assert sorted(INDEX) == sorted(path.name for path in IMAGES.glob("*.bin"))


@pytest.mark.parametrize("file", INDEX)
def test_an_image_is_read_as_its_index_says(file, opened):
    image, content = INDEX[file], (IMAGES / file).read_bytes()
    segment = opened(file, content)
    if isinstance(segment, ra.FixedRing):
        assert (segment.item_length, segment.item_count) == (image["item_length"], image["length"])
    else:
        assert segment.length == image["length"]
    assert unread(segment) == expected(file)


@pytest.mark.parametrize("file", INDEX)
def test_writing_goes_on_where_an_image_ends(file, opened):
    """Not behind a claim in progress, which the image of many producers ends with: nothing after it can be seen."""
    written = {"fixed": [(0, bytes(24))], "mpsc": []}.get(INDEX[file]["kind"], [(9, b"written behind it")])
    assert used(opened(file, (IMAGES / file).read_bytes())) == expected(file) + written


@pytest.mark.parametrize("file", INDEX)
def test_an_image_that_was_cut_anywhere_is_refused(file, opened):
    content = (IMAGES / file).read_bytes()
    for length in range(0, len(content), STEP):
        with pytest.raises(ra.AccelError) as refused:
            opened(file, content[:length])
        assert refused.value.code in ("INVALID_ARGUMENT", "INVALID_CHANNEL", "TERM_LENGTH_MISMATCH"), length
    with pytest.raises(ra.SegmentError):
        opened(file, content + bytes(STEP))


@pytest.mark.parametrize("file", INDEX)
def test_a_flipped_bit_is_refused_or_read_and_never_worse(file, opened):
    """Half of the bits are flipped in the words that steer: the page's, and the headers of frames."""
    content, generator = (IMAGES / file).read_bytes(), random.Random(file)
    steering = [*range(32), *range(128, 136), *range(256, 272), *range(512, 1280), *range(PAGE, PAGE + 192)]
    read = refused = 0
    for number in range(FLIPS):
        at = generator.choice(steering) if number % 2 else generator.randrange(len(content))
        flipped = bytearray(content)
        flipped[at] ^= 1 << generator.randrange(8)
        try:
            got = used(opened(file, bytes(flipped)))
        except ra.AccelError:
            refused += 1
        else:
            read += 1
            assert all(len(payload) <= len(content) for _, payload in got)
    assert read > FLIPS / 4
    assert refused > 0
