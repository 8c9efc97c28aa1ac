"""What the relay tells about itself."""

from __future__ import annotations

from dataclasses import dataclass

from relay.protocol.v1 import request_pb2

__all__ = ["RelayInfo"]


@dataclass(frozen=True, slots=True)
class RelayInfo:
    """Answer to a probe.

    Attributes:
        relay_epoch: random for each start of the relay.
        manager_available: whether requests can be served now.
        catalog_uri, catalog_name, warehouse, object_store_endpoint: where the tables are.
        server_time_ns: the relay's clock.
    """

    relay_epoch: int
    protocol_versions: tuple[int, ...]
    manager_available: bool
    catalog_uri: str
    catalog_name: str
    warehouse: str
    object_store_endpoint: str
    server_time_ns: int

    @classmethod
    def of(cls, reply: request_pb2.ProbeReply) -> RelayInfo:
        """Return the value of a message."""
        return cls(
            relay_epoch=reply.relay_epoch,
            protocol_versions=tuple(reply.protocol_versions),
            manager_available=reply.manager_available,
            catalog_uri=reply.catalog_uri,
            catalog_name=reply.catalog_name,
            warehouse=reply.warehouse,
            object_store_endpoint=reply.object_store_endpoint,
            server_time_ns=reply.server_time,
        )
