"""What workloads do to each other on one GPU, predicted from those that were measured.

Training needs scikit-learn (the extra ``muxflow``) for two of the four models; predicting needs
numpy alone, from a file of plain numbers.
"""

from __future__ import annotations

from .files import read_predictor, write_predictor
from .predictor import PredictedWeights, Prediction, Predictor
from .training import MODELS, Report, SplitReport, evaluate, train_predictor

__all__ = [
    "MODELS", "train_predictor", "Predictor", "Prediction", "PredictedWeights",
    "evaluate", "Report", "SplitReport", "read_predictor", "write_predictor",
]  # fmt: skip
