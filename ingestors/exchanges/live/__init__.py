"""Live side of the exchanges: what their sockets say, and how holes are filled by REST."""
