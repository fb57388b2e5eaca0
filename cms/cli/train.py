"""``cms colocate train``: from measured pairs to a predictor of pairs that were not measured."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from . import options
from .options import option
from .searching import heard
from .session import Exit, refuse_two_readers, session_of

_Pairs = Annotated[
    Path, typer.Argument(metavar="P.csv", help="What was measured of models in pairs.")
]
_Profiles = Annotated[
    Path | None,
    option(
        "W.csv", "What is known of the models: columns model, device and any others, such as "
        "family, batch, sm_activity.  [default: nothing but their names]",
    ),
]  # fmt: skip
_Probes = Annotated[
    list[str] | None,
    option(
        "MODEL", "What happens beside this model becomes part of the profiles of all others; may "
        "be repeated.",
    ),
]  # fmt: skip
_Model = Annotated[
    str,
    option(
        "NAME", "boosting, ridge, mean or mlp.",
        autocompletion=options.offering_from("cms.fleet.colocation.predictor", "MODELS"),
    ),
]  # fmt: skip
_WrittenProfiles = Annotated[
    Path | None,
    option(
        "W.csv", "With --probe: write the profiles with what was added, to see what a further "
        "model's must have.",
    ),
]  # fmt: skip


def train(
    context: typer.Context,
    pairs: _Pairs,
    profiles: _Profiles = None,
    probe: _Probes = None,
    model: _Model = "boosting",
    seed: options.Seed = 0,
    output: options.Output = None,
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
    session.refuse_unwritable((output, "--output"), (write_profiles, "--write-profiles"))
    refuse_two_readers((pairs, "P.csv"), (profiles, "--profiles"))
    if write_profiles is not None and not probe:
        raise options.usage_error("it goes with --probe", "--write-profiles")
    with session.reading("reading and fitting"):
        from cms.fleet import colocation as room
        from cms.fleet.colocation.predictor import evaluate, train_predictor
        from cms.fleet.colocation.predictor.files import predictor_to_json
        from cms.fleet.report.catalogue import trained_page

        known = room.Profiles({}) if profiles is None else room.read_profiles(profiles)
        measured = room.read_measured_pairs(pairs)
        if probe:
            known, measured = room.probed(known, measured, probe)
        how: dict[str, Any] = {"model": model, "seed": seed}
        report = heard(session, lambda: evaluate(measured, known, **how))
        trained = heard(session, lambda: train_predictor(measured, known, **how))

    def document() -> dict[str, Any]:
        return {
            "model": report.model,
            "seed": report.seed,
            "level": trained.level,
            "features": len(trained.features),
            "splits": [split._asdict() for split in report.splits],
        }

    to_pipe = output is not None and str(output) == "-"
    if to_pipe:
        session.print_json(lambda: predictor_to_json(trained))
    else:
        session.show(document, lambda: trained_page(report, trained), None)
        session.write(lambda: predictor_to_json(trained), output)
    if write_profiles is not None:
        room.write_profiles(known, write_profiles)
    return Exit.ANSWER
