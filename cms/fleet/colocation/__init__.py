"""Sharing: offline work beside online services on one GPU, matched for the most value."""

from __future__ import annotations

from ...checker.kinds import checker_for
from .certificate import AssignmentPrices, ColocationChecker
from .files import (
    read_colocation_problem,
    read_colocation_solution,
    write_colocation_problem,
    write_colocation_solution,
)
from .predictor import PredictedWeights, read_predictor, train_predictor, write_predictor
from .problem import (
    ColocationPlan,
    ColocationProblem,
    OfflineClass,
    OnlineClass,
    Pair,
    sm_share,
    waited_priority,
)
from .solution import ColocationIncumbent, ColocationSolution, colocate, colocation_faults
from .tables import (
    Assigned,
    Buckets,
    NamedGpus,
    assign,
    buckets,
    read_measured_pairs,
    read_named_gpus,
    read_offline,
    read_online,
    write_assignment,
)
from .weights import (
    MeasuredPair,
    Profiles,
    Slowdown,
    TableWeights,
    probed,
    read_profiles,
    table_weights,
    write_profiles,
)

checker_for.register(ColocationProblem, ColocationChecker)

__all__ = [
    "OnlineClass", "OfflineClass", "ColocationProblem", "sm_share",
    "colocate", "ColocationSolution", "ColocationIncumbent", "ColocationPlan", "Pair",
    "AssignmentPrices", "colocation_faults",
    "MeasuredPair", "table_weights", "TableWeights", "Slowdown",
    "read_online", "read_named_gpus", "read_offline", "waited_priority", "read_measured_pairs",
    "Profiles", "read_profiles", "write_profiles", "probed",
    "PredictedWeights", "train_predictor", "read_predictor", "write_predictor",
    "buckets", "Buckets", "NamedGpus", "Assigned", "assign", "write_assignment",
    "read_colocation_problem", "write_colocation_problem",
    "read_colocation_solution", "write_colocation_solution",
]  # fmt: skip
