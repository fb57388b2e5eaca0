"""Micro-benchmarks of the hot paths: ``python -m bench.micro``.

pytest-benchmark measures; what is kept and compared are multiples of a yardstick that is measured
beside them, so that a baseline means something on another machine, too.
"""
