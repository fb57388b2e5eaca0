"""Sharing: offline work beside online services on one GPU, matched for the most value.

Imports what ``serving`` may, and ``testing``.
"""

from __future__ import annotations

from ...referee.kinds import referee_of
from .certificate import AssignmentPrices, SharingReferee
from .classes import OfflineClass, OnlineClass, sm_share, waited_priority
from .files import (
    read_sharing_problem,
    read_sharing_solution,
    write_sharing_problem,
    write_sharing_solution,
)
from .predictor import PredictedWeights, read_predictor, train_predictor, write_predictor
from .problem import Pair, SharingPlan, SharingProblem
from .solution import SharingIncumbent, SharingSolution, share, sharing_faults
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

referee_of.register(SharingProblem, SharingReferee)

__all__ = [
    "OnlineClass", "OfflineClass", "SharingProblem", "sm_share",
    "share", "SharingSolution", "SharingIncumbent", "SharingPlan", "Pair",
    "AssignmentPrices", "sharing_faults",
    "MeasuredPair", "table_weights", "TableWeights", "Slowdown",
    "read_online", "read_named_gpus", "read_offline", "waited_priority", "read_measured_pairs",
    "Profiles", "read_profiles", "write_profiles", "probed",
    "PredictedWeights", "train_predictor", "read_predictor", "write_predictor",
    "buckets", "Buckets", "NamedGpus", "Assigned", "assign", "write_assignment",
    "read_sharing_problem", "write_sharing_problem",
    "read_sharing_solution", "write_sharing_solution",
]  # fmt: skip
