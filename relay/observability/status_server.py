"""A process's own HTTP endpoint on a thread: ``/metrics`` (Prometheus text), ``/status`` (JSON), ``/health``."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from relay.errors import SettingsError
from relay.observability.counters import Counters, shown_name

__all__ = ["StatusServer"]

_NOT_IN_A_METRIC = re.compile("[^a-zA-Z0-9_]")
StatusSource = Callable[[], Mapping[str, object]]


class _CounterCollector(Collector):
    def __init__(self, counters: Counters) -> None:
        self._counters = counters

    def collect(self) -> Iterable[Metric]:
        metrics: dict[str, tuple[str, int]] = {}
        for name, value in self._counters.snapshot().items():
            metric = f"market_{_NOT_IN_A_METRIC.sub('_', name)}"
            text, before = metrics.get(metric, (shown_name(name), 0))
            # A name that came twice would make the whole text invalid.
            metrics[metric] = (text, before + value)
        for metric, (text, value) in metrics.items():
            yield GaugeMetricFamily(metric, text, value=value)


class StatusServer:
    """Serves counters and status of one process.

    Args:
        address: host to bind, loopback by default settings.
        port: TCP port; 0 takes a free one (see :attr:`port`).
        counters: served under ``/metrics`` and inside ``/status``.
        status: called for each ``/status``; ``{"ready": bool, …}``. ``/health`` answers 200 when ready, else 503.

    Raises:
        SettingsError: the port is taken.
    """

    def __init__(self, *, address: str, port: int, counters: Counters, status: StatusSource) -> None:
        registry = CollectorRegistry()
        registry.register(_CounterCollector(counters))

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path == "/metrics":
                    self._answer(200, generate_latest(registry), "text/plain; version=0.0.4")
                    return
                state = dict(status())
                ready = bool(state.get("ready", False))
                if self.path == "/health":
                    self._answer(200 if ready else 503, json.dumps({"ready": ready}).encode(), "application/json")
                elif self.path == "/status":
                    state["counters"] = counters.snapshot()
                    self._answer(200, json.dumps(state).encode(), "application/json")
                else:
                    self._answer(404, b'{"error": "expected /metrics, /status or /health"}', "application/json")

            def _answer(self, code: int, body: bytes, content_type: str) -> None:
                self.send_response(code)
                self.send_header("Content-Type", content_type)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it so
                """Requests are not logged."""

        try:
            self._server = ThreadingHTTPServer((address, port), Handler)
        except OSError as error:
            raise SettingsError(f"cannot bind the status endpoint {address}:{port}: {error}") from error
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, name="status-server", daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """The bound port."""
        return int(self._server.server_address[1])

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
