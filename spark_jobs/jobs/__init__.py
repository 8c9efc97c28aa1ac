"""Spark Structured Streaming jobs."""
