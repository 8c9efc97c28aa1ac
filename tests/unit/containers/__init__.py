"""Tests of the files that put the platform into containers."""
