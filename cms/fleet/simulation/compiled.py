"""The compiled loops; imported where there is much to do."""

from __future__ import annotations

from ...knapsack.machine_code import compile_functions
from . import alone as single
from . import kernel, state

_FUNCTIONS = ("most", "rise", "sink", "beats", "seed", "replay", "advance")
(advance,) = compile_functions(vars(kernel), _FUNCTIONS, ["advance"], [state.__file__])
"""What :func:`.kernel.advance` is, in machine code, without holding the interpreter."""

(alone,) = compile_functions(vars(single), ["alone"], ["alone"])
"""What :func:`.alone.alone` is, in machine code, without holding the interpreter."""
