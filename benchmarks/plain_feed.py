"""The plain consumer: ``python -m benchmarks.plain_feed URL PUBLISH_TO`` publishes each frame with its receive time."""

from __future__ import annotations

import asyncio
import sys
import threading
import time

import msgspec
import zmq
from picows import WSFrame, WSListener, WSMsgType, WSTransport, ws_connect

__all__ = ["main"]


class _Data(msgspec.Struct):
    s: str


class _Message(msgspec.Struct):
    data: _Data


class _Forward(WSListener):
    def __init__(self, publisher: zmq.Socket[bytes]) -> None:
        self._publisher, self._read = publisher, msgspec.json.Decoder(_Message).decode

    def on_ws_frame(self, transport: WSTransport, frame: WSFrame) -> None:
        received_ns = time.time_ns()
        del transport
        if frame.msg_type != WSMsgType.TEXT:
            return
        body = frame.get_payload_as_bytes()
        symbol = self._read(body).data.s
        self._publisher.send_multipart((symbol.encode(), received_ns.to_bytes(8, "big"), body))


async def _run(url: str, publish_to: str) -> None:
    publisher: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.PUB)
    publisher.setsockopt(zmq.SNDHWM, 1_000_000)
    publisher.connect(publish_to)
    transport, _ = await ws_connect(lambda: _Forward(publisher), url)
    await transport.wait_disconnected()


def main(url: str, publish_to: str) -> None:
    """Run until the process that started it is gone."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    asyncio.run(_run(url, publish_to))


def _end_with_parent() -> None:
    sys.stdin.buffer.read()
    import os

    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
