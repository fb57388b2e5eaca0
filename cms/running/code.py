"""Which code runs here: what a process elsewhere must have as well."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.util import find_spec
from pathlib import Path

_PACKAGES = ("cms", "algorithms", "instances")
#: What is no source: compiled files, which come and go.
_COMPILED = ("*.pyc", "*.nbi", "*.nbc")


@cache
def code_digest() -> str:
    """Return a digest of the package's files, code and data alike: 12 hexadecimal digits."""
    digest = hashlib.sha256()
    for package in _PACKAGES:
        spec = find_spec(package)
        for place in (spec.submodule_search_locations or []) if spec else []:
            root = Path(place)
            for path in sorted(root.rglob("*")):
                if not path.is_file() or any(path.match(pattern) for pattern in _COMPILED):
                    continue
                digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]
