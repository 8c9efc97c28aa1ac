"""What the relay tells about itself."""

from __future__ import annotations

from dataclasses import dataclass

from relay.protocol.envelope import SBE_VERSION, VERSION
from relay.protocol.v1 import common_pb2, request_pb2

__all__ = ["RelayInfo"]

_ENCODINGS = {VERSION: "protobuf", SBE_VERSION: "sbe"}
_NAMES = {number: name.lower() for name, number in common_pb2.Transport.Kind.items()}


@dataclass(frozen=True, slots=True)
class RelayInfo:
    """Answer to a probe.

    Attributes:
        relay_epoch: random for each start of the relay.
        manager_available: whether requests can be served now.
        catalog_uri, catalog_name, warehouse, object_store_endpoint: where the tables are.
        server_time_ns: the relay's clock.
        transports: ways to market data that the relay offers: ``tcp``, ``shm``.
        encodings: forms in which it writes market data into shared memory: ``protobuf``, ``sbe``.
    """

    relay_epoch: int
    protocol_versions: tuple[int, ...]
    manager_available: bool
    catalog_uri: str
    catalog_name: str
    warehouse: str
    object_store_endpoint: str
    server_time_ns: int
    transports: tuple[str, ...] = ("tcp",)
    encodings: tuple[str, ...] = ("protobuf",)

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
            transports=tuple(_NAMES[way.kind] for way in reply.transports if way.kind in _NAMES),
            encodings=_encodings(reply),
        )


def _encodings(reply: request_pb2.ProbeReply) -> tuple[str, ...]:
    said = {version for way in reply.transports for version in way.record_versions}
    return tuple(name for version, name in _ENCODINGS.items() if version in (said or {VERSION}))
