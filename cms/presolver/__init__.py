"""Smaller problems with the same answers, and the way back from them.

Imports ``checker`` and what stands before it.
"""
