"""What Binance's binary streams ask for before they are used: single trades, a key, and the accelerator."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ingestors.exchanges.live.binance import BinanceStream
from ingestors.exchanges.live.port import LiveProtocol
from ingestors.settings import IngestorSettings
from relay.errors import SettingsError
from relay.protocol.codes import ErrorCode

__all__ = ["api_key_headers", "sbe_protocol"]

_WANTS = 'ingestor.binance_transport = "sbe"'
_KEY_HEADER = "X-MBX-APIKEY"


def sbe_protocol(stream: BinanceStream) -> Callable[[], LiveProtocol]:
    """Return what makes a connection's protocol.

    Args:
        stream: whose ids the ticker's log has; the binary streams know those of single trades alone.

    Raises:
        SettingsError: other ids are wanted, or MISSING_EXTRA: the accelerator is not installed.
    """
    if stream != "trade":
        raise SettingsError(
            f'{_WANTS} has single trades and their ids only, got ingestor.binance_stream = "{stream}", whose ids are '
            'of another sequence; set binance_stream = "trade", or binance_transport = "json"'
        )
    try:
        from ingestors.exchanges.live.binance_sbe import BinanceSbeProtocol
    except ImportError as error:
        raise SettingsError(
            f"{_WANTS} needs the accelerator, which is not installed ({error}); install relay-accel, or set "
            'binance_transport = "json"',
            code=ErrorCode.MISSING_EXTRA,
        ) from error
    return BinanceSbeProtocol


def api_key_headers(settings: IngestorSettings) -> Mapping[str, str]:
    """Return the headers of a handshake; the key is the one place where the secret is taken out.

    Raises:
        SettingsError: there is no key, or none that a header can hold. The text never has the key.
    """
    key = settings.binance_api_key.get_secret_value()
    if not key:
        raise SettingsError(
            f"{_WANTS} needs an API key of Binance (kind Ed25519, no permissions), got none; set "
            "ingestor.binance_api_key (RELAY_INGESTOR_BINANCE_API_KEY)"
        )
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise SettingsError(
            f"expected printable ASCII without blanks in ingestor.binance_api_key, got others among {len(key)}"
        )
    return {_KEY_HEADER: key}
