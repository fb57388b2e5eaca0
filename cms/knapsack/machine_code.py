"""Machine code that is kept between processes, wherever it can be kept.

Compiling takes seconds, loading what another process has compiled a quarter of one. Keeping it is a
convenience that may fail without anybody being the worse for it: no folder may be written (in a
container), the disk may be full, a file damaged. Then the code is compiled again.
"""

from __future__ import annotations

import hashlib
import os
import pickle
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import FunctionType
from typing import Any, Literal

import numba
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.serialize import dumps
from numba.misc.appdirs import AppDirs


def compiled(function: Callable[..., Any], sources: Sequence[str]) -> Any:
    """Return the compiled function, which leaves the interpreter to other threads while it runs.

    Parameters
    ----------
    function : function
        Is renamed after the sources.
    sources : sequence of str
        The files that its code comes from. Numba looks at the function's own only, and writes over
        what it has kept of an older one, in two steps that another process may come between; under
        another name a change in any of them is a miss, and nothing is written over.
    """
    with suppress(OSError):  # installed without its sources: no folder is suitable either
        texts = [Path(source).read_bytes() for source in sources]
        digest = hashlib.sha256(b"".join([numba.__version__.encode(), *texts])).hexdigest()
        function.__qualname__ += "_" + digest[:12]
    dispatcher: Any = numba.njit(nogil=True, error_model="numpy")(function)
    # What it raises if there is no folder it could write is a plain RuntimeError; what its own
    # looking around meets, like a path it takes for a zip file's, comes through as it is.
    with suppress(RuntimeError, OSError, ValueError):
        dispatcher._cache = _Kept(function)
    return dispatcher


def twins(
    scope: Mapping[str, Any], names: Sequence[str], inlined: Collection[str] = ()
) -> dict[str, Any]:
    """Return a module's names with some of its functions compiled; they themselves stay plain.

    Parameters
    ----------
    scope : Mapping
        The module's ``vars``.
    names : sequence of str
        The functions, in an order in which each finds those it calls compiled already.
    inlined : collection of str
        Those whose code is put where they are called.
    """
    found = dict(scope)
    for name in names:
        twin = FunctionType(found[name].__code__, found, name)
        inline: Literal["always", "never"] = "always" if name in inlined else "never"
        found[name] = numba.njit(error_model="numpy", nogil=True, inline=inline)(twin)
    return found


class _Sealed(CompileResultCacheImpl):
    """What is written is sealed by its digest: damaged machine code is never run."""

    def __init__(self, function: Callable[..., Any]) -> None:
        # Where a process has no home, the user's folder would be one called "~", wherever it is.
        if not os.path.isabs(AppDirs("numba", False).user_cache_dir):
            self._locator_classes = [
                each for each in self._locator_classes if "UserWide" not in each.__name__
            ]
        super().__init__(function)

    def reduce(self, result: Any) -> tuple[bytes, bytes]:
        text = dumps(super().reduce(result))
        return hashlib.sha256(text).digest(), text

    def rebuild(self, target: Any, kept: tuple[bytes, bytes]) -> Any:
        seal, text = kept
        if hashlib.sha256(text).digest() != seal:
            raise ValueError("the file is damaged")
        return super().rebuild(target, pickle.loads(text))


class _Kept(FunctionCache):
    """Numba's files of compiled code; whatever is the matter with them is as if there were none."""

    _impl_class = _Sealed

    def load_overload(self, signature: Any, target: Any) -> Any:
        try:
            return super().load_overload(signature, target)
        except Exception:  # noqa: BLE001  # reading a damaged pickle may raise anything
            with suppress(OSError):
                self.flush()  # or it would stand in the way of what is compiled now
            return None

    def save_overload(self, signature: Any, result: Any) -> None:
        # The disk is full, a damaged file that may not be replaced: the code is there all the same.
        with suppress(Exception):
            super().save_overload(signature, result)
