"""``cms colocate train``: from measured pairs to a predictor of pairs that were not measured."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import options
from .searching import heard
from .session import Exit, refuse_two_readers, session_of

if TYPE_CHECKING:
    from cms.fleet.colocation import MeasuredPair, Profiles
    from cms.fleet.colocation.predictor import Predictor, Report


def _models() -> tuple[str, ...]:
    from cms.fleet.colocation.predictor import MODELS

    return MODELS


_Pairs = Annotated[
    Path, typer.Argument(metavar="P.csv", help="What was measured of models in pairs.")
]
_Profiles = Annotated[
    Path | None,
    typer.Option(
        "--profiles", metavar="W.csv",
        help="What is known of the models: columns model, device and any others, such as family, "
        "batch, sm_activity.  [default: nothing but their names]",
    ),
]  # fmt: skip
_Probes = Annotated[
    list[str] | None,
    typer.Option(
        "--probe", metavar="MODEL",
        help="What happens beside this model becomes part of the profiles of all others; may be "
        "repeated.",
    ),
]  # fmt: skip
_Model = Annotated[
    str,
    typer.Option(
        "--model", metavar="NAME", help="boosting, ridge, mean or mlp.",
        autocompletion=options.offering(_models),
    ),
]  # fmt: skip
_Output = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="MODEL.json",
        help="Write the predictor there; '-' prints it instead of the report.",
    ),
]  # fmt: skip
_WrittenProfiles = Annotated[
    Path | None,
    typer.Option(
        "--write-profiles", metavar="W.csv",
        help="With --probe: write the profiles with what was added, to see what a further model's "
        "must have.",
    ),
]  # fmt: skip


def train(
    context: typer.Context,
    pairs: _Pairs,
    profiles: _Profiles = None,
    probe: _Probes = None,
    model: _Model = "boosting",
    seed: options.Seed = 0,
    output: _Output = None,
    write_profiles: _WrittenProfiles = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> int:
    """Train a predictor of how workloads slow each other.

    It says how well the predictor does on pairs that it never saw.

    Pairs are held out in five parts, and models by families (column family of W.csv) or one by one.
    """
    session = session_of(context)
    session.begin(None, json=json, quiet=quiet)
    outputs = (output, "--output"), (write_profiles, "--write-profiles")
    read = (pairs, "P.csv"), (profiles, "--profiles")
    session.refuse_unwritable(*outputs)
    refuse_two_readers(*read)
    if write_profiles is not None and not probe:
        raise options.usage_error("it goes with --probe", "--write-profiles")
    with session.reading("reading and fitting"):
        measured, known = _read(pairs, profiles, probe or [])
        trained, report = heard(session, lambda: _trained(measured, known, model, seed))
        from cms.fleet.colocation import write_profiles as written
        from cms.fleet.colocation.predictor.files import predictor_to_json

    def document() -> dict[str, Any]:
        return predictor_to_json(trained)

    if output is not None and str(output) == "-":
        session.print_json(document)
    elif json:
        session.print_json(lambda: _document(report, trained))
    elif not quiet:
        from cms.fleet.report.catalogue import trained_page

        session.print_page(trained_page(report, trained))
    if output is not None and str(output) != "-":
        session.write(document, output)
    if write_profiles is not None:
        written(known, write_profiles)
    return Exit.ANSWER


def _read(
    pairs: Path, profiles: Path | None, probes: list[str]
) -> tuple[tuple[MeasuredPair, ...], Profiles]:
    from cms.fleet.colocation import Profiles, probed, read_measured_pairs, read_profiles

    known = Profiles({}) if profiles is None else read_profiles(profiles)
    measured = read_measured_pairs(pairs)
    if probes:
        known, measured = probed(known, measured, probes)
    return measured, known


def _trained(
    measured: tuple[MeasuredPair, ...], known: Profiles, model: str, seed: int
) -> tuple[Predictor, Report]:
    from cms.fleet.colocation.predictor import evaluate, train_predictor

    report = evaluate(measured, known, model=model, seed=seed)
    return train_predictor(measured, known, model=model, seed=seed), report


def _document(report: Report, trained: Predictor) -> dict[str, Any]:
    return {
        "model": report.model,
        "seed": report.seed,
        "level": trained.level,
        "features": len(trained.features),
        "splits": [split._asdict() for split in report.splits],
    }
