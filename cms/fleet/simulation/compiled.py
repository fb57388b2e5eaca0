"""The compiled loops, which do not hold the interpreter; imported where there is much to do."""

from __future__ import annotations

from ...knapsack.machine_code import compile_functions
from . import kernel

_FUNCTIONS = ("rise", "sink", "beats", "seed", "replay", "advance")
(advance,) = compile_functions(vars(kernel), _FUNCTIONS, ["advance"])
(alone,) = compile_functions(vars(kernel), ["alone"], ["alone"])
