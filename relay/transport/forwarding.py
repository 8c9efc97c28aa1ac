"""Passes published messages from socket to socket without copying their frames."""

from __future__ import annotations

from collections.abc import Callable

import zmq
from zmq.backend import Socket as _Raw

from relay.errors import RetryableError
from relay.transport.broadcast import ClientBroadcast
from relay.transport.sockets import Socket

__all__ = ["forward"]

_LAST, _MORE = int(zmq.NOBLOCK), int(zmq.NOBLOCK | zmq.SNDMORE)


def forward(
    source: Socket,
    target: Socket,
    *,
    is_wanted: Callable[[bytes, bytes, int], bool],
    on_misshaped: Callable[[list[bytes]], None],
    broadcast: ClientBroadcast | None = None,
    messages_max: int,
) -> tuple[int, int]:
    """Receive what is there, up to a bound, and send on what is wanted, as it came.

    Args:
        source: received from without blocking.
        target: a publisher, whose sends never block; it drops for a subscriber whose queue is full.
        is_wanted: asked for each message of three frames with its topic, its version frame, and the first byte of its
            body.
        on_misshaped: given every other message, which goes no further.
        broadcast: what is sent on is offered to it first.
        messages_max: so that no socket starves another.

    Returns:
        How many messages were received and how many were sent on.

    Raises:
        RetryableError: the target refused a frame.

    Cost: about half of receiving and sending as bytes, and none for the body's length.
    """
    receive, send = _Raw.recv, _Raw.send
    sent = 0
    for received in range(messages_max):
        try:
            frames = [receive(source, _LAST, False, False)]
        except zmq.Again:
            return received, sent
        while frames[-1].more:
            frames.append(receive(source, _LAST, False, False))
        if len(frames) != 3 or not len(frames[2]):
            on_misshaped([frame.bytes for frame in frames])
            continue
        topic, version, body = frames
        if is_wanted(topic.bytes, version.bytes, body.buffer[0]):
            if broadcast is not None and broadcast.has(topic.bytes):
                broadcast.offer(topic.bytes, body.bytes)
            try:
                send(target, topic, _MORE, False, False)
                send(target, version, _MORE, False, False)
                send(target, body, _LAST, False, False)
            except zmq.ZMQError as error:
                raise RetryableError(f"send failed: {error}") from error
            sent += 1
    return messages_max, sent
