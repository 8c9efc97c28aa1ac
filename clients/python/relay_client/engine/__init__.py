"""The client's engine: messages and ticks in, commands out; no socket, clock or thread."""
