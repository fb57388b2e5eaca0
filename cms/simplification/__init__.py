"""Of schedules that cost the same the tidier one: fewer different machines, head-room more even.

Imports ``solving`` and what stands before it.
"""
