"""Mixes: which rates a block can carry, and schedules of services that take turns on blocks."""
