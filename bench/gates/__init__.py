"""The gates: ``python -m bench.gates OLD_COMMIT`` judges a rewrite against an old commit."""
