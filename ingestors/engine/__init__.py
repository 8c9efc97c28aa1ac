"""Pure engines of the ingestor: no socket, clock, file or environment."""
