"""Imported in the process from which workers of a test are forked: their disk is narrow."""

from tests.faults.narrow import narrowed

narrowed()
