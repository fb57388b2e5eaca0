"""The JSON Schemas of the documents, generated from their models.

``python docs/_ext/document_schemas.py`` writes them to ``docs/reference/schemas``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import RootModel

from cms.files.documents import FORMATS
from cms.files.model import Document
from cms.files.problems import ProblemDocument, TimeSharedDocument
from cms.files.shards.folders import FolderDocument
from cms.files.solutions import SolutionDocument, SolutionFolderDocument
from cms.fleet.colocation.files import ColocationProblemDocument, ColocationSolutionDocument
from cms.fleet.colocation.predictor.files import PredictorDocument
from cms.fleet.deployment.document import DeploymentDocument
from cms.fleet.deployment.transition.document import TransitionDocument
from cms.fleet.published.muxflow_monitor import MonitorDocument
from cms.fleet.serving.plan_document import PlanDocument, SharedPlanDocument
from cms.fleet.simulation.colocation_loop.day import SharedDayDocument
from cms.fleet.simulation.result import SimulationDocument

FOLDER = Path(__file__).resolve().parents[1] / "reference" / "schemas"
MODELS: tuple[Any, ...] = (
    RootModel[ProblemDocument | TimeSharedDocument],
    SolutionDocument,
    RootModel[PlanDocument | SharedPlanDocument],
    FolderDocument,
    SolutionFolderDocument,
    DeploymentDocument,
    TransitionDocument,
    SimulationDocument,
    ColocationProblemDocument,
    ColocationSolutionDocument,
    SharedDayDocument,
    MonitorDocument,
    PredictorDocument,
)


def generate() -> dict[str, str]:
    """Return the text of each schema by the name of its file."""
    found = {}
    for model in MODELS:
        schema = _without_titles(model.model_json_schema())
        document = model
        if not issubclass(model, Document):
            document = model.model_fields["root"].annotation.__args__[0]
        kind = document.KIND
        whole = {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": f"{FORMATS[kind]} ({kind})",
            **schema,
        }
        name = f"{kind.removeprefix('cms-')}.schema.json"
        found[name] = json.dumps(whole, indent=1, ensure_ascii=False) + "\n"
    return found


def _without_titles(value: Any) -> Any:
    """Leave out the titles that only repeat the names of keys."""
    if isinstance(value, list):
        return [_without_titles(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        key: _without_titles(each)
        for key, each in value.items()
        if key != "title" or not isinstance(each, str)
    }


if __name__ == "__main__":
    for name, text in generate().items():
        (FOLDER / name).write_text(text, "utf-8")
