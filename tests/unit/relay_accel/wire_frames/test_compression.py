"""Compressed frames in Python: what goes in comes out, other implementations read it, limits hold."""

from __future__ import annotations

import random
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.accelerator import accelerator

accelerator()
from relay_accel import wire  # noqa: E402
from relay_accel.wire.compression import Compression, decompress  # noqa: E402

FORMATS = [one for one in Compression if one.is_built_in]
TEXTS = st.lists(st.tuples(st.binary(min_size=1, max_size=30), st.integers(1, 50))).map(
    lambda parts: b"".join(piece * count for piece, count in parts)
)


@pytest.mark.parametrize("one", FORMATS)
@given(data=st.one_of(st.binary(max_size=500), TEXTS))
def test_any_bytes_come_back_within_the_bound(one, data):
    frame = one.compress(data)
    assert len(frame) <= one.compress_bound(len(data))
    assert one.declared_length(frame) == len(data)
    assert Compression.of_frame(frame) is one
    assert decompress(frame, length_max=len(data)) == data
    assert one.decompress(bytearray(frame), length_max=1 << 20) == data


@pytest.mark.parametrize(("one", "codec"), [(Compression.LZ4, "lz4"), (Compression.ZSTD, "zstd")])
def test_other_implementations_read_the_frames(one, codec):
    pyarrow = pytest.importorskip("pyarrow")
    if one not in FORMATS:
        pytest.skip(f"{one} is not built in")
    data = random.Random(1).randbytes(1000) * 300
    assert pyarrow.Codec(codec).decompress(one.compress(data), len(data)).to_pybytes() == data


def test_a_zstandard_frame_of_another_implementation_is_read():
    pyarrow = pytest.importorskip("pyarrow")
    if Compression.ZSTD not in FORMATS:
        pytest.skip("zstd is not built in")
    frame = pyarrow.Codec("zstd").compress(b"abc" * 1000).to_pybytes()
    assert decompress(frame, length_max=3000) == b"abc" * 1000


@pytest.mark.parametrize("one", FORMATS)
def test_a_frame_of_more_than_the_limit_is_refused_before_it_is_decompressed(one):
    frame = one.compress(bytes(100_000))
    assert len(frame) < 1_000
    with pytest.raises(wire.WireError, match=r"original at byte \d: expected 0 to 99999, got 100000"):
        one.decompress(frame, length_max=99_999)


@pytest.mark.parametrize("one", FORMATS)
def test_damaged_frames_are_refused(one):
    frame = one.compress(b"abc" * 30)
    for length in range(len(frame)):
        with pytest.raises(wire.WireError):
            one.decompress(frame[:length], length_max=1000)
    with pytest.raises(wire.WireError):
        one.decompress(frame + b"\0", length_max=1000)


def test_a_token_frame_that_claims_more_than_its_bytes_can_hold_is_a_bomb():
    frame = bytearray(Compression.TOKEN.compress(b"a"))
    frame[4:8] = (65_535 * 2 + 1).to_bytes(4, "little")
    with pytest.raises(wire.WireError, match="original at byte 4: expected 0 to 131070, got 131071"):
        Compression.TOKEN.decompress(frame, length_max=1 << 30)


def test_other_bytes_are_no_frame():
    with pytest.raises(ValueError, match="expected a frame of token, lz4 or zstd"):
        decompress(b"plain", length_max=10)


@pytest.mark.skipif(not Compression.ZSTD.is_built_in, reason="this build has no Zstandard")
def test_a_length_that_memory_cannot_hold_is_refused_and_ends_no_process():
    code = (
        "import struct; from relay_accel import wire; from relay_accel.wire.compression import decompress\n"
        "frame = bytes.fromhex('28b52ffd') + b'\\xe0' + struct.pack('<Q', 2**62) + b'\\1\\0\\0'\n"
        "try: decompress(frame, length_max=2**63)\n"
        "except wire.WireError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "original at byte 5: expected as many bytes as memory has room for" in done.stdout
