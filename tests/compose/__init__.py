"""The platform in containers, run for real: ``make compose-test``."""
