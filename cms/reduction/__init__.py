"""Smaller problems with the same answers, and the way back from them.

Imports ``referee`` and what stands before it.
"""
