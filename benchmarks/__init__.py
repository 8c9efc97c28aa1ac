"""Measurements of the platform; ``python -m benchmarks NAME``. Each begins with the question that it answers."""
