"""Client SDK of Market Relay."""
