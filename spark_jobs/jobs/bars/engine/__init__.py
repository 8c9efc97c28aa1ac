"""Bars from ticks, pure: no Spark, no clock, no I/O. The order and the batching of what comes in change no final bar."""
