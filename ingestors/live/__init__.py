"""The live side of an ingestor: sockets of exchanges in, ticks, gaps and beats out."""
