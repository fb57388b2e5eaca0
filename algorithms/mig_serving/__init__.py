"""MIG-serving's optimiser: a fast greedy, a tree search, and a genetic algorithm around both."""

from .fast import MigServingFast, MigServingFastOptions
from .search import MigServing, MigServingOptions

__all__ = ["MigServing", "MigServingFast", "MigServingFastOptions", "MigServingOptions"]
