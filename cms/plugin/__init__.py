"""What an algorithm is, how it is found, and the border that its objects do not cross.

Imports ``reduction`` and what stands before it; no algorithm by name.
"""
