"""Runs the whole platform on one machine: Java, jars, the embedded Kafka, and every process with its log."""
