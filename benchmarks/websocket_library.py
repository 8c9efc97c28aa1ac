"""Which WebSocket library takes 50,000 small messages a second with the least time and processor?"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time

from benchmarks.report import Latency, Report

__all__ = ["run"]

_PER_SECOND = 50_000
_TURN_S = 0.001
_PAD = b'{"e":"trade","s":"BTCUSDT","p":"37000.12000000","q":"0.00123000","m":true,"M":true,"x":"%s"}' % (b"0" * 40)
_BYTES_MAX = 4 * 1024 * 1024


def run(*, quick: bool) -> Report:
    """Measure both clients, one after another, each in a process of its own against a sender of its own."""
    seconds = 1 if quick else 5
    report = Report(
        "websocket_library",
        "Which WebSocket library takes 50,000 small messages a second with the least time and processor?",
        layout="sender and receiver in one process each, loopback TCP, every message a frame, written each millisecond",
        durability="none",
    )
    for name in ("websockets", "picows"):
        command = [sys.executable, "-m", "benchmarks.websocket_library", name, str(seconds)]
        answer = subprocess.run(command, capture_output=True, text=True, check=True)
        count, p50, p99, p999, longest, cpu_us, taken_ms = map(int, answer.stdout.split())
        report.add(
            name,
            messages_per_second=count * 1_000 // taken_ms,
            cpu_us_per_message=round(cpu_us / count, 2),
            p50_us=p50,
            p99_us=p99,
            p99_9_us=p999,
            max_us=longest,
        )
    slow, fast = report.rows
    report.ratio("cpu_picows_to_websockets", fast["cpu_us_per_message"] / slow["cpu_us_per_message"], goal_max=1.0)
    report.ratio("p99_picows_to_websockets", fast["p99_us"] / max(1, slow["p99_us"]))
    return report


def _receiver(name: str, seconds: int) -> None:
    """Start a sender, take everything in, print the numbers."""
    wanted = seconds * _PER_SECOND
    with subprocess.Popen(
        [sys.executable, "-m", "benchmarks.websocket_library", "send", str(wanted)], stdout=subprocess.PIPE, text=True
    ) as sender:
        port = int(sender.stdout.readline()) if sender.stdout is not None else 0
        latency = Latency()
        read = _read_picows if name == "picows" else _read_websockets
        cpu_ns = time.process_time_ns()
        first_ns, last_ns = asyncio.run(read(f"ws://127.0.0.1:{port}/", latency, wanted))
        cpu_ns = time.process_time_ns() - cpu_ns
        sender.wait()
    shown = [latency.p_us(p) for p in (50, 99, 99.9, 100)]
    print(latency.count, *shown, cpu_ns // 1_000, max(1, (last_ns - first_ns) // 1_000_000))


def _note(latency: Latency, message: bytes) -> None:
    latency.record_ns(time.time_ns() - int(message[:19]))


async def _read_picows(url: str, latency: Latency, wanted: int) -> tuple[int, int]:
    from picows import WSFrame, WSListener, WSMsgType, WSTransport, ws_connect

    class Receiver(WSListener):
        first_ns = 0

        def on_ws_frame(self, transport: WSTransport, frame: WSFrame) -> None:
            if frame.msg_type == WSMsgType.TEXT:
                self.first_ns = self.first_ns or time.time_ns()
                _note(latency, frame.get_payload_as_bytes())
                if latency.count == wanted:
                    transport.disconnect()

    transport, receiver = await ws_connect(Receiver, url, max_frame_size=_BYTES_MAX)
    await transport.wait_disconnected()
    return receiver.first_ns, time.time_ns()  # type: ignore[attr-defined]


async def _read_websockets(url: str, latency: Latency, wanted: int) -> tuple[int, int]:
    from websockets.asyncio.client import connect

    first_ns = 0
    async with connect(url, compression=None, max_size=_BYTES_MAX, ping_interval=None) as socket:
        while latency.count < wanted:
            message = await socket.recv(decode=False)
            first_ns = first_ns or time.time_ns()
            _note(latency, message)
    return first_ns, time.time_ns()


def _sender(wanted: int) -> None:
    asyncio.run(_send(wanted))


async def _send(wanted: int) -> None:
    from aiohttp import web

    from ingestors.simulation.socket_frames import TEXT, frame

    ended = asyncio.Event()

    async def serve(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(compress=False)
        await socket.prepare(request)
        transport = request.transport
        assert transport is not None
        began, sent = time.perf_counter(), 0
        while sent < wanted and not transport.is_closing():
            due = min(wanted, int((time.perf_counter() - began) * _PER_SECOND))
            if due > sent:
                text = b"%d %s" % (time.time_ns(), _PAD)
                transport.write(frame(TEXT, text) * (due - sent))
                sent = due
            await asyncio.sleep(_TURN_S)
        async for _ in socket:
            pass
        ended.set()
        return socket

    application = web.Application()
    application.router.add_get("/", serve)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(runner.addresses[0][1], flush=True)
    await ended.wait()
    await runner.cleanup()


if __name__ == "__main__":
    mode, number = sys.argv[1], int(sys.argv[2])
    if mode == "send":
        _sender(number)
    else:
        _receiver(mode, number)
