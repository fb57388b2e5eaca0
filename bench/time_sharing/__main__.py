"""``python -m bench.time_sharing``."""

from .command import main

if __name__ == "__main__":
    raise SystemExit(main())
