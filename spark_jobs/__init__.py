"""The manager and the Spark jobs."""
