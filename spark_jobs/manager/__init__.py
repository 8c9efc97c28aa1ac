"""The manager: request intake, slot broker, durable job table, notification forwarder."""
