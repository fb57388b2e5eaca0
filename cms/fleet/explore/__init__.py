"""An app around the plan: rates, limits and GPUs are moved, the plan and its proof follow.

What is asked is a :class:`Question`; the page is drawn as by ``cms show``. The app itself is a
marimo notebook beside this file, which ``cms show --live`` starts.
"""

from .question import LIMITS, RATES, Question, asked_of, solved

__all__ = ["LIMITS", "RATES", "Question", "asked_of", "solved"]
