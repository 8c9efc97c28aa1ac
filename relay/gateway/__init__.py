"""The gateway process: settings, sockets, loop."""
