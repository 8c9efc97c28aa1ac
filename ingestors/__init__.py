"""Ingestors: slot workers that fetch from exchanges and write to the event log."""
