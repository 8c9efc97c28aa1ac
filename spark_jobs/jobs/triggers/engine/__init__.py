"""The matcher, pure: no Spark, no clock, no I/O. The batching and the order of what comes in change no firing."""
