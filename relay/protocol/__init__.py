"""The wire contract: the leaf that every part shares. No socket, clock, thread, file or environment."""
