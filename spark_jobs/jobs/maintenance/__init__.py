"""Looks after the tables: small files become few, old snapshots and forgotten files go."""
