"""Frames and headers of other messaging systems, and compressed frames: bytes to frozen values, and back.

==================  ================================================================
:mod:`.aeron`       Aeron's UDP protocol: eight frames, positions, a walk over a datagram
:mod:`.zigbolt`     ZigBolt's channel: packets, NAK bodies, fragments
:mod:`.nbmq`        nbmq: data and control frames, hashes
:mod:`.nanomq`      NanoMQ: messages, log records, TCP frames
:mod:`.compression` whole frames of compressed bytes: token, LZ4, Zstandard
==================  ================================================================

Every value has ``decode(buffer, offset=0)``, ``encode(buffer, offset=0)`` and ``to_bytes()``. What is cut, forged or
contradicts itself is a :class:`WireError`. Example::

    from relay_accel.wire import aeron

    nak = aeron.NakFrame(session_id=7, stream_id=1001, term_id=3, term_offset=4096, length=1408)
    assert aeron.NakFrame.decode(nak.to_bytes()) == nak
    for offset, frame in aeron.walk(datagram):
        ...

Layouts: proto/spec/0016, 0017.
"""

from __future__ import annotations

from relay_accel._wire import WireError
from relay_accel.wire import aeron, compression, nanomq, nbmq, zigbolt
from relay_accel.wire.value import WireValue

__all__ = ["WireError", "WireValue", "aeron", "compression", "nanomq", "nbmq", "zigbolt"]
