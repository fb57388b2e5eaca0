"""What notebooks show of plans, deployments, GPUs, problems and solutions: their pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...values.views import View
from ...values.words import count
from .catalogue import gpu_page
from .deployments import deployment_page
from .figure import drawing
from .page import Page
from .plans import plan_page
from .problems import problem_page, solution_page
from .web import fragment

_PAGES: dict[str, Callable[[Any], Page]] = {
    "Plan": lambda plan: plan_page(plan, count(len(plan.services), "service")),
    "Deployment": lambda deployment: deployment_page(deployment, "Deployment"),
    "Gpu": gpu_page,
    "MachineProblem": problem_page,
    "Solution": solution_page,
}


def view(shown: Any) -> View:
    """Show an object of one of these classes: its page, and its drawing."""
    kind = next(kind.__name__ for kind in type(shown).__mro__ if kind.__name__ in _PAGES)
    return View(fragment(page := _PAGES[kind](shown)), drawing(page))
