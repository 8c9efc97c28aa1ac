"""Bars from ticks, pure: no Spark, no clock, no I/O. Neither order nor batches of what comes in change a final bar."""
