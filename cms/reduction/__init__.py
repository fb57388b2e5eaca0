"""Smaller problems with the same answers, and the way back from them.

Imports ``certificate`` and what stands before it.
"""
