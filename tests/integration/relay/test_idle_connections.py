"""Connections that are idle for longer than their heartbeats."""

from __future__ import annotations

import zmq

from relay.transport import SocketKind, SocketLimits, new_context, open_socket

BEAT_MS = 100


def test_a_request_socket_with_heartbeats_survives_being_idle_case_97() -> None:
    """The linked libzmq answers heartbeats on REQ without a message of the user's in between."""
    context, limits = new_context(), SocketLimits(heartbeat_ms=BEAT_MS)
    server = open_socket(context, SocketKind.ROUTER, bind=["tcp://127.0.0.1:*"], limits=limits)
    client = open_socket(context, SocketKind.REQ, connect=[server.getsockopt_string(zmq.LAST_ENDPOINT)], limits=limits)
    ended = client.get_monitor_socket(zmq.EVENT_DISCONNECTED)

    def ask(text: bytes) -> bytes:
        client.send(text)
        assert server.poll(20_000)
        server.send_multipart(server.recv_multipart())
        assert client.poll(20_000)
        return client.recv()

    try:
        assert ask(b"before") == b"before"
        assert not ended.poll(8 * BEAT_MS), "the idle connection was cut"
        assert ask(b"after") == b"after"
    finally:
        client.disable_monitor()
        for socket in (ended, client, server):
            socket.close(0)
        context.term()
