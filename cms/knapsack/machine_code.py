"""Machine code that is kept between processes, wherever it can be kept."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import FunctionType
from typing import Any

import numba
from numba.core.caching import FunctionCache


class _OptionalCache(FunctionCache):
    """Numba's files of compiled code; those that cannot be read or written might as well not be."""

    def load_overload(self, signature: Any, target: Any) -> Any:
        with suppress(Exception):
            return super().load_overload(signature, target)
        return None

    def save_overload(self, signature: Any, result: Any) -> None:
        with suppress(Exception):
            super().save_overload(signature, result)


def compile_functions(
    scope: Mapping[str, Any],
    names: Sequence[str],
    entries: Sequence[str],
    sources: Sequence[str] = (),
) -> list[Callable[..., Any]]:
    """Compile some functions of a module, which neither make nor return arrays.

    They themselves stay plain. Compiled code leaves the interpreter to other threads while it runs.
    Where no folder can be written, as in a container, it is compiled in every process.
    """
    logging.getLogger("cms").info("loading %s (compiling takes seconds, once)", ", ".join(entries))
    found = dict(scope)
    sources = sorted({__file__, *sources, *(found[name].__code__.co_filename for name in names)})
    digest = hashlib.sha256(numba.__version__.encode())
    with suppress(OSError):  # installed without its sources
        for source in sources:
            digest.update(Path(source).read_bytes())
    for name in names:
        twin = FunctionType(found[name].__code__, found, name)
        # Numba tells versions of one file apart by its time and size; names tell all of them apart.
        twin.__qualname__ = f"{name}_{digest.hexdigest()[:12]}"
        # Inlined, and without reference counts of arrays: they would take as long as the work.
        options: Any = {"inline": "never" if name in entries else "always", "_nrt": False}
        compiled: Any = numba.njit(error_model="numpy", nogil=True, **options)(twin)
        if name in entries:
            with suppress(RuntimeError, OSError, ValueError):  # no folder can be written
                compiled._cache = _OptionalCache(twin)
        found[name] = compiled
    return [found[name] for name in entries]
