"""Pure engines of the manager: a message or a tick in, with the time; commands out."""
