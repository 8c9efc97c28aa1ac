"""The bars job: ticks of the event log -> running bars, final bars and their revisions."""
